//! Trees of counted programs, by the names of functions.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::Path;

use object::{Object as _, ObjectSymbol as _, SymbolKind};
use treering_translator::{
    Command, ContextTree, Counts, Ended, ProgramCounts, ThreadCounts, TreeLimits, count,
};

/// Where programs that may lie anywhere are loaded when nothing is random.
const BASE: u64 = 0x5555_5555_4000;

/// Counts a program with its trees, at the same addresses in every run; every tree must hold what the
/// blocks count.
pub(crate) fn counted(program: &Path, arguments: &[&str]) -> Counts {
    let counts = counted_in_part(program, arguments);
    assert_eq!(counts.not_counted, [], "{}", program.display());
    counts
}

/// The same for a program of which something is said not to be exact.
pub(crate) fn counted_in_part(program: &Path, arguments: &[&str]) -> Counts {
    counted_with(None, program, arguments)
}

/// The same with hints in a directory.
pub(crate) fn counted_with(hints: Option<&Path>, program: &Path, arguments: &[&str]) -> Counts {
    counted_as(Command { hints: hints.map(Path::to_owned), ..Command::default() }, program, arguments)
}

/// The same with trees that may be so large.
pub(crate) fn counted_within(limits: TreeLimits, program: &Path, arguments: &[&str]) -> Counts {
    counted_as(Command { limits, ..Command::default() }, program, arguments)
}

fn counted_as(command: Command, program: &Path, arguments: &[&str]) -> Counts {
    let words = std::iter::once(program.into()).chain(arguments.iter().map(OsString::from)).collect();
    let environment = library_path().into_iter().collect();
    let command = Command { words, environment, fixed_addresses: true, silent: true, tree: true, ..command };
    let counts = count(&command).unwrap();
    for program in &counts.programs {
        let trees: u64 = program.threads.iter().map(|thread| tree(thread).instructions()).sum();
        assert_eq!(trees, program.instructions(), "{}", program.path.display());
        program.threads.iter().for_each(|thread| check_shape(tree(thread)));
    }
    counts
}

/// Has the loader find libraries where this program's are. Otherwise it searches a cache of all libraries, which changes
/// when somebody installs one: then a run executes other instructions than the one before.
fn library_path() -> Option<(OsString, OsString)> {
    let mappings = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = mappings.lines().find_map(|line| Some(line.strip_suffix("/libc.so.6")?.split_once('/')?.1));
    library.map(|directory| ("LD_LIBRARY_PATH".into(), format!("/{directory}").into()))
}

/// The same for a program that ends well.
pub(crate) fn check(program: &Path, arguments: &[&str]) -> Counts {
    let counts = counted(program, arguments);
    assert!(matches!(counts.ended, Ended::Exited(0)), "{}: {:?}", program.display(), counts.ended);
    counts
}

/// A thread's tree.
pub(crate) fn tree(thread: &ThreadCounts) -> &ContextTree {
    thread.tree.as_ref().unwrap()
}

fn check_shape(tree: &ContextTree) {
    assert_eq!((tree.nodes[0].address, tree.nodes[0].instructions), (0, 0));
    let mut known = HashMap::new();
    for (at, node) in tree.nodes.iter().enumerate().skip(1) {
        assert!((node.parent as usize) < at, "callers come first");
        assert_eq!(known.insert((node.parent, node.address), at), None, "a context has one node");
        assert!(i64::try_from(node.instructions).is_ok(), "no cost is negative: {node:x?}");
    }
}

/// The functions of a program's file, by address.
pub(crate) struct Names(BTreeMap<u64, String>);

impl Names {
    pub(crate) fn of(program: &Path) -> Self {
        let bytes = std::fs::read(program).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let bias = if object.kind() == object::ObjectKind::Dynamic { BASE } else { 0 };
        let functions = object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        Self(functions.map(|symbol| (bias + symbol.address(), symbol.name().unwrap().to_owned())).collect())
    }

    /// The name of the function at an address; empty if it is not the program's own.
    pub(crate) fn name(&self, address: u64) -> &str {
        self.0.get(&address).map_or("", |name| name)
    }

    /// How often functions were entered, in all threads and contexts.
    pub(crate) fn calls(&self, program: &ProgramCounts) -> BTreeMap<&str, u64> {
        let mut calls = BTreeMap::new();
        for node in program.threads.iter().flat_map(|thread| &tree(thread).nodes) {
            *calls.entry(self.name(node.address)).or_default() += node.calls;
        }
        calls
    }

    /// Chains of callers that end with a function, from `main` on or the thread's first, with calls;
    /// names that are not the program's own are left out.
    pub(crate) fn chains(&self, program: &ProgramCounts, function: &str) -> BTreeMap<String, u64> {
        let mut chains = BTreeMap::new();
        for thread in &program.threads {
            let nodes = &tree(thread).nodes;
            for (at, node) in nodes.iter().enumerate().filter(|(_, node)| self.name(node.address) == function)
            {
                let mut at = at as u32;
                let mut chain = Vec::new();
                while at != 0 {
                    chain.push(self.name(nodes[at as usize].address));
                    at = nodes[at as usize].parent;
                }
                chain.retain(|name| !name.is_empty() && *name != "_start" && !name.starts_with("__libc"));
                chain.reverse();
                *chains.entry(chain.join(" ")).or_default() += node.calls;
            }
        }
        chains
    }
}
