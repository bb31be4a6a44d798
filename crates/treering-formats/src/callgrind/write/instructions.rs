//! Costs by instruction, with jumps, for profiles whose executions were counted.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use treering_profile::{
    BranchCount, BranchKind, CodeAddress, CodeCounts, FunctionId, LineId, MetricId, Profile,
};

use super::{Home, Writer};

/// The lines that are written for each function.
pub(super) struct Instructions {
    /// By module and file, so that each is stated once.
    order: Vec<FunctionId>,
    rows: HashMap<FunctionId, BTreeMap<CodeAddress, Row>>,
    /// Calls without a caller, of threads and signal handlers.
    spontaneous: Vec<Call>,
}

/// An instruction.
#[derive(Default)]
struct Row {
    line: Option<LineId>,
    executions: u64,
    calls: Vec<Call>,
    jumps: Vec<Jump>,
}

/// Calls made by an instruction.
struct Call {
    callee: FunctionId,
    target: CodeAddress,
    count: u64,
    total_cost: u64,
}

/// Jumps made by an instruction.
struct Jump {
    function: Option<FunctionId>,
    target: CodeAddress,
    count: u64,
    conditional: bool,
}

impl Instructions {
    /// Of a profile that holds nothing but instructions and their arcs; nothing for others.
    pub(super) fn of(profile: &Profile) -> Option<Self> {
        let only = profile.metrics.len() == 1 && profile.metrics[0].name == "instructions";
        let code = &profile.code;
        let counted = || code.block_instructions() == profile.run_cost(MetricId::new(0));
        if !only || code.blocks.is_empty() || profile.tree.has_calls() || !counted() {
            return None;
        }
        let mut rows: HashMap<FunctionId, BTreeMap<CodeAddress, Row>> = HashMap::new();
        for (row, threads) in code.executions.distinct() {
            let block = &code.blocks[row.block.index()];
            let rows = rows.entry(block.function.unwrap_or(Profile::ROOT)).or_default();
            for (at, _) in block.places() {
                let known = rows.entry(at).or_insert_with(|| Row { line: code.line(at), ..Row::default() });
                let executions = row.executions.saturating_mul(threads);
                known.executions = known.executions.saturating_add(executions);
            }
        }
        let mut instructions = Self { order: rows.keys().copied().collect(), rows, spontaneous: Vec::new() };
        instructions.order.sort_by_key(|&function| {
            let known = &profile.functions[function];
            (known.module, known.file, function)
        });
        instructions.branches(profile);
        Some(instructions)
    }

    fn branches(&mut self, profile: &Profile) {
        let code = &profile.code;
        let mut counts: BTreeMap<_, u64> = BTreeMap::new();
        for (branch, threads) in code.branches.distinct().filter(|(branch, _)| branch.count > 0) {
            let known = counts.entry((branch.site, branch.target, branch.kind)).or_default();
            *known = known.saturating_add(branch.count.saturating_mul(threads));
        }
        let functions = FunctionsByPlace::of(code);
        let mut costs = ArcCosts::of(profile);
        for ((site, target, kind), count) in counts {
            let Some(target) = target else { continue };
            let row = BranchCount {
                thread: treering_profile::ThreadId::new(0),
                kind,
                site,
                target: Some(target),
                count,
            };
            self.branch(&functions, &mut costs, &row, target);
        }
        self.rest(profile, costs);
    }

    /// Calls that are no branch from one to the other, as those of stubs that the loader made, at the caller's first
    /// instruction.
    fn rest(&mut self, profile: &Profile, costs: ArcCosts) {
        let mut left: Vec<_> = costs
            .0
            .into_iter()
            .filter(|((caller, ..), (calls, _))| *calls > 0 && *caller != Profile::ROOT)
            .collect();
        left.sort_unstable();
        for ((caller, callee, _), (count, total_cost)) in left {
            let first = |function| self.rows.get(function)?.keys().next().copied();
            let Some(start) = first(&callee) else { continue };
            let address = profile.functions[callee].address.unwrap_or(start.address);
            let target = CodeAddress { address, ..start };
            if let Some(row) = self.rows.get_mut(&caller).and_then(|rows| rows.values_mut().next()) {
                row.calls.push(Call { callee, target, count, total_cost });
            }
        }
    }

    fn branch(
        &mut self,
        functions: &FunctionsByPlace<'_>,
        costs: &mut ArcCosts,
        branch: &BranchCount,
        target: CodeAddress,
    ) {
        let (kind, count) = (branch.kind, branch.count);
        let callee = functions.at(target);
        if matches!(kind, BranchKind::Start | BranchKind::Signal) {
            if let Some(callee) = callee {
                let total_cost = costs.take((Profile::ROOT, callee, None), count);
                self.spontaneous.push(Call { callee, target, count, total_cost });
            }
            return;
        }
        let Some(site) = branch.site else { return };
        let Some(caller) = functions.at(site) else { return };
        let Some(row) = self.rows.get_mut(&caller).and_then(|rows| rows.get_mut(&site)) else { return };
        let mut left = count;
        if let Some(callee) = callee.filter(|&callee| kind.is_call() || kind.is_jump() && caller != callee) {
            // Jumps are calls as far as there are arcs for them.
            let key = (caller, callee, row.line);
            let calls = if kind.is_call() { count } else { count.min(costs.left(&key)) };
            if calls > 0 {
                let total_cost = costs.take(key, calls);
                row.calls.push(Call { callee, target, count: calls, total_cost });
            }
            left -= calls;
        }
        if left > 0 && kind.is_jump() {
            let conditional = kind == BranchKind::Conditional;
            row.jumps.push(Jump { function: callee, target, count: left, conditional });
        }
    }
}

