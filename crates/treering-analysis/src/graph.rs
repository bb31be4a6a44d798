//! The call graph: functions, arcs and cycles with their costs.

use treering_profile::{FunctionId, Profile};

use crate::arc::{Arc, ArcSource, Calls};
use crate::basis::Basis;
use crate::contexts::{NodeFunctions, TreeArcs};
use crate::counted_calls::CountedCalls;
use crate::cycle::{Cycle, cycle_index, cycles};
use crate::flat_totals::{TotalSource, bound_totals, measure_totals};
use crate::identity::Identity;
use crate::interval::Interval;
use crate::measure::Measure;
use crate::propagate;
use crate::reliability::Reliability;
use crate::walk::{Tally, walk};

/// How cycles are presented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presentation {
    /// Every function by itself; cycles are a mark. The only one that needs a tree.
    #[default]
    Contexts,
    /// As gprof does: a cycle counts as one function, with calls inside it costing nothing.
    /// Arc-only profiles have no other.
    CollapsedCycles,
}

/// The cost of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCost {
    /// The function; [`Profile::ROOT`] for cost passed outside of every function.
    pub function: FunctionId,
    /// The cost spent in the function itself.
    pub self_cost: Measure,
    /// Self cost and all callees, outermost activations only. Where cycles are collapsed, that
    /// of a member is its self cost and what it called outside of the cycle.
    pub total_cost: Measure,
    /// How often it was called, where calls were counted.
    pub calls: Option<Calls>,
    /// Between which shares of the run the self cost lies, where it was sampled.
    pub self_interval: Option<Interval>,
    /// The same for the total cost; also where contexts were folded, and then it holds the total for certain.
    pub total_interval: Option<Interval>,
    /// The cycle it is in, as an index of [`CallGraph::cycles`].
    pub cycle: Option<usize>,
    /// The self costs by run, when there are enough of them to tell how much they differ.
    pub self_by_run: Vec<u64>,
    /// How far the self cost can be trusted where calls were timed; see
    /// [`CallGraph::with_reliability`].
    pub reliability: Reliability,
}

/// The cost of a cycle as a whole.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleCost {
    /// Its functions.
    pub cycle: Cycle,
    /// The cost spent in its functions themselves.
    pub self_cost: Measure,
    /// The same and everything they called, from entering the cycle to leaving it.
    pub total_cost: Measure,
    /// Calls from outside.
    pub calls_from_outside: u64,
    /// Calls between its functions, those of a function to itself left out.
    pub calls_within: u64,
}

/// The call graph of a profile in one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct CallGraph {
    /// The base of percentages.
    pub basis: Basis,
    /// How cycles are presented.
    pub presentation: Presentation,
    /// Where the total costs come from.
    pub totals: TotalSource,
    /// Every function that occurs, in the order of their indexes.
    pub functions: Vec<FunctionCost>,
    /// Every arc, ordered by caller and callee. Spontaneous calls come first.
    pub arcs: Vec<Arc>,
    /// The cycles, callees before callers. Their costs are there in both presentations.
    pub cycles: Vec<CycleCost>,
    /// Indexes of `arcs`, ordered by callee.
    by_callee: Vec<u32>,
    has_calls: bool,
    has_averages: bool,
    counts_apart: bool,
}

impl CallGraph {
    /// Measures the call graph of a profile, in O(nodes + arcs).
    ///
    /// A profile that has arcs but no tree is presented with collapsed cycles whatever is asked.
    pub fn of(profile: &Profile, basis: &Basis, presentation: Presentation) -> Self {
        let mut graph = match profile.is_arcs_only() {
            true => propagate::graph(profile, basis),
            false => measure(profile, basis, presentation),
        };
        graph.has_averages = graph.has_calls && profile.has_averages_of(basis.metric);
        graph
    }

    /// The cost of a function, if it occurs.
    pub fn function(&self, function: FunctionId) -> Option<&FunctionCost> {
        let at = self.functions.binary_search_by_key(&function, |cost| cost.function).ok()?;
        Some(&self.functions[at])
    }

