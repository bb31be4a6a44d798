//! The cost of an enter with its leave.

use std::hint::black_box;
use std::path::Path;

use treering_runtime::{Kind, Options, Site, instrument, leaf, scope};

use crate::foreign;
use crate::measure::{Cost, Effort};
use crate::table::{Row, Table};

/// A loop that makes as many events as it is told.
type Loop = fn(u64);

/// The loops that every profiler is measured with.
const LOOPS: [(&str, Loop); 5] = [
    ("one function", one),
    ("2 children by turns", |turns| by_turns(turns, 2)),
    ("8 children by turns", |turns| by_turns(turns, 8)),
    ("16 children by turns", |turns| by_turns(turns, 16)),
    ("nested 16 deep", nested),
];

pub(crate) fn measure(effort: Effort, directory: &Path) -> Table {
    let mut table = Table::new("an enter and its leave", "over two TSC reads");
    for threads in [1, 2] {
        let cost = |run: Loop| effort.cost_in_threads(threads, |_| run);
        table.add(Row::floor(name("two raw TSC reads", threads), cost(two_reads)));
        profile(Kind::CallGraph, directory);
        for (what, run) in LOOPS {
            table.add(Row::ours(name(&format!("Rust scope, call graph: {what}"), threads), cost(run)));
        }
        table.add(Row::ours(name("Rust #[instrument], call graph", threads), cost(attribute)));
        table.add(Row::ours(name("Rust scope, timed one in 16", threads), cost(sampled)));
        table.add(Row::ours(name("Rust scope, never timed", threads), cost(untimed)));
        table.add(Row::ours(name("Rust leaf, timed always", threads), cost(leaf)));
        table.add(Row::ours(name("Rust leaf, timed one in 16", threads), cost(sampled_leaf)));
        table.add(Row::ours(name("Rust leaf, never timed", threads), cost(untimed_leaf)));
        profile(Kind::Flat, directory);
        for (what, run) in LOOPS {
            table.add(Row::ours(name(&format!("Rust scope, flat: {what}"), threads), cost(run)));
        }
        profile(Kind::Count, directory);
        for (what, run) in LOOPS {
            table.add(Row::ours(name(&format!("Rust scope, counts: {what}"), threads), cost(run)));
        }
        table.add(Row::ours(name("Rust leaf, counts", threads), cost(leaf)));
        treering_runtime::clear_profiler();
        table.add(Row::peer(name("an empty loop", threads), cost(nothing)));
        table.add(Row::peer(name("calls nested 16 deep", threads), cost(nested_calls)));
        table.add(Row::ours(name("Rust scope, switched off", threads), cost(one)));
    }
    foreign::measure(effort, directory, &mut table);
    table
}

fn name(what: &str, threads: usize) -> String {
    if threads == 1 { what.to_owned() } else { format!("{what}, {threads} threads") }
}

fn profile(kind: Kind, directory: &Path) {
    let output = Some(directory.join("events.trg"));
    treering_runtime::set_profiler(Options { kind, output, ..Options::default() });
}

#[cfg(target_arch = "x86_64")]
fn two_reads(turns: u64) {
    for _ in 0..turns {
        // SAFETY: every x86-64 processor has the instruction.
        black_box(unsafe { (core::arch::x86_64::_rdtsc(), core::arch::x86_64::_rdtsc()) });
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn two_reads(turns: u64) {
    for _ in 0..turns {
        black_box((std::time::Instant::now(), std::time::Instant::now()));
    }
}

fn nothing(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}

fn one(turns: u64) {
    for turn in 0..turns {
        scope!("one");
        black_box(turn);
    }
}

fn sampled(turns: u64) {
    for turn in 0..turns {
        scope!("sampled", timed_one_in = 16);
        black_box(turn);
    }
}

fn untimed(turns: u64) {
    for turn in 0..turns {
        scope!("untimed", timed_one_in = 0);
        black_box(turn);
    }
}

fn leaf(turns: u64) {
    for turn in 0..turns {
        leaf!("leaf");
        black_box(turn);
    }
}

fn sampled_leaf(turns: u64) {
    for turn in 0..turns {
        leaf!("sampled leaf", timed_one_in = 16);
        black_box(turn);
    }
}

fn untimed_leaf(turns: u64) {
    for turn in 0..turns {
        leaf!("untimed leaf", timed_one_in = 0);
        black_box(turn);
    }
}

fn attribute(turns: u64) {
    #[instrument]
    #[inline(always)]
    fn marked(turn: u64) {
        black_box(turn);
    }
    (0..turns).for_each(marked);
}

static SITES: [Site; 16] = [
    site("a"),
    site("b"),
    site("c"),
    site("d"),
    site("e"),
    site("f"),
    site("g"),
    site("h"),
    site("i"),
    site("j"),
    site("k"),
    site("l"),
    site("m"),
    site("n"),
    site("o"),
    site("p"),
];

const fn site(name: &'static str) -> Site {
    Site::new(name, file!(), line!())
}

fn by_turns(turns: u64, children: u64) {
    scope!("parent");
    // No division: it would cost as much as an event that is counted.
    for turn in 0..turns.div_ceil(children) {
        for site in &SITES[..children as usize] {
            let _scope = site.enter();
            black_box(turn);
        }
    }
}

fn nested(turns: u64) {
    #[inline(never)]
    fn descend(depth: usize) {
        let _scope = SITES[depth].enter();
        if depth + 1 < SITES.len() {
            descend(depth + 1);
        }
        black_box(depth);
    }
    for _ in 0..turns.div_ceil(SITES.len() as u64) {
        descend(0);
    }
}

/// The calls of `nested` by themselves.
fn nested_calls(turns: u64) {
    #[inline(never)]
    fn descend(depth: usize) {
        black_box(&SITES[depth]);
        if depth + 1 < SITES.len() {
            descend(depth + 1);
        }
        black_box(depth);
    }
    for _ in 0..turns.div_ceil(SITES.len() as u64) {
        descend(0);
    }
}

/// Adds the figures that other programs print of themselves.
pub(crate) fn add_lines(table: &mut Table, is_ours: bool, text: &str) {
    for (name, cost) in text.lines().filter_map(Cost::parse) {
        table.add(if is_ours { Row::ours(name, cost) } else { Row::peer(name, cost) });
    }
}
