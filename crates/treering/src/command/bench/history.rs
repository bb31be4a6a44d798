//! `treering bench history`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use treering_archive::{Archive, Manifest, Summary, Version, median, metric};
use treering_compare::{Difference, Options, change_points, compare};
use treering_formats::trg;
use treering_measure::Outcome as Judgement;
use treering_plot::{Commit, HistoryPlot, Level, Step, history_svg};
use treering_profile::Profile;
use treering_report::plural;

use super::amount::{amount, percent, title};
use super::columns::{Side, print, table};
use super::drawing::write_plot;
use super::judged::{is_time, judge, metric_of};
use super::place::{Place, failure};
use super::version::git;
use crate::command::report::percent as percent_of;
use crate::failure::{Failure, Outcome};
use crate::output::check_plot_target;
use crate::terminal;

/// Show the commits at which a program became slower or faster
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The latest run of each commit, in the order of the commits. Instructions are compared commit by \
commit; times are divided into levels, as long as chance would not make a step (E-divisive).

Examples:
  treering bench history solve -p n=8000
  treering bench history solve -p n=8000 -y time -o history.svg

Between two commits, treering bench bisect finds the first bad one.")]
pub struct History {
    /// The program
    #[arg(value_name = "NAME")]
    program: String,
    /// The metric: instructions, time, wall, memory or the name of a result [default: instructions, or else time]
    #[arg(short, value_name = "METRIC")]
    y: Option<String>,
    /// Only runs with this value of a parameter
    #[arg(short, long = "parameter", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
    /// Smaller steps are not marked
    #[arg(long, value_name = "PERCENT", value_parser = percent_of)]
    floor: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Draw it as an SVG picture as well, as PNG where the file is called .png
    #[arg(short, long, value_name = "FILE.svg")]
    output: Option<PathBuf>,
    /// Replace FILE.svg even if it is not a plot
    #[arg(long, requires = "output")]
    force: bool,
    #[command(flatten)]
    place: Place,
}

/// Smaller steps are not marked.
const FLOOR: f64 = 0.02;

/// Of fewer values, each division is as good as that of more than one in twenty shuffled series.
const FEWEST: usize = 8;

/// A commit and what was measured.
struct Measured {
    run: Manifest,
    value: f64,
}

/// A step from one commit to the next that was measured.
struct Found {
    /// The first commit after it.
    at: usize,
    change: f64,
    /// The functions that changed most.
    by: Option<String>,
    /// How many commits lie between the two, as the repository of the current folder has it.
    between: Option<u64>,
}

