//! The lines of a function in both profiles.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use treering_analysis::{LineTable, Measure};
use treering_profile::{FunctionId, MetricId, Profile, StringId};

use crate::difference::Difference;
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

/// By what the lines of two versions of a file were found to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchedBy {
    /// Both profiles have the text: lines that a text comparison pairs are the same.
    Text,
    /// One has no text of some file: lines as far below the head of the function are the same.
    Place,
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

/// The self costs of a function's lines by file and line.
type Costs = BTreeMap<(String, u32), Measure>;

/// The lines of a function, which is a group of the difference of these two profiles.
pub fn lines(
    base: &Profile,
    head: &Profile,
    difference: &Difference,
    group: GroupIndex,
) -> Option<LineChanges> {
    let functions = difference.pairing.groups.get(group)?.functions.as_ref();
    let of = Sides {
        base: FunctionLines::of(base, difference.metrics.base, functions.base),
        head: FunctionLines::of(head, difference.metrics.head, functions.head),
    };
    let mut files: Vec<&String> =
        of.base.costs.keys().chain(of.head.costs.keys()).map(|(file, _)| file).collect();
    files.sort_unstable();
    files.dedup();
    let mut matched = MatchedBy::Text;
    let mut rows = Vec::new();
    for file in files {
        let texts = Sides { base: of.base.texts.get(file), head: of.head.texts.get(file) };
        let pairs = match texts {
            Sides { base: Some(base), head: Some(head) } => pairs_by_text(base, head),
            _ => {
                matched = MatchedBy::Place;
                pairs_by_place(&of, file)
            }
        };
        rows.extend(rows_of(&of, file, texts, &pairs));
    }
    let elsewhere = of.as_ref().map(|lines| lines.elsewhere);
    Some(LineChanges { group, matched, lines: rows, elsewhere })
}

/// The lines of the functions of one profile that are one function.
struct FunctionLines<'a> {
    costs: Costs,
    elsewhere: Measure,
    /// By file name, the text that the profile has.
    texts: HashMap<String, Vec<&'a str>>,
    /// By file name, the line at which the function begins.
    begins: HashMap<String, u32>,
}

impl<'a> FunctionLines<'a> {
    fn of(profile: &'a Profile, metric: MetricId, functions: &[FunctionId]) -> Self {
        let basis = basis(profile, metric);
        let mut of = Self {
            costs: Costs::new(),
            elsewhere: Measure::default(),
            texts: HashMap::new(),
            begins: HashMap::new(),
        };
        let mut done = Vec::new();
        for &id in functions {
            let table = LineTable::of(profile, &basis, id);
            if done.contains(&table.function) {
                continue;
            }
            done.push(table.function);
            of.elsewhere += table.self_elsewhere;
            let function = &profile.functions[table.function];
            of.begins.entry(file_name(profile, function.file)).or_insert(function.line);
            for row in table.lines {
                *of.costs.entry((file_name(profile, row.file), row.line)).or_default() += row.self_cost;
            }
        }
        for source in &profile.sources {
            let file = file_name(profile, source.file);
            if of.costs.keys().any(|(known, _)| *known == file) {
                of.texts.insert(file, source.text.lines().collect());
            }
        }
        of
    }

    fn cost(&self, file: &str, line: Option<u32>) -> Measure {
        let known = line.and_then(|line| self.costs.get(&(file.to_owned(), line)));
        known.copied().unwrap_or_default()
    }

    fn lines_of<'b>(&'b self, file: &'b str) -> impl Iterator<Item = u32> + 'b {
        self.costs.keys().filter(move |(known, _)| known == file).map(|&(_, line)| line)
    }
}

