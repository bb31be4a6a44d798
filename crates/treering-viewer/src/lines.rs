//! Source lines: what they cost, and their text.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use serde_json::{Value, json};
use treering_profile::{FunctionId, LineId, Metric, NodeId, Profile, StringId};

use crate::columns::Columns;
use crate::compared::Compared;
use crate::functions::{Functions, Texts};

/// The lines that something in the page refers to, renumbered.
#[derive(Default)]
pub(crate) struct Lines {
    numbers: HashMap<LineId, u32>,
    entries: Vec<LineId>,
}

/// The functions and lines of a profile in the page and its profile.
struct Numbers<'a> {
    function: &'a dyn Fn(FunctionId) -> Option<u32>,
    line: &'a dyn Fn(LineId) -> LineId,
}

/// How many lines around one with cost are shown with it.
const AROUND: u32 = 6;

/// The most text of source files that a page holds, in bytes.
const LONGEST: usize = 8 << 20;

impl Lines {
    /// Whether nothing refers to any line so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of a line.
    pub(crate) fn number(&mut self, line: LineId) -> u32 {
        *self.numbers.entry(line).or_insert_with(|| {
            self.entries.push(line);
            self.entries.len() as u32 - 1
        })
    }

    /// Self costs by function and line, all nodes of the function added up; in a difference those of
    /// the base runs apart. `compared` is what is compared in it.
    pub(crate) fn costs(
        &mut self,
        profile: &Profile,
        functions: &Functions,
        base_runs: Option<&[bool]>,
        compared: Option<&Compared>,
        columns: &mut Columns,
    ) -> Value {
        let metrics = profile.metrics.len();
        let threads = base_runs.map(|_| profile.node_threads());
        let is_base = |node: NodeId| {
            let thread = threads.as_ref().map(|threads| threads[node.index()]);
            let run =
                thread.map(|thread| profile.processes[profile.threads[thread.index()].process.index()].run);
            run.zip(base_runs).is_some_and(|(run, base_runs)| base_runs[run.index()])
        };
        // A row has the costs of all metrics, then those of the base.
        let mut sums: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
        for cost in &profile.line_costs {
            let Some(function) = functions.known(profile.tree.function(cost.node)) else { continue };
            let line = self.number(cost.line);
            let row = sums.entry((function, line)).or_insert_with(|| vec![0; 2 * metrics]);
            let side = if is_base(cost.node) { metrics } else { 0 };
            let cell = &mut row[side + cost.metric.index()];
            *cell = cell.saturating_add(cost.cost);
        }
        if base_runs.is_none() {
            let numbers = Numbers { function: &|function| functions.known(function), line: &|line| line };
            self.add_counted(profile, profile, &numbers, 0, &mut sums);
        }
        for (at, side) in
            compared.filter(|compared| compared.is_whole).iter().flat_map(|of| of.sides.iter().enumerate())
        {
            let numbers = Numbers {
                function: &|function| functions.known(side.functions[function.index()]),
                line: &|line| side.lines[line.index()],
            };
            self.add_counted(&side.profile, profile, &numbers, at * metrics, &mut sums);
        }
        let mut of_side = |side: usize| -> Vec<Value> {
            let metric = |(at, known): (usize, &Metric)| match known.is_level {
                true => Value::Null,
                false => columns.add(&sums.values().map(|row| row[side + at]).collect::<Vec<_>>()),
            };
            profile.metrics.iter().enumerate().map(metric).collect()
        };
        let (now, base) = (of_side(0), base_runs.map(|_| of_side(metrics)));
        json!({
            "fn": columns.add_indexes(sums.keys().map(|key| key.0)),
            "line": columns.add_indexes(sums.keys().map(|key| key.1)),
            "costs": now,
            "baseCosts": base,
        })
    }

