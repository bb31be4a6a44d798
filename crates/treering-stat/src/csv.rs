//! CSV for spreadsheets, as RFC 4180 says. The columns are described in `docs/stat.md`.

use crate::row::{Row, State};
use crate::run::{Stat, Unit};

/// The names of the columns. Those of intervals begin with when they were.
pub fn csv_heading(has_intervals: bool) -> String {
    let times = if has_intervals { "from_s,until_s," } else { "" };
    format!("{times}event,value,unit,low,high,deviation,runs,running,rate,rate_unit,source,state\n")
}

/// A line for each event, without the names of the columns.
pub fn csv(stat: &Stat) -> String {
    let rows: String = stat.rows().iter().map(|row| line(row, stat.runs.len())).collect();
    rows + &metric_lines(stat, "")
}

/// The lines of one interval, which is the only run of `stat`.
pub fn csv_interval(stat: &Stat, from_ns: f64, until_ns: f64) -> String {
    let times = format!("{:.6},{:.6},", from_ns / 1e9, until_ns / 1e9);
    let rows: String = stat.rows().iter().map(|row| times.clone() + &line(row, 1)).collect();
    rows + &metric_lines(stat, &times)
}

/// A line for each metric, after some text.
fn metric_lines(stat: &Stat, before: &str) -> String {
    let mut lines = String::new();
    for (at, metric) in stat.metrics.iter().enumerate() {
        let (name, runs) = (quoted(&metric.name), stat.runs.len());
        lines += before;
        lines += &match stat.over_runs(|run| run.metrics.get(at).copied().flatten()) {
            Some((summary, margin)) => {
                let bound = |sign: f64| {
                    margin.map_or(String::new(), |margin| (summary.mean + sign * margin).max(0.0).to_string())
                };
                let deviation = summary.deviation.map_or(String::new(), |deviation| deviation.to_string());
                let (low, high) = (bound(-1.0), bound(1.0));
                format!(
                    "{name},{},percent of slots,{low},{high},{deviation},{runs},,,,perf,counted\n",
                    summary.mean
                )
            }
            None => format!("{name},,percent of slots,,,,{runs},,,,,not supported here\n"),
        };
    }
    lines
}

fn line(row: &Row, runs: usize) -> String {
    let unit = match row.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count => "count",
    };
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let cells = match &row.state {
        State::Absent(absence) => {
            let mut cells = vec![String::new(); 12];
            (cells[0], cells[2], cells[6]) = (row.name.clone(), unit.to_owned(), runs.to_string());
            cells[11] = absence.as_str().to_owned();
            cells
        }
        State::Counted { summary, margin, running, source, .. } => vec![
            row.name.clone(),
            summary.mean.to_string(),
            unit.to_owned(),
            number(margin.map(|margin| (summary.mean - margin).max(0.0))),
            number(margin.map(|margin| summary.mean + margin)),
            number(summary.deviation),
            runs.to_string(),
            running.to_string(),
            number(row.rate.as_ref().map(|rate| rate.value)),
            row.rate.as_ref().map_or(String::new(), |rate| rate.unit.clone()),
            source.as_str().to_owned(),
            "counted".to_owned(),
        ],
    };
    cells.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\n"
}

/// A cell, in quotes if it must be.
pub(crate) fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Absence, Count, Event, Run, Source};

    #[test]
    fn every_line_has_a_cell_for_each_column() {
        let event = |name: &str| Event { name: name.to_owned(), unit: Unit::Count };
        let counted = Count::Counted { value: 3.0, running: 1.0, source: Source::Kernel };
        let counts = vec![counted, Count::Absent(Absence::NotPermitted)];
        let stat = Stat {
            events: vec![event("cpu/event=1,umask=2/"), event("cycles")],
            runs: vec![Run { counts, elapsed_ns: 1e9, ..Run::default() }],
            ..Stat::default()
        };
        let expected = "\
event,value,unit,low,high,deviation,runs,running,rate,rate_unit,source,state
\"cpu/event=1,umask=2/\",3,count,,,,1,1,3,/s of wall time,perf,counted
cycles,,count,,,,1,,,,,not permitted
";
        assert_eq!(csv_heading(false) + &csv(&stat), expected);
    }
}
