//! The options that a view heeds; the others are refused, as they would be ignored.

use super::{Report, View};
use crate::failure::Failure;

/// A view, as its option is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Flat,
    Callgraph,
    Prof,
    Tree,
    Callers,
    Lines,
    /// The blocks of a function.
    BlocksOf,
    /// The blocks of the whole program.
    Blocks,
    Histogram,
    Points,
    Timeline,
    Wakers,
    Threads,
    Processes,
    Metrics,
}

use Kind::{
    Blocks, BlocksOf, Callers, Callgraph, Flat, Histogram, Lines, Metrics, Points, Processes, Prof, Threads,
    Timeline, Tree, Wakers,
};

impl Kind {
    fn of(view: &View) -> Self {
        match view {
            View { callgraph: true, .. } => Callgraph,
            View { prof: true, .. } => Prof,
            View { tree: true, .. } => Tree,
            View { callers: true, .. } => Callers,
            View { lines: Some(_), .. } => Lines,
            View { blocks: Some(Some(_)), .. } => BlocksOf,
            View { blocks: Some(None), .. } => Blocks,
            View { histogram: Some(_), .. } => Histogram,
            View { points: true, .. } => Points,
            View { timeline: true, .. } => Timeline,
            View { wakers: true, .. } => Wakers,
            View { threads: true, .. } => Threads,
            View { processes: true, .. } => Processes,
            View { metrics: true, .. } => Metrics,
            _ => Flat,
        }
    }

    fn option(self) -> &'static str {
        match self {
            Flat => "--flat",
            Callgraph => "--callgraph",
            Prof => "--prof",
            Tree => "--tree",
            Callers => "--callers",
            Lines => "--lines",
            BlocksOf => "--blocks FUNCTION",
            Blocks => "--blocks",
            Histogram => "--histogram",
            Points => "--points",
            Timeline => "--timeline",
            Wakers => "--wakers",
            Threads => "--threads",
            Processes => "--processes",
            Metrics => "--metrics",
        }
    }
}

/// Views of costs, from which the call bias is subtracted.
const COSTS: &[Kind] = &[Flat, Callgraph, Prof, Tree, Callers, Lines, Points, Timeline, Threads, Processes];
/// Views of a part of the profile.
const PARTS: &[Kind] = &[
    Flat, Callgraph, Prof, Tree, Callers, Lines, BlocksOf, Blocks, Histogram, Points, Timeline, Wakers,
    Threads, Processes,
];
/// Views that have a row for each function.
const FUNCTIONS: &[Kind] = &[Flat, Callgraph, Prof];

impl Report {
    /// The options that were given, and the views that heed each.
    fn given(&self) -> Vec<(&'static str, &'static [Kind])> {
        let part = &self.part;
        let options: [(&str, bool, &[Kind]); 19] = [
            (
                "--full-names",
                self.full_names,
                &[Flat, Callgraph, Prof, Tree, Callers, Lines, BlocksOf, Blocks, Histogram, Timeline, Wakers],
            ),
            (
                "--metric",
                self.metric.is_some(),
                &[
                    Flat, Callgraph, Prof, Tree, Callers, Lines, Histogram, Points, Timeline, Threads,
                    Processes,
                ],
            ),
            ("--sort", self.sort.is_some(), FUNCTIONS),
            ("--unit", self.unit.is_some(), &[Flat, Callgraph, Tree, Callers, Lines, Threads, Processes]),
            (
                "--min",
                self.min.is_some(),
                &[Flat, Callgraph, Prof, Tree, Callers, Blocks, Wakers, Threads, Processes],
            ),
            ("--top", self.top.is_some(), &[Flat, Callgraph, Prof, Blocks, Wakers, Threads, Processes]),
            ("--depth", self.depth.is_some(), &[Tree, Callers]),
            ("--collapse-cycles", self.collapse_cycles, &[Callgraph]),
            ("--statistics", self.statistics, &[Callgraph]),
            ("--raw", self.raw, COSTS),
            ("--bias", self.bias.is_some(), COSTS),
            // Views of code, which has no stacks, refuse the first three with a reason of their own.
            ("--focus", part.focus.is_some(), PARTS),
            ("--ignore", part.ignore.is_some(), PARTS),
            ("--hide", part.hide.is_some(), PARTS),
            ("--thread", part.thread.is_some(), PARTS),
            ("--run", part.run.is_some(), PARTS),
            // Views of code refuse these with a reason of their own.
            ("--from", self.time.from.is_some(), PARTS),
            ("--to", self.time.to.is_some(), PARTS),
            ("--phase", self.time.phase.is_some(), PARTS),
        ];
        let given = options.into_iter().filter(|(_, is_given, _)| *is_given);
        given.map(|(option, _, heeding)| (option, heeding)).collect()
    }

    /// Refuses options that the view would ignore.
    pub(in crate::command) fn check_options(&self) -> Result<(), Failure> {
        let view = Kind::of(&self.view);
        let ignored = self.given().into_iter().find(|(_, heeding)| !heeding.contains(&view));
        let Some((option, heeding)) = ignored else { return Ok(()) };
        let failure = Failure::new(format_args!("{option} has no effect on {}", view.option())).status(2);
        let heeding: Vec<_> = heeding.iter().map(|view| view.option()).collect();
        Err(failure.hint(format_args!("{option} is for {}", heeding.join(", "))))
    }
}