    /// The arcs into a function.
    pub fn callers(&self, function: FunctionId) -> impl Iterator<Item = &Arc> + '_ {
        let callee = |&at: &u32| self.arcs[at as usize].callee;
        let from = self.by_callee.partition_point(|at| callee(at) < function);
        let arcs = self.by_callee[from..].iter().take_while(move |at| callee(at) == function);
        arcs.map(|&at| &self.arcs[at as usize])
    }

    /// The arcs out of a function.
    pub fn callees(&self, function: FunctionId) -> impl Iterator<Item = &Arc> + '_ {
        let from = self.arcs.partition_point(|arc| arc.caller < Some(function));
        self.arcs[from..].iter().take_while(move |arc| arc.caller == Some(function))
    }

    /// Whether calls were counted.
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// Whether costs divided by calls are averages: not where the costs of a part of the profile have no calls, or the
    /// other way round.
    pub fn has_averages(&self) -> bool {
        self.has_averages
    }

    /// Whether calls were counted separately from the measured costs: 0 calls of an arc then means that its calls
    /// were not counted.
    pub fn counts_apart(&self) -> bool {
        self.counts_apart
    }

    /// Puts a graph together; `functions` and `arcs` may be in any order.
    pub(crate) fn assemble(
        basis: &Basis,
        presentation: Presentation,
        mut functions: Vec<FunctionCost>,
        mut arcs: Vec<Arc>,
        cycles: Vec<CycleCost>,
    ) -> Self {
        functions.sort_unstable_by_key(|cost| cost.function);
        // Most are in order already.
        arcs.sort_by_key(|arc| (arc.caller, arc.callee));
        let mut by_callee: Vec<u32> = (0..arcs.len() as u32).collect();
        by_callee.sort_by_key(|&at| arcs[at as usize].callee);
        let totals = TotalSource::Derived;
        let has_calls = functions.iter().any(|cost| cost.calls.is_some());
        Self {
            basis: basis.clone(),
            presentation,
            totals,
            functions,
            arcs,
            cycles,
            by_callee,
            has_calls,
            has_averages: has_calls,
            counts_apart: false,
        }
    }
}

/// The call graph of a profile that has a tree.
fn measure(profile: &Profile, basis: &Basis, presentation: Presentation) -> CallGraph {
    let identity = Identity::of(profile);
    let node_functions = NodeFunctions::of(profile, &identity);
    let tree_arcs = TreeArcs::of(&profile.tree, &node_functions);
    let functions = identity.table_len();
    let counted = CountedCalls::of(profile, &identity, basis.metric);
    let cycles = match &counted {
        Some(counted) => {
            let ends: Vec<_> = tree_arcs.ends.iter().copied().chain(counted.ends()).collect();
            cycles(functions, &ends)
        }
        None => cycles(functions, &tree_arcs.ends),
    };
    let cycle_of = cycle_index(functions, &cycles);
    let groups = match presentation {
        Presentation::Contexts => (0..functions as u32).collect(),
        Presentation::CollapsedCycles => groups(functions, &cycles),
    };
    let mut tally = walk(profile, &node_functions, &tree_arcs, &groups, &cycle_of, basis);
    let totals = measure_totals(&mut tally, profile, &node_functions, &tree_arcs, basis);
    let beside_samples = profile.has_counts_apart();
    let occurring = (0..functions).filter(|&at| {
        let outside = at == Profile::ROOT.index();
        tally.occurs[at] && (!outside || !tally.self_costs[at].is_zero())
    });
    let function_costs = occurring.map(|at| FunctionCost {
        cycle: cycle_of[at],
        calls: profile
            .tree
            .has_calls()
            .then(|| tally.calls[at])
            .filter(|calls| calls.all > 0 || !beside_samples),
        ..function_cost(basis, &tally, at)
    });
    let mut function_costs: Vec<_> = function_costs.collect();
    let mut costs = cycle_costs(cycles, &tally, &tree_arcs, &cycle_of);
    let mut arcs = arcs(&tally, &tree_arcs);
    let counts_apart = counted.is_some() || beside_samples;
    if let Some(counted) = counted {
        counted.join(basis, &mut function_costs, &mut arcs);
        for cost in &mut function_costs {
            cost.cycle = cycle_of[cost.function.index()];
        }
        count_cycles(&mut costs, &arcs, &cycle_of);
    }
    let mut graph = CallGraph::assemble(basis, presentation, function_costs, arcs, costs);
    graph.counts_apart = counts_apart;
    graph.totals = totals;
    if presentation == Presentation::CollapsedCycles {
        graph.correct_totals_of_members();
    }
    bound_totals(&mut graph, profile, &identity);
    graph
}

