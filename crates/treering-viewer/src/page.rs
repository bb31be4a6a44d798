//! A page: what is shown, and how.

use serde_json::{Value, json};
use treering_analysis::{Basis, CallGraph, Corrected, Presentation, default_metric};
use treering_profile::{CodeAddress, MetricId, Profile, RecursionRule, Timeline, pluralize};

use crate::changes::{self, Changes};
use crate::columns::Columns;
use crate::compared::{self, Compared};
use crate::functions::{Functions, Texts};
use crate::html::{Live, Packed, Parts, html, inert, packed};
use crate::lines::Lines;
use crate::{blocks, details, fixed, head, time, tree};

/// Disassembles the instruction of a length at an address; nothing where its bytes are not known.
pub type Disassemble<'a> = dyn FnMut(CodeAddress, u8) -> Option<String> + 'a;

/// The content of a page.
pub struct View<'a> {
    part: &'a Corrected<'a>,
    /// The base of percentages, by metric, when only a part of the profile is shown.
    pub bases: Vec<Basis>,
    /// The title of the page; the command by default.
    pub title: String,
    /// The lines above a text report, each a label and a text.
    pub facts: Vec<(String, String)>,
    /// The metric that is shown first.
    pub metric: MetricId,
    /// By run: whether it is one of the base, in a difference.
    pub base_runs: Option<Vec<bool>>,
    /// Why the run changed, in a difference.
    pub changes: Option<Changes>,
    /// Both profiles of a difference.
    pub compared: Option<Compared>,
    /// Whether text of source files is put into the page.
    pub with_source: bool,
}

/// The source of callers and callees in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Whole stacks.
    Tree,
    /// Calls between functions.
    Arcs,
    /// Functions alone.
    Flat,
}

impl Shape {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Arcs => "arcs",
            Self::Flat => "flat",
        }
    }
}

impl<'a> View<'a> {
    /// A view of everything in a profile.
    pub fn of(part: &'a Corrected<'a>) -> Self {
        let profile = &*part.profile;
        let title = profile.runs.first().map_or_else(String::new, |run| run.command.join(" "));
        Self {
            part,
            bases: profile.metrics().map(|(metric, _)| part.basis(metric)).collect(),
            title: if title.is_empty() { "profile".to_owned() } else { title },
            facts: Vec::new(),
            metric: default_metric(profile).unwrap_or(MetricId::new(0)),
            base_runs: None,
            changes: None,
            compared: None,
            with_source: true,
        }
    }

    pub(crate) fn profile(&self) -> &Profile {
        &self.part.profile
    }

    pub(crate) fn basis(&self, metric: MetricId) -> Basis {
        self.bases[metric.index()].clone()
    }

    /// When costs arose, where the page can show it.
    pub(crate) fn timeline(&self) -> Option<&Timeline> {
        time::timeline(self.profile(), self.shape(), self.base_runs.is_some())
    }

    /// Both profiles of a difference without stacks.
    pub(crate) fn without_stacks(&self) -> Option<&Compared> {
        self.compared.as_ref().filter(|compared| compared.without_stacks)
    }

    pub(crate) fn shape(&self) -> Shape {
        let profile = self.profile();
        match () {
            () if profile.is_arcs_only() || self.without_stacks().is_some() => Shape::Arcs,
            () if profile.recursion == RecursionRule::Flat => Shape::Flat,
            () => Shape::Tree,
        }
    }
}

/// A page, ready to be written.
pub struct Page {
    title: String,
    head: String,
    packed: Packed,
    /// Omissions for its length, as sentences.
    pub left_out: Vec<String>,
}

impl Page {
    /// Makes the page, without disassembled code.
    pub fn of(view: &View<'_>) -> Self {
        Self::with_code(view, &mut |_, _| None)
    }

