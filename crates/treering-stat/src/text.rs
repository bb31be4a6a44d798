//! Tables for people, of eighty columns.

use std::fmt::Write as _;

use treering_report::{grouped, plural};

use crate::rate::significant;
use crate::row::{Row, State};
use crate::run::{Source, Stat, Unit};

/// Every table begins with it, so that it is known again.
pub(crate) const HEAD: &str = "treering stat: ";

/// The table of all runs.
pub fn text(stat: &Stat) -> String {
    let mut text = match stat.runs.len() {
        1 => format!("{HEAD}{}\n\n", stat.title),
        runs => format!("{HEAD}{} of {}\n\n", plural(runs as u64, "run"), stat.title),
    };
    stat.rows().iter().for_each(|row| text += &line(row));
    text += &metrics(stat);
    text.push('\n');
    text += &times(stat);
    text += &parts(stat);
    if !stat.notes.is_empty() {
        text.push('\n');
    }
    stat.notes.iter().for_each(|note| _ = writeln!(text, "note: {note}"));
    text
}

/// The head of a table of intervals.
pub fn interval_heading(title: &str) -> String {
    format!("{HEAD}{title}\n\n")
}

/// The lines of one interval, which is the only run of `stat`, up to a time of the whole run. Events without counts are
/// left out: the table of the whole run has them.
pub fn interval_text(stat: &Stat, until_ns: f64) -> String {
    let until = format!("{:.3} s", until_ns / 1e9);
    let rows = stat.rows().into_iter().filter(|row| row.state.mean().is_some());
    rows.map(|row| format!("{until:>12} {}", line(&row))).collect()
}

/// The metrics, with parts below what they are parts of.
fn metrics(stat: &Stat) -> String {
    let mut text = if stat.metrics.is_empty() { String::new() } else { "\n".to_owned() };
    for (at, metric) in stat.metrics.iter().enumerate() {
        let name = format!("{}{}", "  ".repeat(usize::from(metric.level.saturating_sub(1))), metric.name);
        text += &match stat.over_runs(|run| run.metrics.get(at).copied().flatten()) {
            Some((summary, margin)) => {
                let end = margin.map_or(String::new(), |margin| format!("± {} points", significant(margin)));
                line_of(&format!("{:.1} % ", summary.mean), &name, "of slots", &end)
            }
            None => line_of("-   ", &name, "not counted here", ""),
        };
    }
    text
}

/// The threads or processes with most of the first event that was counted.
fn parts(stat: &Stat) -> String {
    const MOST: usize = 20;
    let mut parts: Vec<_> = stat.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.counts.iter().flatten().next().copied()));
    let mut text = String::new();
    for part in parts.iter().take(MOST) {
        let place = part
            .tid
            .map_or(format!("process {}", part.pid), |tid| format!("thread {tid} of process {}", part.pid));
        text += &format!("\n{} ({place})\n", part.name);
        for (at, row) in stat.rows().iter().enumerate() {
            if let (Some(count), Some(mean)) = (part.counts[at], row.state.mean()) {
                let share = if mean > 0.0 {
                    format!("{} %", significant(count as f64 / mean * 100.0))
                } else {
                    String::new()
                };
                text += &line_of(&value(row.unit, count as f64), &row.name, &share, "");
            }
        }
    }
    if parts.len() > MOST {
        text += &format!("\n{} more: --json has all\n", parts.len() - MOST);
    }
    text
}

/// The time that passed, and what the kernel told when the program ended.
fn times(stat: &Stat) -> String {
    let mut text = String::new();
    let mut add =
        |name: &str, quantity: &dyn Fn(&crate::Run) -> Option<f64>, shown: &dyn Fn(f64) -> String| {
            if let Some((summary, margin)) = stat.over_runs(quantity) {
                text += &line_of(&shown(summary.mean), name, "", &margin_text(summary.mean, margin));
            }
        };
    let seconds = |ns: f64| format!("{:.6} s ", ns / 1e9);
    add("elapsed", &|run| Some(run.elapsed_ns), &seconds);
    add("user", &|run| run.resources.map(|of| of.user_ns), &seconds);
    add("system", &|run| run.resources.map(|of| of.system_ns), &seconds);
    add("peak memory", &|run| run.resources.and_then(|of| of.peak_bytes), &|bytes| {
        format!("{:.1} MiB", bytes / f64::from(1 << 20))
    });
    text
}

