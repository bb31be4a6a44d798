//! The tables that are printed.

use crate::measure::Cost;

/// One line: a name with a cost.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    cost: Cost,
    is_floor: bool,
    is_ours: bool,
}

impl Row {
    /// A floor: the rows after it are compared with it.
    pub(crate) fn floor(name: impl Into<String>, cost: Cost) -> Self {
        Self { name: name.into(), cost, is_floor: true, is_ours: false }
    }

    /// One of ours.
    pub(crate) fn ours(name: impl Into<String>, cost: Cost) -> Self {
        Self { name: name.into(), cost, is_floor: false, is_ours: true }
    }

    /// One of others'.
    pub(crate) fn peer(name: impl Into<String>, cost: Cost) -> Self {
        Self { name: name.into(), cost, is_floor: false, is_ours: false }
    }
}

/// Lines under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    heading: &'static str,
    difference: &'static str,
    rows: Vec<Row>,
    left_out: Vec<String>,
}

impl Table {
    /// An empty one. `difference` says what the distance from the floor is called.
    pub(crate) fn new(heading: &'static str, difference: &'static str) -> Self {
        Self { heading, difference, rows: Vec::new(), left_out: Vec::new() }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Says that something is missing, and why.
    pub(crate) fn leave_out(&mut self, name: &str, reason: &str) {
        self.left_out.push(format!("left out: {name}: {reason}"));
    }

    /// Prints everything: medians, the range of nine batches in ten, and how it compares with
    /// the floor and with the first of ours.
    #[expect(clippy::print_stdout, reason = "this is what the benchmark is for")]
    pub(crate) fn print(&self) {
        println!(
            "\n{:58} {:>8} {:>17} {:>9} {:>8} {:>8}",
            self.heading,
            "median",
            "5 % to 95 %",
            self.difference_head(),
            "x floor",
            "x ours"
        );
        let ours = self.rows.iter().find(|row| row.is_ours).map(|row| row.cost.median);
        let mut floor = f64::NAN;
        for row in &self.rows {
            if row.is_floor {
                floor = row.cost.median;
            }
            let Cost { median, low, high } = row.cost;
            let range = format!("{low:.2} to {high:.2}");
            let of_ours = ours.map_or(f64::NAN, |ours| median / ours);
            println!(
                "{:58} {median:8.2} {range:>17} {:+9.2} {:8.2} {of_ours:8.2}",
                row.name,
                median - floor,
                median / floor
            );
        }
        self.left_out.iter().for_each(|line| println!("{line}"));
    }

    fn difference_head(&self) -> &'static str {
        self.difference.split(' ').next().unwrap_or_default()
    }
}
