//! Arcs between functions whose executions were counted.
//!
//! A call is an arc, and so is a jump to the start of another function: a tail call, or a stub of the linkage table.
//! The root calls functions without a caller, as signal handlers. A transfer from one piece of a function to another is
//! no arc, however it goes there.
//!
//! Code in assembly enters functions elsewhere too: it jumps into the middle of one, or goes on into the next one.
//! Such a jump is an arc only where nothing else enters the function. Where something does, such jumps mostly come back
//! from parts of one function that have symbols of their own, and arcs for them would make cycles of all of these.

use hashbrown::{HashMap, HashSet};
use treering_profile::{
    Arc, BranchCount, BranchKind, CodeAddress, CodeCounts, FunctionId, LineId, ModuleId, Profile,
    StatedAddress,
};

use crate::lazy_binding::Bound;
use crate::source_map::{Source, Sources};

/// Caller, callee and line of the call.
type Called = (FunctionId, FunctionId, Option<LineId>);

/// Whether control that comes from one function to another stays in one activation.
pub(crate) type Stays<'s> = dyn Fn(FunctionId, FunctionId) -> bool + 's;

/// An arc for every caller, callee and line of the call; `bound` tells which stubs the loader jumped on for, `stays`
/// which functions are pieces of one.
pub(crate) fn arcs(profile: &Profile, sources: &Sources, bound: &[Bound], stays: &Stays<'_>) -> Vec<Arc> {
    let entries: HashSet<_> = profile.functions.entries().iter().filter_map(|f| f.address).collect();
    // Most jumps stay within their function.
    let leads_in = |branch: &BranchCount| {
        !branch.kind.is_jump() || branch.target.is_some_and(|target| entries.contains(&target.address))
    };
    let branches: Vec<BranchCount> = of_all_threads(&profile.code).filter(leads_in).collect();
    // Sites are in order: what is known of them is found quickly if targets are not looked for in between.
    let sites: Vec<_> = branches.iter().map(|branch| branch.site.map(|site| sources.at(site))).collect();
    let starts = starts(profile);
    let calls = branches.iter().zip(sites).filter_map(|(branch, from)| {
        let target = branch.target?;
        // Of a function whose first instruction faults there may be no block.
        let start = || starts.get(&(profile.code.spaces[target.space].module?, target.address)).copied();
        let callee = sources.at(target).function.or_else(start)?;
        Some((arc(profile, branch, from, callee)?, branch.count))
    });
    let is_arc = |((caller, callee, _), _): &(Called, u64)| !stays(*caller, *callee);
    let mut calls: Vec<(Called, u64)> = calls.filter(is_arc).collect();
    calls.extend(entered_elsewhere(&profile.code, sources, &calls).into_iter().filter(is_arc));
    let calls = credited(added_up(calls), bound);
    let arcs = calls.into_iter().map(|((caller, callee, call_site), calls)| Arc {
        caller,
        callee,
        call_site,
        calls,
        total_costs: Vec::new(),
    });
    arcs.collect()
}

/// The branches of all threads, those that threads share once with the sum of their counts. Their thread says nothing.
pub(crate) fn of_all_threads(code: &CodeCounts) -> impl Iterator<Item = BranchCount> + '_ {
    let branches = code.branches.distinct();
    branches.map(|(row, threads)| BranchCount { count: row.count.saturating_mul(threads), ..row })
}

/// Functions by their modules and where they begin.
fn starts(profile: &Profile) -> HashMap<(ModuleId, StatedAddress), FunctionId> {
    let functions = (0..).map(FunctionId::new).zip(profile.functions.entries());
    functions.filter_map(|(id, function)| Some(((function.module?, function.address?), id))).collect()
}

fn added_up(mut calls: Vec<(Called, u64)>) -> Vec<(Called, u64)> {
    calls.sort_unstable();
    calls.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 = kept.1.saturating_add(if same { next.1 } else { 0 });
        same
    });
    calls
}