/// The functions of blocks, by place.
struct FunctionsByPlace<'a>(&'a CodeCounts);

impl<'a> FunctionsByPlace<'a> {
    fn of(code: &'a CodeCounts) -> Self {
        Self(code)
    }

    fn at(&self, at: CodeAddress) -> Option<FunctionId> {
        let after = self.0.blocks.partition_point(|block| block.start <= at);
        let block = &self.0.blocks[after.checked_sub(1)?];
        let inside = block.start.space == at.space && at.address.0 - block.start.address.0 < block.length();
        block.function.filter(|_| inside)
    }
}

type ArcKey = (FunctionId, FunctionId, Option<LineId>);

/// The costs of arcs, and how many of their calls are still to be written.
struct ArcCosts(HashMap<ArcKey, (u64, u64)>);

impl ArcCosts {
    fn of(profile: &Profile) -> Self {
        let cost = |arc: &treering_profile::Arc| arc.total_costs.first().map_or(0, |(_, cost)| *cost);
        let arcs = profile.arcs.iter();
        Self(arcs.map(|arc| ((arc.caller, arc.callee, arc.call_site), (arc.calls, cost(arc)))).collect())
    }

    /// How many calls of an arc are still to be written.
    fn left(&self, arc: &ArcKey) -> u64 {
        self.0.get(arc).map_or(0, |(left, _)| *left)
    }

    /// The part of an arc's cost that belongs to `calls` of its calls; all parts add up to it.
    fn take(&mut self, arc: ArcKey, calls: u64) -> u64 {
        let Some((left, cost)) = self.0.get_mut(&arc) else { return 0 };
        let part = match *left {
            0 => 0,
            left => (u128::from(*cost) * u128::from(calls.min(left)) / u128::from(left)) as u64,
        };
        *left = left.saturating_sub(calls);
        *cost -= part;
        part
    }
}

impl<W: Write> Writer<'_, W> {
    pub(super) fn instructions(&mut self, all: &Instructions) -> io::Result<()> {
        let mut last = None;
        for &function in &all.order {
            self.begin_function(function, last)?;
            let home = self.home(function);
            last = Some(home);
            let mut file = home.file;
            for (&at, row) in &all.rows[&function] {
                let line = self.line(row.line, &mut file)?;
                writeln!(self.output, "{} {line} {}", at.address, row.executions)?;
                for call in &row.calls {
                    self.call(call, home, file)?;
                    writeln!(self.output, "{} {line} {}", at.address, call.total_cost)?;
                }
                for jump in &row.jumps {
                    self.jump(jump, function, row.executions)?;
                    writeln!(self.output, "{} {line}", at.address)?;
                }
            }
        }
        if !all.spontaneous.is_empty() {
            self.begin_function(Profile::ROOT, last)?;
            let home = self.home(Profile::ROOT);
            for call in &all.spontaneous {
                self.call(call, home, home.file)?;
                writeln!(self.output, "0x0 0 {}", call.total_cost)?;
            }
        }
        writeln!(self.output)
    }

    fn call(&mut self, call: &Call, here: Home, file: treering_profile::StringId) -> io::Result<()> {
        let there = self.home(call.callee);
        if here.object != there.object {
            let object = self.object_name(there.object);
            writeln!(self.output, "cob={object}")?;
        }
        if file != there.file {
            let file = self.file_name(there.file);
            writeln!(self.output, "cfi={file}")?;
        }
        let name = self.function_name(call.callee, there);
        let line = self.line_number(call.target);
        writeln!(self.output, "cfn={name}\ncalls={} {} {line}", call.count, call.target.address)
    }

    fn jump(&mut self, jump: &Jump, here: FunctionId, executions: u64) -> io::Result<()> {
        if let Some(there) = jump.function.filter(|&there| there != here) {
            let home = self.home(there);
            let file = self.file_name(home.file);
            let name = self.function_name(there, home);
            writeln!(self.output, "jfi={file}\njfn={name}")?;
        }
        let line = self.line_number(jump.target);
        match jump.conditional {
            true => {
                let count = jump.count;
                writeln!(self.output, "jcnd={count}/{executions} {} {line}", jump.target.address)
            }
            false => writeln!(self.output, "jump={} {} {line}", jump.count, jump.target.address),
        }
    }

    /// The number of the line of an instruction, or 0.
    fn line_number(&self, at: CodeAddress) -> u32 {
        self.profile.code.line(at).map_or(0, |line| self.profile.lines[line].line)
    }
}
