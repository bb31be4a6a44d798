//! Parameters and results, with those that every benchmark has.

use super::Run;
use super::unit::ms;

/// Name and value, any bytes.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The parameters, each name once with its last value.
pub(crate) fn parameters(run: &Run) -> Vec<Pair> {
    each_once(Vec::new(), run.parameters)
}

/// The measured values under the names that CBS gives them, times in milliseconds and memory in bytes, then
/// the results that the program has added.
pub(crate) fn results(run: &Run) -> Vec<Pair> {
    let peak = run.points.iter().map(|point| point.virtual_bytes).max().unwrap_or(0);
    let resident = run.points.iter().map(|point| point.resident_bytes).max().unwrap_or(0);
    let first = run.points.first().map_or(0, |point| point.virtual_bytes);
    let cpu = run.run.cpu_ns().saturating_add(run.children.cpu_ns());
    let computed = [
        ("timer measures", run.timer_measures.saturating_add(1).to_string()),
        ("time", ms(cpu)),
        ("time (user)", ms(run.run.user_ns)),
        ("time (system)", ms(run.run.system_ns)),
        ("time (children, user)", ms(run.children.user_ns)),
        ("time (children, system)", ms(run.children.system_ns)),
        ("time (wall)", ms(run.run.wall_ns)),
        ("memory peak", peak.to_string()),
        ("relative memory usage", (peak - first.min(peak)).to_string()),
        ("memory peak (resident)", resident.to_string()),
    ];
    let overhead = run.measuring_cost.map(|cost| {
        let most_ns = cost.most_ns.max(cost.estimated_ns);
        [
            ("measuring overhead (estimated)", ms(overhead_ns(run, cost.estimated_ns))),
            ("measuring overhead (at most)", ms(overhead_ns(run, most_ns))),
        ]
    });
    let computed = computed.into_iter().chain(overhead.into_iter().flatten()).map(|(name, value)| (name.into(), value.into())).collect();
    each_once(computed, run.results)
}

/// The cost of measuring: the cost of one activation, times the activations that were measured. That is
/// less than one for each call where not all calls of a task are timed.
fn overhead_ns(run: &Run, each_ns: f64) -> u64 {
    (run.timer_measures as f64 * each_ns.max(0.0)).round() as u64
}

fn each_once(mut pairs: Vec<Pair>, more: &[(&[u8], &[u8])]) -> Vec<Pair> {
    for &(name, value) in more {
        match pairs.iter_mut().find(|(known, _)| known == name) {
            Some(pair) => pair.1 = value.into(),
            None => pairs.push((name.into(), value.into())),
        }
    }
    pairs
}