impl History {
    /// Does it.
    pub fn run(self) -> Outcome {
        if let Some(output) = &self.output {
            check_plot_target(output, &[], self.force)?;
        }
        let mut archive = self.place.open_existing()?;
        let mut found = self.found(&mut archive)?;
        let mut runs = latest(&archive, &found)?;
        let wanted = self.y.as_deref().unwrap_or_else(|| {
            let counted = runs.iter().any(|run| run.samples.contains_key(metric::INSTRUCTIONS));
            if counted { metric::INSTRUCTIONS } else { "time" }
        });
        let name = metric_of(wanted, &runs.iter().collect::<Vec<_>>());
        if is_time(name) && leave_out_other_machines(&mut found, name) {
            runs = latest(&archive, &found)?;
        }
        note_order(&runs);
        let all = runs.len();
        let commits = measured(runs, name);
        if commits.is_empty() {
            return Err(Failure::new(format_args!("none of the {all} runs has {name}")));
        }
        let found = self.steps(&archive, &commits, name);
        match self.json {
            true => terminal::print(&format!("{:#}\n", self.document(&commits, &found, name)))?,
            false => print(&self.text(&commits, &found, name, all))?,
        }
        if let Some(output) = &self.output {
            let svg = history_svg(&self.plot(&commits, &found, name));
            write_plot(output, &svg)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn floor(&self) -> f64 {
        self.floor.map_or(FLOOR, |floor| floor / 100.0)
    }

    /// The runs that were asked for, the latest first.
    fn found(&self, archive: &mut Archive) -> Result<Vec<Summary>, Failure> {
        let mut only = Vec::new();
        for text in &self.parameters {
            let pair = text.split_once('=');
            only.push(
                pair.ok_or_else(|| Failure::new(format_args!("{text}: it is not of the form NAME=VALUE")))?,
            );
        }
        let mut found = archive.summaries(None).map_err(failure)?;
        found.retain(|run| run.is_called(&self.program));
        if found.is_empty() {
            let message = format!("no run of {} is kept", self.program);
            return Err(Failure::new(message).hint("treering bench list --all names the programs"));
        }
        found.retain(|run| {
            only.iter().all(|(name, value)| run.parameters.get(*name).is_some_and(|of| of == value))
        });
        let Some(first) = found.first() else {
            return Err(Failure::new(format_args!("no run of {} has these values", self.program)));
        };
        if let Some(other) =
            found.iter().find(|run| run.parameters != first.parameters || run.program != first.program)
        {
            return Err(several(first, other));
        }
        Ok(found)
    }

    fn steps(&self, archive: &Archive, commits: &[Measured], name: &str) -> Vec<Found> {
        let values: Vec<f64> = commits.iter().map(|commit| commit.value).collect();
        let changes = if name == metric::INSTRUCTIONS { one_by_one(&values) } else { by_level(&values) };
        // Programs that do other work each time count differently without a change.
        let is_certain = |at: usize| {
            let judged = judge(name, &commits[at - 1].run, &commits[at].run, self.floor());
            name != metric::INSTRUCTIONS || judged.is_some_and(|of| of.outcome != Judgement::Undecided)
        };
        let marked =
            changes.into_iter().filter(|&(at, change)| change.abs() >= self.floor() && is_certain(at));
        let found = marked.map(|(at, change)| {
            let (before, after) = (&commits[at - 1].run, &commits[at].run);
            let by = difference(archive, before, after);
            let by = by.map(|difference| functions(&difference)).filter(|by| !by.is_empty());
            Found { at, change, by, between: commits_between(before, after) }
        });
        found.collect()
    }

    fn text(&self, commits: &[Measured], found: &[Found], name: &str, all: usize) -> String {
        let mut rows = vec![["commit", "date", title(name), "change", "by"].map(str::to_owned).to_vec()];
        let last = commits.len() - 1;
        let shown =
            |at: usize| at == 0 || at == last || found.iter().any(|step| step.at == at || step.at == at + 1);
        for (at, commit) in commits.iter().enumerate().filter(|(at, _)| shown(*at)) {
            let step = found.iter().find(|step| step.at == at);
            let change = step.map(|step| {
                format!("{} {}", if step.change > 0.0 { '▲' } else { '▼' }, percent(step.change))
            });
            rows.push(vec![
                commit.name(),
                commit.date(),
                amount(commit.value, commit.run.samples[name].unit),
                change.unwrap_or_default(),
                step.and_then(|step| step.by.clone()).unwrap_or_default(),
            ]);
            if let Some(between) = step.and_then(|step| step.between).filter(|&between| between > 0) {
                let text = format!("{} between: treering bench bisect", plural(between, "commit"));
                rows.push([String::new(), String::new(), String::new(), String::new(), text].to_vec());
            }
        }
        let sides = [Side::Left, Side::Left, Side::Right, Side::Right, Side::Left];
        let steps = if found.len() == 1 { "1 step".to_owned() } else { format!("{} steps", found.len()) };
        let floor = treering_plot::Unit::Change.text(self.floor());
        let blind = self.blind(commits, found, name).map_or_else(String::new, |note| format!("{note}\n"));
        format!(
            "{}{} of {all} versions measured; {steps} from {}\n{blind}",
            table(&sides, &rows),
            commits.len(),
            floor.trim_start_matches('+')
        )
    }

    /// Changes that cannot be told from chance yet, as it takes several versions to know how much these differ without
    /// one; nothing where there seem to be none.
    fn blind(&self, commits: &[Measured], found: &[Found], name: &str) -> Option<String> {
        if name == metric::INSTRUCTIONS {
            return None;
        }
        let start = found.last().map_or(0, |step| step.at);
        let values: Vec<f64> = commits[start..].iter().map(|of| of.value).collect();
        let seen = values.windows(2).any(|pair| (pair[1] - pair[0]).abs() >= self.floor() * pair[0].abs());
        if commits.len() < FEWEST && seen && commits.len() > 1 {
            return Some(format!(
                "fewer than {FEWEST} versions show no steps: treering bench compare judges two"
            ));
        }
        let (last, before) = values.split_last()?;
        let level = median(before)?;
        let is_outside = before.iter().all(|value| last > value) || before.iter().all(|value| last < value);
        let change = (last - level) / level.abs();
        (is_outside && level != 0.0 && change.abs() >= self.floor()).then(|| {
            format!(
                "the last version differs by {}: the next one tells whether that is a step",
                percent(change)
            )
        })
    }

    fn document(&self, commits: &[Measured], found: &[Found], name: &str) -> Value {
        let commit = |commit: &Measured| {
            let version = &commit.run.version;
            json!({ "version": version.name, "commit": version.commit, "dirty": version.dirty,
                    "committed": version.committed, "value": commit.value })
        };
        let step = |step: &Found| {
            json!({ "from": commits[step.at - 1].run.version.commit, "to": commits[step.at].run.version.commit,
                    "index": step.at, "change": step.change, "by": step.by, "commits_between": step.between })
        };
        json!({
            "view": "history", "program": self.program, "metric": name, "floor": self.floor(),
            "commits": commits.iter().map(commit).collect::<Vec<_>>(),
            "steps": found.iter().map(step).collect::<Vec<_>>(), "note": self.blind(commits, found, name),
        })
    }

    fn plot(&self, commits: &[Measured], found: &[Found], name: &str) -> HistoryPlot {
        let largest = found.iter().max_by(|a, b| a.change.abs().total_cmp(&b.change.abs()));
        let title_of = largest.map_or_else(
            || {
                format!(
                    "no step of {} or more",
                    treering_plot::Unit::Change.text(self.floor()).trim_start_matches('+')
                )
            },
            |step| {
                let by = step.by.as_ref().map_or_else(String::new, |by| format!(", {by}"));
                format!("{} at {}{by}", percent(step.change), commits[step.at].name())
            },
        );
        let ends = found.iter().map(|step| step.at).chain([commits.len()]);
        let starts = std::iter::once(0).chain(found.iter().map(|step| step.at));
        let level = |(from, to): (usize, usize)| {
            let values: Vec<f64> = commits[from..to].iter().map(|commit| commit.value).collect();
            Some(Level { from, to: to - 1, value: median(&values)? })
        };
        HistoryPlot {
            title: format!("{} versions of {}: {title_of}", commits.len(), self.program),
            subtitle: format!(
                "{} · marked from {}",
                title(name),
                percent(self.floor()).trim_start_matches('+')
            ),
            unit: match commits[0].run.samples[name].unit {
                treering_archive::Unit::Ns => treering_plot::Unit::Nanoseconds,
                treering_archive::Unit::Bytes => treering_plot::Unit::Bytes,
                treering_archive::Unit::Count => treering_plot::Unit::Count,
            },
            commits: commits.iter().map(|of| Commit { label: of.label(), value: Some(of.value) }).collect(),
            levels: starts.zip(ends).filter_map(level).collect(),
            steps: found
                .iter()
                .map(|step| {
                    let commit = &commits[step.at];
                    let lines = [Some(format!("{}, {}", commit.name(), commit.date())), step.by.clone()];
                    Step { at: step.at, change: step.change, lines: lines.into_iter().flatten().collect() }
                })
                .collect(),
        }
    }
}

/// The latest run of each version, in the order of commits.
fn latest(archive: &Archive, found: &[Summary]) -> Result<Vec<Manifest>, Failure> {
    let mut seen = std::collections::BTreeSet::new();
    let is_latest = |run: &&Summary| seen.insert((run.commit.clone(), run.version.clone(), run.dirty));
    let read = |run: &Summary| archive.read(&run.run).map_err(failure);
    let mut runs = found.iter().filter(is_latest).map(read).collect::<Result<Vec<_>, Failure>>()?;
    runs.sort_by_key(|run| (run.version.committed.unwrap_or(run.started), run.started));
    if let Some(order) = order_of_commits(&runs) {
        let place =
            |run: &Manifest| run.version.commit.as_ref().and_then(|commit| order.get(commit)).copied();
        runs.sort_by_key(place);
    }
    Ok(runs)
}

/// The commit of a run. Others may write into an archive: what is no number is not passed to git, which could take it for
/// an option.
fn commit_of(run: &Manifest) -> Option<&str> {
    let is_number = |commit: &&str| commit.bytes().all(|letter| letter.is_ascii_hexdigit());
    run.version.commit.as_deref().filter(is_number)
}

/// Says that nothing tells the order of some commits.
fn note_order(runs: &[Manifest]) {
    let are_of_one_second = |one: &Version, other: &Version| {
        one.commit != other.commit && one.committed.is_some() && one.committed == other.committed
    };
    let mut pairs = runs.windows(2);
    if pairs.any(|pair| are_of_one_second(&pair[0].version, &pair[1].version))
        && order_of_commits(runs).is_none()
    {
        tell!(
            "note: commits of one second are in the order in which they were measured, as the current folder's repository \
             does not know them"
        );
    }
}

/// By commit, its place among those behind the last one that all of them have in common, parents before children; nothing
/// where the current folder's repository does not know all of them. Times of commits have whole seconds, in each of which
/// `git rebase` makes several commits, and are of the clocks of several machines.
fn order_of_commits(runs: &[Manifest]) -> Option<BTreeMap<String, usize>> {
    let commits = runs.iter().map(commit_of).collect::<Option<Vec<&str>>>()?;
    let of = |words: &[&str]| git(Path::new("."), &[words, &commits].concat());
    let common = of(&["merge-base", "--octopus"])?;
    let behind = of(&["rev-list", "--topo-order", "--reverse", &format!("^{common}")])?;
    Some(behind.lines().enumerate().map(|(place, commit)| (commit.to_owned(), place)).collect())
}

/// Leaves out runs of other machines than that of the latest run that has this metric, and says so. Returns whether there
/// were any.
fn leave_out_other_machines(found: &mut Vec<Summary>, name: &str) -> bool {
    let Some(latest) = found.iter().find(|run| run.metrics.contains_key(name)) else { return false };
    let (machine, host) = (latest.machine.clone(), latest.host.clone());
    let all = found.len();
    found.retain(|run| run.machine == machine);
    let left_out = (all - found.len()) as u64;
    if left_out > 0 {
        let host = if host.is_empty() { String::new() } else { format!(" ({host})") };
        tell!(
            "note: {} of other machines than that of the latest{host} left out: times of two machines are not comparable",
            plural(left_out, "run")
        );
    }
    left_out > 0
}

impl Measured {
    /// The commit, shortened, or the version's name.
    fn name(&self) -> String {
        let version = &self.run.version;
        let mark = if version.dirty == Some(true) { "*" } else { "" };
        match &version.commit {
            Some(commit) => format!("{}{mark}", commit.chars().take(8).collect::<String>()),
            None => self.run.version_text(),
        }
    }

    fn date(&self) -> String {
        self.run.version.committed.unwrap_or(self.run.started).second()[..10].to_owned()
    }

    /// The date, or the version's name where the program is in no repository.
    fn label(&self) -> String {
        if self.run.version.committed.is_some() { self.date() } else { self.name() }
    }
}

fn measured(runs: Vec<Manifest>, name: &str) -> Vec<Measured> {
    let of = |run: Manifest| {
        let value = median(&run.samples.get(name)?.values)?;
        Some(Measured { run, value })
    };
    runs.into_iter().filter_map(of).collect()
}

/// How many commits lie between those of two runs; nothing where a run is of no commit, or git here does not know them.
fn commits_between(before: &Manifest, after: &Manifest) -> Option<u64> {
    let commit =
        |run: &'_ Manifest| commit_of(run).filter(|_| run.version.dirty == Some(false)).map(str::to_owned);
    let range = format!("{}..{}", commit(before)?, commit(after)?);
    let count: u64 = git(Path::new("."), &["rev-list", "--count", &range])?.parse().ok()?;
    count.checked_sub(1)
}

/// Runs of different programs or parameters are no history.
fn several(first: &Summary, other: &Summary) -> Failure {
    if first.program != other.program {
        let message = format!("there are runs of {} and of {}", first.program, other.program);
        return Failure::new(message).hint("write more of the name");
    }
    let mut names = first.parameters.keys().chain(other.parameters.keys());
    let differs = |name: &&String| first.parameters.get(*name) != other.parameters.get(*name);
    let name = names.find(differs).map_or("", String::as_str);
    Failure::new(format_args!("there are runs with several values of {name}"))
        .hint(format_args!("choose one: -p {name}=VALUE"))
}

/// Counts are exact: every change from one commit to the next is one.
fn one_by_one(values: &[f64]) -> Vec<(usize, f64)> {
    let pairs = values.windows(2).enumerate().filter(|(_, pair)| pair[0] > 0.0);
    pairs.map(|(at, pair)| (at + 1, pair[1] / pair[0] - 1.0)).collect()
}

/// Changes of the median from one level to the next.
fn by_level(values: &[f64]) -> Vec<(usize, f64)> {
    let starts = change_points(values);
    let bounds: Vec<usize> = [0].into_iter().chain(starts).chain([values.len()]).collect();
    let level = |at: usize| median(&values[bounds[at]..bounds[at + 1]]).unwrap_or(0.0);
    let steps = (1..bounds.len() - 1).filter(|&at| level(at - 1) > 0.0);
    steps.map(|at| (bounds[at], level(at) / level(at - 1) - 1.0)).collect()
}

/// The difference of two runs that were profiled in the same way; nothing if they cannot be read or compared.
fn difference(archive: &Archive, base: &Manifest, head: &Manifest) -> Option<Difference> {
    let mut pairs = base.profiles.iter().filter_map(|of_base| {
        let of_head = head.profiles.iter().find(|other| other.made_by == of_base.made_by)?;
        Some((of_base, of_head))
    });
    let (of_base, of_head) = pairs.next()?;
    let read = |file| -> Option<Profile> { Some(trg::read(&archive.profile(file).ok()?).ok()?.0) };
    compare(&read(of_base)?, &read(of_head)?, &Options::default()).ok()
}

/// The functions that changed most in the direction of the run: `lua_seti +14.2, finishset +13.1`, in millions.
fn functions(difference: &Difference) -> String {
    const MOST: usize = 2;
    let direction = difference.run.change().signum();
    let mut changed: Vec<_> =
        difference.functions.iter().filter(|row| row.self_cost.change() * direction > 0).collect();
    changed.sort_by_key(|row| std::cmp::Reverse(row.self_cost.change().unsigned_abs()));
    let part = |row: &&treering_compare::FunctionChange| {
        let change = row.self_cost.change();
        let sign = if change < 0 { '−' } else { '+' };
        format!("{} {sign}{}", row.name, treering_plot::Unit::Count.text(change.unsigned_abs() as f64))
    };
    changed.iter().take(MOST).map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_change_commit_by_commit_and_times_level_by_level() {
        let steps = one_by_one(&[100.0, 100.0, 105.0, 104.0]);
        assert_eq!(steps.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 2, 3]);
        assert!((steps[1].1 - 0.05).abs() < 1e-12);
        let noise = |at: usize| (at * 7919 % 13) as f64 / 10.0;
        let times: Vec<f64> = (0..30).map(|at| if at < 17 { 100.0 } else { 110.0 } + noise(at)).collect();
        let levels = by_level(&times);
        assert_eq!(levels.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [17]);
        assert!((levels[0].1 - 0.1).abs() < 0.01, "{levels:?}");
    }
}
