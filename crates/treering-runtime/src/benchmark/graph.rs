//! The graph of tasks, made from the tree of tasks.

use std::collections::HashMap;

use super::cycle::{self, Cycle};
use super::{Run, Times};

/// The kind of time that percentages are shares of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// User and system time.
    Cpu,
    /// Time on the wall. Threads that run at the same time add up.
    Wall,
}

impl Base {
    /// The part of the times that counts, in nanoseconds.
    pub(crate) fn of(self, times: Times) -> u64 {
        match self {
            Self::Cpu => times.cpu_ns(),
            Self::Wall => times.wall_ns,
        }
    }

    /// By how much the tasks of a sound run may exceed it.
    fn uncertainty_ns(self, run: &Run) -> u64 {
        match self {
            Self::Cpu => run.cpu_uncertainty_ns,
            Self::Wall => 0,
        }
    }

    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Wall => "wall",
        }
    }
}

/// A task: everything under one name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pub(crate) name: Vec<u8>,
    /// How often it was started, recursive calls included.
    pub(crate) calls: u64,
    /// How many of these came from itself directly.
    pub(crate) recursive_calls: u64,
    pub(crate) self_cost: Times,
    /// Self cost and that of all it called, of its outermost activations only.
    pub(crate) total: Times,
    /// The cycle that the task is in, if any.
    pub(crate) cycle: Option<usize>,
}

/// Calls of one task from another, or from itself.
///
/// With recursion, no one number for an arc adds up both to the callee's total over its callers
/// and to the caller's total over its callees; so there is one for each sum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arc {
    /// Indexes into [`Graph::tasks`].
    pub(crate) caller: u32,
    pub(crate) callee: u32,
    pub(crate) calls: u64,
    /// The callee's self cost when called from here; with that of its direct recursion, which
    /// cannot be told apart. Over all callers it adds up to the callee's self cost.
    pub(crate) self_cost: Times,
    /// The callee's total when called from here, nested activations of this arc counted once.
    pub(crate) total: Times,
    /// The total of the callee's outermost activations that were called from here. Over all
    /// callers it adds up to the callee's total.
    pub(crate) from_caller: Times,
    /// The part of the caller's total that went through this arc, counted at the innermost activation of
    /// the caller. Over all callees it adds up to the caller's total less its self cost.
    pub(crate) to_callee: Times,
}

impl Arc {
    pub(crate) fn is_recursive(&self) -> bool {
        self.caller == self.callee
    }
}

/// The graph of tasks.
pub(crate) struct Graph {
    /// The first is the root task, which stands for the run.
    pub(crate) tasks: Vec<Task>,
    /// In the order of caller and callee.
    pub(crate) arcs: Vec<Arc>,
    /// By task: which arcs lead to it.
    into_task: Vec<Vec<usize>>,
    /// The costliest in itself first.
    pub(crate) cycles: Vec<Cycle>,
    pub(crate) base: Base,
    /// Whether the costs of the tasks are more than that of the run, as when threads wait at the
    /// same time, by more than its uncertainty. The base is the sum of the tasks whenever they are more.
    pub(crate) exceeds_run: bool,
}

impl Graph {
    pub(crate) fn new(run: &Run) -> Self {
        let measured = run.nodes.is_empty() || run.nodes.iter().any(|node| node.self_cost.cpu_ns() > 0);
        let base = if measured { Base::Cpu } else { Base::Wall };
        let mut walk = Walk::new(run);
        walk.all();
        let (mut tasks, mut arcs) = (walk.tasks, walk.arcs);
        arcs.sort_by_key(|arc| (arc.caller, arc.callee));
        let mut into_task = vec![Vec::new(); tasks.len()];
        arcs.iter().enumerate().for_each(|(at, arc)| into_task[arc.callee as usize].push(at));
        let excess = base.of(tasks[0].total).saturating_sub(base.of(run.run));
        let exceeds_run = excess > base.uncertainty_ns(run);
        let cycles = cycle::find(&mut tasks, &arcs, base);
        Self { tasks, arcs, into_task, cycles, base, exceeds_run }
    }

    /// The cost that is 100 %, in nanoseconds.
    pub(crate) fn run_cost(&self) -> u64 {
        self.base.of(self.tasks[0].total)
    }

    pub(crate) fn self_cost(&self, task: usize) -> u64 {
        self.base.of(self.tasks[task].self_cost)
    }

    pub(crate) fn arcs_to(&self, task: usize) -> impl Iterator<Item = &Arc> {
        self.into_task[task].iter().map(|&arc| &self.arcs[arc])
    }

    pub(crate) fn arcs_from(&self, task: usize) -> impl Iterator<Item = &Arc> {
        let start = self.arcs.partition_point(|arc| (arc.caller as usize) < task);
        self.arcs[start..].iter().take_while(move |arc| arc.caller as usize == task)
    }

