//! Callers, callees and costs: the same as Callgrind finds.
//!
//! Callgrind has arcs, with the instructions of the callee in all calls of an arc. The same follows from a tree,
//! with two exceptions: where functions call each other in a circle, Callgrind adds the costs of inner
//! calls to those of outer ones; and library code may not be the same, as Valgrind's processor has other
//! features. So costs are compared where only the program's own functions run, none of them twice at a
//! time, and calls everywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use treering_testing::programs::{CONTROL_FLOW, OBJECTS, installed};
use treering_translator::{ContextNode, Counts};

use crate::tree::{Names, check, tree};

/// Calls and instructions with all callees, by caller and callee.
type Arcs = BTreeMap<(String, String), [u64; 2]>;

/// The calls and costs of a program's functions below `main`.
#[derive(Default)]
struct Found {
    arcs: Arcs,
    /// Arcs whose costs Callgrind counts otherwise, or that may cost something else there.
    unlike: BTreeSet<(String, String)>,
    callers: BTreeSet<String>,
}

#[test]
fn arcs_are_those_of_callgrind() {
    // A jump to another function is a call to Callgrind; to a tree, it takes the place of the one that
    // jumps.
    let program = CONTROL_FLOW.variant("arcs", &["-fno-optimize-sibling-calls"]).build().unwrap();
    let Some(mut theirs) = callgrind(&program) else { return };
    let own = found(&check(&program, &[]), &Names::of(&program));
    theirs.retain(|(caller, callee), _| own.callers.contains(caller) && own.callers.contains(callee));
    let calls =
        |arcs: &Arcs| -> Vec<_> { arcs.iter().map(|(arc, &[calls, _])| (arc.clone(), calls)).collect() };
    assert_eq!(calls(&own.arcs), calls(&theirs));
    let compared: Vec<_> = own.arcs.iter().filter(|(arc, _)| !own.unlike.contains(arc)).collect();
    for (arc, costs) in &compared {
        assert_eq!(*costs, &theirs[*arc], "{arc:?}");
    }
    for callee in ["leaf", "choose", "apply", "twice", "thrice"] {
        assert!(compared.iter().any(|((_, compared), _)| compared == callee), "{callee}: {compared:?}");
    }
}

#[test]
fn virtual_calls_and_exceptions_are_those_of_callgrind() {
    let program = OBJECTS.build().unwrap();
    let Some(theirs) = callgrind(&program) else { return };
    let own = found(&check(&program, &[]), &Names::of(&program));
    for area in ["_ZNK6Square4areaEv", "_ZNK6Circle4areaEv", "_ZNK9Rectangle4areaEv"] {
        let arc = ("main".to_owned(), area.to_owned());
        assert_eq!(own.arcs[&arc], theirs[&arc], "{area}");
    }
    let calls = |arcs: &Arcs| -> u64 {
        arcs.iter().filter(|((_, callee), _)| callee == "_Z4deepiiRl").map(|(_, &[calls, _])| calls).sum()
    };
    assert_eq!((calls(&own.arcs), calls(&theirs)), (60, 60));
}

/// The arcs of a tree, between functions of the program's file.
fn found(counts: &Counts, names: &Names) -> Found {
    let mut found = Found::default();
    let nodes = &tree(&counts.programs[0].threads[0]).nodes;
    let mut totals: Vec<u64> = nodes.iter().map(|node| node.instructions).collect();
    let mut foreign: Vec<bool> = nodes.iter().map(|node| names.name(node.address).is_empty()).collect();
    for (at, node) in nodes.iter().enumerate().skip(1).rev() {
        let parent = node.parent as usize;
        totals[parent] += totals[at];
        foreign[parent] |= foreign[at];
    }
    for (at, node) in nodes.iter().enumerate().skip(1) {
        let callers = callers(nodes, node, names);
        let (Some(caller), name) = (callers.first(), names.name(node.address)) else { continue };
        if name == "main" || callers.contains(&"main") && !name.is_empty() {
            found.callers.insert(name.to_owned());
        }
        if !callers.contains(&"main") || name.is_empty() || caller.is_empty() {
            continue;
        }
        let arc = ((*caller).to_owned(), name.to_owned());
        let costs = found.arcs.entry(arc.clone()).or_default();
        *costs = [costs[0] + node.calls, costs[1] + totals[at]];
        if foreign[at] || callers.contains(&name) {
            found.unlike.insert(arc);
        }
    }
    found
}

/// The functions that a node's was called by, the nearest first.
fn callers<'a>(nodes: &[ContextNode], node: &ContextNode, names: &'a Names) -> Vec<&'a str> {
    let mut callers = Vec::new();
    let mut at = node.parent;
    while at != 0 {
        callers.push(names.name(nodes[at as usize].address));
        at = nodes[at as usize].parent;
    }
    callers
}

/// Callgrind's arcs of a program; `None` if it is missing.
fn callgrind(program: &Path) -> Option<Arcs> {
    let Some(valgrind) = installed("valgrind") else {
        println!("skipped: valgrind is not installed");
        return None;
    };
    let file = program.with_extension(format!("callgrind.{}", std::process::id()));
    let mut command = Command::new(valgrind);
    command.args(["--tool=callgrind", "-q", "--demangle=no", "--compress-strings=no"]);
    command.arg(format!("--callgrind-out-file={}", file.display())).arg(program);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    std::fs::remove_file(&file).unwrap();
    Some(arcs_of(&text))
}

/// The arcs in a file of Callgrind's: a caller (`fn=`), a callee (`cfn=`), a number of calls, and behind
/// that a line with a place and the instructions.
fn arcs_of(text: &str) -> Arcs {
    let mut arcs = Arcs::new();
    let (mut caller, mut callee, mut calls) = ("", "", None);
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            caller = whole(name);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            callee = whole(name);
        } else if let Some(told) = line.strip_prefix("calls=") {
            calls = told.split(' ').next().and_then(|calls| calls.parse::<u64>().ok());
        } else if let Some(calls) = calls.take() {
            let cost: u64 = line.split(' ').nth(1).and_then(|cost| cost.parse().ok()).unwrap();
            let costs = arcs.entry((caller.to_owned(), callee.to_owned())).or_default();
            *costs = [costs[0] + calls, costs[1] + cost];
        }
    }
    arcs
}

/// A function's name; what runs within itself has one with a depth, as in `even'2`.
fn whole(name: &str) -> &str {
    name.split_once('\'').map_or(name, |(name, _)| name)
}
