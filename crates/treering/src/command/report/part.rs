//! The part of the profile that a view shows, as options choose it.

use regex::Regex;
use treering_analysis::{Basis, FunctionSet, OwnerCost, Selection, thread_costs};
use treering_profile::{MetricId, Profile, Thread};

use crate::failure::Failure;

// The part of the profile to show.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Parts of the profile")]
pub struct Part {
    /// Keep only stacks with a function or module that matches
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(super) focus: Option<Regex>,
    /// Leave out stacks with a function or module that matches
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(super) ignore: Option<Regex>,
    /// Leave out functions that match, or whose module does; their cost goes to their callers
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub(super) hide: Option<Regex>,
    /// Keep only threads of this name or number
    #[arg(long, value_name = "NAME|TID")]
    pub(super) thread: Option<String>,
    /// Keep only this run of several, counted from 1
    #[arg(long, value_name = "N")]
    pub(super) run: Option<usize>,
}

impl Part {
    /// The part to keep. A pattern that matches nothing is an error where nothing would be left, else
    /// a note in the profile.
    pub fn selection(&self, profile: &mut Profile) -> Result<Selection, Failure> {
        let mut notes = Vec::new();
        let mut set = |option: &str, pattern: &Option<Regex>| {
            let pattern = pattern.as_ref()?;
            let matches = |name: &str| pattern.is_match(name);
            let (set, modules) = FunctionSet::matching_with_modules(profile, matches);
            if !modules.is_empty() {
                let paths = modules.iter().map(|&module| &profile.strings[profile.modules[module].path]);
                let paths = paths.collect::<Vec<_>>().join(", ");
                notes.push(format!("{option} {:?} stands for every function of {paths}", pattern.as_str()));
            }
            Some(set)
        };
        let focus = set("--focus", &self.focus);
        let (ignore, hide) = (set("--ignore", &self.ignore), set("--hide", &self.hide));
        notes.into_iter().for_each(|note| profile.metadata.note(note));
        if let (Some(pattern), Some(true)) = (&self.focus, focus.as_ref().map(FunctionSet::is_empty)) {
            return Err(Failure::new(format_args!(
                "no function or module matches --focus {:?}",
                pattern.as_str()
            )));
        }
        let unused = [("--ignore", &self.ignore, &ignore), ("--hide", &self.hide, &hide)];
        for (option, pattern, set) in unused {
            if let (Some(pattern), Some(set)) = (pattern, set)
                && set.is_empty()
            {
                profile
                    .metadata
                    .note(format!("no function or module matches {option} {:?}", pattern.as_str()));
            }
        }
        Ok(Selection { threads: self.threads(profile)?, focus, ignore, hide })
    }

    /// The metric, or, where the chosen run has no cost in it and it was not asked for, the first one that the run has:
    /// merged runs may have been measured in different ones.
    pub(super) fn measured(
        &self,
        profile: &mut Profile,
        metric: MetricId,
        is_asked_for: bool,
        selection: &Selection,
    ) -> MetricId {
        let (Some(run), Some(kept)) = (self.run, &selection.threads) else { return metric };
        let owners = profile.node_threads();
        let nodes: Vec<_> = profile
            .tree
            .nodes()
            .zip(owners)
            .filter(|(_, of)| kept[of.index()])
            .map(|(node, _)| node)
            .collect();
        let has_cost = |id: MetricId| nodes.iter().any(|&node| profile.tree.self_cost(id, node) > 0);
        if has_cost(metric) {
            return metric;
        }
        let other = profile.cost_metrics().map(|(id, _)| id).find(|&id| has_cost(id));
        let Some(other) = other else { return metric };
        if !is_asked_for {
            return other;
        }
        let name = &profile.metrics[metric.index()].name;
        let note = format!("{name} has no costs in run {run}, which was measured in another metric");
        profile.metadata.note(note);
        metric
    }

