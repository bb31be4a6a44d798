//! Reads folded stacks.

use treering_profile::{
    Function, FunctionId, FunctionKind, Metric, MetricId, Profile, ThreadId, Unit, pluralize,
};

use crate::budget::{Budget, OverBudget};
use crate::folded::line::Line;
use crate::folded::{HASH, KINDS, SEMICOLON, SPACE};
use crate::import::Import;
use crate::label::{ROOT, text_of, without_mark};
use crate::{Problem, ReadError, ReadReport};

/// Reads folded stacks as one thread with one metric, `samples`.
///
/// A weight without a stack is charged to the thread itself.
///
/// The weight is what follows the last space; names may hold spaces. Weights with decimals are
/// taken in thousandths, millionths or billionths, and the metric is then `millisamples`,
/// `microsamples` or `nanosamples`. Where every line ends with two weights, as `difffolded.pl`
/// writes them, they are the metrics `before` and `after`. Empty lines and comments are passed over. So are
/// lines without a weight among many stacks, as `flamegraph.pl` does: they are counted, and the first is named.
/// Bytes that are not UTF-8 become `\xe4` and the like.
///
/// # Errors
/// At the first line without a weight, where there are more such lines than a stray one now and then.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let (lines, stray) = lines(bytes)?;
    if lines.is_empty() {
        return Err(Problem::Empty("stacks").into());
    }
    let mut reader = Reader::new(budget);
    // The weight of the last line may be cut.
    reader.import.report.unfinished = !bytes.ends_with(b"\n");
    reader.import.report.notes.extend(stray.map(|stray| stray.note()));
    reader.all(&lines)?;
    reader.finish()
}

/// Lines that are no stacks.
struct Stray<'a> {
    first: ReadError,
    line: u64,
    text: &'a [u8],
    count: usize,
}

impl Stray<'_> {
    /// The note that lines were passed over.
    fn note(&self) -> String {
        const SHOWN: usize = 60;
        let text: String = text_of(self.text.trim_ascii()).chars().take(SHOWN).collect();
        let Self { count, line, .. } = self;
        format!(
            "lines that are no stacks with a weight were passed over: {count}, the first is line {line}: `{text}`"
        )
    }
}

/// All lines that are stacks, and those that should be.
fn lines(bytes: &[u8]) -> Result<(Vec<Line<'_>>, Option<Stray<'_>>), ReadError> {
    let text = without_mark(bytes);
    let mut offset = (bytes.len() - text.len()) as u64;
    let mut lines = Vec::new();
    let mut stray: Option<Stray<'_>> = None;
    for (at, line) in text.split(|&byte| byte == b'\n').enumerate() {
        match (Line::parse(line), &mut stray) {
            (Ok(stack), _) => lines.extend(stack),
            (Err(_), Some(stray)) => stray.count += 1,
            (Err(problem), None) => {
                let number = at as u64 + 1;
                let first = ReadError::at_line(number, offset, problem);
                stray = Some(Stray { first, line: number, text: line, count: 1 });
            }
        }
        offset += line.len() as u64 + 1;
    }
    match stray {
        Some(stray) if !is_stray(stray.count, lines.len()) => Err(stray.first),
        stray => Ok((lines, stray)),
    }
}

/// Whether so few lines are no stacks that the others are still a file of stacks.
pub(super) fn is_stray(others: usize, stacks: usize) -> bool {
    others * 2 <= stacks
}

struct Reader {
    import: Import,
    thread: ThreadId,
    tiers: bool,
}

impl Reader {
    fn new(budget: Budget) -> Self {
        let mut import = Import::new(budget);
        let thread = import.thread(0, 0, "");
        Self { import, thread, tiers: false }
    }

