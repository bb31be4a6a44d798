//! The facts of a run to know before its numbers.

use std::collections::{BTreeMap, HashSet};

use treering_analysis::{Basis, samples_metric};
use treering_profile::{Losses, MetricId, Profile};

use crate::measuring::{benchmark_lines, lost_events, metric_lines, unwound};
use crate::number::{duration, grouped, percent, plural};
use crate::owners::other_metrics;
use crate::printable::printable;

/// Fewer samples than this are too few to say anything.
const TOO_FEW: u64 = 20;

/// The facts of a run to know before its numbers.
pub(crate) struct Facts<'a> {
    profile: &'a Profile,
    metric: MetricId,
    run_cost: u64,
    /// How much of the run a function may be that is not listed, where samples weigh differently.
    unlisted: Option<f64>,
    /// How many samples the metric was estimated from, if it was.
    pub(crate) samples: Option<u64>,
}

/// Functions that may cost more than this share without being listed are mentioned.
const WORTH_SAYING: f64 = 0.05;

impl<'a> Facts<'a> {
    pub(crate) fn of(profile: &'a Profile, basis: &Basis) -> Self {
        let samples = samples_metric(profile, basis.metric).map(|_| basis.run.samples);
        let unlisted = basis.weights.is_some().then(|| basis.unlisted()).flatten();
        Self { profile, metric: basis.metric, run_cost: basis.run.cost, unlisted, samples }
    }

    /// The command, and how many runs of it there are if there are several; different ones in the order of runs.
    pub(crate) fn command(&self) -> Option<String> {
        let mut commands: Vec<String> =
            self.profile.runs.iter().map(|run| command_line(&run.command)).collect();
        let runs = commands.len() as u64;
        let mut seen = HashSet::new();
        commands.retain(|command| seen.insert(command.clone()));
        let named = commands.join(" | ");
        match (named.is_empty(), runs) {
            (true, _) => None,
            (false, 1) => Some(named),
            (false, _) => Some(format!("{named} ({})", plural(runs, "run"))),
        }
    }

    /// Wall-clock time of all runs in nanoseconds; 0 when unknown.
    pub(crate) fn wall_ns(&self) -> u64 {
        self.profile.runs.iter().map(|run| run.duration_ns).sum()
    }

    /// Processor time of all runs in nanoseconds, where it is known of every run.
    pub(crate) fn cpu_ns(&self) -> Option<u64> {
        let known: Option<Vec<u64>> = self.profile.runs.iter().map(|run| run.cpu_ns).collect();
        known.filter(|known| !known.is_empty()).map(|known| known.iter().sum())
    }

    /// `5.020 s by the wall clock, 4.990 s of CPU time (99.4 %)`.
    pub(crate) fn time(&self) -> Option<String> {
        let wall = Some(self.wall_ns()).filter(|&wall| wall > 0);
        match (wall, self.cpu_ns()) {
            (Some(wall), Some(cpu)) => {
                let share = percent(cpu as f64 / wall as f64);
                let (wall, cpu) = (duration(wall as f64), duration(cpu as f64));
                Some(format!("{wall} by the wall clock, {cpu} of CPU time ({share} %)"))
            }
            (Some(wall), None) => Some(format!("{} by the wall clock", duration(wall as f64))),
            (None, Some(cpu)) => Some(format!("{} of CPU time", duration(cpu as f64))),
            (None, None) => None,
        }
    }

    /// Samples per second of processor time, where both are known.
    pub(crate) fn on_cpu_rate(&self) -> Option<f64> {
        let cpu = self.cpu_ns().filter(|&cpu| cpu > 0)?;
        Some(self.samples? as f64 * 1e9 / cpu as f64)
    }

    /// `4,981 samples of cpu-clock, one per 1.000 ms at random intervals; 998 per second of CPU time`.
    pub(crate) fn sampling(&self) -> Option<String> {
        let samples = self.samples?;
        let metric = &self.profile.metrics[self.metric.index()];
        let mut text = format!("{} of {}", plural(samples, "sample"), metric.name);
        if let Some(sampling) = &metric.sampling {
            if let Some(period) = sampling.period {
                text += &format!(", one per {}", crate::number::whole_cost(metric.unit, period));
            }
            text += &self.mean_weight(sampling.period).map_or(String::new(), |weight| {
                format!(" (worth {} on average)", crate::number::cost(metric.unit, weight))
            });
            text += match sampling.jittered {
                Some(true) => " at random intervals",
                Some(false) => " at fixed intervals",
                None => "",
            };
        }
        if let Some(rate) = self.on_cpu_rate() {
            text += &format!("; {} per second of CPU time", grouped(rate.round() as u64));
        }
        Some(text)
    }

