//! Profiles of programs whose functions report their calls: addresses are starts of functions.
#![expect(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object as _, ObjectSymbol as _};
use treering_profile::{
    ActivationStatistics, Activations, Benchmark, CallBias, Frame, Function, FunctionId, FunctionKind,
    Metric, MetricId, Module, ModuleKind, NodeId, NodeMemory, Point, Ports, Profile, RecursionRule, SizeCost,
    StatedAddress, ThreadId, Unit,
};
use treering_symbols::{JitTable, Options, perf_map, symbolise};

const TIME: MetricId = MetricId::new(0);
const LEVEL: MetricId = MetricId::new(1);

fn profile(rule: RecursionRule) -> (Profile, ThreadId) {
    let mut profile = Profile::new(rule);
    assert_eq!(profile.add_metric(Metric::exact("time", Unit::Nanoseconds)), TIME);
    assert_eq!(profile.add_metric(Metric::level("resident memory", Unit::Bytes)), LEVEL);
    let thread = profile.add_single_thread("demo");
    (profile, thread)
}

fn address(profile: &mut Profile, path: &str, kind: ModuleKind, address: u64) -> FunctionId {
    let path = profile.strings.intern(path);
    let module = profile.modules.intern(Module { path, build_id: Box::default(), kind });
    profile.functions.intern(Function::at_address(Some(module), StatedAddress(address)))
}

/// Adds a chain of callers; its last function was called so often, for a microsecond each.
fn call(profile: &mut Profile, thread: ThreadId, stack: &[FunctionId], calls: u64) -> NodeId {
    let frames: Vec<Frame> = stack.iter().copied().map(Frame::new).collect();
    let node = profile.add_stack(thread, &frames, None, &[(TIME, 1000 * calls)]);
    profile.tree.add_calls(node, calls, 0);
    node
}

fn named(profile: &Profile, options: &Options<'_>) -> Profile {
    let named = symbolise(profile, options, &mut |_| {}).profile;
    assert_eq!(named.validate(), Ok(()));
    named
}

/// The only node of the function of that name.
fn node(profile: &Profile, name: &str) -> NodeId {
    let is_it =
        |node: &NodeId| &profile.strings[profile.functions[profile.tree.function(*node)].name] == name;
    let mut found = profile.tree.nodes().filter(is_it);
    let node = found.next().unwrap_or_else(|| panic!("no {name} in {:?}", names(profile)));
    assert_eq!(found.next(), None, "{name} has more than one node");
    node
}

fn names(profile: &Profile) -> Vec<&str> {
    let functions = profile.tree.nodes().skip(1).map(|node| profile.tree.function(node));
    functions.map(|function| &profile.strings[profile.functions[function].name]).collect()
}

fn statistics() -> ActivationStatistics {
    ActivationStatistics {
        timed: 4,
        total: 4000,
        least: 900,
        greatest: 1100,
        mean: 1000.0,
        squares: 20_000.0,
        calm: 4,
        calm_total: 4000,
    }
}

const MAP: &str = "1000 100 outer\n2000 100 inner\n";

/// `outer` calls `inner` four times, and everything is known of `inner` that can be.
fn with_details() -> Profile {
    let (mut profile, thread) = profile(RecursionRule::Direct);
    let [outer, inner] = [0x1000, 0x2000].map(|at| address(&mut profile, "[jit 7]", ModuleKind::Jit, at));
    call(&mut profile, thread, &[outer], 1);
    let inner = call(&mut profile, thread, &[outer, inner], 4);
    profile.tree.add_calls(inner, 2, 2);
    let mut activations = Activations::new(TIME);
    *activations.nodes.row(inner) = statistics();
    activations.sizes.push(SizeCost { node: inner, bucket: 3, calls: 4, total_cost: 4000 });
    profile.activations = Some(activations);
    *profile.ports.row(inner) = Ports::from_counts([3, 2, 1, 0, 0]);
    *profile.memory.row(inner) = NodeMemory { live_bytes: 64, peak_bytes: 128 };
    let description = profile.strings.intern("half of it");
    profile.points.push(Point { time_ns: 5, thread, node: inner, description, values: vec![(LEVEL, 4096)] });
    profile.metadata.call_bias =
        Some(CallBias { inside_ns: 1.0, empty_outside_ns: 9.0, ..CallBias::default() });
    profile.metadata.benchmark = Some(Benchmark { name: "demo".to_owned(), ..Benchmark::default() });
    assert_eq!(profile.validate(), Ok(()));
    profile
}

