//! Costs by the size of the largest argument, and how they grow.

use core::fmt::Write as _;

use super::{label, plural};
use crate::listing::Listing;
use crate::tables::{SizeClass, Tables};

/// Of how many functions sizes are printed where nothing else was asked for.
const FUNCTIONS: usize = 10;

/// Sizes of the functions with the largest total time.
pub(super) fn sizes(tables: &Tables, listing: &Listing) -> String {
    let mut functions: Vec<usize> = tables.sizes.keys().copied().collect();
    functions.sort_by(|&a, &b| tables.functions[b].total_s.total_cmp(&tables.functions[a].total_s));
    let shown = functions.len().min(listing.top.unwrap_or(FUNCTIONS));
    let mut text = String::from("costs by the number of elements of the largest argument, as measured\n");
    for &at in &functions[..shown] {
        let rows = &tables.sizes[&at];
        let growth =
            exponent(rows).map_or_else(String::new, |exponent| format!(": grows about as n^{exponent:.2}"));
        let _ = writeln!(text, "\n{}{growth}", label(tables, at));
        let _ = writeln!(text, "               elements      calls    ms/call");
        for row in rows {
            let ms = row.total_s * 1e3 / row.calls as f64;
            let elements = match row.least() {
                least if least < 2.0 => format!("{least}"),
                least => format!("{least} to {}", 2.0 * least - 1.0),
            };
            let _ = writeln!(text, "{elements:>23} {:10} {ms:10.4}", row.calls);
        }
    }
    if shown < functions.len() {
        let _ =
            writeln!(text, "\nsizes of {} are left out", plural(functions.len() - shown, "other function"));
    }
    text
}

/// The exponent of a power law: weighted least squares of the logarithms of cost and size, as in
/// `treering report --callgraph`, which tells its bounds too. Nothing for fewer than three classes.
fn exponent(rows: &[SizeClass]) -> Option<f64> {
    let points: Vec<[f64; 3]> = rows
        .iter()
        .filter(|row| row.class > 1 && row.total_s > 0.0)
        .map(|row| {
            let calls = row.calls as f64;
            [(row.least() * core::f64::consts::SQRT_2).ln(), (row.total_s / calls).ln(), calls.sqrt()]
        })
        .collect();
    if points.len() < 3 {
        return None;
    }
    let weight: f64 = points.iter().map(|point| point[2]).sum();
    let mean = |of: usize| points.iter().map(|point| point[2] * point[of]).sum::<f64>() / weight;
    let (x, y) = (mean(0), mean(1));
    let spread: f64 = points.iter().map(|point| point[2] * (point[0] - x).powi(2)).sum();
    let both: f64 = points.iter().map(|point| point[2] * (point[0] - x) * (point[1] - y)).sum();
    Some(both / spread).filter(|exponent| exponent.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_recovered() {
        for power in [1, 2] {
            let rows: Vec<SizeClass> = (2..8)
                .map(|class| SizeClass { class, calls: 3, total_s: 3e-6 * 2_f64.powi(power * class as i32) })
                .collect();
            assert!((exponent(&rows).unwrap() - f64::from(power)).abs() < 1e-9);
            assert_eq!(exponent(&rows[..2]), None);
        }
    }
}
