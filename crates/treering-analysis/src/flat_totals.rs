//! Totals of profiles that have no contexts.

use treering_profile::{Profile, RecursionRule};

use crate::basis::Basis;
use crate::contexts::{Contexts, TreeArcs};
use crate::walk::Tally;

/// Where the total costs of functions come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TotalSource {
    /// They are derived from self costs, by the tree or by arcs.
    #[default]
    Derived,
    /// They were measured for each function: the profile is flat. No callees are known that they
    /// could be divided among.
    Measured,
    /// They are not known: the profile is flat, and totals were measured in another metric. Self
    /// costs stand in their place.
    Missing,
}

/// Puts the measured totals of a flat profile in the place of those that its tree would give.
///
/// The total of a function is the sum over its threads; at least its self cost, and at most the
/// run cost, which a total that holds the call bias may exceed when self costs were corrected.
pub(crate) fn measure_totals(
    tally: &mut Tally,
    profile: &Profile,
    contexts: &Contexts,
    arcs: &TreeArcs,
    basis: &Basis,
) -> TotalSource {
    if profile.recursion != RecursionRule::Flat {
        return TotalSource::Derived;
    }
    let Some(activations) = profile.activations.as_ref().filter(|of| of.metric == basis.metric) else {
        return TotalSource::Missing;
    };
    let mut totals = vec![0_u64; tally.totals.len()];
    for (node, statistics) in activations.nodes.filled() {
        let total = &mut totals[contexts.function(node) as usize];
        *total = total.saturating_add(statistics.total);
    }
    let root = Profile::ROOT.raw();
    for (at, total) in totals.into_iter().enumerate().filter(|&(at, _)| at != root as usize) {
        let own = tally.self_costs[at].cost;
        tally.totals[at].cost = total.max(own).min(basis.run.cost.max(own));
    }
    for (arc, &(caller, callee)) in tally.arcs.iter_mut().zip(&arcs.ends) {
        if caller == root {
            arc.total = tally.totals[callee as usize];
            arc.from_caller.total = arc.total;
        }
    }
    TotalSource::Measured
}
