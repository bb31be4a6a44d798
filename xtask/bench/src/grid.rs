//! Processor times of programs, each of which runs in several ways.

use serde_json::{Map, Value, json};

use crate::frame::interleaved;
use crate::statistics::{Spread, geometric_mean};
use crate::table::Table;

/// Processor times in seconds. The first way is the program alone.
pub(crate) struct Grid {
    pub(crate) programs: Vec<String>,
    pub(crate) ways: Vec<String>,
    /// By program, way and round. Empty where a way failed.
    times: Vec<Vec<Vec<f64>>>,
}

impl Grid {
    /// Runs each program in all ways, in another order in every round. A way that fails is left out for that program, and
    /// so is a program that fails alone.
    pub(crate) fn measure(
        programs: Vec<String>,
        ways: Vec<String>,
        rounds: impl Fn(usize) -> usize,
        once: impl Fn(usize, usize) -> Result<f64, String>,
    ) -> Result<Self, String> {
        let mut times = Vec::new();
        for (program, name) in programs.iter().enumerate() {
            eprintln!("measuring {name}");
            let mut failed = vec![false; ways.len()];
            let of_program = interleaved(ways.len(), rounds(program), |way| {
                if failed[way] {
                    return Ok(None);
                }
                once(program, way).map(Some).or_else(|error| {
                    eprintln!("error: {name} under {}: {error}", ways[way]);
                    failed[way] = true;
                    Ok(None)
                })
            })?;
            let all =
                |of_way: Vec<Option<f64>>| of_way.into_iter().collect::<Option<_>>().unwrap_or_default();
            times.push(of_program.into_iter().map(all).collect());
        }
        Ok(Self { programs, ways, times })
    }

    /// The times of a program in a way.
    pub(crate) fn spread(&self, program: usize, way: usize) -> Option<Spread> {
        Spread::of(&self.times[program][way])
    }

    /// Times as multiples of the program's own, with their geometric means; seconds for programs that only start.
    pub(crate) fn table(&self, title: &str, of: &str, only_starts: impl Fn(usize) -> bool) -> Table {
        let ways = self.ways.iter().skip(1).map(String::as_str);
        let first = format!("{}, s", self.ways[0]);
        let mut table = Table::new(title, &[of, &first].into_iter().chain(ways).collect::<Vec<_>>());
        let seconds = |of: Spread| format!("{:.3} ({:.3})", of.least, of.median);
        for (program, name) in self.programs.iter().enumerate() {
            let Some(alone) = self.spread(program, 0) else { continue };
            let cells = (1..self.ways.len()).map(|way| match self.spread(program, way) {
                None => "missing".to_owned(),
                Some(found) if only_starts(program) => format!("{} s", seconds(found)),
                Some(found) => {
                    format!("{:.2} ({:.2})", found.least / alone.least, found.median / alone.median)
                }
            });
            table.row([name.clone(), seconds(alone)].into_iter().chain(cells).collect());
        }
        let means = (1..self.ways.len()).map(|way| {
            let working = (0..self.programs.len()).filter(|&program| !only_starts(program));
            let alone = working.filter_map(|program| Some((program, self.spread(program, 0)?.least)));
            let ratio = |(program, alone)| Some(self.spread(program, way)?.least / alone);
            let ratios: Option<Vec<f64>> = alone.map(ratio).collect();
            let mean = ratios.as_deref().and_then(geometric_mean);
            mean.map_or_else(|| "missing".to_owned(), |mean| format!("{mean:.2}"))
        });
        table.row(["geometric mean".to_owned(), String::new()].into_iter().chain(means).collect());
        table.note(
            "The least of all rounds over the least of the program alone, in parentheses the median over its median. \
             Processor time of all descendants counts, in user's and system's mode.",
        );
        table
    }

    /// All times, for programs to read.
    pub(crate) fn samples(&self) -> Value {
        let of = |(name, times): (&String, &Vec<Vec<f64>>)| {
            let seconds: Map<_, _> =
                self.ways.iter().cloned().zip(times.iter().map(|times| json!(times))).collect();
            json!({"name": name, "seconds": seconds})
        };
        self.programs.iter().zip(&self.times).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn ways_are_compared_with_the_program_alone() {
        let times = vec![
            vec![vec![2.0, 1.0, 3.0], vec![4.0, 2.0, 6.0], vec![]],
            vec![vec![1.0], vec![8.0], vec![30.0]],
            vec![vec![0.01], vec![0.02], vec![0.5]],
        ];
        let (programs, ways) = (names(&["a", "b", "start"]), names(&["native", "count", "callgrind"]));
        let text = Grid { programs, ways, times }.table("", "program", |at| at == 2).to_string();
        assert!(text.contains("| a | 1.000 (2.000) | 2.00 (2.00) | missing |"), "{text}");
        assert!(text.contains("| start | 0.010 (0.010) | 0.020 (0.020) s | 0.500 (0.500) s |"), "{text}");
        assert!(text.contains("| geometric mean |  | 4.00 | missing |"), "{text}");
    }

    #[test]
    fn ways_that_fail_are_left_out() {
        let once = |_, way| if way == 1 { Err("it fails".to_owned()) } else { Ok(1.0) };
        let grid =
            Grid::measure(names(&["a"]), names(&["alone", "fails", "works"]), |_| 2, once).expect("a grid");
        assert_eq!(grid.times, [[vec![1.0, 1.0], vec![], vec![1.0, 1.0]]]);
        let once = |program, _| if program == 0 { Err("it is missing".to_owned()) } else { Ok(1.0) };
        let grid =
            Grid::measure(names(&["a", "b"]), names(&["alone", "works"]), |_| 2, once).expect("a grid");
        let text = grid.table("", "program", |_| false).to_string();
        assert!(!text.contains("| a |") && text.contains("| geometric mean |  | 1.00 |"), "{text}");
    }
}
