//! An event over all runs.

use treering_analysis::mean_margin;
use treering_measure::Summary;

use crate::rate::{self, Rate};
use crate::run::{Absence, Count, Source, Stat, Unit};

/// An event's row of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// The unit of its count.
    pub unit: Unit,
    /// Whether it was counted in every run, and how.
    pub state: State,
    /// More telling than the number.
    pub rate: Option<Rate>,
}

/// Whether an event was counted.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It was, in every run.
    Counted {
        /// Of the runs.
        summary: Summary,
        /// How far the mean may be from that of very many runs, with 95 % confidence; nothing for a single run.
        margin: Option<f64>,
        /// The count of each run.
        values: Vec<f64>,
        /// The least part of a run's time in which it was counted, from 0 to 1.
        running: f64,
        /// The counter.
        source: Source,
    },
    /// It was not, or not in every run.
    Absent(Absence),
}

impl State {
    fn of(counts: &[Count]) -> Self {
        let mut values = Vec::with_capacity(counts.len());
        let (mut least, mut last) = (1.0_f64, Source::Kernel);
        for &count in counts {
            match count {
                Count::Absent(absence) => return Self::Absent(absence),
                Count::Counted { value, running, source } => {
                    values.push(value);
                    (least, last) = (least.min(running), source);
                }
            }
        }
        let Some(summary) = Summary::of(&values) else { return Self::Absent(Absence::NeverRan) };
        Self::Counted { summary, margin: mean_margin(&values), values, running: least, source: last }
    }

    /// The mean of the runs, if it was counted.
    pub fn mean(&self) -> Option<f64> {
        match self {
            Self::Counted { summary, .. } => Some(summary.mean),
            Self::Absent(_) => None,
        }
    }
}

impl Stat {
    /// The row of every event.
    pub fn rows(&self) -> Vec<Row> {
        let states: Vec<State> = (0..self.events.len())
            .map(|at| State::of(&self.runs.iter().map(|run| run.counts[at]).collect::<Vec<_>>()))
            .collect();
        let elapsed = self.elapsed().map_or(0.0, |(summary, _)| summary.mean);
        let rows = self.events.iter().zip(&states).map(|(event, state)| Row {
            name: event.name.clone(),
            unit: event.unit,
            state: state.clone(),
            rate: state.mean().and_then(|mean| rate::of(event, mean, self, &states, elapsed)),
        });
        rows.collect()
    }

    /// The time of the runs, in nanoseconds, and how far the mean may be off.
    pub fn elapsed(&self) -> Option<(Summary, Option<f64>)> {
        self.over_runs(|run| Some(run.elapsed_ns))
    }

    /// A quantity that every run has, and how far its mean may be off.
    pub(crate) fn over_runs(
        &self,
        quantity: impl Fn(&crate::Run) -> Option<f64>,
    ) -> Option<(Summary, Option<f64>)> {
        let values: Vec<f64> = self.runs.iter().map(quantity).collect::<Option<_>>()?;
        Some((Summary::of(&values)?, mean_margin(&values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Run};

    fn stat(counts: &[Count]) -> Stat {
        let runs = counts.iter().map(|&count| Run { counts: vec![count], elapsed_ns: 1e9, ..Run::default() });
        let event = Event { name: "page-faults".to_owned(), unit: Unit::Count };
        Stat { events: vec![event], runs: runs.collect(), ..Stat::default() }
    }

    fn counted(value: f64, running: f64) -> Count {
        Count::Counted { value, running, source: Source::Kernel }
    }

    #[test]
    fn several_runs_have_a_mean_and_its_margin() {
        let rows = stat(&[counted(8.0, 1.0), counted(10.0, 0.5), counted(12.0, 1.0)]).rows();
        let State::Counted { summary, margin, running, .. } = &rows[0].state else { panic!("{rows:?}") };
        assert_eq!((summary.mean, *running), (10.0, 0.5));
        // 4.303 × 2 / √3, by the table of Student's t.
        assert!((margin.unwrap() - 4.969).abs() < 0.001, "{margin:?}");
    }

    #[test]
    fn an_event_that_one_run_lacks_has_no_mean() {
        let rows = stat(&[counted(8.0, 1.0), Count::Absent(Absence::NeverRan)]).rows();
        assert_eq!(rows[0].state, State::Absent(Absence::NeverRan));
        assert_eq!(rows[0].rate, None);
    }
}
