//! `treering bench table`.

use std::process::ExitCode;

use serde_json::{Value, json};
use treering_archive::{Manifest, Unit, median};
use treering_measure::FLOOR;

use super::amount::{scale, title};
use super::columns::{Side, print, table};
use super::judged::{Judged, judge, metric_of};
use super::place::Place;
use super::series::{Chosen, Series};
use crate::failure::{Failure, Outcome};
use crate::terminal;

/// Show one table of many runs: a parameter against times, memory and results
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of runs that were measured twice, the latest is shown. Two series have their change as well.

Examples:
  treering bench table lua -x n -y time,memory
  treering bench table lua -x n -y time --by version
  treering bench table determinize,openfst -x n -y time,states --by program")]
pub struct Table {
    #[command(flatten)]
    chosen: Chosen,
    /// The columns: time, wall, memory, instructions, or names of results
    #[arg(short, value_name = "LIST", value_delimiter = ',', default_value = "time")]
    y: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl Table {
    /// Does it.
    pub fn run(self) -> Outcome {
        let mut archive = self.place.open_existing()?;
        let series = self.chosen.series(&mut archive)?;
        let rows = Rows::of(&series);
        let runs: Vec<&Manifest> =
            series.iter().flat_map(|series| series.runs.iter().map(|(_, run, _)| run)).collect();
        let metrics: Vec<&str> = self.y.iter().map(|name| metric_of(name, &runs)).collect();
        if let Some(unknown) =
            metrics.iter().find(|name| !runs.iter().any(|run| run.samples.contains_key(**name)))
        {
            let mut known: Vec<&str> =
                runs.iter().flat_map(|run| run.samples.keys()).map(String::as_str).collect();
            known.sort_unstable();
            known.dedup();
            return Err(Failure::new(format_args!(
                "none of these runs has {unknown}; there are: {}",
                known.join(", ")
            )));
        }
        if self.json {
            terminal::print(&format!("{:#}\n", rows.json(self.chosen.x(), &metrics)))?;
        } else {
            print(&rows.text(self.chosen.x(), &metrics))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The runs of all series for each value.
struct Rows<'a> {
    names: Vec<&'a str>,
    rows: Vec<(&'a str, Vec<Option<&'a Manifest>>)>,
}

impl<'a> Rows<'a> {
    fn of(series: &'a [Series]) -> Self {
        let mut rows: Vec<(&str, Vec<Option<&Manifest>>)> = Vec::new();
        for (at, of) in series.iter().enumerate() {
            let mut place = 0;
            for (x, run, _) in &of.runs {
                place = match rows.iter().position(|(known, _)| known == x) {
                    Some(place) => place,
                    None => {
                        // Behind the value before it, which is in the same order in all series.
                        let next = if at == 0 { rows.len() } else { place_of(&rows, x) };
                        rows.insert(next, (x, vec![None; series.len()]));
                        next
                    }
                };
                rows[place].1[at] = Some(run);
            }
            let _ = place;
        }
        Self { names: series.iter().map(|series| series.name.as_str()).collect(), rows }
    }

    /// The change, if there are two series.
    fn judged(&self, row: &[Option<&Manifest>], name: &str) -> Option<Judged> {
        match row {
            [Some(base), Some(head)] => judge(name, base, head, FLOOR),
            _ => None,
        }
    }

    fn text(&self, x: &str, metrics: &[&str]) -> String {
        let mut columns: Vec<Column> =
            vec![Column { title: String::new(), head: x.to_owned(), side: Side::Right, cells: Vec::new() }];
        columns[0].cells = self.rows.iter().map(|(x, _)| grouped(x)).collect();
        for name in metrics {
            columns.extend(self.columns(name));
        }
        let mut lines = vec![columns.iter().map(|column| column.head.clone()).collect::<Vec<_>>()];
        lines.extend(
            (0..self.rows.len()).map(|row| columns.iter().map(|column| column.cells[row].clone()).collect()),
        );
        let sides: Vec<Side> = columns.iter().map(|column| column.side).collect();
        format!("{}{}{}", titles(&columns), table(&sides, &lines), self.legend(metrics))
    }

    /// The columns of one metric: one for each series, and the change of two.
    fn columns(&self, name: &str) -> Vec<Column> {
        let value = |run: &Option<&Manifest>| {
            Some((median(&(*run)?.samples.get(name)?.values)?, run.as_ref()?.samples[name].unit))
        };
        let values: Vec<(f64, Unit)> =
            self.rows.iter().flat_map(|(_, row)| row.iter().filter_map(value)).collect();
        let unit = values.first().map_or(Unit::Count, |(_, unit)| *unit);
        let largest = values.iter().map(|(value, _)| value.abs()).fold(0.0, f64::max);
        // Whole numbers below 100,000 as they are.
        let is_plain = unit == Unit::Count && largest < 1e5;
        let (factor, name_of_unit) = if is_plain { (1.0, "") } else { scale(largest, unit) };
        let is_whole = is_plain && values.iter().all(|(value, _)| value.fract() == 0.0);
        let digits = match unit {
            Unit::Bytes => 1,
            Unit::Ns => 2,
            Unit::Count if is_whole => 0,
            Unit::Count => 3,
        };
        let digits = if is_whole { digits } else { digits.max(digits_of_least(&values, factor)) };
        let shown = |run: &Option<&Manifest>| {
            value(run).map_or_else(
                || "·".to_owned(),
                |(value, _)| grouped(&format!("{:.*}", digits, value / factor)),
            )
        };
        let of_unit = if name_of_unit.is_empty() { String::new() } else { format!(", {name_of_unit}") };
        let title = format!("{}{of_unit}", title(name));
        let column = |(at, series): (usize, &&str)| Column {
            title: if at == 0 { title.clone() } else { String::new() },
            head: (*series).to_owned(),
            side: Side::Right,
            cells: self.rows.iter().map(|(_, row)| shown(&row[at])).collect(),
        };
        let mut columns: Vec<Column> = self.names.iter().enumerate().map(column).collect();
        if self.names.len() == 2 {
            let cell = |judged: Option<Judged>| {
                judged.map_or(String::new(), |of| format!("{} {}", of.mark(), of.text()))
            };
            columns.push(Column {
                title: String::new(),
                head: "  change  99 %".to_owned(),
                side: Side::Left,
                cells: self.rows.iter().map(|(_, row)| cell(self.judged(row, name))).collect(),
            });
        }
        columns
    }

    fn legend(&self, metrics: &[&str]) -> String {
        let runs = || self.rows.iter().flat_map(|(_, row)| row.iter().flatten());
        let of = |run: &&Manifest| {
            metrics.iter().filter_map(|name| run.samples.get(*name)).map(|of| of.values.len()).max()
        };
        let (least, most) =
            (runs().filter_map(of).min().unwrap_or(0), runs().filter_map(of).max().unwrap_or(0));
        let rounds = match (least, most) {
            (1, 1) => "1 round".to_owned(),
            (least, most) if least == most => format!("{least} rounds"),
            (least, most) => format!("{least} to {most} rounds"),
        };
        let judged =
            || self.rows.iter().flat_map(|(_, row)| metrics.iter().filter_map(|name| self.judged(row, name)));
        let mut parts = vec![rounds];
        if judged().next().is_some() {
            parts.push("▲ ▼ beyond floor and error".to_owned());
        }
        if judged().any(|of| of.mark() == "?") {
            parts.push("? undecided".to_owned());
        }
        let pairs = self.rows.iter().filter_map(|(_, row)| match row[..] {
            [Some(base), Some(head)] => Some((base, head)),
            _ => None,
        });
        let (mut sessions, mut machines) = (false, false);
        for (base, head) in pairs {
            sessions |= base.session != head.session;
            machines |= base.machine.key() != head.machine.key() || !base.machine.is_known();
        }
        match (machines, sessions) {
            (true, _) => parts.push("times of other machines are not comparable".to_owned()),
            (false, true) => parts.push("times of two sessions decide nothing".to_owned()),
            (false, false) => {}
        }
        format!("{}\n", parts.join(" · "))
    }

    fn json(&self, x: &str, metrics: &[&str]) -> Value {
        let of = |run: &Option<&Manifest>, name: &str| {
            let measured = run.and_then(|run| run.samples.get(name))?;
            Some(
                json!({ "median": median(&measured.values), "unit": measured.unit, "values": measured.values }),
            )
        };
        let cell = |row: &[Option<&Manifest>], name: &str| {
            let series: serde_json::Map<String, Value> = self
                .names
                .iter()
                .zip(row)
                .map(|(series, run)| ((*series).to_owned(), of(run, name).unwrap_or(Value::Null)))
                .collect();
            json!({ "series": series, "change": self.judged(row, name).map(|of| of.json()) })
        };
        let row = |(value, row): &(&str, Vec<Option<&Manifest>>)| {
            let cells: serde_json::Map<String, Value> =
                metrics.iter().map(|name| ((*name).to_owned(), cell(row, name))).collect();
            json!({ "x": value, "metrics": cells })
        };
        json!({ "x": x, "series": self.names, "rows": self.rows.iter().map(row).collect::<Vec<_>>() })
    }
}

/// How many digits behind the point show two of the least value that is not 0.
fn digits_of_least(values: &[(f64, Unit)], factor: f64) -> usize {
    const MOST: f64 = 9.0;
    let parts = values.iter().map(|(value, _)| value.abs() / factor).filter(|part| *part > 0.0);
    let least = parts.fold(f64::INFINITY, f64::min);
    (1.0 - least.log10().floor()).clamp(0.0, MOST) as usize
}

/// Where a value stands among others.
fn place_of(rows: &[(&str, Vec<Option<&Manifest>>)], x: &str) -> usize {
    let number = |text: &str| text.parse::<f64>().unwrap_or(f64::INFINITY);
    rows.partition_point(|(known, _)| (number(known), *known) < (number(x), x))
}

/// A column, with the metric above it where that begins.
struct Column {
    title: String,
    head: String,
    side: Side,
    cells: Vec<String>,
}

/// The line of metrics above the columns.
fn titles(columns: &[Column]) -> String {
    let mut line = String::new();
    let mut at = 0;
    for column in columns {
        let width =
            column.cells.iter().chain([&column.head]).map(|cell| cell.chars().count()).max().unwrap_or(0);
        if !column.title.is_empty() {
            let missing = (at + width).saturating_sub(line.chars().count() + column.title.chars().count());
            // Right above the first column of the metric, or behind the title before.
            line += &" ".repeat(missing.max(usize::from(!line.is_empty()) * 2));
            line += &treering_report::printable(&column.title);
        }
        at += width + 2;
    }
    format!("{}\n", line.trim_end())
}

/// `8,000`.
fn grouped(text: &str) -> String {
    match text.parse::<u64>() {
        Ok(number) if number.to_string() == text => treering_report::grouped(number),
        _ => text.to_owned(),
    }
}