    /// The calls of a task from outside of its cycle, from others within, and from itself.
    pub(crate) fn calls_of(&self, task: usize) -> [u64; 3] {
        let cycle = self.tasks[task].cycle;
        let within = self.arcs_to(task).filter(|arc| {
            let caller = &self.tasks[arc.caller as usize];
            cycle.is_some() && !arc.is_recursive() && caller.cycle == cycle
        });
        let within: u64 = within.map(|arc| arc.calls).sum();
        let Task { calls, recursive_calls, .. } = self.tasks[task];
        [calls - within - recursive_calls, within, recursive_calls]
    }

    /// The calls of others from a task, those in its cycle left out.
    pub(crate) fn outgoing_calls(&self, task: usize) -> u64 {
        let cycle = self.tasks[task].cycle;
        let left = |arc: &&Arc| cycle.is_none() || self.tasks[arc.callee as usize].cycle != cycle;
        self.arcs_from(task).filter(|arc| !arc.is_recursive()).filter(left).map(|arc| arc.calls).sum()
    }

    /// The tasks, the largest self cost first; equal ones by total, then by name.
    pub(crate) fn by_charge(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        let cost = |times| std::cmp::Reverse(self.base.of(times));
        order.sort_by(|&a, &b| {
            let (a, b) = (&self.tasks[a], &self.tasks[b]);
            let key = |task: &Task| (cost(task.self_cost), cost(task.total));
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        order
    }
}

/// Where to go from a node.
#[derive(Clone, Copy, Default)]
struct Links {
    first_child: Option<u32>,
    /// The next child of the same parent.
    sibling: Option<u32>,
}

/// A walk through the tree, with the path from a root to the node that is being visited.
struct Walk<'a> {
    run: &'a Run<'a>,
    tasks: Vec<Task>,
    arcs: Vec<Arc>,
    arc_of: HashMap<(u32, u32), usize>,
    /// By node: which task it is.
    task_of: Vec<u32>,
    links: Vec<Links>,
    first_root: Option<u32>,
    /// By node: the cost of it and all below it.
    subtree: Vec<Times>,
    /// By task: how many nodes on the path are of that task.
    depth: Vec<u32>,
    /// By task: which arc the path takes from its innermost node.
    leaves_by: Vec<Option<usize>>,
    /// By arc: how often it is on the path.
    arc_depth: Vec<u32>,
}

/// A node on the path, with what to restore when it is left.
struct Visit {
    node: u32,
    caller: u32,
    arc: usize,
    /// The arc that the node's self cost belongs to.
    entry: usize,
    left_by: Option<usize>,
    next_child: Option<u32>,
}

impl<'a> Walk<'a> {
    fn new(run: &'a Run<'a>) -> Self {
        let (tasks, task_of) = tasks(run);
        let count = tasks.len();
        let (first_root, links) = links(run);
        let mut walk = Self {
            run,
            tasks,
            arcs: Vec::new(),
            arc_of: HashMap::new(),
            task_of,
            links,
            first_root,
            subtree: subtrees(run),
            depth: vec![0; count],
            leaves_by: vec![None; count],
            arc_depth: Vec::new(),
        };
        walk.root_task();
        walk
    }

    /// The root task costs what the run cost beyond the tasks.
    fn root_task(&mut self) {
        let mut below = Times::default();
        self.run.nodes.iter().for_each(|node| below += node.self_cost);
        let root = &mut self.tasks[0];
        root.calls = 1;
        root.self_cost = beyond(self.run.run, below);
        root.total = root.self_cost;
        root.total += below;
    }

    /// Visits every node, with an explicit stack: tasks may be nested a million deep.
    fn all(&mut self) {
        let mut root = self.first_root;
        while let Some(node) = root {
            root = self.links[node as usize].sibling;
            let mut path = vec![self.enter(node, 0, None)];
            while let Some(visit) = path.last_mut() {
                let (above, entry) = (visit.node, visit.entry);
                match visit.next_child {
                    Some(child) => {
                        visit.next_child = self.links[child as usize].sibling;
                        let caller = self.task_of[above as usize];
                        path.push(self.enter(child, caller, Some(entry)));
                    }
                    None => path.pop().into_iter().for_each(|visit| self.leave(&visit)),
                }
            }
        }
    }

