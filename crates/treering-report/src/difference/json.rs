//! A difference as JSON, for programs. The keys are described in `docs/json.md`.

use serde::Serialize;
use treering_compare::code::CodeDifference;
use treering_compare::{Contexts, Difference, FunctionChange, PairedBy, Reason, Sides};

use super::verdict::Verdict;

#[derive(Serialize)]
struct Both<T> {
    base: T,
    head: T,
}

fn both<T, U>(sides: Sides<T>, make: impl FnMut(T) -> U) -> Both<U> {
    let Sides { base, head } = sides.map(make);
    Both { base, head }
}

#[derive(Serialize)]
struct Document<'a> {
    view: &'static str,
    verdict: VerdictObject<'a>,
    modules: Vec<ModuleObject<'a>>,
    unpaired_modules: Both<&'a [String]>,
    inlined: Vec<&'a str>,
    code: Option<CodeObject<'a>>,
    functions: Vec<FunctionObject<'a>>,
    arcs: Vec<ArcObject<'a>>,
    tree: Option<Vec<ContextObject<'a>>>,
}

#[derive(Serialize)]
struct VerdictObject<'a> {
    outcome: &'static str,
    text: String,
    metric: &'a str,
    run_cost: Both<u64>,
    runs: Both<usize>,
    change: Option<f64>,
    change_low: Option<f64>,
    change_high: Option<f64>,
    exact: bool,
    cause: Option<CauseObject<'a>>,
}

#[derive(Serialize)]
struct CauseObject<'a> {
    reason: &'static str,
    caller: Option<&'a str>,
    function: &'a str,
    calls: Option<Both<u64>>,
    instead_of: Option<&'a str>,
    with: Option<&'a str>,
    part: i128,
}

#[derive(Serialize)]
struct ModuleObject<'a> {
    names: Both<&'a str>,
    paired_by: &'static str,
    same_build: bool,
}

#[derive(Serialize)]
struct CodeObject<'a> {
    functions: usize,
    changed: Vec<&'a str>,
    constants_changed: &'a [String],
    compilers: Vec<CompilerObject<'a>>,
    renamed: Vec<Both<&'a str>>,
    not_compared: Vec<NotComparedObject<'a>>,
}

#[derive(Serialize)]
struct CompilerObject<'a> {
    module: &'a str,
    base: &'a str,
    head: &'a str,
}

#[derive(Serialize)]
struct NotComparedObject<'a> {
    module: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct FunctionObject<'a> {
    function: &'a str,
    base_name: Option<&'a str>,
    module: Option<&'a str>,
    in_base: bool,
    in_head: bool,
    self_cost: Both<u64>,
    total_cost: Option<Both<u64>>,
    calls: Option<Both<u64>>,
    self_change: i128,
    more_calls: Option<i128>,
    cost_per_call: Option<i128>,
    change_low: Option<f64>,
    change_high: Option<f64>,
    certain: bool,
    code_changed: Option<bool>,
}

#[derive(Serialize)]
struct ArcObject<'a> {
    caller: Option<&'a str>,
    callee: &'a str,
    calls: Option<Both<u64>>,
    total_cost: Both<u64>,
}

#[derive(Serialize)]
struct ContextObject<'a> {
    id: usize,
    parent: Option<usize>,
    function: &'a str,
    self_cost: Both<u64>,
    total_cost: Both<u64>,
    calls: Option<Both<u64>>,
}

