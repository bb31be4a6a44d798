//! Two profiles in one page.

use std::borrow::Cow;
use std::path::Path;

use treering_analysis::{correct, default_metric};
use treering_compare::{
    BlockChanges, Difference, ExecutedBlock, Joined, MatchedBy, Options, PairedFile, PairedLines, Reason,
    Sides, all_blocks, compare_with_code, join, line_pairs,
};
use treering_profile::{Profile, RecursionRule};
use treering_report::Verdict;
use treering_viewer::{
    ArcChange, Changes, Compared, ComparedBlock, FunctionBlocks, FunctionChange, FunctionLines, PairedLine,
    Side,
};

use crate::command::diff::{RECORD_ALIKE, code, without_blocks};
use crate::failure::Failure;

/// Two profiles as one, and why they differ.
pub(super) struct TwoProfiles {
    /// Both, those of the base first.
    pub profile: Profile,
    /// By run: whether it is one of the base.
    pub base_runs: Vec<bool>,
    /// Why the run changed.
    pub changes: Option<Changes>,
    /// The parts that are compared.
    pub compared: Compared,
}

impl TwoProfiles {
    /// Forgets what is known of all that ran alone.
    pub(super) fn only_a_part(&mut self) {
        self.changes = None;
        self.compared.is_whole = false;
        let why = "blocks are counted for the whole run; the page shows a part of it";
        self.compared.blocks = Err(why.to_owned());
    }
}

/// Puts a profile, read from `paths.1`, beside its base, read from `paths.0`.
pub(super) fn both(paths: (&Path, &Path), base: &Profile, head: &Profile) -> Result<TwoProfiles, Failure> {
    check_comparable(paths, base, head)?;
    let corrected = Sides { base: correct(base), head: correct(head) };
    let profiles = corrected.as_ref().map(|side| &*side.profile);
    let code = code::read(profiles);
    let difference = compare_with_code(profiles.base, profiles.head, &Options::default(), &code)
        .map_err(|error| Failure::new(error).hint(RECORD_ALIKE))?;
    // A program of another folder, name or build is the same program here.
    let pairing = difference.pairing.clone();
    let mut joined = join(base, head, &pairing);
    let runs = base.runs.len();
    let base_runs = (0..joined.profile.runs.len()).map(|run| run < runs).collect();
    let changes = changes(&difference, &joined);
    if runs > 1 && !difference.is_exact {
        let text = "intervals are those of all samples together; by how much the runs differ, the first line and \
                    treering diff tell";
        joined.profile.metadata.note(text.to_owned());
    }
    let lines = line_pairs(profiles.base, profiles.head, &pairing).into_iter();
    let lines = lines.map(|lines| function_lines(&lines, profiles, &mut joined)).collect();
    let blocks = all_blocks(profiles.base, profiles.head, &pairing);
    let blocks = blocks.map(|blocks| function_blocks(blocks, &joined)).map_err(without_blocks);
    let lacks_stacks = |profile: &Profile| profile.is_arcs_only() || profile.recursion == RecursionRule::Flat;
    let without_stacks = lacks_stacks(profiles.base) || lacks_stacks(profiles.head);
    let side = |profile: Cow<'_, Profile>, functions, lines| Side {
        profile: profile.into_owned(),
        functions,
        lines,
    };
    let sides = [
        side(corrected.head.profile, joined.functions.head, joined.lines.head),
        side(corrected.base.profile, joined.functions.base, joined.lines.base),
    ];
    let compared = Compared { sides, without_stacks, is_whole: true, lines, blocks };
    Ok(TwoProfiles { profile: joined.profile, base_runs, changes, compared })
}

fn check_comparable(paths: (&Path, &Path), base: &Profile, head: &Profile) -> Result<(), Failure> {
    let name = |profile: &Profile| {
        default_metric(profile).map(|metric| profile.metrics[metric.index()].name.clone())
    };
    let (Some(of_base), Some(of_head)) = (name(base), name(head)) else { return Ok(()) };
    if base.find_metric(&of_head).is_some() || head.find_metric(&of_base).is_some() {
        return Ok(());
    }
    Err(Failure::new(format_args!(
        "{} measures {of_base} and {} measures {of_head}: they cannot be compared",
        paths.0.display(),
        paths.1.display()
    ))
    .hint(RECORD_ALIKE))
}

