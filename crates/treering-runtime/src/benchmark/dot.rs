//! The graph of tasks for Graphviz, or the memory plot where only that was asked for.

use super::color::{Color, of_charge};
use super::cycle::Cycle;
use super::escape::{dot, line};
use super::graph::{Arc, Graph, Task};
use super::unit::{average, percent};
use super::{Contents, Options, Run, Times, Verbosity};

mod memory;

/// One `digraph`, empty where nothing was asked for.
pub(crate) fn report(run: &Run, options: Options) -> String {
    let Options { verbosity, contents, .. } = options;
    let mut text = head(run, contents);
    if contents.has(Contents::CALLGRAPH) {
        let graph = Graph::new(run);
        let writer = Writer { graph: &graph, verbosity };
        writer.tasks(&mut text);
        graph.arcs.iter().for_each(|arc| text.push_str(&writer.arc(arc)));
    } else if contents.has(Contents::MEMPLOT) {
        text.push_str(&memory::chain(run));
    }
    text.push_str("}\n");
    text
}

fn head(run: &Run, contents: Contents) -> String {
    let named = !contents.has(Contents::NOSUMMARY);
    let name = if named { dot(&line(run.name)) } else { String::new() };
    format!(
        "digraph \"{name}\" {{\n\
         node [fontname=\"monospace\", fontsize=12, shape=box, style=filled];\n\
         edge [fontname=\"monospace\", fontsize=10];\n\
         graph [fontname=\"monospace\", fontsize=12, label=\"{name}\", labelloc=t];\n"
    )
}

struct Writer<'a> {
    graph: &'a Graph,
    verbosity: Verbosity,
}

impl Writer<'_> {
    /// The tasks outside of cycles, then each cycle as a cluster.
    fn tasks(&self, text: &mut String) {
        let alone = self.graph.tasks.iter().enumerate().filter(|(_, task)| task.cycle.is_none());
        alone.for_each(|(at, task)| text.push_str(&self.task(at, task)));
        for (at, cycle) in self.graph.cycles.iter().enumerate() {
            let label = self.cycle_label(at, cycle);
            text.push_str(&format!(
                "subgraph cluster{at} {{\nlabel=\"{label}\"; labeljust=l; style=dashed;\n"
            ));
            for &member in &cycle.members {
                text.push_str(&self.task(member, &self.graph.tasks[member]));
            }
            text.push_str("}\n");
        }
    }

    fn task(&self, at: usize, task: &Task) -> String {
        let charge = self.percent(task.self_cost);
        let color: Color = of_charge(charge);
        let (fill, font) = (color.hex(), color.label().hex());
        format!("t{at} [label=\"{}\", fillcolor=\"{fill}\", fontcolor=\"{font}\"];\n", self.task_label(task))
    }

    fn task_label(&self, task: &Task) -> String {
        let recursive = match task.recursive_calls {
            0 => String::new(),
            calls => format!(", {calls} by itself"),
        };
        let mut lines = vec![dot(&line(&task.name)), self.cost("self", task.self_cost)];
        if self.verbosity >= Verbosity::Minimal {
            lines.push(format!("calls {}{recursive}", task.calls));
        }
        if self.verbosity >= Verbosity::Normal {
            lines.push(self.cost("total", task.total));
            lines.push(self.mean("self", task.self_cost, task.calls));
        }
        if self.verbosity >= Verbosity::Full {
            lines.push(self.mean("total", task.total, task.calls));
            lines.extend(kinds("self", task.self_cost));
            lines.extend(kinds("total", task.total));
        }
        left_aligned(&lines)
    }

    fn cycle_label(&self, at: usize, cycle: &Cycle) -> String {
        let Cycle { incoming_calls, internal_calls, outgoing_calls, .. } = *cycle;
        let mut lines = vec![
            format!("(C: {})  {}", at + 1, self.cost("self", cycle.self_cost)),
            format!("calls: {incoming_calls} incoming, {internal_calls} internal, {outgoing_calls} outgoing"),
        ];
        if self.verbosity >= Verbosity::Normal {
            lines.push(self.cost("total", cycle.total));
        }
        if self.verbosity >= Verbosity::Full {
            lines.push(self.mean("self", cycle.self_cost, incoming_calls));
            lines.push(self.mean("total", cycle.total, incoming_calls));
        }
        left_aligned(&lines)
    }

    fn arc(&self, arc: &Arc) -> String {
        let mut lines = vec![format!("calls {}", arc.calls)];
        // The cost of recursion is part of the activation that it started in.
        if !arc.is_recursive() && self.verbosity >= Verbosity::Minimal {
            lines.push(self.mean("total", arc.total, arc.calls));
        }
        if !arc.is_recursive() && self.verbosity >= Verbosity::Normal {
            lines.push(self.mean("self", arc.self_cost, arc.calls));
        }
        format!("t{} -> t{} [label=\"{}\"];\n", arc.caller, arc.callee, left_aligned(&lines))
    }

    /// The share of the run, and from normal on the time.
    fn cost(&self, what: &str, times: Times) -> String {
        let share = format!("{what} {:.1} %", self.percent(times));
        match self.verbosity {
            Verbosity::None | Verbosity::Minimal => share,
            _ => format!("{share}, {}", average(self.graph.base.of(times), 1)),
        }
    }

    fn mean(&self, what: &str, times: Times, calls: u64) -> String {
        format!("{what} avg {}", average(self.graph.base.of(times), calls))
    }

    fn percent(&self, times: Times) -> f64 {
        percent(self.graph.base.of(times), self.graph.run_cost())
    }
}

fn kinds(what: &str, times: Times) -> [String; 3] {
    let kinds = [("user", times.user_ns), ("system", times.system_ns), ("wall", times.wall_ns)];
    kinds.map(|(kind, ns)| format!("{what} {kind} {}", average(ns, 1)))
}

/// Lines of a label, which DOT ends with `\l`.
fn left_aligned(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\\l")).collect()
}
