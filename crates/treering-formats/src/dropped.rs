//! The parts of a profile that a written file does not hold.

use treering_profile::{FunctionKind, MetricId, Profile, RecursionRule, Run, pluralize};

/// Parts of profiles that some formats have no place for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Arcs,
    Calls,
    Code,
    Command,
    CostsOutside,
    FunctionKinds,
    InlinedFunctions,
    InnermostLines,
    Lines,
    Marks,
    Modules,
    RandomIntervals,
    Runs,
    Sampling,
    Sources,
    Threads,
    Times,
    Tree,
}

impl Part {
    /// Whether a profile has it, and what a user is told.
    fn of(self, profile: &Profile) -> (bool, &'static str) {
        let functions = profile.functions.entries();
        let mut samplings = profile.metrics.iter().filter_map(|metric| metric.sampling.as_ref());
        match self {
            Self::Arcs => (
                profile.is_arcs_only(),
                "arcs: the profile has no stacks, so each function is a stack of its own",
            ),
            Self::Calls => (profile.tree.has_calls(), "call counts"),
            Self::Code => {
                (!profile.code.is_empty(), "executions of code, and with them what lines of source cost")
            }
            Self::Command => {
                let is_known = |run: &Run| !run.command.is_empty() || run.duration_ns > 0;
                let text = match profile.runs.len() {
                    0 | 1 => "the command, and how long it ran",
                    _ => "runs, their commands and how long they ran: costs are added up",
                };
                (profile.runs.iter().any(is_known), text)
            }
            Self::CostsOutside => {
                let has_cost = |root| profile.metrics().any(|(id, _)| profile.tree.self_cost(id, root) > 0);
                (
                    profile.threads.iter().any(|thread| has_cost(thread.root)),
                    "that costs are outside of all functions: they are samples without a stack",
                )
            }
            Self::FunctionKinds => (
                functions.iter().any(|function| function.kind as u8 >= FunctionKind::Interpreted as u8),
                "which functions are interpreted, built in or tasks",
            ),
            Self::InlinedFunctions => (
                functions.iter().any(|function| function.kind == FunctionKind::Inlined),
                "which functions were inlined: they look like called ones",
            ),
            Self::InnermostLines => {
                (!profile.line_costs.is_empty(), "source lines of the innermost functions")
            }
            Self::Lines => (!profile.lines.is_empty(), "source lines and call sites"),
            Self::Marks => {
                let timeline = profile.timeline.as_ref();
                (timeline.is_some_and(|timeline| !timeline.marks.is_empty()), "marks")
            }
            Self::Modules => (!profile.modules.is_empty(), "modules"),
            Self::RandomIntervals => (
                samplings.any(|sampling| sampling.jittered.is_some()),
                "whether the intervals between samples were drawn at random",
            ),
            Self::Runs => (profile.runs.len() > 1, "runs: only the first one's command and times are kept"),
            Self::Sampling => (samplings.next().is_some(), "which costs are estimated from samples, and how"),
            Self::Sources => (!profile.sources.is_empty(), "source texts"),
            Self::Threads => (profile.threads.len() > 1, "threads: their costs are added up"),
            Self::Times => (profile.timeline.is_some(), "when costs arose"),
            Self::Tree => (!profile.is_arcs_only(), "the tree: only arcs between functions are kept"),
        }
    }
}

/// The parts of a profile that a written file does not hold, each said once; lower case, no full stop. It is meant
/// for the user who asked for the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Dropped {
    /// The sentences.
    pub notes: Vec<String>,
}

impl Dropped {
    /// Adds a sentence.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Says how many functions are told from others by what the format has no place for, so that
    /// readers add them up.
    pub(crate) fn note_shared(&mut self, functions: usize, told_by: &str) {
        match functions {
            0 => {}
            1 => self.note(format!("the difference between two functions of one {told_by}: readers add them up")),
            _ => self.note(format!(
                "the difference between {functions} functions and others of the same {told_by}: readers add them up"
            )),
        }
    }

    /// Adds a sentence if it is true.
    pub(crate) fn note_if(&mut self, happened: bool, text: &str) {
        if happened {
            self.note(text);
        }
    }

    /// Notes those of some parts that the profile has.
    pub(crate) fn note_parts(&mut self, profile: &Profile, parts: &[Part]) {
        for part in parts {
            let (has_it, text) = part.of(profile);
            self.note_if(has_it, text);
        }
    }

    /// Notes that the one metric that is written was sampled.
    pub(crate) fn note_sampling(&mut self, profile: &Profile, metric: MetricId) {
        let text = "which costs are estimated from samples, and how";
        self.note_if(profile.metrics[metric.index()].sampling.is_some(), text);
    }

    /// Notes that only one metric is written; `with` is written with it.
    pub(crate) fn note_other_metrics(&mut self, profile: &Profile, metric: MetricId, with: Option<MetricId>) {
        let is_other = |id| id != metric && with != Some(id);
        let others = profile.cost_metrics().filter(|&(id, _)| is_other(id));
        let others: Vec<_> = others.map(|(_, metric)| metric.name.as_str()).collect();
        if !others.is_empty() {
            let name = &profile.metrics[metric.index()].name;
            self.note(format!("all metrics but {name}: {}", others.join(", ")));
        }
    }

    /// Notes what only a collector that sees every call knows, and other formats have no place
    /// for.
    pub(crate) fn note_details(&mut self, profile: &Profile) {
        self.note_if(
            profile.has_counts_apart(),
            "how often functions were called, which was counted apart from the stacks",
        );
        self.note_all_but_counts(profile);
    }

    /// For a format whose arcs hold calls that were counted apart from the stacks: what it cannot say of them.
    pub(crate) fn note_counts_of_functions(&mut self, profile: &Profile) {
        self.note_if(true, "from which lines functions were called: calls stand at the line that cost most");
        self.note_if(
            true,
            "which calls were not counted: they are written as 1, since 0 means no call; counted calls are exact",
        );
        let unknown = profile.arcs.iter().filter(|arc| arc.caller == Profile::ROOT);
        let calls = unknown.fold(0, |sum: u64, arc| sum.saturating_add(arc.calls));
        let text = format!("{} by functions that are not known", pluralize(calls, "call", "calls"));
        self.note_if(calls > 0, &text);
    }

    /// The same, for formats that have a place for calls.
    pub(crate) fn note_all_but_counts(&mut self, profile: &Profile) {
        self.note_if(profile.activations.is_some(), "statistics of single activations");
        self.note_if(!profile.ports.is_empty(), "ports of logic programs");
        self.note_if(!profile.memory.is_empty(), "memory that functions hold");
        self.note_if(!profile.points.is_empty(), "points over time");
        let weighted = profile.metrics.iter().any(|metric| metric.weights().is_some());
        self.note_if(weighted, "what intervals of confidence follow from where samples weigh differently");
        for (_, metric) in profile.cost_metrics().filter(|&(id, _)| profile.has_no_stacks_of(id)) {
            let name = &metric.name;
            self.note(format!(
                "that totals of {name} are not known: it was counted by function, and looks like self costs"
            ));
        }
        let flat = profile.recursion == RecursionRule::Flat;
        self.note_if(flat, "totals: the profile is flat, so there are no callers to derive them from");
        let biased = profile.metadata.call_bias.is_some();
        self.note_if(biased, "what measuring a call costs: the costs written are not corrected for it");
    }
}
