//! Profiles to write and read, and how two are compared.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use treering_formats::{Binaries, Kernel, Position, ReadError};
use treering_profile::{
    Activations, AddressCost, Arc, BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind,
    CodeAddress, CodeBytes, CodeCounts, CodeLine, CodeSpace, FileOffset, Frame, Function, FunctionId,
    FunctionKind, Line, LineId, Metric, MetricId, Module, ModuleId, ModuleKind, NodeId, NodeMemory,
    PartialCount, Point, Ports, Process, ProcessId, Profile, RecursionRule, Run, RunId, Segment, SegmentMap,
    SizeCost, Source, StatedAddress, ThreadId, TranslatedBlock, Uncounted, UncountedReason, Unit,
};

/// Whether an error has its place in the first `length` bytes, or is one of the whole.
pub(crate) fn is_within(error: &ReadError, length: usize) -> bool {
    match error.position {
        Position::Whole => true,
        Position::Byte(offset) | Position::Line { offset, .. } => offset <= length as u64,
        _ => false,
    }
}

/// Binaries as `/bin/mix`, whose code at 0x1000 of the file is to be at 0x401000, and the kernel that files made by hand
/// are of.
pub(crate) struct Here;

impl Binaries for Here {
    fn segments(&mut self, path: &str, _: &[u8]) -> Option<SegmentMap> {
        let segment = Segment {
            executable: true,
            file_offset: FileOffset(0x1000),
            stated_address: StatedAddress(0x40_1000),
            file_size: 0x2000,
            memory_size: 0x2000,
        };
        (path == "/bin/mix").then(|| SegmentMap::new(vec![segment]))
    }

    fn is_running_kernel(&mut self, kernel: &Kernel) -> bool {
        *kernel == Kernel { build_id: Vec::new(), symbol: "_text".to_owned(), address: 0xffff_8000 }
    }
}

/// Everything in a profile in a form that can be compared: two profiles are the same when their
/// tables agree entry by entry, and their line costs when joined.
pub(crate) fn canonical(profile: &Profile) -> Vec<String> {
    let mut joined = profile.clone();
    joined.compact_line_costs();
    joined.compact_address_costs();
    joined.activations.iter_mut().for_each(Activations::compact_sizes);
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
        format!("{:?}", joined.address_costs),
        format!("{:?}", profile.arcs),
        format!("{:?}", profile.sources),
        format!(
            "{:?}",
            joined.activations.as_ref().map(|of| (of.metric, of.nodes.filled().collect::<Vec<_>>()))
        ),
        format!("{:?}", joined.activations.as_ref().map(|of| &of.sizes)),
        format!("{:?}", profile.ports.filled().collect::<Vec<_>>()),
        format!("{:?}", profile.memory.filled().collect::<Vec<_>>()),
        format!("{:?}", profile.points),
        format!("{:?}", code(&joined)),
    ]
}

/// The counts of code, joined.
fn code(profile: &Profile) -> CodeCounts {
    let mut code = profile.code.clone();
    code.compact();
    code
}

/// Adds something of every kind that is known of code: the loop of the documentation of
/// `CodeCounts`, in both stages.
pub(crate) fn add_code(profile: &mut Profile, thread: ThreadId, function: FunctionId, line: LineId) {
    let path = profile.strings.intern("[jit 7]");
    let module = Module { path, build_id: Box::default(), kind: ModuleKind::Jit };
    let module = Some(profile.modules.intern(module));
    let code = &mut profile.code;
    let space = code.spaces.intern(CodeSpace { module, generation: 2 });
    let at = |address| CodeAddress { space, address: StatedAddress(address) };
    let bytes = [0x48, 0xff, 0xc0, 0x3c, 0x05, 0x75, 0xf9].into();
    code.bytes = vec![CodeBytes { start: at(0x10), bytes }];
    let block = |start, length, instructions, executions| TranslatedBlock {
        thread,
        start: at(start),
        length,
        instructions,
        executions,
    };
    code.translated = [block(0x10, 7, 3, 4), block(0x13, 4, 2, 2)].into();
    code.partials =
        vec![PartialCount { thread, start: at(0x15), length: 2, instructions: 1, executions: -1 }];
    code.blocks = vec![
        BasicBlock { start: at(0x10), lengths: [3][..].into(), function: Some(function) },
        BasicBlock { start: at(0x13), lengths: [2, 2][..].into(), function: None },
    ];
    let rows = [(0, 4), (1, 5)];
    code.executions = rows
        .map(|(block, executions)| BlockExecutions { thread, block: BlockId::new(block), executions })
        .into();
    let branch = |kind, site: Option<u64>, target: Option<u64>, count| BranchCount {
        thread,
        kind,
        site: site.map(at),
        target: target.map(at),
        count,
    };
    code.branches = [
        branch(BranchKind::Start, None, Some(0x13), 1),
        branch(BranchKind::Conditional, Some(0x15), Some(0x10), 4),
    ]
    .into();
    code.lines =
        vec![CodeLine { start: at(0x10), line: Some(line) }, CodeLine { start: at(0x15), line: None }];
    code.uncounted = vec![Uncounted {
        reason: UncountedReason::NotFollowed,
        process: Some(ProcessId::new(0)),
        thread: None,
        at: Some(at(0x15)),
        detail: path,
    }];
}