    /// Makes the page, in O(nodes + lines + blocks).
    pub fn with_code(view: &View<'_>, disassemble: &mut Disassemble<'_>) -> Self {
        let profile = view.profile();
        let mut left_out = Vec::new();
        let functions = Functions::of(profile, view.base_runs.is_some());
        let mut lines = Lines::default();
        let (tree, rest) = match view.shape() {
            Shape::Tree => {
                let payload = tree::payload(
                    profile,
                    &functions,
                    &mut lines,
                    &first_metrics(view),
                    view.base_runs.is_none(),
                );
                (payload.tree, payload.rest)
            }
            Shape::Arcs | Shape::Flat => (Vec::new(), Vec::new()),
        };
        if view.bases.iter().any(|basis| basis.run.cost > LARGEST) {
            left_out.push("the page rounds costs above 9,007,199,254,740,992: scripts have no larger whole numbers; treering report has them".to_owned());
        }
        let mut texts = Texts::new();
        let mut columns = Columns::default();
        let costs =
            lines.costs(profile, &functions, view.base_runs.as_deref(), view.compared.as_ref(), &mut columns);
        let line_pairs = view.compared.as_ref().map(|compared| {
            compared::line_pairs(compared, profile, &functions, &mut lines, &mut texts, &mut columns)
        });
        let has_lines = !lines.is_empty();
        let (code, has_blocks) = code(view, &functions, &mut lines, &mut texts, disassemble, &mut left_out);
        let data = data(view, &functions, &lines, [costs, line_pairs.into()], texts, columns);
        let tab = if has_blocks && !has_lines { "blocks" } else { "source" };
        let head = head::head(view, &functions, tab, left_out.clone());
        let time = time::payload(profile, view.timeline());
        let packed = Packed {
            tree: packed(&tree),
            data: packed(&data),
            rest: packed(&rest),
            time: packed(&time),
            code: packed(&code),
        };
        Self { title: view.title.clone(), head: inert(&head.to_string()), packed, left_out }
    }

    /// The file's text.
    pub fn html(&self) -> String {
        html(&self.parts(), None)
    }

    /// The text of a page that a server delivers and that asks this server for updates, under the name `data` beside
    /// the page, in the form of [`payload`](Self::payload), with the number of its own version. It may ask no other
    /// server.
    pub fn live_html(&self, version: u64, interval_ms: u64) -> String {
        html(&self.parts(), Some(Live { version, interval_ms }))
    }

    /// The content of the page, as JSON, for a page that shows another version of the profile.
    pub fn payload(&self) -> String {
        // Base64 needs no escapes.
        let parts = self.packed.in_order().map(|(name, text)| format!(",\"{name}\":\"{text}\"")).concat();
        format!("{{\"head\":{}{parts}}}", self.head)
    }

    fn parts(&self) -> Parts<'_> {
        Parts { title: &self.title, head: &self.head, packed: &self.packed }
    }
}

/// Up to here, every whole number is one of a script.
const LARGEST: u64 = 1 << 53;

/// By metric: whether the first picture needs it.
fn first_metrics(view: &View<'_>) -> Vec<bool> {
    let known = &view.profile().metrics[view.metric.index()];
    let samples = view.basis(view.metric).samples;
    let weights = known.weights().map(|weights| [weights.squares, weights.unseen].map(MetricId::new));
    let wanted: Vec<MetricId> =
        std::iter::once(view.metric).chain(samples).chain(weights.into_iter().flatten()).collect();
    view.profile().metrics().map(|(metric, _)| wanted.contains(&metric)).collect()
}

/// Source text and disassembled code, which are read function by function; and whether there is code.
fn code(
    view: &View<'_>,
    functions: &Functions,
    lines: &mut Lines,
    texts: &mut Texts,
    disassemble: &mut Disassemble<'_>,
    left_out: &mut Vec<String>,
) -> (Vec<u8>, bool) {
    let profile = view.profile();
    let mut columns = Columns::default();
    // Those of the profile are of both sides of a difference, added up.
    let (blocks, functions_left) = match (&view.compared, &view.base_runs) {
        (Some(compared), _) => compared::blocks(compared, functions, &mut columns),
        (None, Some(_)) => (json!([]), 0),
        (None, None) => blocks::blocks(profile, functions, lines, &mut columns, disassemble),
    };
    if functions_left > 0 {
        left_out.push(format!(
            "the page leaves out the blocks of {}, which would make it too large",
            pluralize(functions_left as u64, "function", "functions")
        ));
    }
    let sources = match view.with_source {
        true => {
            let (sources, too_long) = lines.sources(profile, texts, &mut columns);
            if too_long {
                left_out
                    .push("the page leaves out some source text, which would make it too large".to_owned());
            }
            sources
        }
        false => json!([]),
    };
    let has_blocks = blocks.as_array().is_some_and(|blocks| !blocks.is_empty());
    (columns.finish(&json!({ "blocks": blocks, "sources": sources })), has_blocks)
}