/// The whole difference as JSON; the tree only where it is asked for. Names that several functions share stand once for
/// each.
pub fn difference_json(difference: &Difference, with_tree: bool) -> String {
    let groups = &difference.pairing.groups;
    let name = |group: usize| groups[group].name.as_str();
    let document = Document {
        view: "diff",
        verdict: verdict(difference),
        modules: difference
            .pairing
            .modules
            .iter()
            .map(|pair| ModuleObject {
                names: both(pair.names.as_ref(), |name| name.as_str()),
                paired_by: match pair.by {
                    PairedBy::BuildId => "build-id",
                    PairedBy::Name => "name",
                    PairedBy::Main => "program",
                },
                same_build: pair.same_build,
            })
            .collect(),
        unpaired_modules: both(difference.pairing.lone_modules.as_ref(), |names| names.as_slice()),
        inlined: difference
            .contexts
            .iter()
            .flat_map(|contexts| &contexts.inlined)
            .map(|&group| name(group))
            .collect(),
        code: difference.code.as_ref().map(code),
        functions: difference.functions.iter().map(|row| function(difference, row)).collect(),
        arcs: difference
            .arcs
            .iter()
            .map(|arc| ArcObject {
                caller: (arc.caller > 0).then(|| name(arc.caller)),
                callee: name(arc.callee),
                calls: has_calls(difference).then(|| both(arc.calls, |calls| calls)),
                total_cost: both(arc.total_cost, |cost| cost),
            })
            .collect(),
        tree: difference.contexts.as_ref().filter(|_| with_tree).map(|contexts| tree(difference, contexts)),
    };
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn verdict(difference: &Difference) -> VerdictObject<'_> {
    let verdict = Verdict::of(difference);
    let name = |group: usize| difference.pairing.groups[group].name.as_str();
    let cause = difference.cause.map(|cause| {
        let (reason, caller, calls, instead_of) = match cause.reason {
            Reason::Calls { caller, calls, instead_of } => ("calls", Some(caller), Some(calls), instead_of),
            Reason::CostPerCall { .. } => ("cost-per-call", None, None, None),
            Reason::ChangedCode { .. } => ("changed-code", None, None, None),
        };
        CauseObject {
            reason,
            caller: caller.filter(|&caller| caller > 0).map(name),
            function: name(cause.function),
            calls: calls.map(|calls| both(calls, |calls| calls)),
            instead_of: instead_of.map(|(group, _)| name(group)),
            with: match cause.reason {
                Reason::CostPerCall { with } => with.and_then(|with| with.function).map(name),
                _ => None,
            },
            part: cause.part,
        }
    });
    VerdictObject {
        outcome: verdict.outcome.as_str(),
        text: verdict.text,
        metric: &difference.metric,
        run_cost: both(difference.run, |run| run.cost),
        runs: both(difference.runs, |runs| runs),
        change: verdict.change,
        change_low: verdict.interval.map(|interval| interval.0),
        change_high: verdict.interval.map(|interval| interval.1),
        exact: difference.is_exact,
        cause,
    }
}

fn code(code: &CodeDifference) -> CodeObject<'_> {
    let compilers = code.compilers.iter();
    let not_compared = code.not_compared.iter();
    CodeObject {
        functions: code.functions,
        changed: code.changed.iter().map(String::as_str).collect(),
        constants_changed: &code.constants,
        compilers: compilers
            .map(|(module, Sides { base, head })| CompilerObject { module, base, head })
            .collect(),
        renamed: code.renamed.iter().map(|names| both(names.as_ref(), |name| name.as_str())).collect(),
        not_compared: not_compared.map(|(module, reason)| NotComparedObject { module, reason }).collect(),
    }
}

fn function<'a>(difference: &'a Difference, row: &'a FunctionChange) -> FunctionObject<'a> {
    let group = &difference.pairing.groups[row.group];
    FunctionObject {
        function: &row.name,
        base_name: group.other_name.as_deref(),
        module: group.module.as_deref(),
        in_base: !group.functions.base.is_empty(),
        in_head: !group.functions.head.is_empty(),
        self_cost: both(row.self_cost, |cost| cost.cost),
        total_cost: row.total_cost.map(|total| both(total, |cost| cost.cost)),
        calls: row.calls.map(|calls| both(calls, |calls| calls)),
        self_change: row.self_cost.change(),
        more_calls: row.split.map(|split| split.more_calls),
        cost_per_call: row.split.map(|split| split.cost_per_call),
        change_low: row.certainty.interval.map(|interval| interval.0),
        change_high: row.certainty.interval.map(|interval| interval.1),
        certain: row.certainty.is_certain,
        code_changed: row.code_changed,
    }
}

/// Whether both profiles know calls.
fn has_calls(difference: &Difference) -> bool {
    difference.functions.iter().any(|row| row.calls.is_some())
}

fn tree<'a>(difference: &'a Difference, contexts: &Contexts) -> Vec<ContextObject<'a>> {
    let nodes = contexts.nodes.iter().enumerate();
    nodes
        .map(|(id, node)| ContextObject {
            id,
            parent: node.parent,
            function: &difference.pairing.groups[node.group].name,
            self_cost: both(node.self_cost, |cost| cost),
            total_cost: both(node.total_cost, |cost| cost),
            calls: has_calls(difference).then(|| both(node.calls, |calls| calls)),
        })
        .collect()
}