/// Adds a cost at an address of a function, in the first metric.
pub(crate) fn add_address_cost(profile: &mut Profile, thread: ThreadId, function: FunctionId, line: LineId) {
    let (address, metric) = (StatedAddress(0x13), MetricId::new(0));
    let row =
        AddressCost { thread, function, holder: function, address, line: Some(line), metric, cost: 300 };
    profile.address_costs.push(row);
}

/// One step of making a profile. Indexes are taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Function { name: String, file: String, line: u32, module: Option<u8>, address: Option<u64>, kind: u8 },
    Module { path: String, build_id: Vec<u8>, kind: u8 },
    Line { file: String, line: u32 },
    Thread { tid: u32, name: String },
    Process { pid: u32, name: String },
    Stack { thread: u8, frames: Vec<(u8, Option<u8>)>, line: Option<u8>, costs: [u32; 2] },
    Calls { node: u8, calls: u32, recursive: u32 },
    Arc { caller: u8, callee: u8, line: Option<u8>, calls: u64, cost: Option<u32> },
    Source { file: String, text: String },
    Activation { node: u8, cost: u32, size: Option<u64> },
    Ports { node: u8, ports: [u32; 5] },
    Memory { node: u8, live: u32, peak: u32 },
    Address { thread: u8, functions: [u8; 2], address: u64, line: Option<u8>, cost: u32 },
    Point { time: u32, thread: u8, node: u8, text: String, values: Vec<u64> },
}

fn stack() -> impl Strategy<Value = Step> {
    let frames = prop::collection::vec(any::<(u8, Option<u8>)>(), 0..6);
    (any::<u8>(), frames, any::<Option<u8>>(), any::<[u32; 2]>())
        .prop_map(|(thread, frames, line, costs)| Step::Stack { thread, frames, line, costs })
}

/// Any step.
pub(crate) fn step() -> impl Strategy<Value = Step> {
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
        any::<(u8, u32, Option<u64>)>().prop_map(|(node, cost, size)| Step::Activation { node, cost, size }),
        any::<(u8, [u32; 5])>().prop_map(|(node, ports)| Step::Ports { node, ports }),
        any::<(u8, u32, u32)>().prop_map(|(node, live, peak)| Step::Memory { node, live, peak }),
        any::<(u8, [u8; 2], u64, Option<u8>, u32)>().prop_map(|(thread, functions, address, line, cost)| {
            Step::Address { thread, functions, address, line, cost }
        }),
        (any::<(u32, u8, u8)>(), text, prop::collection::vec(any::<u64>(), 0..3)).prop_map(
            |((time, thread, node), text, values)| Step::Point { time, thread, node, text, values }
        ),
    ]
}

/// A profile with two metrics of costs and one of a level, one run, one process and one thread, for steps to start from.
pub(crate) fn empty_profile() -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    profile.metadata.collector = "test".to_owned();
    profile.metadata.note("made up");
    let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
    profile.add_metric(Metric::sampled("cpu-clock", Unit::Nanoseconds, samples, Some(1_000_000)));
    profile.add_metric(Metric::level("resident memory", Unit::Bytes));
    let run = profile.add_run(Run { command: vec!["./a.out".to_owned()], ..Run::default() });
    let process = profile.add_process(Process { run, pid: 10, name: "a.out".to_owned() });
    profile.add_thread(process, 10, "main");
    profile
}

/// Carries out a step.
pub(crate) fn apply(profile: &mut Profile, step: &Step) {
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
            let node = any_node(profile, *node);
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
        details => apply_detail(profile, details),
    }
}

