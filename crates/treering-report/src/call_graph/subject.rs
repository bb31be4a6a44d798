//! The subjects of blocks in the call graph.

use treering_analysis::{CallGraph, CycleCost, FunctionCost, Part, Presentation, SortKey, sort_functions};
use treering_profile::{FunctionId, Profile};

use crate::number::plural;
use crate::options::Options;

/// A function or a cycle as a whole, with its block's number.
#[derive(Clone, Copy)]
pub(super) enum Subject<'a> {
    Function(&'a FunctionCost),
    Cycle(usize, &'a CycleCost),
}

impl Subject<'_> {
    /// Whether its self cost cannot be told from the cost of measuring.
    pub(super) fn is_unresolved(&self) -> bool {
        matches!(self, Self::Function(cost) if cost.reliability.unresolved)
    }

    /// The function, where it is none that stands for several.
    pub(super) fn function(&self) -> Option<FunctionId> {
        match self {
            Self::Function(cost) => Some(cost.function),
            Self::Cycle(..) => None,
        }
    }

    pub(super) fn part(&self) -> Part {
        match self {
            Self::Function(cost) => Part { self_cost: cost.self_cost, total: cost.total_cost },
            Self::Cycle(_, cost) => Part { self_cost: cost.self_cost, total: cost.total_cost },
        }
    }
}

/// The functions that get a block, in order, and the note on the rest.
pub(super) fn subjects<'a>(
    profile: &Profile,
    graph: &'a CallGraph,
    options: &Options,
) -> (Vec<Subject<'a>>, String) {
    let large = |cost: u64| graph.basis.share(cost) >= options.min_share;
    let mut functions: Vec<_> =
        graph.functions.iter().filter(|cost| cost.function != Profile::ROOT).collect();
    let all = functions.len();
    functions.retain(|cost| large(cost.total_cost.cost));
    let sort = options.sort.unwrap_or(SortKey::TotalCost);
    sort_functions(profile, &mut functions, sort);
    functions.truncate(options.limit.unwrap_or(usize::MAX));
    let left_out = match (all - functions.len()) as u64 {
        0 => String::new(),
        count => format!("… {} without a block: below --min or beyond --top\n", plural(count, "function")),
    };
    let mut subjects: Vec<_> = functions.into_iter().map(Subject::Function).collect();
    if graph.presentation == Presentation::CollapsedCycles {
        let cycles = graph.cycles.iter().enumerate().filter(|(_, cost)| large(cost.total_cost.cost));
        subjects.extend(cycles.map(|(at, cost)| Subject::Cycle(at, cost)));
        if sort == SortKey::TotalCost {
            subjects.sort_by_key(|subject| std::cmp::Reverse(subject.part().total));
        }
    }
    (subjects, left_out)
}
