//! From the tasks and calls of a report to a profile.

use std::collections::{HashMap, HashSet};

use treering_events::components;
use treering_profile::{Arc, Function, FunctionId, FunctionKind, Metric, MetricId, NodeId, Profile, Unit};

use super::document::{Call, Task, Timer, Times};
use super::read::ROOT;
use crate::budget::Budget;
use crate::import::Import;
use crate::json::nanoseconds;
use crate::{Problem, ReadError};

/// A metric, and what of an element it takes.
type Column = (MetricId, fn(&Times, &Times) -> f64);

pub(super) struct Graph {
    pub(super) import: Import,
    /// Whether Treering wrote the file, so that its times have all digits.
    pub(super) is_ours: bool,
    columns: Vec<Column>,
    tasks: HashMap<u64, (FunctionId, NodeId)>,
}

impl Graph {
    /// Makes the functions.
    pub(super) fn new(timer: &Timer, budget: Budget) -> Result<Self, ReadError> {
        let mut import = Import::new(budget);
        let is_ours = timer.base.is_some();
        let mut metric = |name: &str| import.profile.add_metric(Metric::exact(name, Unit::Nanoseconds));
        // Of CBS the charge has more digits than the milliseconds.
        let cpu: fn(&Times, &Times) -> f64 =
            if is_ours { |times, _| times.cpu } else { |times, run| times.charge / 100.0 * run.cpu };
        let mut columns: Vec<Column> = vec![(metric("cpu"), cpu), (metric("time"), |times, _| times.wall)];
        if is_ours {
            columns.push((metric("user"), |times, _| times.user));
            columns.push((metric("system"), |times, _| times.system));
        }
        let base = usize::from(timer.base.as_deref() == Some("wall"));
        import.set_default_metric(columns[base].0);
        let root = import.single_root();
        let mut tasks = HashMap::new();
        for Task { id, name, offset, .. } in &timer.tasks {
            let name = import.profile.strings.intern(name);
            let function = Function { kind: FunctionKind::Task, ..Function::named(name) };
            let function = import.profile.functions.intern(function);
            let node = import.child(root, function)?;
            if tasks.insert(*id, (function, node)).is_some() {
                let text = format!("the task before it has the id {id} of another task");
                return Err(ReadError::at_byte(*offset, text));
            }
        }
        Ok(Self { import, is_ours, columns, tasks })
    }

    /// Adds costs and calls.
    pub(super) fn add(&mut self, timer: &Timer) -> Result<(), Problem> {
        for at in 0..self.columns.len() {
            self.add_self_costs(timer, self.columns[at])?;
        }
        let measured = self.measured(timer)?;
        for (call, is_measured) in timer.calls.iter().zip(measured) {
            self.add_call(timer, call, is_measured)?;
        }
        self.add_run(timer);
        self.import
            .note("there are no chains of callers: total costs of tasks in a cycle leave out the cycle's other tasks");
        if !self.is_ours {
            self.import.note(
                "CBS wrote whole milliseconds: shares of cpu are from its charges, and time by the wall clock of each \
                 task is up to 1 ms too little",
            );
            self.import.note("user and system time of tasks are left out");
        }
        Ok(())
    }

    fn known(&self, id: u64) -> Result<(FunctionId, NodeId), Problem> {
        let known = self.tasks.get(&id).copied();
        known.ok_or_else(|| Problem::missing(format!("a call is of task {id}, which is not in the list")))
    }

    fn add_self_costs(&mut self, timer: &Timer, (metric, of): Column) -> Result<(), Problem> {
        let mut sum = 0_u64;
        let is_root = |task: &&Task| task.id == 0 && task.name == ROOT;
        for task in timer.tasks.iter().filter(|task| self.is_ours || !is_root(task)) {
            let cost = ns(of(&task.self_cost, &timer.total));
            sum = sum.checked_add(cost).ok_or(LARGE_SUM)?;
            self.import.profile.tree.add_self_cost(metric, self.known(task.id)?.1, cost);
        }
        // CBS has the whole run for the self cost of the task that stands for it.
        if let Some(root) = timer.tasks.iter().find(is_root).filter(|_| !self.is_ours) {
            let rest = ns(of(&timer.total, &timer.total)).saturating_sub(sum);
            sum.checked_add(rest).ok_or(LARGE_SUM)?;
            self.import.profile.tree.add_self_cost(metric, self.known(root.id)?.1, rest);
        }
        Ok(())
    }

    /// Whether the total of each call is what it cost. CBS counts nested activations again, so that those of
    /// tasks that call themselves or each other may be far above the run.
    fn measured(&mut self, timer: &Timer) -> Result<Vec<bool>, Problem> {
        let is_timed = |call: &Call| call.total.is_some() && call.source != call.target;
        if self.is_ours {
            return Ok(timer.calls.iter().map(is_timed).collect());
        }
        let end = |id| -> Result<u32, Problem> { Ok(self.known(id)?.0.raw()) };
        let ends = |call: &Call| Ok((end(call.source)?, end(call.target)?));
        let ends: Vec<(u32, u32)> = timer.calls.iter().map(ends).collect::<Result<_, Problem>>()?;
        let cycles = components(self.import.profile.functions.len(), &ends);
        let larger = cycles.iter().filter(|members| members.len() > 1).flatten().copied();
        let alone = ends.iter().filter(|(source, target)| source == target).map(|&(source, _)| source);
        let nested: HashSet<u32> = larger.chain(alone).collect();
        if !nested.is_empty() {
            self.import.note(format!(
                "{} tasks call themselves or each other: CBS counts what they cost their callers several times, so it is \
                 estimated from calls",
                nested.len()
            ));
        }
        let pairs = timer.calls.iter().zip(&ends);
        Ok(pairs.map(|(call, (_, target))| is_timed(call) && !nested.contains(target)).collect())
    }

    fn add_call(&mut self, timer: &Timer, call: &Call, is_measured: bool) -> Result<(), Problem> {
        let (caller, callee) = (self.known(call.source)?.0, self.known(call.target)?.0);
        let total = call.total.filter(|_| is_measured);
        let total_costs = total.map_or(Vec::new(), |times| {
            // Only the metric with all digits: truncated parts do not add up.
            let exact = if self.is_ours { &self.columns[..] } else { &self.columns[..1] };
            exact.iter().map(|&(metric, of)| (metric, ns(of(&times, &timer.total)))).collect()
        });
        let (call_site, calls) = (None, call.count);
        self.import.profile.add_arc(Arc { caller, callee, call_site, calls, total_costs });
        Ok(())
    }

    fn add_run(&mut self, timer: &Timer) {
        let run = &mut self.import.profile.runs[0];
        run.duration_ns = ns(timer.total.wall);
        run.cpu_ns = Some(ns(timer.total.cpu));
        // The run itself, which nobody calls.
        if let Some(&(callee, _)) = self.tasks.get(&0) {
            let (caller, call_site, calls) = (Profile::ROOT, None, 1);
            self.import.profile.add_arc(Arc { caller, callee, call_site, calls, total_costs: Vec::new() });
        }
    }
}

const LARGE_SUM: Problem = Problem::Expected("a sum of costs below 2^64 ns");

/// Milliseconds as nanoseconds; 0 for a number that is no time, such as a share of no cost.
fn ns(ms: f64) -> u64 {
    nanoseconds(ms.max(0.0), 1e6).unwrap_or(0)
}
