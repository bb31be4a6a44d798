//! Large profiles made by rule, for benchmarks and for tests of limits.
//!
//! The call graph has a few callees for each function and some calls back up, so that there are
//! cycles; names are as long as those of C++ programs; costs are independent of each
//! other, which compresses worse than real ones.

use treering_profile::{
    Function, FunctionId, FunctionKind, Interner, Line, LineCost, LineId, Metric, MetricId, Module, ModuleId,
    ModuleKind, NodeId, Process, Profile, RecursionRule, Run, Sampling, StatedAddress, StringId, Thread,
    Tree, Unit,
};

/// How large a profile to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Nodes of the tree, roots included; at least as many as threads.
    pub nodes: usize,
    /// Functions, the root not included; at least 1.
    pub functions: usize,
    /// Source lines; at least one for each function.
    pub lines: usize,
    /// Metrics; at least 1. The first two are `cpu-clock` and the `samples` that count it.
    pub metrics: usize,
    /// Threads; at least 1.
    pub threads: usize,
    /// Sets the noise; equal shapes make equal profiles.
    pub seed: u64,
}

impl Shape {
    /// A million nodes in six metrics, 50,000 functions, 160,000 lines: a large C++ program
    /// traced in full.
    pub const MILLION: Self =
        Self { nodes: 1_000_000, functions: 50_000, lines: 160_000, metrics: 6, threads: 4, seed: 1 };

    /// A few hundred nodes, for tests that look at every byte.
    pub const SMALL: Self = Self { nodes: 300, functions: 40, lines: 90, metrics: 3, threads: 2, seed: 7 };
}

/// Makes the profile of a shape.
///
/// # Panics
/// When the shape is below the minima that [`Shape`] states.
pub fn synthetic(shape: &Shape) -> Profile {
    let minima = shape.functions > 0 && shape.metrics > 0 && shape.threads > 0;
    assert!(minima && shape.nodes >= shape.threads && shape.lines >= shape.functions, "{shape:?}");
    let mut profile = Profile::new(RecursionRule::Full);
    profile.metadata.collector = "synthetic".to_owned();
    profile.metadata.parameters.insert("seed".to_owned(), shape.seed.to_string());
    profile.metrics = metrics(shape.metrics);
    add_tables(&mut profile, shape);
    add_threads(&mut profile, shape);
    add_tree(&mut profile, shape);
    add_line_costs(&mut profile, shape);
    profile
}

/// Numbers that look random (SplitMix64, after Steele, Lea and Flood, 2014).
#[derive(Debug)]
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn metrics(count: usize) -> Vec<Metric> {
    let sampling = Sampling { counted_by: 1, period: Some(1_000_000), jittered: Some(true), weights: None };
    let clock = Metric { sampling: Some(sampling), ..Metric::exact("cpu-clock", Unit::Nanoseconds) };
    let others = [
        Metric::exact("samples", Unit::Count),
        Metric::exact("wall", Unit::Nanoseconds),
        Metric::exact("instructions", Unit::Count),
        Metric::exact("cache-misses", Unit::Count),
        Metric::exact("allocated", Unit::Bytes),
    ];
    let more = (others.len() + 1..count).map(|at| Metric::exact(format!("metric-{at}"), Unit::Count));
    let mut metrics: Vec<_> = std::iter::once(clock).chain(others).chain(more).take(count).collect();
    if count == 1 {
        metrics[0].sampling = None;
    }
    metrics
}

const MODULES: usize = 12;
const FILES_PER_MODULE: usize = 60;

fn add_tables(profile: &mut Profile, shape: &Shape) {
    const WORDS: [&str; 12] = [
        "Parser", "Matrix", "solve", "update", "Cache", "lookup", "Tree", "visit", "Stream", "flush",
        "Element", "assemble",
    ];
    let mut noise = Noise(shape.seed);
    let mut files = Vec::new();
    for module in 0..MODULES {
        let path = profile.strings.intern(&format!("/usr/lib/synthetic/libpart{module}.so"));
        let build_id: Box<[u8]> = noise.next().to_le_bytes().into();
        profile.modules.intern(Module { path, build_id, kind: ModuleKind::Elf });
        for file in 0..FILES_PER_MODULE {
            files.push(profile.strings.intern(&format!("/src/part{module}/unit{file}.cpp")));
        }
    }
    let per_function = shape.lines / shape.functions;
    let mut lines = Vec::with_capacity(shape.lines);
    for at in 0..shape.functions {
        let (outer, inner) = (WORDS[noise.below(12)], WORDS[noise.below(12)]);
        let argument = WORDS[noise.below(12)];
        let name = format!("part::{outer}<part::{argument}, {}ul>::{inner}{at}(int, double)", noise.below(9));
        let linkage = format!("_ZN4part{}{outer}{}{inner}{at}Eid", outer.len(), inner.len());
        let file = files[noise.below(files.len())];
        let line = noise.below(3000) as u32 + 1;
        profile.functions.intern(Function {
            linkage_name: profile.strings.intern(&linkage),
            module: Some(ModuleId::from_usize(at % MODULES)),
            file,
            line,
            address: Some(StatedAddress(0x1000 + 0x40 * at as u64)),
            kind: if at % 5 == 4 { FunctionKind::Inlined } else { FunctionKind::Native },
            ..Function::named(profile.strings.intern(&name))
        });
        lines.extend((0..per_function).map(|step| Line { file, line: line + 1 + 2 * step as u32 }));
    }
    let rest = StringId::new(0);
    lines.extend((lines.len()..shape.lines).map(|at| Line { file: rest, line: at as u32 }));
    profile.lines = Interner::from_entries(lines);
}