    /// Adds what the lines of functions without line costs executed, as reports do: nodes of a tree of
    /// counts have no lines, but its code has. Not of a part of a profile, whose code was counted as
    /// a whole. `side` is where the costs of the profile begin in a row.
    fn add_counted(
        &mut self,
        profile: &Profile,
        page: &Profile,
        numbers: &Numbers<'_>,
        side: usize,
        sums: &mut BTreeMap<(u32, u32), Vec<u64>>,
    ) {
        let code = &profile.code;
        let counted = |profile: &Profile| {
            profile.metrics().find(|(_, known)| known.name == "instructions").map(|(metric, _)| metric)
        };
        let (Some(metric), Some(in_page)) = (counted(profile), counted(page)) else { return };
        if code.lines.is_empty() || profile.run_cost(metric) != code.block_instructions() {
            return;
        }
        let of_side = side..side + page.metrics.len();
        let rows = sums.iter().filter(|(_, row)| row[of_side.clone()].iter().any(|&cost| cost > 0));
        let has_lines: BTreeSet<u32> = rows.map(|(key, _)| key.0).collect();
        let mut counted: HashMap<(u32, LineId), u64> = HashMap::new();
        for (row, threads) in code.executions.distinct().filter(|(row, _)| row.executions > 0) {
            let block = &code.blocks[row.block.index()];
            let Some(function) = block.function.and_then(numbers.function) else {
                continue;
            };
            if has_lines.contains(&function) {
                continue;
            }
            for line in block.places().filter_map(|(at, _)| code.line(at)) {
                let cell = counted.entry((function, (numbers.line)(line))).or_insert(0);
                *cell = cell.saturating_add(row.executions.saturating_mul(threads));
            }
        }
        let mut counted: Vec<_> = counted.into_iter().collect();
        counted.sort_unstable();
        for ((function, line), cost) in counted {
            let row = sums.entry((function, self.number(line)));
            row.or_insert_with(|| vec![0; 2 * page.metrics.len()])[side + in_page.index()] = cost;
        }
    }

    /// The table of lines.
    pub(crate) fn table(&self, profile: &Profile, texts: &mut Texts, columns: &mut Columns) -> Value {
        let entry = |&line: &LineId| profile.lines[line];
        let files: Vec<u64> = self.entries.iter().map(|line| texts.of(profile, entry(line).file)).collect();
        json!({
            "file": columns.add(&files),
            "line": columns.add_indexes(self.entries.iter().map(|line| entry(line).line)),
        })
    }

    /// The text of the lines that the page refers to and of those around them, where the profile
    /// has it; and whether some was left out for its length.
    /// Each stretch of text stands by itself among `columns`, so that a page reads what it shows.
    pub(crate) fn sources(
        &self,
        profile: &Profile,
        texts: &mut Texts,
        columns: &mut Columns,
    ) -> (Value, bool) {
        let mut wanted: HashMap<StringId, BTreeSet<u32>> = HashMap::new();
        for &line in &self.entries {
            let line = profile.lines[line];
            wanted.entry(line.file).or_default().insert(line.line);
        }
        for function in profile.functions.entries() {
            if let Some(lines) = wanted.get_mut(&function.file)
                && function.line > 0
            {
                lines.insert(function.line);
            }
        }
        let mut room = LONGEST;
        let mut left_out = false;
        let mut parts = Vec::new();
        for source in &profile.sources {
            let Some(wanted) = wanted.get(&source.file) else { continue };
            let lines: Vec<&str> = source.text.lines().collect();
            for (from, to) in stretches(wanted, lines.len() as u32) {
                let text = &lines[from as usize - 1..to as usize];
                let length: usize = text.iter().map(|line| line.len() + 3).sum();
                if length > room {
                    left_out = true;
                    continue;
                }
                room -= length;
                let slab = columns.add_json_apart(&json!(text));
                parts.push(json!({
                    "file": texts.of(profile, source.file), "first": from, "count": text.len(), "slab": slab,
                }));
            }
        }
        (Value::Array(parts), left_out)
    }
}

/// The stretches of lines, first and last, that reach a little beyond each wanted one. Gaps that are
/// not worth a gap are filled.
fn stretches(wanted: &BTreeSet<u32>, lines: u32) -> Vec<(u32, u32)> {
    let mut stretches: Vec<(u32, u32)> = Vec::new();
    for &line in wanted.iter().filter(|&&line| (1..=lines).contains(&line)) {
        let (from, to) = (line.saturating_sub(AROUND).max(1), line.saturating_add(AROUND).min(lines));
        match stretches.last_mut() {
            Some(last) if from <= last.1.saturating_add(12) => last.1 = to,
            _ => stretches.push((from, to)),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_near_each_other_are_one_stretch() {
        let wanted = BTreeSet::from([3, 10, 100, 500]);
        assert_eq!(stretches(&wanted, 103), [(1, 16), (94, 103)]);
        assert_eq!(stretches(&BTreeSet::new(), 103), []);
    }
}