    fn all(&mut self, lines: &[Line<'_>]) -> Result<(), OverBudget> {
        let two: Vec<_> = lines.iter().filter_map(Line::two).collect();
        if two.len() == lines.len() {
            self.import.note(
                "every stack has two weights, as difffolded.pl writes them: they are the metrics before and after",
            );
            let all: Vec<_> = two.iter().flatten().collect();
            let decimals = self.decimals(&all);
            let metrics = ["before", "after"].map(|name| self.metric(name, decimals));
            // The widths in a flame graph of differences.
            self.import.set_default_metric(metrics[1]);
            two.iter().try_for_each(|[before, after]| {
                self.line(before, metrics[0], decimals)?;
                self.line(after, metrics[1], decimals)
            })
        } else {
            if !two.is_empty() {
                let (some, all) = (two.len(), lines.len());
                self.import.note(format!(
                    "{some} of {} {} with two numbers: the first is taken as part of a name",
                    pluralize(all as u64, "stack", "stacks"),
                    if some == 1 { "ends" } else { "end" }
                ));
            }
            let decimals = self.decimals(&lines.iter().collect::<Vec<_>>());
            let metric = self.metric("samples", decimals);
            lines.iter().try_for_each(|line| self.line(line, metric, decimals))
        }
    }

    /// How many decimals are kept: 0, 3, 6 or 9, as many as it takes and as can be added up.
    fn decimals(&mut self, lines: &[&Line<'_>]) -> usize {
        let exact = lines.iter().map(|line| line.weight.decimals()).max().unwrap_or(0);
        let wanted = exact.next_multiple_of(3).min(9);
        let fits = |decimals: &usize| {
            let sum: u128 = lines.iter().map(|line| line.weight.scaled(*decimals)).sum();
            sum <= u128::from(u64::MAX)
        };
        let kept = [9, 6, 3].into_iter().filter(|&decimals| decimals <= wanted).find(fits).unwrap_or(0);
        if kept < exact {
            self.import.note(format!("weights are rounded to {kept} decimals"));
        }
        kept
    }

    fn metric(&mut self, name: &str, decimals: usize) -> MetricId {
        let prefix = ["", "milli", "micro", "nano"][decimals / 3];
        let name = if name == "samples" || prefix.is_empty() {
            format!("{prefix}{name}")
        } else {
            format!("{prefix}samples {name}")
        };
        self.import.profile.add_metric(Metric::exact(name, Unit::Count))
    }

    fn line(&mut self, line: &Line<'_>, metric: MetricId, decimals: usize) -> Result<(), OverBudget> {
        // A stack that may not be kept is not even taken apart: one line may hold all of a large file.
        let depth = line.stack.iter().filter(|&&byte| byte == b';').count();
        self.import.check_depth(depth)?;
        self.import.begin();
        for (at, name) in line.names().enumerate() {
            let name = self.import.text(name);
            if let Some(function) = self.function(&name, at == 0) {
                self.import.push(function, None);
            }
        }
        // Sums that are too large are found when the costs are added up.
        let weight = u64::try_from(line.weight.scaled(decimals)).unwrap_or(u64::MAX);
        self.import.add(self.thread, &[(metric, weight)]).map(drop)
    }

    /// The function of a name; nothing for the root, which a stack starts below anyway.
    fn function(&mut self, name: &str, outermost: bool) -> Option<FunctionId> {
        if outermost && name == ROOT {
            return None;
        }
        let marked = KINDS.iter().find_map(|(mark, kind)| Some((name.strip_suffix(mark)?, mark, *kind)));
        self.tiers |= marked.is_some_and(|(_, mark, _)| *mark == "_[1]");
        let (name, kind) = marked.map_or((name, FunctionKind::Native), |(name, _, kind)| (name, kind));
        let name = self.import.profile.strings.intern(&original(name));
        Some(self.import.profile.functions.intern(Function { kind, ..Function::named(name) }))
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        self.import
            .note_if(self.tiers, "which of the compilers made a function (`_[1]`, `_[j]`) is not kept");
        let tree = &self.import.profile.tree;
        let is_called = |node| tree.parent(node).is_some_and(|caller| tree.parent(caller).is_some());
        if !tree.nodes().any(is_called) {
            let text = "no stack has a caller, so total costs are those of single functions";
            self.import.profile.metadata.note(text);
        }
        self.import.finish("folded stacks")
    }
}

/// A name without the signs that stand for others in it; see `write.rs`.
fn original(name: &str) -> String {
    let name = name.replace(SEMICOLON, ";").replace(SPACE, " ");
    name.strip_prefix(HASH).map(|rest| format!("#{rest}")).unwrap_or(name)
}
