//! `cargo xtask bench prolog`: the cost of profiling SWI-Prolog, in the ways there are.
//!
//! Every program runs in every way in turns, and the run with the least processor time counts: others had
//! to share the processor, or its caches. Garbage is collected before each run and not in it, unless the
//! stacks overflow. Calls are those that exact ports count.

use std::collections::BTreeMap;
use std::path::Path;

use treering_profile::Profile;

use crate::frame::{Bench, Report};
use crate::measure::{profile, runs, text_of};
use crate::table::Table;
use crate::workspace;

/// The ways, as the script names them, and their names in the table.
const WAYS: [(&str, &str); 6] = [
    ("none", "none"),
    ("swi", "SWI-Prolog's own"),
    ("ticks", "treering"),
    ("kernel", "clock(wall)"),
    ("ports", "ports(true)"),
    ("none again", "none, again"),
];

/// The least processor time in seconds and the time by the wall clock of the last run, by program and way.
type Times<'a> = BTreeMap<(&'a str, &'a str), (f64, f64)>;

pub(super) fn run(bench: &Bench) -> Result<Report, String> {
    let rounds = bench.rounds(15, 2);
    let printed = printed(bench, rounds)?;
    let (mut programs, mut times) = (Vec::new(), Times::new());
    for (program, way, [cpu, wall]) in runs(&printed)? {
        if !programs.contains(&program) {
            programs.push(program);
        }
        let known = times.entry((program, way)).or_insert((cpu, wall));
        *known = (known.0.min(cpu), wall);
    }
    let ways = WAYS[1..].iter().map(|(_, name)| *name);
    let header: Vec<&str> =
        ["program", "calls", "none, ns/call"].into_iter().chain(ways).chain(["self times / wall"]).collect();
    let mut table = Table::new("Added nanoseconds for each call of a user predicate", &header);
    for program in programs {
        table.row(row(&bench.directory, program, &times)?);
    }
    table.note(format!("Processor time, the least of {rounds} rounds; in brackets the ratio to none."));
    table.note(
        "self times / wall: with clock(wall), the sum of the self times of the program over its time by get_time/1.",
    );
    Ok(Report { tables: vec![table], ..Report::default() })
}

/// The output of the script.
fn printed(bench: &Bench, rounds: usize) -> Result<String, String> {
    let library = workspace::target_directory().join("release/libtreering_prolog.so");
    let mut swipl = bench.command("swipl -q -f none --stack-limit=4g -O -t halt -p");
    swipl.arg(format!("library={}", workspace::root().join("hooks/prolog/prolog").display()));
    swipl.args(["-g", &format!("bench:bench({rounds})")]);
    swipl.arg(workspace::root().join("fixtures/prolog/bench.pl")).env("TREERING_PROLOG_LIBRARY", library);
    text_of(&mut swipl)
}

fn row(folder: &Path, program: &str, times: &Times<'_>) -> Result<Vec<String>, String> {
    let time = |way: &str| {
        times.get(&(program, way)).copied().ok_or_else(|| format!("{program} was not run in the way {way}"))
    };
    let of_way = |way: &str| profile(&folder.join(format!("{way}-{program}")));
    let calls = calls(&of_way("ports")?);
    let (none, _) = time("none")?;
    let mut cells = vec![program.to_owned(), calls.to_string(), format!("{:.0}", none * 1e9 / calls as f64)];
    for (way, _) in &WAYS[1..] {
        let (cpu, _) = time(way)?;
        cells.push(format!("{:.1} ({:.2}x)", (cpu - none) * 1e9 / calls as f64, cpu / none));
    }
    let kernel = of_way("kernel")?;
    let (_, wall) = time("kernel")?;
    cells.push(format!("{:.3}", total(&kernel, "bench:timed/1") as f64 / (wall * 1e9)));
    Ok(cells)
}

/// The time of a predicate with all that it calls: the sum of their self times.
fn total(profile: &Profile, name: &str) -> u64 {
    let Some(time) = profile.find_metric("time") else { return 0 };
    let totals = profile.tree.total_costs(time);
    let is_it = |node: &treering_profile::NodeId| {
        let function = profile.functions.entries()[profile.tree.function(*node).index()];
        &profile.strings[function.name] == name
    };
    profile.tree.nodes().filter(is_it).map(|node| totals[node.index()]).sum()
}

/// Calls of predicates of the program; the goal itself is none.
fn calls(profile: &Profile) -> u64 {
    let is_own = |node: &treering_profile::NodeId| {
        let function = profile.functions.entries()[profile.tree.function(*node).index()];
        function.kind == treering_profile::FunctionKind::Interpreted
    };
    profile.tree.nodes().filter(is_own).map(|node| profile.tree.calls(node)).sum()
}
