//! Profiles to write and read, and how two are compared.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use proptest::prelude::*;
use treering_profile::{
    Arc, Frame, Function, FunctionId, FunctionKind, Line, LineCost, LineId, Metric, MetricId, Module,
    ModuleId, ModuleKind, NodeId, Process, ProcessId, Profile, RecursionRule, Run, RunId, Source,
    StatedAddress, ThreadId, Unit,
};

/// Everything in a profile in a form that can be compared: two profiles are the same when their
/// tables agree entry by entry, and their line costs when joined.
pub fn canonical(profile: &Profile) -> Vec<String> {
    let mut joined = profile.clone();
    joined.compact_line_costs();
    let tree = &profile.tree;
    let costs: Vec<_> = profile.metrics().map(|(metric, _)| tree.self_costs(metric)).collect();
    vec![
        format!("{:?} {:?}", profile.metadata, profile.recursion),
        format!("{:?}", profile.strings.iter().collect::<Vec<_>>()),
        format!("{:?}", profile.modules),
        format!("{:?}", profile.functions),
        format!("{:?}", profile.lines),
        format!("{:?} {:?}", profile.runs, profile.processes),
        format!("{:?}", profile.threads),
        format!("{:?}", profile.metrics),
        format!("{:?}", tree.parent_column()),
        format!("{:?} {:?}", tree.function_column(), tree.call_site_column()),
        format!("{:?} {:?}", tree.calls_column(), tree.recursive_calls_column()),
        format!("{costs:?}"),
        format!("{:?}", joined.line_costs),
        format!("{:?}", profile.arcs),
        format!("{:?}", profile.sources),
    ]
}

/// One step of making a profile. Indexes are taken modulo what there is.
#[derive(Clone, Debug)]
pub enum Step {
    Function { name: String, file: String, line: u32, module: Option<u8>, address: Option<u64>, kind: u8 },
    Module { path: String, build_id: Vec<u8>, kind: u8 },
    Line { file: String, line: u32 },
    Thread { tid: u32, name: String },
    Process { pid: u32, name: String },
    Stack { thread: u8, frames: Vec<(u8, Option<u8>)>, line: Option<u8>, costs: [u32; 2] },
    Calls { node: u8, calls: u32, recursive: u32 },
    Arc { caller: u8, callee: u8, line: Option<u8>, calls: u64, cost: Option<u32> },
    Source { file: String, text: String },
}

fn stack() -> impl Strategy<Value = Step> {
    let frames = prop::collection::vec(any::<(u8, Option<u8>)>(), 0..6);
    (any::<u8>(), frames, any::<Option<u8>>(), any::<[u32; 2]>())
        .prop_map(|(thread, frames, line, costs)| Step::Stack { thread, frames, line, costs })
}

/// Any step.
pub fn step() -> impl Strategy<Value = Step> {
    let text = "[a-z:<;> ]{0,9}";
    prop_oneof![
        (text, text, any::<u32>(), any::<Option<u8>>(), any::<Option<u64>>(), any::<u8>()).prop_map(
            |(name, file, line, module, address, kind)| Step::Function {
                name,
                file,
                line,
                module,
                address,
                kind
            }
        ),
        (text, any::<Vec<u8>>(), any::<u8>()).prop_map(|(path, build_id, kind)| Step::Module {
            path,
            build_id,
            kind
        }),
        (text, any::<u32>()).prop_map(|(file, line)| Step::Line { file, line }),
        (any::<u32>(), text).prop_map(|(tid, name)| Step::Thread { tid, name }),
        (any::<u32>(), text).prop_map(|(pid, name)| Step::Process { pid, name }),
        stack(),
        stack(),
        stack(),
        any::<(u8, u32, u32)>().prop_map(|(node, calls, recursive)| Step::Calls { node, calls, recursive }),
        any::<(u8, u8, Option<u8>, u64, Option<u32>)>().prop_map(|(caller, callee, line, calls, cost)| {
            Step::Arc { caller, callee, line, calls, cost }
        }),
        (text, text).prop_map(|(file, text)| Step::Source { file, text }),
    ]
}

/// A profile with two metrics, one run, one process and one thread, for steps to start from.
pub fn empty_profile() -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    profile.metadata.collector = "test".to_owned();
    profile.metadata.note("made up");
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    profile.add_metric(Metric::sampled("cpu-clock", Unit::Nanoseconds, samples, Some(1_000_000)));
    let run = profile.add_run(Run { command: vec!["./a.out".to_owned()], ..Run::default() });
    let process = profile.add_process(Process { run, pid: 10, name: "a.out".to_owned() });
    profile.add_thread(process, 10, "main");
    profile
}

