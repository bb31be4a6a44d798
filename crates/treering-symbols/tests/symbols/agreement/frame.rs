//! Frames, and how those of the two sides are compared.

use std::path::Path;

use treering_profile::{
    self as profile, Function, FunctionKind, Metric, MetricId, Module, ModuleKind, NodeId, Process, Profile,
    RecursionRule, Run, StatedAddress, Unit,
};
use treering_symbols::{ModuleReport, Options, demangle, symbolise};

use super::binutils::Symbols;

/// A function by its linkage name if it has one, and the line executed in it.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) line: Option<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) file: String,
    pub(crate) line: u32,
}

impl Frame {
    fn is_artificial(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.file.ends_with("/<artificial>"))
    }
}

/// Our names for a program.
pub(crate) struct Resolved {
    /// For each address its frames, innermost first.
    pub(crate) frames: Vec<Vec<Frame>>,
    pub(crate) report: ModuleReport,
    pub(crate) profile: Profile,
}

/// Symbolises a profile with one sample at each address, each in a thread of its own.
pub(crate) fn resolve(program: &Path, addresses: &[u64], options: &Options<'_>) -> Resolved {
    let mut addressed = Profile::new(RecursionRule::Full);
    let samples = addressed.add_metric(Metric::exact("samples", Unit::Count));
    let run = addressed.add_run(Run::default());
    let process = addressed.add_process(Process { run, pid: 1, name: "program".into() });
    let path = addressed.strings.intern(&program.to_string_lossy());
    let module = Module { path, build_id: Box::default(), kind: ModuleKind::Elf };
    let module = addressed.modules.intern(module);
    for &address in addresses {
        let thread = addressed.add_thread(process, 1, "thread");
        let function = addressed.functions.intern(Function::at_address(Some(module), StatedAddress(address)));
        addressed.add_stack(thread, &[profile::Frame::new(function)], None, &[(samples, 1)]);
    }
    let mut symbolised = symbolise(&addressed, options, &mut |_| {});
    symbolised.profile.validate().expect("what is made out of a valid profile is valid");
    let report = symbolised.modules.remove(0);
    Resolved { frames: frames_by_thread(&symbolised.profile), report, profile: symbolised.profile }
}

fn frames_by_thread(profile: &Profile) -> Vec<Vec<Frame>> {
    let mut lines: Vec<Option<Line>> = vec![None; profile.tree.len()];
    for node in profile.tree.nodes() {
        if let (Some(parent), Some(line)) = (profile.tree.parent(node), profile.tree.call_site(node)) {
            lines[parent.index()] = Some(line_of(profile, line));
        }
    }
    for cost in &profile.line_costs {
        lines[cost.node.index()] = Some(line_of(profile, cost.line));
    }
    let threads = profile.node_threads();
    let mut frames = vec![Vec::new(); profile.threads.len()];
    for node in profile.tree.nodes().filter(|&node| profile.tree.parent(node).is_some()) {
        let frame = Frame { function: linkage_name(profile, node), line: lines[node.index()].take() };
        frames[threads[node.index()].index()].insert(0, frame);
    }
    frames
}

fn line_of(profile: &Profile, line: profile::LineId) -> Line {
    let line = profile.lines[line];
    Line { file: profile.strings[line.file].to_owned(), line: line.line }
}

fn linkage_name(profile: &Profile, node: NodeId) -> String {
    let function = &profile.functions[profile.tree.function(node)];
    let name = if function.linkage_name.index() == 0 { function.name } else { function.linkage_name };
    profile.strings[name].to_owned()
}

/// How many samples ended in functions that have no name.
pub(crate) fn unresolved(profile: &Profile) -> u64 {
    let unresolved =
        |node: &NodeId| profile.functions[profile.tree.function(*node)].kind == FunctionKind::Unresolved;
    profile.tree.nodes().filter(unresolved).map(|node| profile.tree.self_cost(MetricId::new(0), node)).sum()
}

/// The frames that another tool may name after the symbol table rather than the debug information.
/// Only frames without a linkage name, and parts of functions such as `main.cold`, come to differ
/// by that.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamedBySymbol {
    /// binutils: any frame. It also gives up on names in other units (`??`) and takes the first
    /// of two lines at one address where the last holds (`<artificial>`).
    Any,
    /// LLVM: the function itself, not what was inlined into it.
    Outermost,
}

/// Fails unless the frames at all addresses agree.
pub(crate) fn compare(
    addresses: &[u64],
    ours: &[Vec<Frame>],
    theirs: &[Vec<Frame>],
    symbols: &Symbols,
    quirk: NamedBySymbol,
) {
    assert_eq!(ours.len(), theirs.len());
    assert!(addresses.len() > 100, "only {} addresses to compare", addresses.len());
    let all = addresses.iter().zip(ours.iter().zip(theirs));
    let agree = |address, ours, theirs| agree(ours, theirs, &symbols.names(address), quirk);
    let different: Vec<_> = all.filter(|(address, (ours, theirs))| !agree(**address, ours, theirs)).collect();
    let shown: Vec<String> = different
        .iter()
        .take(3)
        .map(|(address, (ours, theirs))| {
            format!("{address:#x}\n  ours   {}\n  theirs {}", show(ours), show(theirs))
        })
        .collect();
    let (count, total) = (different.len(), addresses.len());
    assert!(different.is_empty(), "{count} of {total} addresses differ:\n{}", shown.join("\n"));
}

fn show(frames: &[Frame]) -> String {
    let show = |frame: &Frame| match &frame.line {
        Some(Line { file, line }) => format!("{} {file}:{line}", frame.function),
        None => frame.function.clone(),
    };
    frames.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn agree(ours: &[Frame], theirs: &[Frame], symbols: &[&str], quirk: NamedBySymbol) -> bool {
    let outermost = theirs.len().saturating_sub(1);
    let same = |(at, (ours, theirs)): (usize, (&Frame, &Frame))| {
        let by_symbol = quirk == NamedBySymbol::Any || at == outermost;
        let name = same_function(&ours.function, &theirs.function)
            || (by_symbol && same_by_symbol(ours, theirs, symbols));
        let unnamed = quirk == NamedBySymbol::Any && theirs.function == "??";
        let misplaced = quirk == NamedBySymbol::Any && theirs.is_artificial();
        (name || unnamed) && (ours.line == theirs.line || misplaced)
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).enumerate().all(same)
}

/// Functions that are only ever inlined have no linkage name; we say what they are declared in,
/// `addr2line` does not. And we write no blanks between closing brackets.
fn same_function(ours: &str, theirs: &str) -> bool {
    let theirs = &*theirs.replace("> >", ">>").replace("> >", ">>");
    ours == theirs || ours.strip_suffix(theirs).is_some_and(|scope| scope.ends_with("::"))
}

/// Whether both sides name a symbol at the address, or one of them something that means the same.
fn same_by_symbol(ours: &Frame, theirs: &Frame, symbols: &[&str]) -> bool {
    let (ours, theirs) = (ours.function.as_str(), theirs.function.as_str());
    let is_part = theirs.strip_prefix(ours).is_some_and(|part| part.starts_with('.'));
    let is_plain = demangle(ours) == ours;
    let plain = theirs.split('<').next().unwrap_or(theirs);
    match (symbols.contains(&ours), symbols.contains(&theirs)) {
        (true, true) => true,
        (false, true) => is_part || is_plain,
        (true, false) => demangle(ours).contains(plain),
        (false, false) => false,
    }
}