#[test]
fn details_beside_costs_stay_with_the_function() {
    let before = with_details();
    let jit = vec![("[jit 7]".into(), JitTable::from_perf_map(perf_map::parse(MAP)))];
    let after = named(&before, &Options { jit, ..Options::default() });
    let inner = node(&after, "inner");
    assert_eq!(after.recursion, RecursionRule::Direct);
    assert_eq!((after.tree.calls(inner), after.tree.recursive_calls(inner)), (6, 2));
    let activations = after.activations.as_ref().expect("statistics are kept");
    assert_eq!((activations.metric, activations.nodes.get(inner)), (TIME, statistics()));
    assert_eq!(activations.sizes, [SizeCost { node: inner, bucket: 3, calls: 4, total_cost: 4000 }]);
    assert_eq!(after.ports.get(inner), Ports::from_counts([3, 2, 1, 0, 0]));
    assert_eq!(after.memory.get(inner), NodeMemory { live_bytes: 64, peak_bytes: 128 });
    let point = &after.points[0];
    assert_eq!((point.node, &after.strings[point.description]), (inner, "half of it"));
    assert_eq!(point.values, [(LEVEL, 4096)]);
    assert_eq!(after.metadata.call_bias, before.metadata.call_bias);
    assert_eq!(after.metadata.benchmark, before.metadata.benchmark);
}

#[test]
fn functions_without_names_stay_apart() {
    let (mut profile, thread) = profile(RecursionRule::Direct);
    let first = address(&mut profile, "/not/there/solver", ModuleKind::Elf, 0x1100);
    let second = address(&mut profile, "/not/there/solver", ModuleKind::Elf, 0x1200);
    call(&mut profile, thread, &[first], 1);
    call(&mut profile, thread, &[first, second], 3);
    let after = named(&profile, &Options::default());
    assert_eq!(names(&after), ["solver+0x1100", "solver+0x1200"]);
    let inner = node(&after, "solver+0x1200");
    assert_eq!((after.tree.calls(inner), after.tree.recursive_calls(inner)), (3, 0));
    assert_eq!(after.functions[after.tree.function(inner)].kind, FunctionKind::Unresolved);
}

/// The first instruction of `outer` is one of `inner`, inlined.
const INLINED: &str = "\
static inline __attribute__((always_inline)) int inner(int *at) { return *at * 3; }
__attribute__((noinline)) int outer(int *at) { return inner(at); }
int main(int count, char **words) { return outer(&count) + (words == 0); }
";

fn compiled() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("entered");
    std::fs::create_dir_all(&folder).expect("the target directory is writable");
    let (source, program) = (folder.join("inlined.c"), folder.join("inlined"));
    std::fs::write(&source, INLINED).expect("the target directory is writable");
    let mut gcc = Command::new("gcc");
    gcc.args(["-g", "-O2", "-fcf-protection=none", "-o"]).arg(&program).arg(&source);
    let status = gcc.status().ok()?;
    assert!(status.success());
    Some(program)
}

fn start_of(program: &Path, name: &str) -> u64 {
    let bytes = std::fs::read(program).expect("it was just made");
    let file = object::File::parse(&*bytes).expect("it is a program");
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).expect("it has the symbol");
    symbol.address()
}

#[test]
fn a_function_that_reports_its_calls_is_no_function_inlined_at_its_start() {
    let Some(program) = compiled() else {
        eprintln!("SKIPPED: gcc is not installed");
        return;
    };
    let (mut profile, thread) = profile(RecursionRule::Direct);
    let path = program.to_str().expect("the target directory is UTF-8");
    let outer = address(&mut profile, path, ModuleKind::Elf, start_of(&program, "outer"));
    let sampled = profile.clone();
    call(&mut profile, thread, &[outer], 2);
    let after = named(&profile, &Options::default());
    assert_eq!(names(&after), ["outer"]);
    assert!(after.line_costs.is_empty(), "the start of a function is not where time passed");
    let function = &after.functions[after.tree.function(node(&after, "outer"))];
    assert_eq!((function.kind, function.line), (FunctionKind::Native, 2));

    // The same address in a sample is a place in the code.
    let mut sampled = sampled;
    sampled.add_stack(thread, &[Frame::new(outer)], None, &[(TIME, 1)]);
    assert_eq!(names(&named(&sampled, &Options::default())), ["outer", "inner"]);
}
