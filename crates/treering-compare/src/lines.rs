//! The lines of a function in both profiles.

use std::collections::{BTreeMap, BTreeSet};

use treering_analysis::{LineTable, Measure};
use treering_profile::{FunctionId, MetricId, Profile, StringId};

use crate::difference::Difference;
use crate::line_pairs::{FileLines, LinePairer, MatchedBy, begins, file_name};
use crate::pairing::GroupIndex;
use crate::side::basis;
use crate::sides::Sides;

/// The lines of a function in both profiles.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChanges {
    /// The function.
    pub group: GroupIndex,
    /// By what lines were found to be the same.
    pub matched: MatchedBy,
    /// The lines that cost something in one of both, in the order of the head.
    pub lines: Vec<LineChange>,
    /// Self cost whose line is not known.
    pub elsewhere: Sides<Measure>,
}

/// A line of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange {
    /// The name of its file, without folders.
    pub file: String,
    /// Its number; nothing where a version has no such line.
    pub line: Sides<Option<u32>>,
    /// Its text, of the head where the head has the line.
    pub text: Option<String>,
    /// The cost spent on it.
    pub self_cost: Sides<Measure>,
}

/// The lines of a function, which is a group of the difference of these two profiles.
pub fn lines(
    base: &Profile,
    head: &Profile,
    difference: &Difference,
    group: GroupIndex,
) -> Option<LineChanges> {
    let functions = difference.pairing.groups.get(group)?.functions.as_ref();
    let of = Sides {
        base: LineCosts::of(base, difference.metrics.base, functions.base),
        head: LineCosts::of(head, difference.metrics.head, functions.head),
    };
    let mut pairer = LinePairer::of(Sides { base, head });
    let begins = Sides { base: begins(base, functions.base), head: begins(head, functions.head) };
    let (matched, files) = pairer.pair(&of.as_ref().map(LineCosts::lines), &begins);
    let mut rows = Vec::new();
    for paired in &files {
        let of_base = || paired.file.base.map(|file| &base.strings[file]);
        let path = paired.file.head.map(|file| &head.strings[file]).or_else(of_base).unwrap_or_default();
        rows.extend(paired.lines.iter().filter_map(|line| {
            let self_cost = Sides {
                base: of.base.cost(paired.file.base, line.base),
                head: of.head.cost(paired.file.head, line.head),
            };
            (!self_cost.is_zero()).then(|| LineChange {
                file: file_name(path).to_owned(),
                line: *line,
                text: pairer.text(paired.file, *line).map(str::to_owned),
                self_cost,
            })
        }));
    }
    let elsewhere = of.as_ref().map(|lines| lines.elsewhere);
    Some(LineChanges { group, matched, lines: rows, elsewhere })
}

/// The self costs of the lines of the functions of one profile that are one function.
#[derive(Default)]
struct LineCosts {
    costs: BTreeMap<(StringId, u32), Measure>,
    elsewhere: Measure,
}

impl LineCosts {
    fn of(profile: &Profile, metric: MetricId, functions: &[FunctionId]) -> Self {
        let basis = basis(profile, metric);
        let mut of = Self::default();
        let mut done = BTreeSet::new();
        for &id in functions {
            let table = LineTable::of(profile, &basis, id);
            if !done.insert(table.function) {
                continue;
            }
            of.elsewhere += table.self_elsewhere;
            for row in table.lines {
                *of.costs.entry((row.file, row.line)).or_default() += row.self_cost;
            }
        }
        of
    }

    /// The lines that cost something.
    fn lines(&self) -> FileLines {
        let mut lines = FileLines::new();
        for ((file, line), _) in self.costs.iter().filter(|(_, cost)| cost.cost > 0) {
            lines.entry(*file).or_default().insert(*line);
        }
        lines
    }

    fn cost(&self, file: Option<StringId>, line: Option<u32>) -> Measure {
        let known = file.zip(line).and_then(|line| self.costs.get(&line));
        known.copied().unwrap_or_default()
    }
}