fn file_name(profile: &Profile, path: StringId) -> String {
    let path = &profile.strings[path];
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// Lines of both versions that are the same, or nothing where one has no such line; in the order of the head, lines of the
/// base alone where they were.
type Pairs = Vec<Sides<Option<u32>>>;

/// Lines that a comparison of texts pairs. A line that was changed is the same line where as many stand in its place.
fn pairs_by_text(base: &[&str], head: &[&str]) -> Pairs {
    let mut pairs = Pairs::new();
    let number = |at: usize| Some(at as u32 + 1);
    for operation in capture_diff_slices(Algorithm::Patience, base, head) {
        match operation {
            DiffOp::Equal { old_index, new_index, len } => {
                pairs.extend(
                    (0..len).map(|at| Sides { base: number(old_index + at), head: number(new_index + at) }),
                );
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } if old_len == new_len => {
                pairs.extend(
                    (0..old_len)
                        .map(|at| Sides { base: number(old_index + at), head: number(new_index + at) }),
                );
            }
            other => {
                pairs.extend(other.old_range().map(|at| Sides { base: number(at), head: None }));
                pairs.extend(other.new_range().map(|at| Sides { base: None, head: number(at) }));
            }
        }
    }
    pairs
}

/// Lines that are as far below the beginning of the function.
fn pairs_by_place(of: &Sides<FunctionLines<'_>>, file: &str) -> Pairs {
    let begin = |lines: &FunctionLines<'_>| i64::from(lines.begins.get(file).copied().unwrap_or(0));
    let moved = match (begin(&of.base), begin(&of.head)) {
        (0, _) | (_, 0) => 0,
        (base, head) => head - base,
    };
    let in_head = |line: u32| u32::try_from(i64::from(line) + moved).ok();
    let in_base = |line: u32| u32::try_from(i64::from(line) - moved).ok();
    let mut pairs: BTreeMap<(u32, bool), Sides<Option<u32>>> = BTreeMap::new();
    for line in of.base.lines_of(file) {
        let head = in_head(line);
        pairs.insert((head.unwrap_or(0), false), Sides { base: Some(line), head });
    }
    for line in of.head.lines_of(file) {
        pairs.insert((line, false), Sides { base: in_base(line), head: Some(line) });
    }
    pairs.into_values().collect()
}

fn rows_of(
    of: &Sides<FunctionLines<'_>>,
    file: &str,
    texts: Sides<Option<&Vec<&str>>>,
    pairs: &Pairs,
) -> Vec<LineChange> {
    let text_of = |text: Option<&Vec<&str>>, line: Option<u32>| {
        let at = usize::try_from(line?).ok()?.checked_sub(1)?;
        text?.get(at).map(|line| (*line).to_owned())
    };
    let row = |line: &Sides<Option<u32>>| {
        let self_cost = Sides { base: of.base.cost(file, line.base), head: of.head.cost(file, line.head) };
        (!self_cost.is_zero()).then(|| LineChange {
            file: file.to_owned(),
            line: *line,
            text: text_of(texts.head, line.head).or_else(|| text_of(texts.base, line.base)),
            self_cost,
        })
    };
    let mut rows: Vec<LineChange> = pairs.iter().filter_map(row).collect();
    // A compiler's line 0, or one beyond the text that the profile has.
    let paired =
        |side: fn(&LineChange) -> Option<u32>, line: u32| rows.iter().any(|row| side(row) == Some(line));
    let left = of.base.lines_of(file).filter(|&line| !paired(|row| row.line.base, line));
    let left: Vec<Sides<Option<u32>>> = left
        .map(|line| Sides { base: Some(line), head: None })
        .chain(
            of.head
                .lines_of(file)
                .filter(|&line| !paired(|row| row.line.head, line))
                .map(|line| Sides { base: None, head: Some(line) }),
        )
        .collect();
    rows.extend(left.iter().filter_map(row));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(base: u32, head: u32) -> Sides<Option<u32>> {
        let known = |line: u32| (line > 0).then_some(line);
        Sides { base: known(base), head: known(head) }
    }

    #[test]
    fn lines_pair_by_their_text_wherever_they_moved() {
        let base = ["int f(int n) {", "  int s = 0;", "  for (;n;n--) s += g(n);", "  return s;", "}"];
        let head = [
            "// new",
            "int f(int n) {",
            "  int s = 0;",
            "  for (;n;n--) s += h(n);",
            "  s *= 2;",
            "  s++;",
            "  return s;",
            "}",
        ];
        assert_eq!(
            pairs_by_text(&base, &head),
            [
                pair(0, 1),
                pair(1, 2),
                pair(2, 3),
                pair(3, 0),
                pair(0, 4),
                pair(0, 5),
                pair(0, 6),
                pair(4, 7),
                pair(5, 8)
            ]
        );
        assert_eq!(pairs_by_text(&["a", "b", "c"], &["a", "x", "c"]), [pair(1, 1), pair(2, 2), pair(3, 3)]);
    }
}