    /// Notes that costs of a chosen thread also stand for threads that were not chosen.
    pub(super) fn note_shared_costs(&self, profile: &mut Profile, metric: MetricId, selection: &Selection) {
        let (Some(_), Some(kept)) = (&self.thread, &selection.threads) else { return };
        let costs = thread_costs(profile, &Basis::of(profile, metric));
        let is_shared =
            |of: &OwnerCost| of.shared > 0 && of.thread.is_some_and(|thread| kept[thread.index()]);
        if profile.metadata.losses.unsampled_threads > 0 && costs.iter().any(is_shared) {
            profile.metadata.note(
                "samples of threads of less than 20 also stand for similar threads without a sample, so the costs of one \
                 alone are not known"
                    .to_owned(),
            );
        }
    }

    /// Refuses options that choose stacks, for a view that knows none.
    pub fn check_no_stacks(&self, view: &str) -> Result<(), Failure> {
        let given = [("--focus", &self.focus), ("--ignore", &self.ignore), ("--hide", &self.hide)];
        match given.into_iter().find(|(_, pattern)| pattern.is_some()) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::new(format_args!(
                "{option} chooses stacks, and {view} shows counts of code, which have none"
            ))
            .hint("--thread and --run choose a part of them")),
        }
    }

    /// Whether no part was chosen.
    pub fn is_everything(&self) -> bool {
        let patterns = [&self.focus, &self.ignore, &self.hide];
        patterns.iter().all(|pattern| pattern.is_none()) && self.thread.is_none() && self.run.is_none()
    }

    /// The counts of code of the threads asked for.
    pub fn of_threads(&self, profile: Profile) -> Result<Profile, Failure> {
        let Some(kept) = self.threads(&profile)? else { return Ok(profile) };
        let number = |thread: &Thread| profile.threads.iter().position(|known| known == thread);
        let is_kept = |thread: &Thread| number(thread).is_some_and(|at| kept[at]).then_some(0);
        Ok(profile.collapse_threads(is_kept))
    }

    fn threads(&self, profile: &Profile) -> Result<Option<Vec<bool>>, Failure> {
        if self.thread.is_none() && self.run.is_none() {
            return Ok(None);
        }
        if self.run.is_some() && !profile.has_runs_apart() {
            return Err(Failure::new(
                "its runs cannot be told apart: they were added up by merge --collapse",
            )
            .hint("treering merge without --collapse keeps each"));
        }
        let of_run = |thread: &Thread| {
            let run = profile.processes[thread.process.index()].run.index();
            self.run.is_none_or(|wanted| run + 1 == wanted)
        };
        let named = |thread: &Thread| {
            let is_it = |wanted: &String| thread.name == *wanted || thread.tid.to_string() == *wanted;
            self.thread.as_ref().is_none_or(is_it)
        };
        let kept: Vec<bool> = profile.threads.iter().map(|thread| of_run(thread) && named(thread)).collect();
        if kept.contains(&true) { Ok(Some(kept)) } else { Err(self.no_thread(profile)) }
    }

    fn no_thread(&self, profile: &Profile) -> Failure {
        let runs = profile.runs.len();
        match (self.run, &self.thread) {
            (Some(run), _) if run == 0 || run > runs => {
                Failure::new(format_args!("there is no run {run}: the profile holds {runs}"))
            }
            (_, Some(thread)) => {
                let mut known: Vec<String> = profile
                    .threads
                    .iter()
                    .map(|thread| match thread.name.as_str() {
                        "" => thread.tid.to_string(),
                        name => format!("{name} ({})", thread.tid),
                    })
                    .collect();
                known.sort();
                known.dedup();
                Failure::new(format_args!("no thread is called {thread:?} or has this number"))
                    .hint(format_args!("there are: {}", known.join(", ")))
            }
            _ => Failure::new("that run has no threads"),
        }
    }
}

/// Parses a pattern; says what is wrong with it in one line.
fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        let told = error.to_string();
        told.rsplit("error: ").next().unwrap_or(&told).trim().to_owned()
    })
}
