//! The memory plot as a chain of points, the earliest first.

use super::left_aligned;
use crate::benchmark::color::of_charge;
use crate::benchmark::escape::{dot, line};
use crate::benchmark::unit::{ms, percent};
use crate::benchmark::{Point, Run};

pub(super) fn chain(run: &Run) -> String {
    let peak = run.points.iter().map(|point| point.resident_bytes).max().unwrap_or(0);
    let points = run.points.iter().enumerate().map(|(at, point)| node(run, at, point, peak));
    let steps = run.points.windows(2).enumerate().map(|(at, pair)| step(at, &pair[0], &pair[1]));
    points.chain(steps).collect()
}

/// A point; the more resident memory, the darker.
fn node(run: &Run, at: usize, point: &Point, peak: u64) -> String {
    let color = of_charge(percent(point.resident_bytes, peak));
    let (fill, font) = (color.hex(), color.label().hex());
    let label = left_aligned(&[
        dot(&line(point.description)),
        format!("in {}", dot(&line(&run.task_name(point.task)))),
        format!("after {} ms", ms(point.time_ns)),
        format!("virtual {} bytes", point.virtual_bytes),
        format!("resident {} bytes", point.resident_bytes),
    ]);
    format!("p{at} [label=\"{label}\", fillcolor=\"{fill}\", fontcolor=\"{font}\"];\n")
}

/// From one point to the next: what passed, and how memory changed.
fn step(at: usize, from: &Point, to: &Point) -> String {
    let change = |from: u64, to: u64| i128::from(to) - i128::from(from);
    let label = left_aligned(&[
        format!("{} ms", ms(to.time_ns.saturating_sub(from.time_ns))),
        format!("virtual {:+}", change(from.virtual_bytes, to.virtual_bytes)),
        format!("resident {:+}", change(from.resident_bytes, to.resident_bytes)),
    ]);
    format!("p{at} -> p{} [label=\"{label}\"];\n", at + 1)
}
