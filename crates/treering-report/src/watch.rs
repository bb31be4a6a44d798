//! A program that runs, as text: what it is doing, and where its cost went so far and lately.

use treering_analysis::{Basis, CallGraph, Change, SortKey, TotalSource, flat};
use treering_profile::{FunctionId, Profile};

use crate::facts::Facts;
use crate::function::Labels;
use crate::number::{duration, grouped, percent, plural};
use crate::options::Amount;
use crate::printable::printable_profile;
use crate::scale::Scale;
use crate::style::Style;
use crate::table::Table;

/// The state of a program, besides its profile.
#[derive(Clone, Debug, Default)]
pub struct Doing {
    /// The process; 0 where it is not known or has ended.
    pub pid: u32,
    /// How many threads have reported calls, and how many of them run.
    pub threads: u64,
    /// See `threads`.
    pub running: u64,
    /// Enters and leaves so far.
    pub events: u64,
    /// The open activations of the first thread, outermost first.
    pub open: Vec<FunctionId>,
    /// How it ended, if it did.
    pub ended: Option<String>,
}

/// The change since the listing before.
#[derive(Clone, Debug)]
pub struct Lately {
    /// The change of costs and calls.
    pub change: Change,
    /// The time in between in nanoseconds, more than 0.
    pub interval_ns: u64,
}

impl Lately {
    fn rate(&self, count: u64) -> u64 {
        (count as f64 * 1e9 / self.interval_ns.max(1) as f64).round() as u64
    }
}

/// The lines above a listing: the command, how long it runs, events, threads, and where it is now.
pub fn watch_head(profile: &Profile, doing: &Doing, lately: Option<&Lately>, style: &Style) -> String {
    let profile = &*printable_profile(profile);
    let basis = treering_analysis::default_metric(profile).map(|metric| Basis::of(profile, metric));
    let command = basis.and_then(|basis| Facts::of(profile, &basis).command()).unwrap_or_default();
    let process = if doing.pid == 0 { String::new() } else { format!(" (process {})", doing.pid) };
    let mut lines = vec![("command", format!("{command}{process}")), ("run", run(profile, doing, lately))];
    lines.push(match &doing.ended {
        Some(how) => ("now", how.clone()),
        None => ("now in", style.fit_name(LABEL, &path(profile, &doing.open))),
    });
    lines.iter().map(|(label, text)| format!("{}  {text}\n", style.dim(&format!("{label:<8}")))).collect()
}

/// How many characters a line begins with.
const LABEL: usize = 10;

fn run(profile: &Profile, doing: &Doing, lately: Option<&Lately>) -> String {
    let wall_ns: u64 = profile.runs.iter().map(|run| run.duration_ns).sum();
    let mut text = duration(wall_ns as f64);
    // A recording that has ended knows of no calls.
    if doing.events > 0 || doing.ended.is_none() {
        text += &format!(", {}", plural(doing.events, "event"));
    }
    if let Some(lately) = lately {
        // Most calls are left within the interval in which they are entered.
        text += &format!(" ({} calls/s)", grouped(lately.rate(lately.change.all.calls)));
    }
    text + &format!(", {}, {} running", plural(doing.threads, "thread"), grouped(doing.running))
}

/// `main > solve > fib x12`: functions that follow themselves are counted.
fn path(profile: &Profile, open: &[FunctionId]) -> String {
    let labels = Labels::of(profile);
    let step = |same: &[FunctionId]| match same.len() {
        1 => labels.name(same[0]).into_owned(),
        many => format!("{} x{many}", labels.name(same[0])),
    };
    let same: Vec<&[FunctionId]> = open.chunk_by(|a, b| a == b).collect();
    let named = |steps: &[&[FunctionId]]| steps.iter().map(|same| step(same)).collect::<Vec<_>>().join(" > ");
    match same.len() {
        0 => "nothing that reports its calls".to_owned(),
        steps if steps <= OUTERMOST + INNERMOST + 1 => named(&same),
        steps => {
            let left_out = steps - OUTERMOST - INNERMOST;
            let (outermost, innermost) = (&same[..OUTERMOST], &same[steps - INNERMOST..]);
            format!("{} > … {left_out} more … > {}", named(outermost), named(innermost))
        }
    }
}

/// How many steps of a long path are shown at its ends.
const OUTERMOST: usize = 3;
const INNERMOST: usize = 6;

/// Functions by self cost, with what they cost and how often they were called since the listing
/// before. `profile` is the one that `graph` was made of.
pub fn watch_text(
    profile: &Profile,
    graph: &CallGraph,
    lately: Option<&Lately>,
    style: &Style,
    limit: Option<usize>,
) -> String {
    let profile = &*printable_profile(profile);
    if graph.basis.run.cost == 0 {
        return "nothing was measured yet\n".to_owned();
    }
    let listing = Listing { profile, graph, lately, scale: scale(profile, graph) };
    let labels = Labels::of(profile);
    let mut table = Table::new(listing.headings(), "function");
    let rows = flat(profile, graph, SortKey::SelfCost);
    let shown = rows.len().min(limit.unwrap_or(rows.len()));
    for row in &rows[..shown] {
        let doubt = if row.cost.reliability.unresolved { " (time unresolved)" } else { "" };
        let name = format!("{}{doubt}", labels.with_module(row.cost.function));
        table.row(listing.cells(row.cost), name, graph.basis.share(row.cost.self_cost.cost));
    }
    let left_out = match rows.len() - shown {
        0 => String::new(),
        more => format!("… {} more\n", plural(more as u64, "function")),
    };
    table.render(style) + &left_out
}

