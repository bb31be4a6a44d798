//! `treering diff`.

pub(crate) mod code;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use treering_analysis::{Basis, FindError, add_calls_metric, correct, default_metric, find_function};
use treering_compare::{
    BlockChanges, Difference, GroupIndex, LineChanges, Options, Sides, blocks, compare_with_code, lines,
};
use treering_profile::{MetricId, Profile};
use treering_report::{Measured, Outcome as Verdicts, Rows, Style, Verdict};

use super::report::{Part, TimePart, percent};
use crate::arguments::is_beyond;
use crate::ci_files::CiFiles;
use crate::failure::{Context as _, Failure, Outcome};
use crate::open::open_profile;
use crate::working::Working;
use crate::{pager, terminal};

/// Show what changed between two profiles: how much, why, and where
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Always base → head, and change = head − base. Where both counted calls, each change of a function is \
divided in two that add up to it: more calls, and cost per call. See docs/diff.md.

Exit status: 0 within the limit, also without any; 1 beyond it; 2 an error; 3 undecided.

Examples:
  treering diff before.trg after.trg
  treering diff before.trg after.trg --tree
  treering diff main.trg branch.trg --limit 1% --markdown > comment.md")]
pub struct Diff {
    /// The profile to compare with, of any format that Treering reads
    base: PathBuf,
    /// The profile to compare
    #[arg(value_name = "PROFILE")]
    head: PathBuf,
    #[command(flatten)]
    view: View,
    /// Print JSON; every key is described in docs/json.md
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown for a review comment
    #[arg(long, conflicts_with_all = ["tree", "callgraph", "lines", "blocks"])]
    markdown: bool,
    /// The metric to compare [default: the first one that both have]
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
    /// Show at most N functions [default: as many as explain nine tenths of all changes, and at most 12]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Show trees down to this depth [default: 64]
    #[arg(long, value_name = "N", requires = "tree")]
    depth: Option<usize>,
    /// Exit with status 1 if the run costs more than this part more
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    limit: Option<f64>,
    #[command(flatten)]
    files: CiFiles,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    time: TimePart,
}

// The views, of which one is shown.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct View {
    /// List the functions that changed (this is the default)
    #[arg(long)]
    flat: bool,
    /// For each function that changed, or for FUNCTION, its callers above it and its callees below
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1)]
    callgraph: Option<Option<String>>,
    /// The tree of what changed
    #[arg(long)]
    tree: bool,
    /// The source lines that changed, of FUNCTION, or else of the function that changed most
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1)]
    lines: Option<Option<String>>,
    /// The basic blocks that changed, of FUNCTION, or else of the function that changed most; both were counted
    #[arg(long, value_name = "FUNCTION", num_args = 0..=1)]
    blocks: Option<Option<String>>,
}

/// The hint for profiles that cannot be compared.
pub(super) const RECORD_ALIKE: &str =
    "record both in the same way; treering report --metrics lists those of a profile";

impl Diff {
    /// Does it.
    pub fn run(self) -> Outcome {
        self.compare().map_err(|failure| failure.status(2))
    }

    fn compare(&self) -> Outcome {
        self.files.check()?;
        let (base, head) = (self.open(&self.base)?, self.open(&self.head)?);
        let working = Working::on("comparing");
        let options = Options { metric: self.metric.clone() };
        let code = code::read(Sides { base: &base, head: &head });
        let difference = compare_with_code(&base, &head, &options, &code)
            .map_err(|error| Failure::new(error).hint(RECORD_ALIKE))?;
        note_lengths(&difference, Sides { base: &base, head: &head });
        let style = Style { colour: terminal::colour(), width: terminal::width() };
        let text = self.text(&difference, Sides { base: &base, head: &head }, &style)?;
        drop(working);
        match self.json || self.markdown || terminal::has_unicode() {
            true => pager::print(&text)?,
            false => pager::print(&treering_report::in_ascii(&text))?,
        }
        let status = self.status(&difference);
        self.files.write(&[self.measured(&difference, status)], || self.markdown(&difference))?;
        Ok(ExitCode::from(status))
    }

