//! Lines of two profiles that are the same.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use treering_profile::{FunctionId, Profile, StringId};

use crate::pairing::{GroupIndex, Pairing, with_alike};
use crate::sides::Sides;

/// By what the lines of two versions of a file were found to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchedBy {
    /// Both profiles have the text: lines that a text comparison pairs are the same.
    Text,
    /// One has no text of some file: lines as far below the head of the function are the same.
    Place,
}

/// Lines of both versions that are the same, or nothing where one has no such line; in the order of the head, lines of the
/// base alone where they were.
type Pairs = Vec<Sides<Option<u32>>>;

/// Lines by file, as far as a function has them.
pub(crate) type FileLines = BTreeMap<StringId, BTreeSet<u32>>;

/// The lines of a function that are the same in both profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairedLines {
    /// The function.
    pub group: GroupIndex,
    /// By what lines were found to be the same.
    pub matched: MatchedBy,
    /// The lines, file by file in the order of the head; those of the base alone where they were.
    pub files: Vec<PairedFile>,
}

/// The lines of a file of both profiles, or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairedFile {
    /// Its path in each profile.
    pub file: Sides<Option<StringId>>,
    /// The number of each line; nothing where a version has no such line.
    pub lines: Vec<Sides<Option<u32>>>,
}

/// The lines of every function of two profiles, all that cost something or called something. `pairing` is that of
/// these two.
pub fn line_pairs(base: &Profile, head: &Profile, pairing: &Pairing) -> Vec<PairedLines> {
    let mut pairer = LinePairer::of(Sides { base, head });
    let all = pairing.groups.len();
    let mut of_base = lines_by_group(base, &pairing.of.base, all);
    let mut of_head = lines_by_group(head, &pairing.of.head, all);
    let lines = |group: GroupIndex| {
        let lines =
            Sides { base: std::mem::take(&mut of_base[group]), head: std::mem::take(&mut of_head[group]) };
        if lines.base.is_empty() && lines.head.is_empty() {
            return None;
        }
        let functions = pairing.groups[group].functions.as_ref();
        let begins = Sides { base: begins(base, functions.base), head: begins(head, functions.head) };
        let (matched, files) = pairer.pair(&lines, &begins);
        Some(PairedLines { group, matched, files })
    };
    (0..all).filter_map(lines).collect()
}

/// By group, the lines that cost something or called something.
fn lines_by_group(profile: &Profile, groups: &[Option<GroupIndex>], all: usize) -> Vec<FileLines> {
    let mut lines = vec![FileLines::new(); all];
    let groups = with_alike(profile, groups);
    let mut add = |function: FunctionId, line| {
        let (Some(group), Some(line)) = (groups[function.index()], line) else { return };
        let line = profile.lines[line];
        lines[group].entry(line.file).or_default().insert(line.line);
    };
    let tree = &profile.tree;
    profile.line_costs.iter().for_each(|cost| add(tree.function(cost.node), Some(cost.line)));
    for node in tree.nodes() {
        if let Some(parent) = tree.parent(node) {
            add(tree.function(parent), tree.call_site(node));
        }
    }
    profile.arcs.iter().for_each(|arc| add(arc.caller, arc.call_site));
    let code = &profile.code;
    for (row, _) in code.executions.distinct().filter(|(row, _)| row.executions > 0) {
        let block = &code.blocks[row.block.index()];
        let Some(function) = block.function else { continue };
        block.places().for_each(|(at, _)| add(function, code.line(at)));
    }
    lines
}

/// By file, the line at which a function begins in it.
pub(crate) fn begins(profile: &Profile, functions: &[FunctionId]) -> HashMap<StringId, u32> {
    let mut begins = HashMap::new();
    for &id in functions {
        let function = &profile.functions[id];
        begins.entry(function.file).or_insert(function.line);
    }
    begins
}

/// Pairs lines of two profiles.
pub(crate) struct LinePairer<'a> {
    profiles: Sides<&'a Profile>,
    /// By file, the text that each profile has.
    texts: Sides<HashMap<StringId, Vec<&'a str>>>,
    /// Texts that were compared already.
    compared: HashMap<Sides<StringId>, ComparedTexts>,
}

/// The lines of two texts.
struct ComparedTexts {
    pairs: Pairs,
    /// By line, its place in `pairs`.
    places: Sides<HashMap<u32, usize>>,
}

impl<'a> LinePairer<'a> {
    pub(crate) fn of(profiles: Sides<&'a Profile>) -> Self {
        let texts = profiles.map(|profile| {
            profile.sources.iter().map(|source| (source.file, source.text.lines().collect())).collect()
        });
        Self { profiles, texts, compared: HashMap::new() }
    }