fn scale(profile: &Profile, graph: &CallGraph) -> Scale {
    Scale::of(&graph.basis, profile.metrics[graph.basis.metric.index()].unit, Amount::Natural)
}

struct Listing<'a> {
    profile: &'a Profile,
    graph: &'a CallGraph,
    lately: Option<&'a Lately>,
    scale: Scale,
}

impl Listing<'_> {
    fn has_totals(&self) -> bool {
        self.graph.totals != TotalSource::Missing
    }

    fn headings(&self) -> Vec<String> {
        let mut headings = vec!["% self".to_owned()];
        headings.extend(self.lately.map(|_| "% lately".to_owned()));
        headings.push(self.scale.heading("self"));
        headings.extend(self.has_totals().then(|| "% total".to_owned()));
        if self.graph.has_calls() {
            headings.push("calls".to_owned());
            headings.extend(self.lately.map(|_| "calls/s".to_owned()));
        }
        headings
    }

    fn cells(&self, cost: &treering_analysis::FunctionCost) -> Vec<String> {
        let basis = &self.graph.basis;
        let passed = self.lately.map(|lately| (lately, lately.change.function(self.profile, cost.function)));
        let mut cells = vec![percent(basis.share(cost.self_cost.cost))];
        cells.extend(passed.map(|(lately, passed)| percent(lately.change.share(passed))));
        cells.push(self.scale.text(cost.self_cost));
        cells.extend(self.has_totals().then(|| percent(basis.share(cost.total_cost.cost))));
        if self.graph.has_calls() {
            cells.push(grouped(cost.calls.map_or(0, |calls| calls.all)));
            cells.extend(passed.map(|(lately, passed)| grouped(lately.rate(passed.calls))));
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use treering_analysis::{CostSnapshot, Presentation};

    use super::*;

    fn graph(profile: &Profile) -> CallGraph {
        let basis = Basis::of(profile, treering_profile::MetricId::new(0));
        CallGraph::of(profile, &basis, Presentation::Contexts)
    }

    const FIRST: &str = "0 enter main\n 10 enter solve\n 50 leave solve\n 100 leave main";
    const SECOND: &str = "
        0 enter main
        10 enter solve
        50 leave solve
        100 enter solve
        150 leave solve
        250 leave main
    ";

    #[test]
    fn the_last_interval_stands_beside_the_total() {
        let (first, second) = (treering_testing::trace(FIRST), treering_testing::trace(SECOND));
        let (before, now) = (graph(&first), graph(&second));
        let change = CostSnapshot::of(&second, &now).since(&CostSnapshot::of(&first, &before));
        let lately = Lately { change, interval_ns: 500_000_000 };
        let text = watch_text(&second, &now, Some(&lately), &Style::default(), None);
        expect_test::expect![[r#"
            % self  % lately  self ns  % total  calls  calls/s  function
              64.0      66.7      160    100.0      1        0  main
              36.0      33.3       90     36.0      2        2  solve
        "#]]
        .assert_eq(&text);
        let first = watch_text(&second, &now, None, &Style::default(), Some(1));
        expect_test::expect![[r#"
            % self  self ns  % total  calls  function
              64.0      160    100.0      1  main
            … 1 function more
        "#]]
        .assert_eq(&first);
    }

    /// Each was said to have been called 0 times.
    #[test]
    fn a_profile_without_calls_has_no_column_of_them() {
        let sampled = treering_testing::stacks("main;solve 10");
        let text = watch_text(&sampled, &graph(&sampled), None, &Style::default(), None);
        assert!(text.contains("solve") && !text.contains("calls"), "{text}");
        let ended = Doing { ended: Some("the program has ended".to_owned()), ..Doing::default() };
        let head = watch_head(&sampled, &ended, None, &Style::default());
        assert!(!head.contains("event"), "{head}");
    }

    #[test]
    fn the_head_says_where_the_program_is() {
        let profile = treering_testing::trace(SECOND);
        let functions: Vec<FunctionId> =
            profile.tree.nodes().skip(1).map(|node| profile.tree.function(node)).collect();
        let open = vec![functions[0], functions[1], functions[1]];
        let doing = Doing { pid: 7, threads: 2, running: 1, events: 1234, open, ended: None };
        let head = watch_head(&profile, &doing, None, &Style::default());
        assert!(head.contains("(process 7)\n"), "{head}");
        assert!(head.contains("1,234 events, 2 threads, 1 running\n"), "{head}");
        assert!(head.ends_with("now in    main > solve x2\n"), "{head}");
        let ended = Doing { ended: Some("the program has ended".to_owned()), ..doing };
        let head = watch_head(&profile, &ended, None, &Style::default());
        assert!(head.ends_with("now       the program has ended\n"), "{head}");
    }

    #[test]
    fn a_long_path_is_shown_at_its_ends() {
        let profile = treering_testing::trace(SECOND);
        let functions: Vec<FunctionId> =
            profile.tree.nodes().skip(1).map(|node| profile.tree.function(node)).collect();
        let open: Vec<FunctionId> = (0..1001).map(|step| functions[step % 2]).collect();
        assert_eq!(
            path(&profile, &open),
            "main > solve > main > … 992 more … > solve > main > solve > main > solve > main"
        );
        assert_eq!(path(&profile, &open[..10]).matches(" > ").count(), 9);
    }

    #[test]
    fn a_program_that_has_reported_nothing_is_no_error() {
        let profile = Profile::new(treering_profile::RecursionRule::Direct);
        let head = watch_head(&profile, &Doing::default(), None, &Style::default());
        assert!(head.ends_with("now in    nothing that reports its calls\n"), "{head}");
    }
}
