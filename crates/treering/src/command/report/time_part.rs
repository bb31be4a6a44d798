//! The part of a run that a view shows, as options choose it.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use treering_analysis::correct;
use treering_profile::{NoPart, Profile};

use crate::failure::Failure;

// The part of the run to show.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Parts of the run")]
pub struct TimePart {
    /// Keep only what happened from this time on: 2.1s, 300ms, 30%
    #[arg(long, value_name = "TIME")]
    pub from: Option<Moment>,
    /// Keep only what happened before this time
    #[arg(long, value_name = "TIME")]
    pub to: Option<Moment>,
    /// Keep only what happened from marks of this name on, such as the name of a program that a process began to run,
    /// up to the next mark
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    pub phase: Option<String>,
}

/// A time within a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// Nanoseconds since its start.
    After(u64),
    /// A share of it.
    Share(f64),
}

impl Moment {
    fn within(self, length_ns: u64) -> u64 {
        match self {
            Self::After(ns) => ns,
            Self::Share(share) => (length_ns as f64 * share).round() as u64,
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, f64); 7] =
            [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("min", 60e9), ("h", 3600e9), ("s", 1e9)];
        let number = |text: &str| match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
            Ok(_) => Err("not a time within a run".to_owned()),
            Err(_) => Err("not a time such as 2.1s, 300ms or 30%".to_owned()),
        };
        let text = text.trim();
        if let Some(percent) = text.strip_suffix('%') {
            return match number(percent)? {
                value if value <= 100.0 => Ok(Self::Share(value / 100.0)),
                _ => Err("more than 100 %".to_owned()),
            };
        }
        let unit = UNITS.into_iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)));
        let (value, ns) = unit.unwrap_or((text, 1e9));
        Ok(Self::After((number(value)? * ns).round() as u64))
    }
}

impl TimePart {
    /// Whether the whole run was asked for.
    pub fn is_everything(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.phase.is_none()
    }

    /// Refuses the options, for views of what has no times.
    pub fn check_whole_run(&self) -> Result<(), Failure> {
        let options =
            [("--from", self.from.is_some()), ("--to", self.to.is_some()), ("--phase", self.phase.is_some())];
        match options.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => Err(Failure::new(format_args!(
                "{option} chooses a part of the run, and counts of code and costs by address are known of the whole run \
                 only"
            ))),
        }
    }

    /// Leaves in the profile what happened in the part of the run.
    ///
    /// The cost of measuring the calls is taken out first, unless `raw` says otherwise: it is known of the whole run.
    pub fn cut(&self, profile: &mut Profile, raw: bool) -> Result<(), Failure> {
        if self.is_everything() {
            return Ok(());
        }
        if !raw {
            subtract_bias(
                profile,
                "the cost of measuring is subtracted from each function in proportion to its time in the part",
            );
        }
        let ranges = self.ranges(profile)?;
        let part = profile.part(&ranges).map_err(|error| explained(error, profile, &ranges))?;
        let length = profile.timeline.as_ref().map_or(0, |timeline| timeline.length_ns);
        *profile = part;
        let first = ranges
            .iter()
            .take(3)
            .map(|range| format!("{} to {}", time(range.start), time(range.end.min(length))));
        let more =
            if ranges.len() > 3 { format!(" and {} more parts", ranges.len() - 3) } else { String::new() };
        let parts = first.collect::<Vec<_>>().join(", ");
        profile.metadata.note(format!("shown: {parts}{more} of a run of {}", time(length)));
        Ok(())
    }

    /// Refuses a metric of which a part of the run is not known.
    pub fn check_metric(&self, profile: &Profile, name: Option<&str>) -> Result<(), Failure> {
        let named = name.and_then(|name| profile.find_metric(name));
        let Some(metric) = named.filter(|&metric| !self.is_everything() && !profile.has_time(metric)) else {
            return Ok(());
        };
        let name = &profile.metrics[metric.index()].name;
        let known: Vec<&str> = profile
            .cost_metrics()
            .filter(|&(metric, _)| profile.has_time(metric))
            .map(|(_, metric)| metric.name.as_str())
            .collect();
        let failure =
            Failure::new(format_args!("{name} is known of the whole run only, and not of a part of it"));
        Err(failure.hint(format_args!("of a part there are: {}", known.join(", "))))
    }

    /// As [`cut`](Self::cut), for a profile among several, or for a view that does not print all notes: they are printed here, with
    /// the file that they are of.
    pub fn cut_of(&self, profile: &mut Profile, file: &Path) -> Result<(), Failure> {
        let known = profile.metadata.notes.len();
        self.cut(profile, false).map_err(|failure| failure.of(file.display()))?;
        let notes = &profile.metadata.notes;
        notes[known..].iter().for_each(|note| tell!("note: {}: {}", file.display(), note.0));
        Ok(())
    }

    /// The first and the last time of the part.
    pub fn bounds(&self, profile: &Profile) -> Result<Range<u64>, Failure> {
        let ranges = self.ranges(profile)?;
        let end = ranges.iter().map(|range| range.end).max().unwrap_or_default();
        Ok(ranges.first().map_or(0, |range| range.start)..end)
    }

    fn ranges(&self, profile: &Profile) -> Result<Vec<Range<u64>>, Failure> {
        let Some(timeline) = &profile.timeline else { return Err(without_time()) };
        if let Some(name) = &self.phase {
            let ranges = profile.phase(name);
            return if ranges.is_empty() { Err(no_phase(profile, name)) } else { Ok(ranges) };
        }
        let length = timeline.length_ns;
        let from = self.from.map_or(0, |from| from.within(length));
        let to = self.to.map_or(length, |to| to.within(length));
        if from >= length {
            return Err(explained(NoPart::Outside { length_ns: length }, profile, &[]));
        }
        if from >= to {
            let (from, to) = (time(from), time(to));
            return Err(Failure::new(format_args!(
                "the part is empty: --from {from} is not before --to {to}"
            )));
        }
        Ok(std::iter::once(from..to).collect())
    }
}