/// Every function with its cycle's first member, which stands for the cycle.
fn groups(functions: usize, cycles: &[Cycle]) -> Vec<u32> {
    let mut groups: Vec<u32> = (0..functions as u32).collect();
    for cycle in cycles {
        for member in &cycle.members {
            groups[member.index()] = cycle.members[0].raw();
        }
    }
    groups
}

fn arcs(tally: &Tally, tree_arcs: &TreeArcs) -> Vec<Arc> {
    let root = Profile::ROOT.raw();
    let arcs = tally.arcs.iter().zip(&tree_arcs.ends).map(|(arc, &(caller, callee))| Arc {
        caller: (caller != root).then(|| FunctionId::new(caller)),
        callee: FunctionId::new(callee),
        calls: arc.calls,
        total_cost: arc.total,
        from_caller: arc.from_caller,
        to_callee: arc.to_callee,
        source: ArcSource::Measured,
    });
    arcs.collect()
}

fn cycle_costs(
    cycles: Vec<Cycle>,
    tally: &Tally,
    tree_arcs: &TreeArcs,
    cycle_of: &[Option<usize>],
) -> Vec<CycleCost> {
    let cost = |(cycle, &total_cost): (Cycle, &Measure)| CycleCost {
        self_cost: cycle.members.iter().map(|member| tally.self_costs[member.index()]).sum(),
        total_cost,
        cycle,
        calls_from_outside: 0,
        calls_within: 0,
    };
    let mut costs: Vec<_> = cycles.into_iter().zip(&tally.cycle_totals).map(cost).collect();
    for (arc, &(caller, callee)) in tally.arcs.iter().zip(&tree_arcs.ends) {
        let Some(cycle) = cycle_of[callee as usize].filter(|_| caller != callee) else { continue };
        let within = cycle_of[caller as usize] == Some(cycle);
        let cost = &mut costs[cycle];
        let count = if within { &mut cost.calls_within } else { &mut cost.calls_from_outside };
        *count = count.saturating_add(arc.calls);
    }
    costs
}

/// Counts the calls into cycles and within them.
fn count_cycles(costs: &mut [CycleCost], arcs: &[Arc], cycle_of: &[Option<usize>]) {
    for arc in arcs.iter().filter(|arc| !arc.is_recursive()) {
        let Some(cycle) = cycle_of[arc.callee.index()] else { continue };
        let within = arc.caller.is_some_and(|caller| cycle_of[caller.index()] == Some(cycle));
        let cost = &mut costs[cycle];
        let count = if within { &mut cost.calls_within } else { &mut cost.calls_from_outside };
        *count = count.saturating_add(arc.calls);
    }
}

fn function_cost(basis: &Basis, tally: &Tally, at: usize) -> FunctionCost {
    let runs = basis.runs.len();
    let by_run = |column: &[u64]| column.get(at * runs..(at + 1) * runs).map(<[u64]>::to_vec);
    let self_by_run = by_run(&tally.self_by_run).filter(|costs| !costs.is_empty());
    let outside = at == Profile::ROOT.index();
    let (total_cost, total_by_run) = if outside {
        (tally.self_costs[at], self_by_run.clone())
    } else {
        (tally.totals[at], by_run(&tally.total_by_run).filter(|costs| !costs.is_empty()))
    };
    FunctionCost {
        function: FunctionId::from_usize(at),
        self_cost: tally.self_costs[at],
        total_cost,
        calls: None,
        self_interval: basis.interval_of_runs(tally.self_costs[at], self_by_run.as_deref()),
        total_interval: basis.interval_of_runs(total_cost, total_by_run.as_deref()),
        cycle: None,
        self_by_run: self_by_run.unwrap_or_default(),
        reliability: Reliability::default(),
    }
}

impl CallGraph {
    /// Gives members of collapsed cycles the total that gprof prints: their self cost and what
    /// they called outside of the cycle.
    fn correct_totals_of_members(&mut self) {
        for at in 0..self.functions.len() {
            if self.functions[at].cycle.is_none() {
                continue;
            }
            let called: Measure =
                self.callees(self.functions[at].function).map(|arc| arc.to_callee.total).sum();
            let cost = &mut self.functions[at];
            cost.total_cost = cost.self_cost + called;
            cost.total_interval = self.basis.interval(cost.total_cost);
        }
    }
}