/// Carries out a step.
pub fn apply(profile: &mut Profile, step: &Step) {
    match step {
        Step::Function { name, file, line, module, address, kind } => {
            let modules = profile.modules.len();
            let module = module.and_then(|at| pick(at, modules)).map(ModuleId::from_usize);
            let kinds = FunctionKind::ALL.into_iter().filter(|&kind| kind != FunctionKind::Root);
            let kinds: Vec<_> = kinds.collect();
            let function = Function {
                module,
                file: profile.strings.intern(file),
                line: *line,
                address: address.map(StatedAddress),
                kind: kinds[*kind as usize % kinds.len()],
                ..Function::named(profile.strings.intern(name))
            };
            profile.functions.intern(function);
        }
        Step::Module { path, build_id, kind } => {
            let path = profile.strings.intern(path);
            let kind = ModuleKind::ALL[*kind as usize % ModuleKind::ALL.len()];
            profile.modules.intern(Module { path, build_id: build_id.as_slice().into(), kind });
        }
        Step::Line { file, line } => {
            let file = profile.strings.intern(file);
            profile.lines.intern(Line { file, line: *line });
        }
        Step::Thread { tid, name } => {
            let process = ProcessId::from_usize(profile.processes.len() - 1);
            profile.add_thread(process, *tid, name.clone());
        }
        Step::Process { pid, name } => {
            profile.add_process(Process { run: RunId::new(0), pid: *pid, name: name.clone() });
        }
        Step::Stack { thread, frames, line, costs } => add_stack(profile, *thread, frames, *line, costs),
        Step::Calls { node, calls, recursive } => {
            let node = NodeId::from_usize(*node as usize % profile.tree.len());
            profile.tree.add_calls(node, u64::from(*calls), u64::from(*recursive));
        }
        Step::Arc { caller, callee, line, calls, cost } => {
            let arc = Arc {
                caller: function(profile, *caller),
                callee: function(profile, *callee),
                call_site: line.and_then(|at| self::line(profile, at)),
                calls: *calls,
                total_costs: cost.iter().map(|&cost| (MetricId::new(1), cost.into())).collect(),
            };
            profile.add_arc(arc);
        }
        Step::Source { file, text } => {
            let file = profile.strings.intern(file);
            profile.sources.push(Source { file, text: text.as_str().into() });
        }
    }
}

fn add_stack(
    profile: &mut Profile,
    thread: u8,
    frames: &[(u8, Option<u8>)],
    at_line: Option<u8>,
    costs: &[u32; 2],
) {
    let thread = ThreadId::from_usize(thread as usize % profile.threads.len());
    let frames: Vec<_> = frames
        .iter()
        .filter(|_| profile.functions.len() > 1)
        .map(|&(callee, site)| Frame {
            function: function(profile, callee),
            call_site: site.and_then(|at| line(profile, at)),
        })
        .collect();
    let line = at_line.and_then(|at| line(profile, at));
    let weights = [(MetricId::new(0), costs[0].into()), (MetricId::new(1), costs[1].into())];
    profile.add_stack(thread, &frames, line, &weights);
}

fn pick(at: u8, length: usize) -> Option<usize> {
    usize::from(at).checked_rem(length)
}

/// Any function but the root, which nothing calls; the root only where there is no other.
fn function(profile: &Profile, at: u8) -> FunctionId {
    FunctionId::from_usize(pick(at, profile.functions.len() - 1).map_or(0, |at| at + 1))
}

fn line(profile: &Profile, at: u8) -> Option<LineId> {
    pick(at, profile.lines.len()).map(LineId::from_usize)
}

/// A profile made by some steps.
pub fn profile(steps: &[Step]) -> Profile {
    let mut profile = empty_profile();
    for step in steps {
        apply(&mut profile, step);
    }
    profile
}

/// The sum of self costs for each function and metric, by (name, module, metric name); and the
/// run costs. What a format must keep.
pub fn totals(profile: &Profile) -> std::collections::BTreeMap<(String, String), u64> {
    let mut totals = std::collections::BTreeMap::new();
    for (metric, description) in profile.metrics() {
        for node in profile.tree.nodes() {
            let function = profile.functions[profile.tree.function(node)];
            let name = profile.strings[function.name].to_owned();
            *totals.entry((name, description.name.clone())).or_default() +=
                profile.tree.self_cost(metric, node);
        }
    }
    totals.retain(|_, cost| *cost > 0);
    totals
}

/// A line cost without a node, for tests that add some.
pub fn line_cost(node: u32, line: u32, metric: u32, cost: u64) -> LineCost {
    LineCost { node: NodeId::new(node), line: LineId::new(line), metric: MetricId::new(metric), cost }
}

/// A fixture of `fixtures/formats`, by its path there.
pub fn fixture(path: &str) -> Vec<u8> {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/formats/");
    let path = format!("{fixtures}{path}");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every fixture.
pub const FIXTURES: [&str; 8] = [
    "callgrind/instructions.callgrind",
    "callgrind/parts.callgrind",
    "callgrind/plain.callgrind",
    "callgrind/recursion.callgrind",
    "callgrind/uncompressed.callgrind",
    "folded/py-spy.folded",
    "pprof/cpu.pb.gz",
    "trg/small.trg",
];