    /// The average worth of a sample, where that is not the period it was taken at.
    fn mean_weight(&self, period: Option<u64>) -> Option<f64> {
        let mean = self.run_cost as f64 / self.samples.filter(|&samples| samples > 0)? as f64;
        let differs = |period: u64| (mean - period as f64).abs() > 0.01 * period as f64;
        period.is_none_or(differs).then_some(mean)
    }

    /// Lost, truncated and unresolved samples; says so when there are none.
    pub(crate) fn losses(&self) -> Option<String> {
        self.lost_samples()
            .into_iter()
            .chain(self.unsampled())
            .chain(lost_events(&self.profile.metadata.losses))
            .reduce(|a, b| format!("{a}, {b}"))
    }

    fn lost_samples(&self) -> Option<String> {
        let losses = self.profile.metadata.losses;
        let is_told = match self.samples {
            Some(samples) => samples > 0 || losses.any(),
            // Events of which each is taken, as page faults, get lost as well. Calls that are counted do not.
            None => {
                let any = losses.lost_samples + losses.truncated_stacks + losses.unresolved_samples > 0;
                any && !self.profile.tree.has_calls()
            }
        };
        if !is_told {
            return None;
        }
        let Losses { samples, lost_samples, truncated_stacks, unresolved_samples, throttled, .. } = losses;
        let taken = samples + lost_samples;
        let of = |count: u64, noun: &str, what: &str, whole: u64| {
            let counted = format!("{} {what}", plural(count, noun));
            // Of a number that is not known there is no share.
            let told = match whole {
                0 => counted,
                _ => format!("{counted} ({} %)", percent(count as f64 / whole as f64)),
            };
            (count > 0).then_some(told)
        };
        // Where waits have stacks, some of these are theirs, and only samples are counted.
        let has_waits = self.profile.find_metric("off-cpu").is_some();
        let among = |samples: u64| if has_waits { 0 } else { samples };
        let parts = [
            of(lost_samples, "sample", "lost", among(taken)),
            of(truncated_stacks, "stack", "cut short", among(samples)),
            of(unresolved_samples, "sample", "unresolved", samples),
            (throttled > 0).then(|| format!("throttled {}", plural(throttled, "time"))),
        ];
        let told: Vec<String> = parts.into_iter().flatten().collect();
        let nothing = match known_losses(self.profile) {
            None => "unknown: the file does not say which samples were lost and which stacks were cut short",
            Some(_) => "no sample lost, no stack cut short, none unresolved",
        };
        let nothing = nothing.to_owned();
        Some(if told.is_empty() { nothing } else { told.join(", ") })
    }