/// Caller, callee and call site, if a branch is a call of a function.
fn arc(profile: &Profile, branch: &BranchCount, from: Option<Source>, callee: FunctionId) -> Option<Called> {
    if branch.count == 0 {
        return None;
    }
    if matches!(branch.kind, BranchKind::Start | BranchKind::Signal) {
        return Some((Profile::ROOT, callee, None));
    }
    let from = from?;
    let caller = from.function?;
    let starts = profile.functions[callee].address == branch.target.map(|target| target.address);
    let is_call = branch.kind.is_call() || (branch.kind.is_jump() && caller != callee && starts);
    is_call.then_some((caller, callee, from.line))
}

/// How functions were entered that nothing calls: by jumps into their middle, and from the code before them.
fn entered_elsewhere(code: &CodeCounts, sources: &Sources, calls: &[(Called, u64)]) -> Vec<(Called, u64)> {
    let called: HashSet<FunctionId> = calls
        .iter()
        .filter(|((caller, callee, _), _)| caller != callee)
        .map(|((_, callee, _), _)| *callee)
        .collect();
    let uncalled = |function: Option<FunctionId>| function.filter(|function| !called.contains(function));
    if code.blocks.iter().all(|block| uncalled(block.function).is_none()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut arrivals: HashMap<CodeAddress, u64> = HashMap::new();
    for branch in of_all_threads(code).filter(|branch| branch.count > 0) {
        let Some(target) = branch.target else { continue };
        let Some(callee) = uncalled(sources.at(target).function) else { continue };
        let arrived = arrivals.entry(target).or_default();
        *arrived = arrived.saturating_add(branch.count);
        let from = branch.site.filter(|_| branch.kind.is_jump()).map(|site| sources.at(site));
        if let Some(Source { function: Some(caller), line }) =
            from.filter(|from| from.function != Some(callee))
        {
            found.push(((caller, callee, line), branch.count));
        }
    }
    found.extend(gone_on(code, sources, &arrivals, &uncalled));
    found
}

/// Code that goes on into the next function, if nothing calls that: as often as that was executed but not jumped to.
fn gone_on<'a>(
    code: &'a CodeCounts,
    sources: &'a Sources,
    arrivals: &'a HashMap<CodeAddress, u64>,
    uncalled: &'a impl Fn(Option<FunctionId>) -> Option<FunctionId>,
) -> impl Iterator<Item = (Called, u64)> + 'a {
    let mut executions = vec![0_u64; code.blocks.len()];
    for (row, threads) in code.executions.distinct() {
        let sum = &mut executions[row.block.index()];
        *sum = sum.saturating_add(row.executions.saturating_mul(threads));
    }
    code.blocks.windows(2).zip(1..).filter_map(move |(pair, at)| {
        let (before, block) = (&pair[0], &pair[1]);
        let callee = uncalled(block.function).filter(|_| before.end() == block.start)?;
        let caller = before.function.filter(|&caller| caller != callee && executions[at - 1] > 0)?;
        let arrived = arrivals.get(&block.start).copied().unwrap_or(0);
        let count = executions[at].saturating_sub(arrived).min(executions[at - 1]);
        let (last, _) = before.places().last()?;
        (count > 0).then(|| ((caller, callee, sources.at(last).line), count))
    })
}

/// Credits stubs with the calls that the loader made for them.
fn credited(mut calls: Vec<(Called, u64)>, bound: &[Bound]) -> Vec<(Called, u64)> {
    for one in bound {
        let mut left = one.calls;
        let made = calls
            .iter_mut()
            .filter(|((caller, callee, _), _)| (*caller, *callee) == (one.loader, one.callee));
        for (_, count) in made {
            let part = left.min(*count);
            (*count, left) = (*count - part, left - part);
        }
        if one.calls > left {
            calls.push(((one.stub, one.callee, None), one.calls - left));
        }
    }
    calls.retain(|(_, count)| *count > 0);
    added_up(calls)
}
