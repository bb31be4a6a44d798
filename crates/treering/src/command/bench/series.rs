//! Runs as series: a value for each value of a parameter, one series for each version, program or other parameter.

use std::collections::BTreeMap;

use treering_archive::{Archive, Manifest, Moment, Summary};

use super::place::failure;
use crate::failure::Failure;

/// The runs to show.
#[derive(Clone, Debug, clap::Args)]
pub struct Chosen {
    /// The program, or several separated by commas
    #[arg(value_name = "NAME", value_delimiter = ',', required = true)]
    programs: Vec<String>,
    /// The parameter of the rows
    #[arg(short, value_name = "PARAMETER")]
    x: String,
    /// One series for each version, program or value of a parameter; version=OLD,NEW chooses and orders
    #[arg(long, value_name = "WHAT")]
    by: Option<String>,
    /// Only runs with this value of another parameter, and those without that parameter
    #[arg(short, long = "parameter", value_name = "NAME=VALUE")]
    parameters: Vec<String>,
}

/// A series: the latest run for each value of the parameter.
#[derive(Debug)]
pub struct Series {
    /// The version, program or value; empty if there is one series only.
    pub name: String,
    /// The runs, by value; numbers in their order.
    pub runs: Vec<(String, Manifest, Summary)>,
}

impl Chosen {
    /// The parameter of the rows.
    pub fn x(&self) -> &str {
        &self.x
    }

    /// The series, the one with the earliest commit or run first unless the user ordered them.
    pub fn series(&self, archive: &mut Archive) -> Result<Vec<Series>, Failure> {
        let (by, order) = match self.by.as_deref().map(|by| by.split_once('=').unwrap_or((by, ""))) {
            None => ("", Vec::new()),
            Some((by, "")) => (by, Vec::new()),
            Some((by, names)) => (by, names.split(',').collect()),
        };
        let only = self.only()?;
        let mut runs = archive.summaries(None).map_err(failure)?;
        runs.retain(|run| self.programs.iter().any(|name| run.is_called(name)));
        if runs.is_empty() {
            let message = format!("no run of {} is kept", self.programs.join(", "));
            return Err(Failure::new(message).hint("treering bench list --all names the programs"));
        }
        runs.retain(|run| {
            only.iter().all(|(name, value)| run.parameters.get(*name).is_none_or(|of| of == value))
        });
        self.check_x(&runs)?;
        let mut found: BTreeMap<String, BTreeMap<Value, Summary>> = BTreeMap::new();
        // The latest come first.
        for run in runs {
            let Some(name) = series_name(&run, by) else { continue };
            let Some(x) = run.parameters.get(&self.x).cloned() else { continue };
            if !order.is_empty() && !order.contains(&name.as_str()) {
                continue;
            }
            let series = found.entry(name).or_default();
            if let Some(later) = series.get(&Value(x.clone())) {
                self.check_only_one(later, &run, by)?;
                continue;
            }
            series.insert(Value(x), run);
        }
        if let Some(missing) = order.iter().find(|name| !found.contains_key(**name)) {
            return Err(Failure::new(format_args!("no run with {by} {missing} is kept")));
        }
        let read = |(name, runs): (String, BTreeMap<Value, Summary>)| {
            let read =
                |(Value(x), run): (Value, Summary)| Ok((x, archive.read(&run.run).map_err(failure)?, run));
            Ok(Series { name, runs: runs.into_iter().map(read).collect::<Result<_, Failure>>()? })
        };
        let mut series = found.into_iter().map(read).collect::<Result<Vec<Series>, Failure>>()?;
        series.sort_by_key(|of| (order.iter().position(|name| *name == of.name), of.age(by)));
        Ok(series)
    }

    fn only(&self) -> Result<Vec<(&str, &str)>, Failure> {
        let pair = |text: &'_ String| text.split_once('=').is_some();
        match self.parameters.iter().find(|text| !pair(text)) {
            Some(wrong) => Err(Failure::new(format_args!("{wrong}: it is not of the form NAME=VALUE"))),
            None => Ok(self.parameters.iter().filter_map(|text| text.split_once('=')).collect()),
        }
    }

    fn check_x(&self, runs: &[Summary]) -> Result<(), Failure> {
        if runs.iter().any(|run| run.parameters.contains_key(&self.x)) {
            return Ok(());
        }
        let mut names: Vec<&str> =
            runs.iter().flat_map(|run| run.parameters.keys()).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(Failure::new(format_args!("these runs have no parameter {}; there are: {known}", self.x)))
    }

    /// Two runs in one place are one series measured twice only if all else is equal.
    fn check_only_one(&self, later: &Summary, earlier: &Summary, by: &str) -> Result<(), Failure> {
        let differs = |name: &&String| later.parameters.get(*name) != earlier.parameters.get(*name);
        let mut names = later.parameters.keys().chain(earlier.parameters.keys());
        if let Some(name) = names.find(differs) {
            let message = format!("runs with several values of {name} would be one series");
            return Err(
                Failure::new(message).hint(format_args!("--by {name}, or choose one: -p {name}=VALUE"))
            );
        }
        if later.program != earlier.program && by != "program" {
            let message = format!("runs of {} and {} would be one series", later.program, earlier.program);
            return Err(Failure::new(message).hint("--by program"));
        }
        Ok(())
    }
}

impl Series {
    /// When its version was committed, if it is one; and when it was first measured, which is chance for versions that were
    /// measured in turns.
    fn age(&self, by: &str) -> (Option<Moment>, Option<Moment>) {
        let manifests = || self.runs.iter().map(|(_, manifest, _)| manifest);
        let committed = manifests().filter_map(|run| run.version.committed).min();
        (committed.filter(|_| by == "version"), manifests().map(|run| run.started).min())
    }
}

fn series_name(run: &Summary, by: &str) -> Option<String> {
    match by {
        "" => Some(String::new()),
        "version" => Some(if run.version.is_empty() { "·".to_owned() } else { run.version.clone() }),
        "program" => Some(run.program.clone()),
        parameter => run.parameters.get(parameter).cloned(),
    }
}

/// A value of a parameter: numbers stand in their order, before all words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value(pub String);

impl Ord for Value {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let number = |value: &Self| value.0.parse::<f64>().ok().filter(|number| number.is_finite());
        match (number(self), number(other)) {
            (Some(a), Some(b)) => a.total_cmp(&b).then_with(|| self.0.cmp(&other.0)),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => self.0.cmp(&other.0),
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