    fn enter(&mut self, node: u32, caller: u32, caller_entry: Option<usize>) -> Visit {
        let at = node as usize;
        let (task, subtree) = (self.task_of[at], self.subtree[at]);
        let arc = self.arc(caller, task);
        let entry = if caller == task { caller_entry.unwrap_or(arc) } else { arc };
        self.count(at, arc, entry);
        let left_by = self.leaves_by[caller as usize].replace(arc);
        self.arcs[arc].to_callee += subtree;
        // The cost below a deeper activation of the same task goes through that activation's arcs.
        if self.depth[task as usize] > 0
            && let Some(outer) = self.leaves_by[task as usize]
        {
            let to_callee = &mut self.arcs[outer].to_callee;
            *to_callee = to_callee.saturating_sub(subtree);
        }
        if self.depth[task as usize] == 0 {
            self.tasks[task as usize].total += subtree;
            self.arcs[arc].from_caller += subtree;
        }
        if self.arc_depth[arc] == 0 {
            self.arcs[arc].total += subtree;
        }
        self.depth[task as usize] += 1;
        self.arc_depth[arc] += 1;
        Visit { node, caller, arc, entry, left_by, next_child: self.links[at].first_child }
    }

    /// Adds the node's own calls and cost to its task and arcs.
    fn count(&mut self, node: usize, arc: usize, entry: usize) {
        let node_data = self.run.nodes[node];
        let task = self.task_of[node];
        let folded = node_data.recursive_calls.min(node_data.calls);
        self.arcs[arc].calls += node_data.calls - folded;
        self.arcs[entry].self_cost += node_data.self_cost;
        if folded > 0 {
            let recursive = self.arc(task, task);
            self.arcs[recursive].calls += folded;
        }
        let is_recursive = self.arcs[arc].is_recursive();
        let data = &mut self.tasks[task as usize];
        data.calls += node_data.calls;
        data.recursive_calls += if is_recursive { node_data.calls } else { folded };
        data.self_cost += node_data.self_cost;
    }

    fn leave(&mut self, visit: &Visit) {
        self.depth[self.task_of[visit.node as usize] as usize] -= 1;
        self.arc_depth[visit.arc] -= 1;
        self.leaves_by[visit.caller as usize] = visit.left_by;
    }

    fn arc(&mut self, caller: u32, callee: u32) -> usize {
        let next = self.arcs.len();
        let arc = *self.arc_of.entry((caller, callee)).or_insert(next);
        if arc == next {
            self.arcs.push(Arc { caller, callee, ..Arc::default() });
            self.arc_depth.push(0);
        }
        arc
    }
}

/// The cost of a run beyond its tasks.
///
/// Of CPU time only user and system time together can be subtracted. Linux counts that exactly, and
/// divides it into the two by what the timer interrupt happened to meet, for each thread and for the
/// process by themselves (`cputime_adjust` in kernel/sched/cputime.c; neither part ever goes back). So
/// the tasks may well have more system time than the whole process, which has as much more user time.
/// The kind that lacks time takes the missing part from the other.
fn beyond(run: Times, tasks: Times) -> Times {
    let cpu_ns = run.cpu_ns().saturating_sub(tasks.cpu_ns());
    let wall_ns = run.wall_ns.saturating_sub(tasks.wall_ns);
    let system_ns = run.system_ns.saturating_sub(tasks.system_ns).min(cpu_ns);
    Times { wall_ns, user_ns: cpu_ns - system_ns, system_ns }
}

/// The root task and the tasks of the nodes, and by node which of them it is.
fn tasks(run: &Run) -> (Vec<Task>, Vec<u32>) {
    let root = Task { name: super::PROGRAM.into(), ..Task::default() };
    let mut tasks = vec![root];
    let mut by_name: HashMap<Vec<u8>, u32> = HashMap::new();
    let mut by_id: HashMap<u32, u32> = HashMap::new();
    let mut of_node = Vec::with_capacity(run.nodes.len());
    for node in run.nodes {
        let task = *by_id.entry(node.task).or_insert_with(|| {
            let name = run.task_name(Some(node.task)).into_owned();
            *by_name.entry(name.clone()).or_insert_with(|| {
                tasks.push(Task { name, ..Task::default() });
                tasks.len() as u32 - 1
            })
        });
        of_node.push(task);
    }
    (tasks, of_node)
}

/// The node above, if it is one.
fn parent(run: &Run, node: usize) -> Option<usize> {
    run.nodes[node].parent.map(|parent| parent as usize).filter(|&parent| parent < node)
}

/// The first root, and the links of every node.
fn links(run: &Run) -> (Option<u32>, Vec<Links>) {
    let mut links = vec![Links::default(); run.nodes.len()];
    let mut first_root = None;
    for node in (0..run.nodes.len()).rev() {
        let first = match parent(run, node) {
            Some(parent) => links[parent].first_child.replace(node as u32),
            None => first_root.replace(node as u32),
        };
        links[node].sibling = first;
    }
    (first_root, links)
}

/// By node: its cost and that of all nodes below.
fn subtrees(run: &Run) -> Vec<Times> {
    let mut costs: Vec<Times> = run.nodes.iter().map(|node| node.self_cost).collect();
    for node in (0..costs.len()).rev() {
        if let Some(parent) = parent(run, node) {
            let cost = costs[node];
            costs[parent] += cost;
        }
    }
    costs
}