/// Subtracts the cost of measuring, if it is known, for what is worked out of a function's costs over time. A note says so.
pub fn subtract_bias(profile: &mut Profile, note: &str) {
    let corrected = correct(profile);
    if corrected.removed > 0 {
        let mut without = corrected.profile.into_owned();
        without.metadata.call_bias = None;
        without.metadata.note(note.to_owned());
        *profile = without;
    }
}

fn without_time() -> Failure {
    Failure::new("the profile does not know when its costs arose").hint(
        "treering record, octave and prolog --ports keep it; files of perf, Firefox, Chrome and speedscope have it",
    )
}

fn no_phase(profile: &Profile, name: &str) -> Failure {
    let marks = profile.timeline.iter().flat_map(|timeline| &timeline.marks);
    let mut known: Vec<&str> = marks.map(|mark| &profile.strings[mark.name]).collect();
    known.sort_unstable();
    known.dedup();
    let failure = Failure::new(format_args!("the run has no mark called {name:?}"));
    match known.is_empty() {
        true => failure.hint("it has no marks at all; --from and --to choose a part by time"),
        false => failure.hint(format_args!("there are: {}", known.join(", "))),
    }
}

fn explained(error: NoPart, profile: &Profile, ranges: &[Range<u64>]) -> Failure {
    let around = ranges.first().map(|range| (time(range.start), time(range.end)));
    match error {
        NoPart::NoTime => without_time(),
        NoPart::Outside { length_ns } => {
            let failure =
                Failure::new(format_args!("the part is outside of the run, which took {}", time(length_ns)));
            with_nearest(failure, last_measured(profile, length_ns))
        }
        NoPart::TooShort { slot_ns } => {
            Failure::new(format_args!("the part is too short: times are known to {} only", time(slot_ns)))
        }
        NoPart::Empty { nearest } => {
            let (from, to) = around.unwrap_or_default();
            let failure = Failure::new(format_args!("nothing was measured from {from} to {to}"));
            with_nearest(failure, nearest)
        }
    }
}

fn with_nearest(failure: Failure, nearest: Option<(u64, u64)>) -> Failure {
    match nearest {
        Some((from, to)) => failure.hint(format_args!(
            "the nearest time with a sample: --from {} --to {}",
            time(from),
            time(to)
        )),
        None => failure,
    }
}

/// The last slot in which something was measured.
fn last_measured(profile: &Profile, length_ns: u64) -> Option<(u64, u64)> {
    let slot_ns = profile.timeline.as_ref()?.slot_ns;
    let start = length_ns.saturating_sub(1) / slot_ns * slot_ns;
    let last = start..length_ns;
    match profile.part(std::slice::from_ref(&last)) {
        Ok(_) => Some((last.start, last.end)),
        Err(NoPart::Empty { nearest }) => nearest,
        Err(_) => None,
    }
}

/// A time as the options take it.
fn time(ns: u64) -> String {
    match ns {
        ns if ns == 0 || ns >= 1_000_000 => {
            let text = format!("{:.3}", ns as f64 / 1e9);
            format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        ns => format!("{}us", ns as f64 / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_are_seconds_without() {
        for (text, expected) in [
            ("2.1s", Ok(Moment::After(2_100_000_000))),
            ("2.1", Ok(Moment::After(2_100_000_000))),
            ("300ms", Ok(Moment::After(300_000_000))),
            ("5 us", Ok(Moment::After(5_000))),
            ("7ns", Ok(Moment::After(7))),
            ("1.5min", Ok(Moment::After(90_000_000_000))),
            ("30%", Ok(Moment::Share(0.3))),
            ("130%", Err("more than 100 %".to_owned())),
            ("-1s", Err("not a time within a run".to_owned())),
            ("soon", Err("not a time such as 2.1s, 300ms or 30%".to_owned())),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
    }

    #[test]
    fn messages_state_times_as_options_take_them() {
        assert_eq!([0, 2_100_000_000, 3_000_000, 1_500].map(time), ["0s", "2.1s", "0.003s", "1.5us"]);
        assert_eq!("0.003s".parse(), Ok(Moment::After(3_000_000)));
    }
}
