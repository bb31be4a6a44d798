//! Plots of benchmarks as SVG, and their data for gnuplot.
//!
//! The title of a plot is what was found; the caller words it. Numbers come in as plain structures, so that nothing here
//! knows where they are from. A picture needs no font file and no system library, and it suits light and dark pages: its
//! style asks which one it is on.
//!
//! Series are told apart by colour, by mark and by the name at their end. Error bars are drawn where a point has bounds.
//! Below two series, their difference is drawn with its bounds: curves that lie on each other say nothing.
//!
//! ```
//! use treering_plot::{Panel, ParameterPlot, Point, Series, Unit, parameter_svg};
//!
//! let series = |name: &str, factor: f64| Series {
//!     name: name.to_owned(),
//!     points: [250.0, 500.0, 1000.0].map(|n| Point { x: n, y: n * factor, bounds: None }).to_vec(),
//! };
//! let plot = ParameterPlot {
//!     title: "head is twice as slow as base".to_owned(),
//!     subtitle: "program n".to_owned(),
//!     parameter: "n".to_owned(),
//!     panels: vec![Panel {
//!         name: "CPU time".to_owned(),
//!         unit: Unit::Nanoseconds,
//!         series: vec![series("base", 1000.0), series("head", 2000.0)],
//!         changes: Vec::new(),
//!         floor: 0.02,
//!     }],
//! };
//! let svg = parameter_svg(&plot);
//! assert!(svg.starts_with("<?xml") && svg.contains("head is twice as slow as base"));
//! ```
#![forbid(unsafe_code)]

mod axis;
mod canvas;
mod colour;
mod gnuplot;
mod growth;
mod history;
mod memory;
mod parameter;
mod place;
#[cfg(test)]
mod tests;

pub use axis::Unit;
pub use canvas::is_plot;
pub use gnuplot::parameter_gnuplot;
pub use growth::{GrowthPanel, GrowthPlot, growth_svg};
pub use history::{Commit, HistoryPlot, Level, Step, history_svg};
pub use memory::{MemoryPlot, MemorySeries, memory_svg};
pub use parameter::{Change, Panel, ParameterPlot, parameter_svg};

/// A measured value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where it stands.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Between which bounds the true value lies, or those of the values that it stands for.
    pub bounds: Option<(f64, f64)>,
}

/// Points that a line joins.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name that stands at its end.
    pub name: String,
    /// The points, from the left.
    pub points: Vec<Point>,
}