/// Carries out a step that adds details of nodes.
fn apply_detail(profile: &mut Profile, step: &Step) {
    match step {
        Step::Activation { node, cost, size } => {
            let node = any_node(profile, *node);
            let activations = profile.activations.get_or_insert_with(|| Activations::new(MetricId::new(1)));
            activations.nodes.row(node).add(u64::from(*cost));
            if let Some(size) = size {
                let bucket = SizeCost::bucket_of(*size);
                activations.sizes.push(SizeCost { node, bucket, calls: 1, total_cost: u64::from(*cost) });
            }
        }
        Step::Ports { node, ports } => {
            let node = any_node(profile, *node);
            profile.ports.row(node).add(&Ports::from_counts(ports.map(|count| u64::from(count) + 1)));
        }
        Step::Memory { node, live, peak } => {
            let memory = NodeMemory { live_bytes: u64::from(*live), peak_bytes: u64::from(*peak) + 1 };
            *profile.memory.row(any_node(profile, *node)) = memory;
        }
        Step::Address { thread, functions, address, line, cost } => {
            let row = AddressCost {
                thread: ThreadId::from_usize(usize::from(*thread) % profile.threads.len()),
                function: function(profile, functions[0]),
                holder: function(profile, functions[1]),
                address: StatedAddress(*address),
                line: line.and_then(|at| self::line(profile, at)),
                metric: MetricId::new(1),
                cost: u64::from(*cost),
            };
            profile.address_costs.push(row);
        }
        Step::Point { time, thread, node, text, values } => {
            let point = Point {
                time_ns: u64::from(*time),
                thread: ThreadId::from_usize(usize::from(*thread) % profile.threads.len()),
                node: any_node(profile, *node),
                description: profile.strings.intern(text),
                values: values.iter().map(|&value| (MetricId::new(2), value)).collect(),
            };
            profile.points.push(point);
        }
        other => panic!("{other:?} is no detail of a node"),
    }
}

fn any_node(profile: &Profile, at: u8) -> NodeId {
    NodeId::from_usize(usize::from(at) % profile.tree.len())
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
pub(crate) fn profile(steps: &[Step]) -> Profile {
    let mut profile = empty_profile();
    for step in steps {
        apply(&mut profile, step);
    }
    profile
}

/// The sum of self costs for each function and metric, by (name, module, metric name); and the
/// run costs. What a format must keep.
pub(crate) fn totals(profile: &Profile) -> std::collections::BTreeMap<(String, String), u64> {
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

/// A fixture of `fixtures/formats`, by its path there.
pub(crate) fn fixture(path: &str) -> Vec<u8> {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/formats/");
    let path = format!("{fixtures}{path}");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every fixture.
pub(crate) const FIXTURES: &[&str] = &[
    "austin/full.mojo",
    "austin/wall.mojo",
    "austin/wall.txt",
    "callgrind/instructions.callgrind",
    "callgrind/parts.callgrind",
    "callgrind/plain.callgrind",
    "callgrind/recursion.callgrind",
    "callgrind/uncompressed.callgrind",
    "cbs-xml/cbs.xml",
    "cbs-xml/treering.xml",
    "chrome-trace/events.json",
    "chrome-trace/samples.json",
    "cpuprofile/shapes.cpuprofile",
    "firefox/perf.json",
    "folded/py-spy.folded",
    "gmon/cycles.gmon",
    "gperftools/counted.heap",
    "gperftools/cpu.prof",
    "gprof/brief.txt",
    "gprof/bsd.txt",
    "gprof/flat.txt",
    "gprof/lines.txt",
    "octave/info.json",
    "octave/info.txt",
    "otlp/1.11.0.json",
    "otlp/1.11.0.otlp",
    "otlp/1.7.0.otlp",
    "otlp/1.8.0.otlp",
    "perf-data/chains.data",
    "perf-data/compressed.data",
    "perf-data/events.data",
    "perf-data/group.data",
    "perf-data/pipe.data",
    "perf-script/bare.txt",
    "perf-script/chains.txt",
    "perf-script/events.txt",
    "perf-script/flat.txt",
    "perf-script/lines.txt",
    "pprof/cpu.pb.gz",
    "pprof/default-type.pb.gz",
    "pprof/drop-frames.pb.gz",
    "pprof/dup-type.pb.gz",
    "prolog/queens.prolog",
    "pstats/profile.pstats",
    "pstats/sampled.pstats",
    "pstats/shapes.pstats",
    "pyinstrument/work.json",
    "speedscope/py-spy.speedscope.json",
    "speedscope/pyinstrument.speedscope.json",
    "swi-profile/canonical.txt",
    "swi-profile/data.json",
    "swi-profile/data.txt",
    "trg/small.trg",
    "trg/timed.trg",
];

/// The bytes of one of the blocks of `docs/formats/trg.md` that are marked `hex`: what follows `#` in a line is a comment.
pub(crate) fn vector(which: usize) -> Vec<u8> {
    let page = include_str!("../../../../../docs/formats/trg.md");
    let mut blocks = page.split("```hex\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines = blocks.nth(which).unwrap().lines().map(|line| line.split('#').next().unwrap());
    let digits = lines.flat_map(str::split_whitespace);
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

/// Sets the checksums of all frames of a `.trg` file right, as far as lengths allow to find them.
pub(crate) fn set_checksums(file: &mut [u8]) {
    let mut at = 16;
    while let Some(header) = file.get(at..at + 16) {
        let length = u32::from_le_bytes(*header[8..].first_chunk().unwrap()) as usize;
        let Some(end) = (at + 16).checked_add(length).filter(|&end| end <= file.len()) else { return };
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&file[at..at + 12]), &file[at + 16..end]);
        file[at + 12..at + 16].copy_from_slice(&checksum.to_le_bytes());
        at = end;
    }
}