fn data(
    view: &View<'_>,
    functions: &Functions,
    lines: &Lines,
    [line_costs, line_pairs]: [Value; 2],
    mut texts: Texts,
    mut columns: Columns,
) -> Vec<u8> {
    let profile = view.profile();
    let table = functions.columns(profile, &mut texts, &mut columns, &functions.inlined(profile));
    let fixed: Vec<Value> = profile
        .metrics()
        .map(|(metric, known)| match view.shape() {
            Shape::Arcs | Shape::Flat if !known.is_level => match view.without_stacks() {
                Some(Compared { sides: [head, base], .. }) => {
                    fixed::graphs(profile, metric, [head, base], functions, &mut columns)
                }
                None => fixed::graph(profile, &view.basis(metric), functions, &mut columns),
            },
            _ => Value::Null,
        })
        .collect();
    let details = details::details(profile, functions);
    let ports = details::ports(profile, functions, &mut columns);
    let line_table = lines.table(profile, &mut texts, &mut columns);
    let intervals: Vec<Value> =
        profile.metrics().map(|(metric, _)| intervals(view, metric, functions, &mut columns)).collect();
    let doubts = doubts(view, functions, &mut columns);
    let changes = view.changes.as_ref().map(|changes| changes::columns(changes, functions, &mut columns));
    let skeleton = json!({
        "strings": columns.add_json(&texts.into_json()),
        "functions": table,
        "lines": line_table,
        "lineCosts": line_costs,
        "linePairs": line_pairs,
        "intervals": intervals,
        "uncertainty": doubts.0,
        "unresolved": doubts.1,
        "fixed": fixed,
        "ports": ports,
        "changes": changes,
        "details": columns.add_json(&details),
        "points": columns.add_json(&details::Points::of(profile, functions)),
    });
    columns.finish(&skeleton)
}

/// Intervals that the page cannot work out itself: those of several runs.
fn intervals(view: &View<'_>, metric: MetricId, functions: &Functions, columns: &mut Columns) -> Value {
    let basis = view.basis(metric);
    if basis.samples.is_none() || !basis.has_spread() || view.shape() != Shape::Tree {
        return Value::Null;
    }
    let graph = CallGraph::of(view.profile(), &basis, Presentation::Contexts);
    let mut bounds = [const { Vec::new() }; 4];
    for column in &mut bounds {
        *column = vec![-1.0_f32; functions.len()];
    }
    for cost in &graph.functions {
        let Some(number) = functions.known(cost.function) else { continue };
        let of = [cost.self_interval, cost.total_interval].map(|interval| interval.map(|i| (i.low, i.high)));
        for (at, interval) in of.into_iter().enumerate() {
            let Some((low, high)) = interval else { continue };
            bounds[2 * at][number as usize] = low as f32;
            bounds[2 * at + 1][number as usize] = high as f32;
        }
    }
    let [self_low, self_high, total_low, total_high] = bounds.map(|column| columns.add_shares(column));
    json!({ "selfLow": self_low, "selfHigh": self_high, "totalLow": total_low, "totalHigh": total_high })
}

/// How far corrected times can be trusted, by function: the uncertainty, and whether they cannot be
/// told from what measuring cost.
fn doubts(view: &View<'_>, functions: &Functions, columns: &mut Columns) -> (Value, Value) {
    let Some(metric) = view.part.metric else { return (Value::Null, Value::Null) };
    let graph = CallGraph::of(view.profile(), &view.basis(metric), Presentation::Contexts)
        .with_reliability(view.part);
    let mut uncertainty = vec![0_u64; functions.len()];
    let mut unresolved = vec![0_u64; functions.len()];
    for cost in &graph.functions {
        let Some(number) = functions.known(cost.function) else { continue };
        uncertainty[number as usize] += cost.reliability.uncertainty.unwrap_or(0);
        unresolved[number as usize] |= u64::from(cost.reliability.unresolved);
    }
    (columns.add(&uncertainty), columns.add(&unresolved))
}
