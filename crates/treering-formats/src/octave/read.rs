//! Reads results of Octave's profiler.

use treering_profile::{
    Function, FunctionId, FunctionKind, Metric, MetricId, NodeId, Profile, RecursionRule, Unit,
};

use super::value::{DEEPEST, Value};
use super::{Problem, ReadError, TEXT_START, json, text};
use crate::ReadReport;
use crate::budget::{Budget, NestingLimits};
use crate::json::nanoseconds;
use crate::label::without_mark;

/// Reads what `profile ("info")` returned, as `jsonencode` or `save -text` wrote it.
///
/// The metric is `time`, in nanoseconds; the tree is that of Octave, with all calls.
///
/// # Errors
/// When it is damaged, or is something else.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let bytes = without_mark(bytes);
    let limits = NestingLimits::new(budget, DEEPEST);
    let info = match bytes.starts_with(TEXT_START) {
        true => text::parse(bytes, limits)?,
        false => json::parse(bytes, limits)?,
    };
    profile(&info).map_err(|problem| ReadError::new(bytes.len(), problem))
}

fn profile(info: &Value) -> Result<(Profile, ReadReport), Problem> {
    let table = info.field("FunctionTable").ok_or(Problem::Shape("FunctionTable is missing"))?;
    let tree = info.field("Hierarchical").ok_or(Problem::Shape("Hierarchical is missing"))?;
    let mut profile = Profile::new(RecursionRule::Full);
    let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let thread = profile.add_single_thread("");
    let root = profile.threads[thread.index()].root;
    let mut functions = Vec::new();
    for row in table.elements() {
        let name = row.field("FunctionName").and_then(Value::text);
        let name = profile.strings.intern(name.ok_or(Problem::Shape("a function has no FunctionName"))?);
        let function = Function { kind: FunctionKind::Interpreted, ..Function::named(name) };
        functions.push(profile.functions.intern(function));
    }
    let mut reader = Reader { profile, time, functions, negative: 0 };
    let mut open: Vec<(NodeId, &Value)> = tree.elements().iter().map(|call| (root, call)).rev().collect();
    while let Some((parent, call)) = open.pop() {
        let node = reader.call(parent, call)?;
        let children = call.field("Children").map_or(&[][..], Value::elements);
        open.extend(children.iter().map(|child| (node, child)).rev());
    }
    reader.finish()
}

struct Reader {
    profile: Profile,
    time: MetricId,
    functions: Vec<FunctionId>,
    /// How many times were below 0.
    negative: u64,
}

impl Reader {
    fn call(&mut self, parent: NodeId, call: &Value) -> Result<NodeId, Problem> {
        let number = |name: &str| call.field(name).and_then(Value::number);
        let index = number("Index").ok_or(Problem::Shape("a call has no Index"))?;
        let calls = number("NumCalls").ok_or(Problem::Shape("a call has no NumCalls"))?;
        let seconds = number("SelfTime").ok_or(Problem::Shape("a call has no SelfTime"))?;
        let at = (index as usize).checked_sub(1).filter(|_| index.fract() == 0.0);
        let function = at.and_then(|at| self.functions.get(at)).copied();
        let function = function.ok_or(Problem::NoFunction(index.max(0.0) as u64))?;
        if !(calls >= 0.0 && calls.fract() == 0.0 && calls < u64::MAX as f64) {
            return Err(Problem::Shape("NumCalls is no number of calls"));
        }
        self.negative += u64::from(seconds < 0.0);
        let cost = nanoseconds(seconds.max(0.0), 1e9).ok_or(Problem::Shape("SelfTime is no time"))?;
        let node = self.profile.tree.child(parent, function, None);
        self.profile.tree.add_calls(node, calls as u64, 0);
        self.profile.tree.add_self_cost(self.time, node, cost);
        Ok(node)
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), Problem> {
        let mut report = ReadReport::default();
        if self.negative > 0 {
            report.notes.push(format!("times below 0 are taken as 0: {}", self.negative));
        }
        report.notes.push("Octave's profiler knows no files and no lines of functions".to_owned());
        self.profile.metadata.set_foreign("Octave's profiler");
        self.profile.validate().map_err(Problem::Invalid)?;
        Ok((self.profile, report))
    }
}