    /// The text of a line of the head, or else of the base.
    pub(crate) fn text(&self, file: Sides<Option<StringId>>, line: Sides<Option<u32>>) -> Option<&'a str> {
        let text = |texts: &HashMap<StringId, Vec<&'a str>>, file: Option<StringId>, line: Option<u32>| {
            let at = usize::try_from(line?).ok()?.checked_sub(1)?;
            texts.get(&file?)?.get(at).copied()
        };
        text(&self.texts.head, file.head, line.head).or_else(|| text(&self.texts.base, file.base, line.base))
    }

    /// The lines of a function that begins at these lines of its files.
    pub(crate) fn pair(
        &mut self,
        lines: &Sides<FileLines>,
        begins: &Sides<HashMap<StringId, u32>>,
    ) -> (MatchedBy, Vec<PairedFile>) {
        let none = BTreeSet::new();
        let mut matched = MatchedBy::Text;
        let files = self.files(lines).into_iter();
        let pair = |file: Sides<Option<StringId>>| {
            let of = |lines: &FileLines, file: Option<StringId>| {
                file.and_then(|file| lines.get(&file)).unwrap_or(&none).clone()
            };
            let of = Sides { base: of(&lines.base, file.base), head: of(&lines.head, file.head) };
            let lines = match file {
                Sides { base: Some(base), head: Some(head) } => {
                    self.by_text(Sides { base, head }, &of).unwrap_or_else(|| {
                        matched = MatchedBy::Place;
                        let begin = |begins: &HashMap<StringId, u32>, file| {
                            i64::from(begins.get(&file).copied().unwrap_or(0))
                        };
                        pairs_by_place(&of, begin(&begins.base, base), begin(&begins.head, head))
                    })
                }
                _ => alone(of.base.into_iter(), of.head.into_iter()),
            };
            PairedFile { file, lines }
        };
        let files = files.map(pair).collect();
        (matched, files)
    }

    /// The files of a function that are the same, by name. Of several of one name those are, whose folders have most in
    /// common.
    fn files(&self, lines: &Sides<FileLines>) -> Vec<Sides<Option<StringId>>> {
        let path = |profile: &'a Profile, file: &StringId| -> &'a str { &profile.strings[*file] };
        let named = |profile: &'a Profile, lines: &FileLines| -> Vec<(&'a str, StringId)> {
            lines.keys().map(|file| (path(profile, file), *file)).collect()
        };
        let of = Sides {
            base: named(self.profiles.base, &lines.base),
            head: named(self.profiles.head, &lines.head),
        };
        let best = |path: &str, others: &[(&str, StringId)]| {
            let common = |other: &str| match other == path {
                true => usize::MAX,
                false => folders_in_common(path, other),
            };
            let most = others.iter().map(|(other, _)| common(other)).max().filter(|&most| most > 0)?;
            let mut found = others.iter().filter(|(other, _)| common(other) == most);
            found.next().filter(|_| found.next().is_none()).map(|(_, file)| *file)
        };
        let mut files: Vec<(&str, Sides<Option<StringId>>)> = Vec::new();
        let mut paired = BTreeSet::new();
        for &(path, file) in &of.head {
            let partner = best(path, &of.base)
                .filter(|partner| best(&self.profiles.base.strings[*partner], &of.head) == Some(file));
            paired.extend(partner);
            files.push((path, Sides { base: partner, head: Some(file) }));
        }
        let alone = of.base.into_iter().filter(|(_, file)| !paired.contains(file));
        files.extend(alone.map(|(path, file)| (path, Sides { base: Some(file), head: None })));
        files.sort_by(|(a, _), (b, _)| file_name(a).cmp(file_name(b)).then_with(|| a.cmp(b)));
        files.into_iter().map(|(_, file)| file).collect()
    }

    /// The lines of a file, paired by its text; nothing where one profile does not have it.
    fn by_text(&mut self, file: Sides<StringId>, of: &Sides<BTreeSet<u32>>) -> Option<Pairs> {
        let (base, head) = (self.texts.base.get(&file.base)?, self.texts.head.get(&file.head)?);
        let compared = self.compared.entry(file).or_insert_with(|| ComparedTexts::of(base, head));
        let places = |lines: &BTreeSet<u32>, places: &HashMap<u32, usize>| -> Vec<usize> {
            lines.iter().filter_map(|line| places.get(line).copied()).collect()
        };
        let known = [places(&of.base, &compared.places.base), places(&of.head, &compared.places.head)];
        let known: BTreeSet<usize> = known.into_iter().flatten().collect();
        let mut pairs: Pairs = known.into_iter().map(|place| compared.pairs[place]).collect();
        // A compiler's line 0, or one beyond the text that the profile has.
        let is_left = |places: &HashMap<u32, usize>, line: &u32| !places.contains_key(line);
        let base = of.base.iter().copied().filter(|line| is_left(&compared.places.base, line));
        let head = of.head.iter().copied().filter(|line| is_left(&compared.places.head, line));
        pairs.extend(alone(base, head));
        Some(pairs)
    }
}

