//! One XML document with everything, under the names of elements that CBS uses.
//!
//! A parameter and a result stand on a line of their own, with a space before `/>`: scripts read
//! them line by line. `docs/formats/bench.xsd` is the schema.

use super::cycle::Cycle;
use super::escape::{xml_attribute, xml_content};
use super::graph::{Arc, Graph, Task};
use super::results::{Pair, parameters, results};
use super::text::all_notes;
use super::unit::{average_ms, exact_ms, ms, percent};
use super::{Contents, Options, Run, Times};

pub(crate) fn report(run: &Run, options: Options) -> String {
    let contents = options.contents;
    let graph = Graph::new(run);
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<bench>\n");
    if !contents.has(Contents::NOSUMMARY) {
        text.push_str(&summary(run));
    }
    text.push_str(&notes(run, &graph));
    if contents.has(Contents::CALLGRAPH) {
        text.push_str(&Writer { graph: &graph, run }.timer());
    }
    if contents.has(Contents::MEMPLOT) {
        text.push_str(&memory(run));
    }
    text.push_str("</bench>\n");
    text
}

fn element(name: &str, content: &[u8]) -> String {
    format!("<{name}>{}</{name}>\n", xml_content(content))
}

fn summary(run: &Run) -> String {
    let machine = run.machine;
    let elements: [(&str, &[u8]); 7] = [
        ("name", run.name),
        ("date", run.date.as_bytes()),
        ("hostname", machine.host.as_bytes()),
        ("cpuinfo", machine.cpu.as_bytes()),
        ("meminfo", machine.memory.as_bytes()),
        ("time", &run.start_unix_s.to_string().into_bytes()),
        ("description", run.description),
    ];
    let elements: String =
        elements.iter().map(|(name, content)| format!("  {}", element(name, content))).collect();
    elements + &pairs("parameter", &parameters(run)) + &pairs("result", &results(run))
}

fn pairs(name: &str, pairs: &[Pair]) -> String {
    let each = pairs.iter().map(|(key, value)| {
        let (key, value) = (xml_attribute(key), xml_attribute(value));
        format!("    <{name} name=\"{key}\" value=\"{value}\" />\n")
    });
    format!("  <{name}s>\n{}  </{name}s>\n", each.collect::<String>())
}

fn notes(run: &Run, graph: &Graph) -> String {
    let notes = all_notes(run, graph);
    if notes.is_empty() {
        return String::new();
    }
    let each = notes.iter().map(|note| format!("    {}", element("note", note.as_bytes())));
    format!("  <notes>\n{}  </notes>\n", each.collect::<String>())
}

fn memory(run: &Run) -> String {
    let each = run.points.iter().map(|point| {
        format!(
            "    <plot>\n      <time>{}</time>\n      <memory>{}</memory>\n      \
             <memory_rss>{}</memory_rss>\n      {}      {}    </plot>\n",
            ms(point.time_ns),
            point.virtual_bytes,
            point.resident_bytes,
            element("task", &run.task_name(point.task)),
            element("description", point.description),
        )
    });
    format!("  <memplot>\n{}  </memplot>\n", each.collect::<String>())
}

struct Writer<'a> {
    graph: &'a Graph,
    run: &'a Run<'a>,
}

impl Writer<'_> {
    fn timer(&self) -> String {
        let (base, stopped) = (self.graph.base.name().to_ascii_lowercase(), self.run.stopped);
        let root = self.time("total", self.graph.tasks[0].total, 1);
        let by_charge = self.graph.by_charge().into_iter();
        let tasks = by_charge.map(|id| self.task(id, &self.graph.tasks[id]));
        let arcs = self.graph.arcs.iter().map(|arc| self.arc(arc));
        let cycles = self.graph.cycles.iter().enumerate().map(|(at, cycle)| self.cycle(at, cycle));
        let list = |name: &str, items: String| format!("    <{name}>\n{items}    </{name}>\n");
        format!("  <timer base=\"{base}\" stopped=\"{stopped}\">\n    {root}")
            + &list("taskList", tasks.collect())
            + &list("callList", arcs.collect())
            + &list("componentList", cycles.collect())
            + "  </timer>\n"
    }

    fn task(&self, id: usize, task: &Task) -> String {
        let [outside, within, recursive] = self.graph.calls_of(id);
        let component = match task.cycle {
            Some(cycle) => format!(" component=\"{}\"", cycle + 1),
            None => String::new(),
        };
        format!(
            "      <task id=\"{id}\" name=\"{}\" calls=\"{}\" outsideCalls=\"{outside}\" \
             recursiveCalls=\"{recursive}\" cycleCalls=\"{within}\"{component}>\n        {}        {}      </task>\n",
            xml_attribute(&task.name),
            task.calls,
            self.time("total", task.total, task.calls),
            self.time("self", task.self_cost, task.calls),
        )
    }

    fn arc(&self, arc: &Arc) -> String {
        let Arc { caller, callee, calls, .. } = *arc;
        let start = format!("      <call source=\"{caller}\" target=\"{callee}\" count=\"{calls}\"");
        if arc.is_recursive() {
            return format!("{start} />\n");
        }
        let times = [
            ("total", arc.total),
            ("self", arc.self_cost),
            ("fromCaller", arc.from_caller),
            ("toCallee", arc.to_callee),
        ];
        let times = times.map(|(name, times)| format!("        {}", self.time(name, times, calls)));
        format!("{start}>\n{}      </call>\n", times.concat())
    }

    fn cycle(&self, at: usize, cycle: &Cycle) -> String {
        let members = cycle.members.iter().map(|member| format!("        <member id=\"{member}\" />\n"));
        format!(
            "      <component id=\"{}\" memberCount=\"{}\" inboundCalls=\"{}\" outgoingCalls=\"{}\" \
             internalCalls=\"{}\" recursiveCalls=\"{}\">\n        {}        {}{}      </component>\n",
            at + 1,
            cycle.members.len(),
            cycle.incoming_calls,
            cycle.outgoing_calls,
            cycle.internal_calls,
            cycle.recursive_calls,
            self.time("total", cycle.total, cycle.incoming_calls),
            self.time("self", cycle.self_cost, cycle.incoming_calls),
            members.collect::<String>(),
        )
    }

    /// Milliseconds with all digits; the average over the calls; the share of the run in percent.
    fn time(&self, name: &str, times: Times, calls: u64) -> String {
        let cost = self.graph.base.of(times);
        format!(
            "<time name=\"{name}\" cpu=\"{}\" wall=\"{}\" user=\"{}\" system=\"{}\" average=\"{}\" \
             charge=\"{:.3}\" />\n",
            exact_ms(times.cpu_ns()),
            exact_ms(times.wall_ns),
            exact_ms(times.user_ns),
            exact_ms(times.system_ns),
            average_ms(cost, calls),
            percent(cost, self.graph.run_cost()),
        )
    }
}