fn add_threads(profile: &mut Profile, shape: &Shape) {
    let command = vec!["./synthetic".to_owned(), shape.nodes.to_string()];
    let run = profile.add_run(Run {
        command,
        start_unix_ns: 1_700_000_000_000_000_000,
        duration_ns: 60_000_000_000,
        cpu_ns: Some(55_000_000_000),
        end: Some("exit 0".to_owned()),
    });
    let process = profile.add_process(Process { run, pid: 4000, name: "synthetic".to_owned() });
    profile.threads = (0..shape.threads)
        .map(|at| Thread {
            process,
            tid: 4000 + at as u32,
            name: format!("worker {at}"),
            root: NodeId::from_usize(at),
        })
        .collect();
}

/// Grows the tree as stacks arrive: a node found at random, more often a late one, gets its next
/// child, that one a child, and so on for a few steps. A child's function and call site follow
/// from the parent's function and the number of the child.
fn add_tree(profile: &mut Profile, shape: &Shape) {
    let mut noise = Noise(shape.seed ^ 0xa5a5);
    let mut parents = vec![u32::MAX; shape.threads];
    let mut functions = vec![Profile::ROOT; shape.threads];
    let mut call_sites = vec![u32::MAX; shape.threads];
    let mut children = vec![0_u8; shape.nodes];
    let mut parent = 0;
    while parents.len() < shape.nodes {
        let length = parents.len();
        if children[parent] == 12 || noise.below(4) == 0 {
            parent = length - 1 - noise.below(length).min(noise.below(length));
            continue;
        }
        let (callee, call_site) = call(functions[parent], children[parent], shape);
        children[parent] += 1;
        parents.push(parent as u32);
        functions.push(callee);
        call_sites.push(call_site);
        parent = length;
    }
    let costs = (0..shape.metrics).map(|metric| costs(metric, shape)).collect();
    let tree = Tree::from_columns(parents, functions, call_sites, Vec::new(), Vec::new(), costs);
    profile.tree = tree.expect("parents are made before their children");
}

/// The callee of a function's `child`-th call, and the line it is on.
fn call(caller: FunctionId, child: u8, shape: &Shape) -> (FunctionId, u32) {
    let noise = mix(u64::from(caller.raw()) << 8 | u64::from(child) | shape.seed << 40);
    let callee = 1 + (noise % shape.functions as u64) as u32;
    let per_function = shape.lines / shape.functions;
    let first = (caller.index().max(1) - 1) * per_function;
    let line = first + usize::from(child) % per_function;
    (FunctionId::new(callee), if caller == Profile::ROOT { u32::MAX } else { line as u32 })
}

/// A column of costs: a third of the nodes have samples, half of them cache misses, all of them
/// what is measured: each number of digits is as frequent as every other.
fn costs(metric: usize, shape: &Shape) -> Vec<u64> {
    let mut noise = Noise(shape.seed ^ 0x77);
    let mut value = |limit: u64, metric: u64| mix(noise.next() ^ metric << 20) % limit;
    let samples = |drawn: u64| if drawn.is_multiple_of(3) { 1 + drawn / 3 % 5 } else { 0 };
    let cost = |_| match metric {
        0 if shape.metrics > 1 => samples(value(30, 1)) * 1_000_000,
        1 => samples(value(30, 1)),
        4 => value(40, 4).saturating_sub(20),
        _ => (1 << 20) >> value(20, metric as u64) ^ value(1 << 7, 99),
    };
    (0..shape.nodes).map(cost).collect()
}

/// Charges the samples of every eighth node to a line of its function.
fn add_line_costs(profile: &mut Profile, shape: &Shape) {
    let per_function = shape.lines / shape.functions;
    let mut line_costs = Vec::new();
    for node in profile.tree.nodes().step_by(8) {
        let function = profile.tree.function(node);
        if function == Profile::ROOT {
            continue;
        }
        let line = LineId::from_usize((function.index() - 1) * per_function);
        for metric in (0..shape.metrics.min(2)).map(MetricId::from_usize) {
            let cost = profile.tree.self_cost(metric, node);
            if cost > 0 {
                line_costs.push(LineCost { node, line, metric, cost });
            }
        }
    }
    profile.line_costs = line_costs;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_makes_a_valid_profile_of_its_size() {
        let profile = synthetic(&Shape::SMALL);
        assert_eq!(profile.validate(), Ok(()));
        assert_eq!(profile.tree.len(), Shape::SMALL.nodes);
        assert_eq!(profile.functions.len(), Shape::SMALL.functions + 1);
        assert_eq!(profile.lines.len(), Shape::SMALL.lines);
    }

    #[test]
    fn the_clock_is_what_its_samples_are_worth() {
        let profile = synthetic(&Shape::SMALL);
        let [clock, samples] = [0, 1].map(MetricId::new);
        assert!(profile.run_cost(samples) > 0);
        assert_eq!(profile.run_cost(clock), profile.run_cost(samples) * 1_000_000);
    }
}
