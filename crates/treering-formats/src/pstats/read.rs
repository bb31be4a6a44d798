//! Reads dumps of pstats.

use std::collections::HashMap;

use treering_profile::{Arc, Function, FunctionId, FunctionKind, Metric, MetricId, NodeId, Profile, Unit};

use crate::budget::Budget;
use crate::import::Import;
use crate::json::nanoseconds;
use crate::pstats::marshal::{self, Value};
use crate::{Problem, ReadError, ReadReport};

/// Reads a dump of pstats.
///
/// The metric is `time`, in nanoseconds. Arcs have the calls and the total time of the callee that the
/// file tells for each caller; calls that no caller accounts for come from the thread itself.
///
/// # Errors
/// When it is damaged, or is not what pstats dumps.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let Value::Dictionary(entries) = marshal::read(bytes)? else {
        return Err(Problem::Expected("a dictionary").into());
    };
    if entries.is_empty() {
        return Err(Problem::Empty("functions").into());
    }
    let mut reader = Reader::new(budget);
    for (entry, (key, value)) in entries.iter().enumerate() {
        reader.function(entry, key, value)?;
    }
    reader.finish()
}

/// The numbers of a function, or of a caller's part of them.
struct Numbers {
    calls: u64,
    own_ns: u64,
    total_ns: u64,
}

struct Reader {
    import: Import,
    root: NodeId,
    time: MetricId,
    arcs: HashMap<(FunctionId, FunctionId), usize>,
    /// Whether callers have calls only, as those of the module `profile` do.
    without_times: bool,
    /// How many times were below 0.
    negative: u64,
    /// How many numbers of calls were below 0.
    uncounted: u64,
}

impl Reader {
    fn new(budget: Budget) -> Self {
        let mut import = Import::new(budget);
        let time = import.profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
        let root = import.single_root();
        Self { import, root, time, arcs: HashMap::new(), without_times: false, negative: 0, uncounted: 0 }
    }

    fn function(&mut self, entry: usize, key: &Value, value: &Value) -> Result<(), ReadError> {
        let shape = |expected| ReadError::at(format_args!("entry {entry}"), Problem::Expected(expected));
        let callee = self.id(key).ok_or_else(|| shape("a function: file, line, name"))?;
        let numbers = || shape("five values: calls, times and callers");
        let Value::Tuple(values) = value else { return Err(numbers()) };
        let [_, calls, own, total, Value::Dictionary(callers)] = &values[..] else { return Err(numbers()) };
        let whole = self.numbers([calls, own, total]).ok_or_else(numbers)?;
        self.pay()?;
        let node = self.node(callee);
        self.import.profile.tree.add_self_cost(self.time, node, whole.own_ns);
        let (mut calls, mut total_ns) = (0_u64, 0_u64);
        for (key, value) in callers.iter() {
            let caller = self.id(key).ok_or_else(|| shape("a function: file, line, name"))?;
            self.pay()?;
            self.node(caller);
            let part = match value {
                Value::Tuple(values) => match &values[..] {
                    // Unlike those of the function itself, all calls come first here.
                    [all, _, own, total] => self.numbers([all, own, total]).map(|part| (part, true)),
                    _ => None,
                },
                Value::Integer(calls) => {
                    Some((Numbers { calls: self.calls(*calls), own_ns: 0, total_ns: 0 }, false))
                }
                _ => None,
            };
            let (part, timed) = part.ok_or_else(|| shape("calls and times of a caller"))?;
            self.without_times |= !timed;
            calls = calls.saturating_add(part.calls);
            total_ns = total_ns.saturating_add(part.total_ns);
            self.arc(caller, callee, &part, timed);
        }
        if whole.calls > calls || callers.is_empty() {
            let rest = Numbers {
                calls: whole.calls.saturating_sub(calls),
                own_ns: 0,
                total_ns: whole.total_ns.saturating_sub(total_ns),
            };
            self.arc(Profile::ROOT, callee, &rest, !self.without_times);
        }
        Ok(())
    }

    fn numbers(&mut self, [calls, own, total]: [&Value; 3]) -> Option<Numbers> {
        let Value::Integer(calls) = calls else { return None };
        let calls = self.calls(*calls);
        Some(Numbers { calls, own_ns: self.time(own)?, total_ns: self.time(total)? })
    }

    /// Calls; those below 0 are not known. Profilers that sample write -1.
    fn calls(&mut self, calls: i64) -> u64 {
        self.uncounted += u64::from(calls < 0);
        u64::try_from(calls).unwrap_or(0)
    }

    /// A time in nanoseconds. Differences of clocks may be some below 0; they are taken as 0.
    fn time(&mut self, value: &Value) -> Option<u64> {
        let seconds = match value {
            Value::Float(seconds) => *seconds,
            Value::Integer(seconds) => *seconds as f64,
            _ => return None,
        };
        self.negative += u64::from(seconds < 0.0);
        nanoseconds(seconds.max(0.0), 1e9)
    }

    /// The function of a key: its file, line and name. What is built in has the file `~`, or none.
    fn id(&mut self, key: &Value) -> Option<FunctionId> {
        let Value::Tuple(parts) = key else { return None };
        let [Value::Text(file), Value::Integer(line), Value::Text(name)] = &parts[..] else { return None };
        let is_builtin = matches!(&**file, "~" | "");
        let file = self.import.string(if is_builtin { "" } else { file });
        let function = Function {
            file,
            line: u32::try_from(*line).unwrap_or(0),
            kind: if is_builtin { FunctionKind::Builtin } else { FunctionKind::Interpreted },
            ..Function::named(self.import.profile.strings.intern(name))
        };
        Some(self.import.profile.functions.intern(function))
    }

    fn node(&mut self, function: FunctionId) -> NodeId {
        self.import.profile.tree.child(self.root, function, None)
    }

    /// Before another node and arc: entries may share their parts, so that a small file tells of many.
    fn pay(&mut self) -> Result<(), ReadError> {
        const NODE_AND_ARC: usize = 20;
        Ok(self.import.budget.numbers(1, NODE_AND_ARC)?)
    }

    fn arc(&mut self, caller: FunctionId, callee: FunctionId, part: &Numbers, timed: bool) {
        let arcs = &mut self.import.profile.arcs;
        let at = *self.arcs.entry((caller, callee)).or_insert_with(|| {
            arcs.push(Arc { caller, callee, call_site: None, calls: 0, total_costs: Vec::new() });
            arcs.len() - 1
        });
        let arc = &mut arcs[at];
        arc.calls = arc.calls.saturating_add(part.calls);
        // The cost of a function that calls itself is in the calls from others already.
        if !timed || caller == callee {
            return;
        }
        match arc.total_costs.first_mut() {
            Some((_, cost)) => *cost = cost.saturating_add(part.total_ns),
            None => arc.total_costs.push((self.time, part.total_ns)),
        }
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        if self.without_times {
            // Half of the arcs with times would pass for all of them.
            self.import.profile.arcs.iter_mut().for_each(|arc| arc.total_costs.clear());
            self.import.note(
                "callers have calls and no times, as the module profile writes them: total times are estimated \
                 from calls; cProfile measures them",
            );
        }
        self.import.note_count("calls were not counted where they are below 0", self.uncounted);
        self.import.note_count("times below 0 are taken as 0", self.negative);
        self.import.finish("cProfile")
    }
}