    /// The difference as files for other programs have it.
    fn measured(&self, difference: &Difference, status: u8) -> Measured {
        let name = self.files.name.clone().unwrap_or_else(|| self.head.display().to_string());
        Measured { is_beyond_limit: status == 1, ..Measured::of(difference, &name) }
    }

    fn markdown(&self, difference: &Difference) -> String {
        treering_report::difference_markdown(difference, Rows { limit: self.top })
    }

    /// The part of a profile that is compared, without the cost of measuring.
    fn open(&self, path: &Path) -> Result<Profile, Failure> {
        let opened = open_profile(path)?;
        opened.print_warnings();
        let mut profile = opened.profile;
        self.time.cut_of(&mut profile, path)?;
        let checked = self.time.check_metric(&profile, self.metric.as_deref());
        checked.map_err(|failure| failure.of(path.display()))?;
        if default_metric(&profile).is_none() && profile.tree.has_calls() {
            add_calls_metric(&mut profile);
        }
        let selection = self.part.selection(&mut profile)?;
        let whole = correct(&profile);
        let part = whole.part(&selection).context(path.display())?;
        Ok(part.profile.into_owned())
    }

    fn text(
        &self,
        difference: &Difference,
        profiles: Sides<&Profile>,
        style: &Style,
    ) -> Result<String, Failure> {
        const DEEPEST: usize = 64;
        let rows = Rows { limit: self.top };
        if let Some(function) = &self.view.lines {
            let changes = line_changes(difference, profiles, function.as_deref())?;
            return Ok(match self.json {
                true => treering_report::difference_lines_json(difference, &changes),
                false => treering_report::difference_lines_text(difference, &changes, style, rows),
            });
        }
        if let Some(function) = &self.view.blocks {
            let changes = block_changes(difference, profiles, function.as_deref())?;
            return Ok(match self.json {
                true => treering_report::difference_blocks_json(difference, &changes),
                false => treering_report::difference_blocks_text(difference, &changes, style, rows),
            });
        }
        if self.json {
            return Ok(treering_report::difference_json(difference, self.view.tree));
        }
        if self.markdown {
            return Ok(self.markdown(difference));
        }
        if self.view.tree {
            let depth = self.depth.unwrap_or(DEEPEST);
            return treering_report::difference_tree_text(difference, style, depth).ok_or_else(|| {
                Failure::new("one of both has no stacks, so there is no tree to compare")
                    .hint("record it again, or count it with --tree; --flat compares the functions")
            });
        }
        if let Some(function) = &self.view.callgraph {
            let only = function.as_deref().map(|name| find(difference, profiles, name)).transpose()?;
            return Ok(treering_report::difference_call_graph_text(difference, only, style, rows));
        }
        Ok(treering_report::difference_text(difference, style, rows))
    }

    fn status(&self, difference: &Difference) -> u8 {
        let Some(limit) = self.limit else { return 0 };
        let verdict = Verdict::of(difference);
        let limit = limit / 100.0;
        let change = verdict.change.unwrap_or(if difference.run.change() > 0 { f64::INFINITY } else { 0.0 });
        let within = verdict.interval.is_some_and(|(_, high)| !is_beyond(high, limit));
        match verdict.outcome {
            Verdicts::Less | Verdicts::Same => 0,
            _ if within => 0,
            Verdicts::More if is_beyond(change, limit) => 1,
            Verdicts::More => 0,
            Verdicts::Undecided => 3,
        }
    }
}

