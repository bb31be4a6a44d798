//! The report for people: sections of text.

use super::escape::{line, lines};
use super::graph::Graph;
use super::results::{Pair, parameters, results};
use super::{Contents, Options, Run, Verbosity};

mod calls;
mod cycles;
mod memory;
mod printed;
mod tasks;

/// All sections that the options ask for.
pub(crate) fn report(run: &Run, options: Options) -> String {
    let Options { verbosity, contents, .. } = options;
    let graph = Graph::new(run);
    let mut text = String::new();
    if !contents.has(Contents::NOSUMMARY) {
        text.push_str(&summary(run));
    }
    text.push_str(&notes(run, &graph));
    if contents.has(Contents::CALLGRAPH) && verbosity >= Verbosity::Minimal {
        text.push_str(&call_graph(&graph, verbosity));
    }
    if contents.has(Contents::MEMPLOT) && verbosity >= Verbosity::Minimal {
        text.push_str(&memory::section(run, narrow(verbosity)));
    }
    text
}

/// Whether lines must not be longer than 80 columns.
fn narrow(verbosity: Verbosity) -> bool {
    verbosity < Verbosity::Full
}

fn call_graph(graph: &Graph, verbosity: Verbosity) -> String {
    let printed = printed::Printed::new(graph);
    let mut text = tasks::list(graph, &printed, narrow(verbosity));
    if verbosity >= Verbosity::Normal {
        text.push_str(&cycles::section(graph, &printed, narrow(verbosity)));
        text.push_str(&calls::section(graph, &printed, narrow(verbosity)));
    }
    if verbosity >= Verbosity::Full {
        text.push_str(&tasks::details(graph));
    }
    text
}

fn summary(run: &Run) -> String {
    let machine = run.machine;
    let mut text = format!("{}\n\n[Description:]\n", line(run.name));
    lines(run.description).iter().for_each(|line| text.push_str(&format!("{line}\n")));
    let about = [
        ("Date", run.date),
        ("Host name", &machine.host),
        ("CPU", &machine.cpu),
        ("Memory", &machine.memory),
    ];
    text.push_str("\n[Infos:]\n");
    for (name, value) in about {
        text.push_str(&format!("  * {:<11}{}\n", format!("{name}:"), line(value.as_bytes())));
    }
    text.push_str(&pairs("Parameters", &parameters(run)));
    text.push_str(&pairs("Results", &results(run)));
    text.push('\n');
    text
}

fn pairs(head: &str, pairs: &[Pair]) -> String {
    let each = pairs.iter().map(|(name, value)| format!("  * {}: {}\n", line(name), line(value)));
    format!("\n[{head}:]\n{}", each.collect::<String>())
}

fn notes(run: &Run, graph: &Graph) -> String {
    let notes = all_notes(run, graph);
    if notes.is_empty() {
        return String::new();
    }
    let each = notes.iter().map(|note| format!("  * {}\n", line(note.as_bytes())));
    format!("[Notes:]\n{}\n", each.collect::<String>())
}

/// The warnings for the reader: those that the run brings, and those that follow from its numbers.
pub(crate) fn all_notes(run: &Run, graph: &Graph) -> Vec<String> {
    let mut notes = run.notes.to_vec();
    if !run.stopped {
        notes.push("the benchmark has not been stopped: the figures are those until now".into());
    }
    if graph.exceeds_run {
        let base = graph.base.name();
        notes.push(format!(
            "tasks of several threads add up to more {base} time than the run took: \
             100 % is what they add up to"
        ));
    }
    notes
}
