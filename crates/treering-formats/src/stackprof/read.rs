//! Reads JSON of stackprof.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::Value;
use treering_profile::{
    Arc, Function, FunctionId, FunctionKind, Line, LineCost, Metric, MetricId, Profile, StringId, Unit,
};

use crate::budget::Budget;
use crate::import::Import;
use crate::json;
use crate::read_error::LARGE_SUM;
use crate::{Problem, ReadError, ReadReport};

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    mode: String,
    #[serde(default)]
    interval: Value,
    #[serde(default)]
    missed_samples: u64,
    #[serde(default)]
    frames: BTreeMap<String, Frame>,
    /// Stacks: how many frames, their numbers from the outermost, how many samples.
    #[serde(default)]
    raw: Option<Vec<u64>>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    name: String,
    #[serde(default)]
    file: Option<String>,
    #[serde(default)]
    line: Option<u32>,
    #[serde(default)]
    samples: u64,
    /// In how many samples it called which frame.
    #[serde(default)]
    edges: BTreeMap<String, u64>,
    /// By line: samples in all, and in the line itself.
    #[serde(default)]
    lines: BTreeMap<String, Value>,
}

/// Reads JSON of stackprof.
///
/// The metrics are `samples`, and `time` in wall and CPU mode, `allocations` in the mode `object`: what the interval is
/// worth. With `raw` there are stacks; else arcs with the samples in which one function called the other.
///
/// # Errors
/// When it is damaged or has no samples.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let file: File = json::parse(bytes)?;
    if file.frames.is_empty() {
        return Err(Problem::Empty("functions").into());
    }
    let mut reader = Reader::new(&file, budget);
    match &file.raw {
        Some(raw) if !raw.is_empty() => reader.stacks(raw)?,
        _ => reader.arcs()?,
    }
    reader.import.profile.metadata.losses.lost_samples = file.missed_samples;
    reader.import.finish("stackprof")
}

struct Reader<'a> {
    file: &'a File,
    import: Import,
    functions: HashMap<u64, Function>,
    samples: MetricId,
    /// The weight of a sample in another metric.
    worth: Option<(MetricId, u64)>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a File, budget: Budget) -> Self {
        let mut import = Import::new(budget);
        let profile = &mut import.profile;
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let interval = file.interval.as_u64().filter(|&interval| interval > 0);
        let worth = match (file.mode.as_str(), interval) {
            ("wall" | "cpu", Some(interval)) => {
                let ns = interval.saturating_mul(1000);
                Some((profile.add_metric(Metric::sampled("time", Unit::Nanoseconds, samples, Some(ns))), ns))
            }
            ("object", Some(every)) => {
                let metric = Metric::sampled("allocations", Unit::Count, samples, Some(every));
                Some((profile.add_metric(metric), every))
            }
            _ => None,
        };
        let functions = file.frames.iter().filter_map(|(number, frame)| {
            let name = profile.strings.intern(&frame.name);
            let file = frame.file.as_deref().unwrap_or_default();
            let in_brackets = frame.name.starts_with('(') && frame.name.ends_with(')');
            let kind = if file.is_empty() || in_brackets {
                FunctionKind::Builtin
            } else {
                FunctionKind::Interpreted
            };
            let file = if file.is_empty() { StringId::new(0) } else { profile.strings.intern(file) };
            let line = frame.line.unwrap_or(0);
            Some((number.parse().ok()?, Function { file, line, kind, ..Function::named(name) }))
        });
        let functions = functions.collect();
        Self { file, import, functions, samples, worth }
    }

    fn weights(&self, samples: u64) -> Result<Vec<(MetricId, u64)>, Problem> {
        let mut weights = vec![(self.samples, samples)];
        if let Some((metric, each)) = self.worth {
            weights.push((metric, samples.checked_mul(each).ok_or(LARGE_SUM)?));
        }
        Ok(weights)
    }

    fn stacks(&mut self, raw: &[u64]) -> Result<(), ReadError> {
        let thread = self.import.thread(0, 0, "");
        let mut at = 0;
        while at < raw.len() {
            let damaged = |text: &'static str| ReadError::at(format_args!("number {at} of `raw`"), text);
            let cut = damaged("the stack is cut short");
            let length = usize::try_from(raw[at]).ok().and_then(|length| length.checked_add(at + 1));
            let end = length.filter(|&end| end < raw.len()).ok_or(cut)?;
            self.import.begin();
            for number in &raw[at + 1..end] {
                let function =
                    self.functions.get(number).ok_or(damaged("the stack has a frame that `frames` lacks"))?;
                self.import.function(*function, 0);
            }
            let count = raw[end];
            let weights = self.weights(count);
            let weights =
                weights.map_err(|problem| ReadError::at(format_args!("number {end} of `raw`"), problem))?;
            let losses = &mut self.import.profile.metadata.losses;
            losses.samples = losses.samples.saturating_add(count);
            self.import.add(thread, &weights)?;
            at = end + 1;
        }
        Ok(())
    }

    /// Facts that need no stacks: own samples and their lines, and calls by the samples in them.
    fn arcs(&mut self) -> Result<(), ReadError> {
        let root = self.import.single_root();
        let worth: Vec<(MetricId, u64)> = std::iter::once((self.samples, 1)).chain(self.worth).collect();
        let profile = &mut self.import.profile;
        let ids: HashMap<u64, FunctionId> = self
            .functions
            .iter()
            .map(|(&number, &function)| (number, profile.functions.intern(function)))
            .collect();
        let id = |number: &str| number.parse().ok().and_then(|number: u64| ids.get(&number)).copied();
        for (number, frame) in &self.file.frames {
            let Some(function) = id(number) else { continue };
            let node = profile.tree.child(root, function, None);
            profile.metadata.losses.samples = profile.metadata.losses.samples.saturating_add(frame.samples);
            for &(metric, each) in &worth {
                profile.tree.add_self_cost(metric, node, frame.samples.saturating_mul(each));
                let file = profile.functions[function].file;
                let mut left = frame.samples;
                for (line, counts) in &frame.lines {
                    let own = counts.get(1).and_then(Value::as_u64).unwrap_or(0).min(left);
                    left -= own;
                    let Some(line) = line.parse().ok().filter(|&line| line > 0 && own > 0) else { continue };
                    let line = profile.lines.intern(Line { file, line });
                    profile.line_costs.push(LineCost { node, line, metric, cost: own.saturating_mul(each) });
                }
            }
            for (callee, samples) in
                frame.edges.iter().filter_map(|(callee, samples)| Some((id(callee)?, *samples)))
            {
                let total_costs =
                    worth.iter().map(|&(metric, each)| (metric, samples.saturating_mul(each))).collect();
                profile.tree.child(root, callee, None);
                profile.add_arc(Arc { caller: function, callee, call_site: None, calls: 0, total_costs });
            }
        }
        self.import
            .note("the file has no stacks (raw): calls between functions are known by the samples in them");
        Ok(self.import.charge_nodes()?)
    }
}
