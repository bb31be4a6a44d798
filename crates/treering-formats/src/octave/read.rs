//! Reads results of Octave's profiler.

use treering_profile::{Function, FunctionId, FunctionKind, Metric, MetricId, NodeId, Profile, Unit};

use super::value::{DEEPEST, Value};
use super::{TEXT_START, json, shape, text};
use crate::budget::{Budget, NestingLimits};
use crate::import::Import;
use crate::json::nanoseconds;
use crate::label::without_mark;
use crate::{ReadError, ReadReport};

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
    let mut limits = NestingLimits::new(budget, DEEPEST);
    let info = match bytes.starts_with(TEXT_START) {
        true => text::parse(bytes, &mut limits)?,
        false => json::parse(bytes, &mut limits)?,
    };
    profile(&info, Import::new(limits.budget))
}

fn profile(info: &Value, mut import: Import) -> Result<(Profile, ReadReport), ReadError> {
    let table = info.field("FunctionTable").ok_or_else(|| shape("FunctionTable is missing"))?;
    let tree = info.field("Hierarchical").ok_or_else(|| shape("Hierarchical is missing"))?;
    let root = import.single_root();
    let profile = &mut import.profile;
    let time = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    let mut functions = Vec::new();
    for row in table.elements() {
        let name = row.field("FunctionName").and_then(Value::text);
        let name = profile.strings.intern(name.ok_or_else(|| shape("a function has no FunctionName"))?);
        let function = Function { kind: FunctionKind::Interpreted, ..Function::named(name) };
        functions.push(profile.functions.intern(function));
    }
    let mut reader = Reader { import, time, functions, negative: 0 };
    let mut open: Vec<(NodeId, &Value)> = tree.elements().iter().map(|call| (root, call)).rev().collect();
    while let Some((parent, call)) = open.pop() {
        let node = reader.call(parent, call)?;
        let children = call.field("Children").map_or(&[][..], Value::elements);
        open.extend(children.iter().map(|child| (node, child)).rev());
    }
    reader.finish()
}

struct Reader {
    import: Import,
    time: MetricId,
    functions: Vec<FunctionId>,
    /// How many times were below 0.
    negative: u64,
}

impl Reader {
    fn call(&mut self, parent: NodeId, call: &Value) -> Result<NodeId, ReadError> {
        let number = |name: &str| call.field(name).and_then(Value::number);
        let index = number("Index").ok_or_else(|| shape("a call has no Index"))?;
        let calls = number("NumCalls").ok_or_else(|| shape("a call has no NumCalls"))?;
        let seconds = number("SelfTime").ok_or_else(|| shape("a call has no SelfTime"))?;
        let at = (index as usize).checked_sub(1).filter(|_| index.fract() == 0.0);
        let function = at.and_then(|at| self.functions.get(at)).copied();
        let function =
            function.ok_or_else(|| format!("a call is of function {index}, which is not in the table"))?;
        if !(calls >= 0.0 && calls.fract() == 0.0 && calls < u64::MAX as f64) {
            return Err(shape("NumCalls is no number of calls").into());
        }
        self.negative += u64::from(seconds < 0.0);
        let cost = nanoseconds(seconds.max(0.0), 1e9).ok_or_else(|| shape("SelfTime is no time"))?;
        let node = self.import.child(parent, function)?;
        self.import.profile.tree.add_calls(node, calls as u64, 0);
        self.import.profile.tree.add_self_cost(self.time, node, cost);
        Ok(node)
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        self.import.note_count("times below 0 are taken as 0", self.negative);
        self.import.note("Octave's profiler knows no files and no lines of functions");
        self.import.finish("Octave's profiler")
    }
}