/// Notes that the programs' paths are of unequal length, where costs are exact and the change is so small that this may be
/// all of it.
fn note_lengths(difference: &Difference, profiles: Sides<&Profile>) {
    /// As a part of the run's cost.
    const SMALL: f64 = 1e-3;
    let path = |profile: &Profile| profile.runs.first().and_then(|run| run.command.first().cloned());
    let (Some(base), Some(head)) = (path(profiles.base), path(profiles.head)) else { return };
    let change = difference.run.change().unsigned_abs() as f64;
    let is_small = change <= SMALL * difference.run.base.cost as f64;
    // Changes of functions may make up for each other.
    let differs = || difference.functions.iter().any(|function| function.self_cost.change() != 0);
    if difference.is_exact && is_small && base.len() != head.len() && differs() {
        tell!(
            "note: {base} and {head} are not of one length: the loader and the C library read the program's path, and it moves \
             the stack, so that a small change may be due to that; treering compare sets it apart"
        );
    }
}

/// The lines of the function of that name, or else of the one that changed most.
fn line_changes(
    difference: &Difference,
    profiles: Sides<&Profile>,
    name: Option<&str>,
) -> Result<LineChanges, Failure> {
    let group = named_or_first(difference, profiles, name)?;
    let changes = lines(profiles.base, profiles.head, difference, group);
    changes.filter(|changes| !changes.lines.is_empty()).ok_or_else(|| {
        let name = &difference.pairing.groups[group].name;
        Failure::new(format_args!("neither profile knows the lines of {name}"))
            .hint("build the program with -g, and count or record it again")
    })
}

/// The basic blocks of the function of that name, or else of the one that changed most.
fn block_changes(
    difference: &Difference,
    profiles: Sides<&Profile>,
    name: Option<&str>,
) -> Result<BlockChanges, Failure> {
    let group = named_or_first(difference, profiles, name)?;
    let changes = blocks(profiles.base, profiles.head, difference, group).map_err(|has_blocks| {
        Failure::new(without_blocks(has_blocks))
            .hint("count both: treering count -- PROGRAM; --lines compares the lines of any two profiles")
    })?;
    if changes.blocks.is_empty() {
        let name = &difference.pairing.groups[group].name;
        return Err(Failure::new(format_args!("no basic block is known of {name}"))
            .hint("interpreted functions and those of other tools have none"));
    }
    Ok(changes)
}

/// Says that not both have blocks.
pub(crate) fn without_blocks(has_blocks: Sides<bool>) -> String {
    let side = match (has_blocks.base, has_blocks.head) {
        (false, false) => "neither profile has",
        (false, true) => "base does not have",
        _ => "head does not have",
    };
    format!("{side} basic blocks")
}

/// The function of that name, or else the one that changed most.
fn named_or_first(
    difference: &Difference,
    profiles: Sides<&Profile>,
    name: Option<&str>,
) -> Result<GroupIndex, Failure> {
    if let Some(name) = name {
        return find(difference, profiles, name);
    }
    let first = difference.functions.first().filter(|first| first.self_cost.change() != 0);
    Ok(first.ok_or_else(|| Failure::new("no function changed"))?.group)
}

/// The function of that name in the head, or else in the base.
fn find(difference: &Difference, profiles: Sides<&Profile>, name: &str) -> Result<GroupIndex, Failure> {
    let find_in = |profile: &Profile, metric: MetricId| {
        find_function(profile, &Basis::of(profile, metric), name, treering_report::labels(profile), |_| false)
    };
    let metrics = difference.metrics;
    let groups = &difference.pairing.of;
    match find_in(profiles.head, metrics.head) {
        Ok(function) => return Ok(groups.head[function.index()].unwrap_or(0)),
        Err(error @ FindError::Ambiguous { .. }) => return Err(not_found(&error)),
        Err(FindError::NotFound { .. }) => {}
    }
    match find_in(profiles.base, metrics.base) {
        Ok(function) => Ok(groups.base[function.index()].unwrap_or(0)),
        Err(error) => Err(not_found(&error)),
    }
}

fn not_found(error: &FindError) -> Failure {
    let (FindError::NotFound { largest: names, .. } | FindError::Ambiguous { candidates: names, .. }) = error;
    Failure::new(error).hint(format_args!("there are: {}", names[..names.len().min(5)].join(", ")))
}