fn line(row: &Row) -> String {
    match &row.state {
        State::Absent(absence) => line_of("-   ", &row.name, absence.as_str(), ""),
        State::Counted { summary, margin, running, source, .. } => {
            let mut rate = row.rate.as_ref().map_or(String::new(), ToString::to_string);
            if *source == Source::Wait {
                rate += ", by wait4";
            }
            if *source == Source::KernelInUserMode && row.unit == Unit::Count {
                rate += ", user";
            }
            let mut end = margin_text(summary.mean, *margin);
            if *running < 1.0 {
                let _ = write!(end, "  counted {:.0} % of the time", (running * 100.0).clamp(1.0, 99.0));
            }
            line_of(&value(row.unit, summary.mean), &row.name, &rate, &end)
        }
    }
}

/// A value with two letters for its unit.
fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Nanoseconds => {
            let hundredths = (value / 1e4).round() as u64;
            format!("{}.{:02} ms", grouped(hundredths / 100), hundredths % 100)
        }
        // The mean of few occurrences.
        Unit::Count if value < 100.0 && value.fract() != 0.0 => format!("{value:.2}"),
        Unit::Count => format!("{}   ", grouped(value.round() as u64)),
    }
}

fn margin_text(mean: f64, margin: Option<f64>) -> String {
    match margin {
        Some(margin) if mean > 0.0 => format!("± {} %", significant(margin / mean * 100.0)),
        _ => String::new(),
    }
}

fn line_of(value: &str, name: &str, rate: &str, end: &str) -> String {
    let line = format!("{value:>20}  {name:<24}  {rate:<22}  {end}");
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Absence, Count, Event, MetricName, Resources, Run};

    fn example() -> Stat {
        let event = |name: &str, unit| Event { name: name.to_owned(), unit };
        let run = |clock: f64, elapsed_ns: f64| Run {
            counts: vec![
                Count::Counted { value: clock, running: 1.0, source: Source::Kernel },
                Count::Counted { value: 1234.0, running: 0.62, source: Source::Kernel },
                Count::Absent(Absence::NotSupported),
            ],
            metrics: vec![Some(60.0 + clock / 1e9), None],
            elapsed_ns,
            resources: Some(Resources { user_ns: 1e9, system_ns: 0.2e9, peak_bytes: Some(4e6) }),
            end: Some("exit 0".to_owned()),
        };
        Stat {
            title: "./solve input.txt".to_owned(),
            events: vec![
                event("task-clock", Unit::Nanoseconds),
                event("page-faults", Unit::Count),
                event("cycles", Unit::Count),
            ],
            metrics: [("Retiring", 1), ("Light_Operations", 2)]
                .map(|(name, level)| MetricName { name: name.to_owned(), level })
                .to_vec(),
            runs: vec![run(1.2e9, 1.3e9), run(1.3e9, 1.4e9)],
            notes: vec!["cycles are counted by hardware that this machine lacks".to_owned()],
            ..Stat::default()
        }
    }

    #[test]
    fn a_table_has_values_rates_and_margins() {
        let expected = "\
treering stat: 2 runs of ./solve input.txt

         1,250.00 ms  task-clock                0.926 processors        ± 50.8 %
            1,234     page-faults               987 /s                  ± 0 %  counted 62 % of the time
                -     cycles                    not supported here

             61.2 %   Retiring                  of slots                ± 0.635 points
                -       Light_Operations        not counted here

         1.350000 s   elapsed                                           ± 47.1 %
         1.000000 s   user                                              ± 0 %
         0.200000 s   system                                            ± 0 %
             3.8 MiB  peak memory                                       ± 0 %

note: cycles are counted by hardware that this machine lacks
";
        assert_eq!(text(&example()), expected);
    }

    #[test]
    fn a_line_of_an_interval_begins_with_its_end() {
        let mut stat = example();
        stat.runs.truncate(1);
        let lines = interval_text(&stat, 2.5e9);
        assert!(lines.starts_with("     2.500 s          1,200.00 ms  task-clock"), "{lines}");
        assert!(!lines.contains("cycles"), "{lines}");
    }
}