/// Lines of one version each.
fn alone(base: impl Iterator<Item = u32>, head: impl Iterator<Item = u32>) -> Pairs {
    let base = base.map(|line| Sides { base: Some(line), head: None });
    base.chain(head.map(|line| Sides { base: None, head: Some(line) })).collect()
}

impl ComparedTexts {
    fn of(base: &[&str], head: &[&str]) -> Self {
        let pairs = pairs_by_text(base, head);
        let mut places: Sides<HashMap<u32, usize>> = Sides::default();
        for (place, pair) in pairs.iter().enumerate() {
            places.base.extend(pair.base.map(|line| (line, place)));
            places.head.extend(pair.head.map(|line| (line, place)));
        }
        Self { pairs, places }
    }
}

/// The file's name without folders.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// How many components two paths have in common at their ends, that of the file's name among them.
fn folders_in_common(a: &str, b: &str) -> usize {
    a.rsplit('/').zip(b.rsplit('/')).take_while(|(a, b)| a == b).count()
}

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

/// Lines that are as far below the beginning of the function, which is 0 where it is not known.
fn pairs_by_place(of: &Sides<BTreeSet<u32>>, base: i64, head: i64) -> Pairs {
    let moved = if base == 0 || head == 0 { 0 } else { head - base };
    // Line 0 stands for all lines of the file, and is nowhere.
    let at = |line: u32, moved: i64| match line {
        0 => Some(0),
        line => u32::try_from(i64::from(line) + moved).ok().filter(|&line| line > 0),
    };
    let of_base = of.base.iter().map(|&line| Sides { base: Some(line), head: at(line, moved) });
    let of_head = of.head.iter().map(|&line| Sides { base: at(line, -moved), head: Some(line) });
    let mut pairs: Pairs = of_base.chain(of_head).collect();
    pairs.sort_by_key(|pair| (pair.head, pair.base));
    pairs.dedup();
    pairs
}

#[cfg(test)]
mod tests {
    use treering_profile::RecursionRule;

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

    #[test]
    fn lines_without_text_pair_by_their_distance_from_the_head_of_the_function() {
        let of = Sides { base: BTreeSet::from([0, 1, 12, 13]), head: BTreeSet::from([0, 8, 9]) };
        let whole_file = Sides { base: Some(0), head: Some(0) };
        assert_eq!(pairs_by_place(&of, 12, 8), [pair(1, 0), whole_file, pair(12, 8), pair(13, 9)]);
        assert_eq!(
            pairs_by_place(&of, 0, 8),
            [whole_file, pair(1, 1), pair(8, 8), pair(9, 9), pair(12, 12), pair(13, 13)]
        );
    }

    #[test]
    fn files_of_one_name_pair_by_their_folders() {
        let mut profiles = [(); 2].map(|()| Profile::new(RecursionRule::Full));
        let mut lines = |at: usize, paths: &[&str]| -> FileLines {
            let of = |path: &&str| (profiles[at].strings.intern(path), BTreeSet::from([1]));
            paths.iter().map(of).collect()
        };
        let of = Sides {
            base: lines(0, &["/old/a/mod.rs", "/old/b/mod.rs", "/old/c/only.rs", "/x/same/mod.rs"]),
            head: lines(1, &["/new/b/mod.rs", "/new/a/mod.rs", "/x/same/mod.rs", "/p/q.rs", "/r/q.rs"]),
        };
        let pairer = LinePairer::of(Sides { base: &profiles[0], head: &profiles[1] });
        let name = |profile: &Profile, file: Option<StringId>| {
            file.map_or(String::new(), |file| profile.strings[file].to_owned())
        };
        let paired: Vec<_> = pairer
            .files(&of)
            .into_iter()
            .map(|file| format!("{} = {}", name(&profiles[0], file.base), name(&profiles[1], file.head)))
            .collect();
        assert_eq!(
            paired,
            [
                "/old/a/mod.rs = /new/a/mod.rs",
                "/old/b/mod.rs = /new/b/mod.rs",
                "/x/same/mod.rs = /x/same/mod.rs",
                "/old/c/only.rs = ",
                " = /p/q.rs",
                " = /r/q.rs",
            ]
        );
    }
}