    /// The cost of threads in which no sample was taken, and time in which none could be.
    fn unsampled(&self) -> Option<String> {
        let losses = &self.profile.metadata.losses;
        let unit = self.profile.metrics.first()?.unit;
        let amount = |value: u64| crate::number::whole_cost(unit, value);
        let mut parts = Vec::new();
        if losses.unsampled_threads > 0 {
            let mut text = format!(
                "{} in {} without a sample",
                amount(losses.unsampled_cost),
                plural(losses.unsampled_threads, "thread")
            );
            if losses.unsampled_groups_cost == losses.unsampled_cost {
                text += ", nor one of a similar thread ([not sampled])";
            } else if losses.unsampled_groups_cost > 0 {
                let alone = amount(losses.unsampled_groups_cost);
                text += &format!(", {alone} of it without one of a similar thread ([not sampled])");
            }
            parts.push(text);
        }
        if losses.unknown_threads > 0 {
            let threads = plural(losses.unknown_threads, "thread");
            parts.push(format!("the cost of {threads} unknown"));
        }
        // Less is nothing to tell: all programs begin and end.
        let is_worth_it = losses.unseen_cpu_ns > self.cpu_ns().unwrap_or(0) / 200;
        if is_worth_it {
            let time = duration(losses.unseen_cpu_ns as f64);
            parts.push(format!("{time} of CPU time outside of threads' own, where they begin and end"));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Reasons to doubt the numbers, most important first: what is missing, then what is uncertain as a whole, then
    /// the notes of the profile.
    pub(crate) fn notes(&self) -> Vec<String> {
        let metadata = &self.profile.metadata;
        let mut notes = Vec::new();
        if metadata.unfinished {
            notes.push("the recording did not end properly; its last part may be missing".to_owned());
        }
        notes.extend(self.uncounted());
        notes.extend(self.too_few());
        notes.extend(self.unlisted.filter(|&share| share > WORTH_SAYING).map(|share| {
            let share = percent(share);
            format!("a function without a sample may cost up to {share} %: some threads were too short to be seen as a whole")
        }));
        if metadata.losses.open_activations > 0 {
            let open = plural(metadata.losses.open_activations, "activation");
            notes.push(format!("{open} had not ended, counted up to the end of the recording"));
        }
        notes.extend(metadata.notes.iter().map(|note| printable(&note.0).into_owned()));
        notes.extend(unwound(&metadata.losses));
        notes
    }

    /// Uncounted code, once for all processes with the same reason.
    pub(crate) fn uncounted(&self) -> Vec<String> {
        let profile = self.profile;
        let mut processes: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for row in &profile.code.uncounted {
            let detail = printable(&profile.strings[row.detail]);
            let pid = row.process.map(|process| profile.processes[process.index()].pid);
            processes.entry(format!("{}: {detail}", row.reason.as_str())).or_default().extend(pid);
        }
        let told = processes.into_iter().map(|(what, pids)| match &pids[..] {
            [] => format!("not counted exactly: {what}"),
            [pid] => format!("not counted exactly: process {pid}: {what}"),
            pids => format!("not counted exactly: {} processes: {what}", pids.len()),
        });
        told.collect()
    }

    /// The remark that there are too few samples, if there are.
    pub(crate) fn too_few(&self) -> Option<String> {
        let samples = self.samples.filter(|&samples| samples < TOO_FEW)?;
        Some(format!("{}: too few to say", plural(samples, "sample")))
    }
}

/// The losses; nothing if the profile came from another tool's file, which does not tell: unknown is not 0.
pub(crate) fn known_losses(profile: &Profile) -> Option<&Losses> {
    let losses = &profile.metadata.losses;
    (!losses.unknown || losses.any()).then_some(losses)
}

/// A command in one line of a listing: arguments with blanks in quotes, what would break the
/// line escaped, and the end of a long one left out.
fn command_line(arguments: &[String]) -> String {
    const LONGEST: usize = 100;
    let quoted = arguments.iter().map(|argument| {
        let plain = !argument.is_empty()
            && !argument.contains(char::is_whitespace)
            && printable(argument) == argument.as_str();
        if plain { argument.clone() } else { format!("'{}'", argument.escape_debug()) }
    });
    let line = quoted.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// How the profile's numbers came about, as lines of a label and a text.
pub fn lines(profile: &Profile, basis: &Basis) -> Vec<(&'static str, String)> {
    let facts = Facts::of(profile, basis);
    let mut lines = Vec::new();
    lines.extend(facts.command().map(|text| ("command", text)));
    lines.extend(benchmark_lines(&profile.metadata));
    lines.extend(facts.time().map(|text| ("run", text)));
    match facts.sampling() {
        Some(text) => lines.push(("samples", text)),
        None => lines.extend(metric_lines(profile, basis)),
    }
    lines.extend(facts.losses().map(|text| ("losses", text)));
    lines.extend(other_metrics(profile, basis.metric).map(|text| ("also", text)));
    let shown = profile.run_cost(basis.metric);
    if shown < basis.run.cost {
        let share = percent(basis.share(shown));
        lines.push(("selected", format!("{share} % of the run; percentages are of the whole run")));
    }
    lines.extend(facts.notes().into_iter().map(|text| ("note", text)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_are_worth_more_than_their_period_say_so() {
        let mut profile = treering_testing::stacks("main 10");
        let told = |profile: &Profile| {
            let basis = Basis::of(profile, MetricId::new(0));
            Facts::of(profile, &basis).sampling().expect("it is sampled")
        };
        assert_eq!(told(&profile), "10 samples of cpu-clock, one per 1.000 ms");
        let root = profile.threads[0].root;
        profile.tree.add_self_cost(MetricId::new(0), root, 2_500_000);
        assert_eq!(told(&profile), "10 samples of cpu-clock, one per 1.000 ms (worth 1.250 ms on average)");
    }

    #[test]
    fn unknown_losses_are_not_said_to_be_none() {
        let mut profile = treering_testing::stacks("main 10");
        let told = |profile: &Profile| {
            let basis = Basis::of(profile, MetricId::new(0));
            Facts::of(profile, &basis).losses().expect("it is sampled")
        };
        assert!(told(&profile).starts_with("no sample lost"));
        profile.metadata.losses.unknown = true;
        assert!(told(&profile).starts_with("unknown"));
        assert!(known_losses(&profile).is_none());
        profile.metadata.losses.lost_samples = 1;
        assert!(told(&profile).starts_with("1 sample lost"));
        assert!(known_losses(&profile).is_some());
    }

    /// A recording with `--off-cpu` told of "8 stacks cut short (266.7 %)".
    #[test]
    fn stacks_of_waits_are_no_share_of_samples() {
        let mut profile = treering_testing::stacks("main 10");
        let told = |profile: &Profile| {
            let basis = Basis::of(profile, MetricId::new(0));
            Facts::of(profile, &basis).losses().expect("it is sampled")
        };
        profile.metadata.losses.samples = 10;
        profile.metadata.losses.truncated_stacks = 8;
        assert_eq!(told(&profile), "8 stacks cut short (80.0 %)");
        profile.add_metric(treering_profile::Metric::exact("off-cpu", treering_profile::Unit::Nanoseconds));
        assert_eq!(told(&profile), "8 stacks cut short");
    }

    /// Half of the page faults of a program were missing, and no line said so.
    #[test]
    fn losses_of_events_that_are_all_taken_are_told() {
        let mut profile = treering_testing::stacks("main 10");
        profile.metrics[0].sampling = None;
        let told = |profile: &Profile| {
            let basis = Basis::of(profile, MetricId::new(0));
            Facts::of(profile, &basis).losses()
        };
        assert_eq!(told(&profile), None);
        profile.metadata.losses = Losses { samples: 10, lost_samples: 30, ..Losses::default() };
        assert_eq!(told(&profile).as_deref(), Some("30 samples lost (75.0 %)"));
    }

    /// Two samples were said to be 0.0 % of samples whose number was not known.
    #[test]
    fn of_an_unknown_number_of_samples_no_share_is_told() {
        let mut profile = treering_testing::stacks("main 10");
        profile.metadata.losses = Losses { unresolved_samples: 2, ..Losses::default() };
        let told = |profile: &Profile| {
            let basis = Basis::of(profile, MetricId::new(0));
            Facts::of(profile, &basis).losses().expect("it is sampled")
        };
        assert_eq!(told(&profile), "2 samples unresolved");
        profile.metadata.losses.samples = 10;
        assert_eq!(told(&profile), "2 samples unresolved (20.0 %)");
    }

    /// A remark on exceptions stood before the note that a part is missing.
    #[test]
    fn the_most_important_note_is_first() {
        let mut profile = treering_testing::stacks("main 10");
        profile.metadata.note("names are missing");
        profile.metadata.losses.unwound_activations = 3;
        profile.metadata.unfinished = true;
        let basis = Basis::of(&profile, MetricId::new(0));
        let notes = Facts::of(&profile, &basis).notes();
        let starts =
            ["the recording did not end", "10 samples: too few", "names are missing", "3 activations left"];
        assert!(notes.iter().zip(starts).all(|(note, start)| note.starts_with(start)), "{notes:?}");
        assert_eq!(notes.len(), starts.len());
    }

    #[test]
    fn a_command_is_one_short_line() {
        let line =
            |arguments: &[&str]| command_line(&arguments.iter().map(|&a| a.to_owned()).collect::<Vec<_>>());
        assert_eq!(line(&["./demo", "a b", ""]), "./demo 'a b' ''");
        assert_eq!(line(&["python3", "-c", "x\ny"]), "python3 -c 'x\\ny'");
        let long = "x".repeat(200);
        assert_eq!(line(&[&long]).chars().count(), 101);
    }
}