/// The verdict and the changes of functions, in the words of the page's profile.
fn changes(difference: &Difference, joined: &Joined) -> Option<Changes> {
    let function = |group: usize| joined.groups[group];
    let cause = difference.cause.map(|cause| match cause.reason {
        Reason::Calls { caller, .. } if caller != 0 => function(caller),
        _ => function(cause.function),
    });
    let first = || {
        let certain = difference.functions.first().filter(|first| first.certainty.is_certain)?;
        Some(function(certain.group))
    };
    let part = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let functions = difference.functions.iter().filter_map(|change| {
        let (calls, split) = (change.calls?, change.split?);
        Some(FunctionChange {
            function: function(change.group),
            calls: (calls.base, calls.head),
            more_calls: part(split.more_calls),
            cost_per_call: part(split.cost_per_call),
        })
    });
    let counts_calls = difference.functions.iter().any(|change| change.split.is_some());
    let arcs = difference.arcs.iter().filter(|_| counts_calls).map(|arc| {
        let split = arc.split();
        ArcChange {
            caller: function(arc.caller),
            callee: function(arc.callee),
            more_calls: part(split.more_calls),
            cost_per_call: part(split.cost_per_call),
        }
    });
    Some(Changes {
        verdict: Verdict::of(difference).text,
        cause: cause.or_else(first),
        metric: joined.profile.find_metric(&difference.metric)?,
        functions: functions.collect(),
        arcs: arcs.collect(),
    })
}

/// The lines of a function, in the words of the page's profile.
fn function_lines(lines: &PairedLines, profiles: Sides<&Profile>, joined: &mut Joined) -> FunctionLines {
    let mut rows = Vec::new();
    for file in &lines.files {
        rows.extend(file_lines(file, profiles, joined));
    }
    FunctionLines {
        function: joined.groups[lines.group],
        by_place: lines.matched == MatchedBy::Place,
        lines: rows,
    }
}

fn file_lines(of: &PairedFile, profiles: Sides<&Profile>, joined: &mut Joined) -> Vec<PairedLine> {
    let of_head = of.file.head.map(|file| &profiles.head.strings[file]);
    let path = of_head.or(of.file.base.map(|file| &profiles.base.strings[file])).unwrap_or_default();
    let file = joined.profile.strings.intern(path);
    let source = profiles.base.sources.iter().find(|source| Some(source.file) == of.file.base);
    let text = |line: u32| source?.text.lines().nth((line as usize).checked_sub(1)?).map(str::to_owned);
    let line = |line: &Sides<Option<u32>>| PairedLine {
        file,
        base: of.file.base.zip(line.base).map(|(file, line)| joined.line(profiles.base, file, line)),
        head: of.file.head.zip(line.head).map(|(file, line)| joined.line(profiles.head, file, line)),
        text: match line {
            Sides { base: Some(base), head: None } => text(*base),
            _ => None,
        },
    };
    of.lines.iter().map(line).collect()
}

/// The blocks of functions in the words of the page's profile, those that changed most first.
fn function_blocks(mut changes: Vec<BlockChanges>, joined: &Joined) -> Vec<FunctionBlocks> {
    let size = |of: &BlockChanges| {
        let changes = of.blocks.iter().map(|block| block.instructions_executed().change().unsigned_abs());
        changes.sum::<u128>()
    };
    changes.sort_by_cached_key(|of| std::cmp::Reverse(size(of)));
    let block = |block: &ExecutedBlock| ComparedBlock {
        address: block.start.0,
        instructions: block.instructions,
        executions: block.executions,
        instructions_executed: block.instructions_executed,
        line: block.line.clone(),
    };
    let of_function = |of: BlockChanges| FunctionBlocks {
        function: joined.groups[of.group],
        blocks: of
            .blocks
            .iter()
            .map(|change| [&change.of.base, &change.of.head].map(|of| of.as_ref().map(block)))
            .collect(),
    };
    changes.into_iter().map(of_function).collect()
}
