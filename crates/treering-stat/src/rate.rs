//! Rates: a count as a part of another one, or for a second of processor time.

use crate::row::State;
use crate::run::{Event, Stat, Unit};

/// A number that tells more than a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The number.
    pub value: f64,
    /// Its unit: `processors`, `/s`, `GHz`, `per cycle`, or `of` and the event that it is a part of.
    pub unit: String,
}

/// Events that are a part of another one.
const PARTS: &[(&str, &str)] = &[
    ("branch-misses", "branches"),
    ("branch-misses", "branch-instructions"),
    ("cache-misses", "cache-references"),
    ("stalled-cycles-frontend", "cycles"),
    ("stalled-cycles-backend", "cycles"),
    ("L1-dcache-load-misses", "L1-dcache-loads"),
    ("L1-dcache-store-misses", "L1-dcache-stores"),
    ("L1-icache-load-misses", "L1-icache-loads"),
    ("LLC-load-misses", "LLC-loads"),
    ("LLC-store-misses", "LLC-stores"),
    ("dTLB-load-misses", "dTLB-loads"),
    ("dTLB-store-misses", "dTLB-stores"),
    ("iTLB-load-misses", "iTLB-loads"),
];

/// The rate of an event with this mean.
pub(crate) fn of(event: &Event, mean: f64, stat: &Stat, states: &[State], elapsed_ns: f64) -> Option<Rate> {
    let (name, modifiers) = parted(&event.name);
    // Counted by the same hand and in the same modes, or a part of it could be more than the whole.
    let source = source_of(event, stat, states);
    let mean_of = |name: &str| {
        let at = stat.events.iter().position(|event| parted(&event.name) == (name, modifiers))?;
        let is_alike = source_of(&stat.events[at], stat, states) == source;
        states[at].mean().filter(|&mean| is_alike && mean > 0.0)
    };
    let busy_ns = ["task-clock", "cpu-clock"].iter().find_map(|clock| {
        let at = stat.events.iter().position(|event| event.name == *clock)?;
        states[at].mean().filter(|&mean| mean > 0.0)
    });
    let rate = |value: f64, unit: &str| Some(Rate { value, unit: unit.to_owned() });
    if event.unit == Unit::Nanoseconds {
        return if elapsed_ns > 0.0 { rate(mean / elapsed_ns, "processors") } else { None };
    }
    if let Some((whole, of)) = PARTS
        .iter()
        .filter(|(part, _)| *part == name)
        .find_map(|&(_, of)| mean_of(of).map(|whole| (whole, of)))
    {
        return rate(mean / whole, &format!("of {of}"));
    }
    if name == "instructions"
        && let Some(cycles) = mean_of("cycles").or_else(|| mean_of("cpu-cycles"))
    {
        return rate(mean / cycles, "per cycle");
    }
    match (busy_ns, elapsed_ns) {
        (Some(busy), _) if ["cycles", "cpu-cycles", "ref-cycles"].contains(&name) => rate(mean / busy, "GHz"),
        (Some(busy), _) => rate(mean / busy * 1e9, "/s"),
        (None, elapsed) if elapsed > 0.0 => rate(mean / elapsed * 1e9, "/s of wall time"),
        _ => None,
    }
}

fn source_of(event: &Event, stat: &Stat, states: &[State]) -> Option<crate::Source> {
    let at = stat.events.iter().position(|other| other.name == event.name)?;
    match states[at] {
        State::Counted { source, .. } => Some(source),
        State::Absent(_) => None,
    }
}

/// An event's name and its modifiers: `cycles:u` is `cycles` and `u`.
fn parted(name: &str) -> (&str, &str) {
    name.rsplit_once(':').filter(|(_, modifiers)| modifiers.len() <= 3).unwrap_or((name, ""))
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(whole) = self.unit.strip_prefix("of ") {
            return write!(f, "{} % of {whole}", significant(self.value * 100.0));
        }
        let (value, prefix) = match self.value {
            value if !self.unit.starts_with('/') => (value, ""),
            value if value >= 1e9 => (value / 1e9, "G"),
            value if value >= 1e6 => (value / 1e6, "M"),
            value if value >= 1e3 => (value / 1e3, "k"),
            value => (value, ""),
        };
        write!(f, "{} {prefix}{}", significant(value), self.unit)
    }
}

/// Three digits that matter: `0.998`, `2.40`, `123`.
pub(crate) fn significant(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.000_999_5 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Count, Run, Source};

    fn rates(counts: &[(&str, f64, Source)]) -> Vec<String> {
        let event = |name: &str| Event {
            name: name.to_owned(),
            unit: if name.ends_with("clock") { Unit::Nanoseconds } else { Unit::Count },
        };
        let count =
            |&(_, value, source): &(&str, f64, Source)| Count::Counted { value, running: 1.0, source };
        let run = Run { counts: counts.iter().map(count).collect(), elapsed_ns: 1e9, ..Run::default() };
        let stat = Stat {
            events: counts.iter().map(|(name, ..)| event(name)).collect(),
            runs: vec![run],
            ..Stat::default()
        };
        stat.rows().iter().map(|row| row.rate.as_ref().map_or(String::new(), ToString::to_string)).collect()
    }

    #[test]
    fn a_count_is_compared_with_what_it_is_a_part_of() {
        let counts = [
            ("task-clock", 0.5e9, Source::Kernel),
            ("cycles", 1.5e9, Source::Kernel),
            ("instructions", 3.0e9, Source::Kernel),
            ("branches", 0.5e9, Source::Kernel),
            ("branch-misses", 0.01e9, Source::Kernel),
        ];
        let expected = ["0.500 processors", "3.00 GHz", "2.00 per cycle", "1.00 G/s", "2.00 % of branches"];
        assert_eq!(rates(&counts), expected);
    }

    #[test]
    fn counts_of_different_modes_are_not_divided() {
        let counts = [("cycles", 1.5e9, Source::Kernel), ("instructions:u", 3.0e9, Source::Kernel)];
        assert_eq!(rates(&counts), ["1.50 G/s of wall time", "3.00 G/s of wall time"]);
        let counts = [("branches", 1.0, Source::KernelInUserMode), ("branch-misses", 1.0, Source::Kernel)];
        assert_eq!(rates(&counts)[1], "1.00 /s of wall time");
    }
}
