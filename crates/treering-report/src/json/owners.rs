//! Threads, processes and metrics as JSON.

use serde::Serialize;
use treering_analysis::{Basis, OwnerCost, process_costs, thread_costs};
use treering_profile::{Profile, Unit};

use super::{RunObject, bounds, run, text};
use crate::options::Options;
use crate::owners::counts_samples_of;

#[derive(Serialize)]
struct OwnerObject<'a> {
    run_number: usize,
    pid: u32,
    process: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_count: Option<usize>,
    total_cost: u64,
    total_samples: Option<u64>,
    total_low: Option<u64>,
    total_high: Option<u64>,
}

/// The cost of every thread as JSON: `run` and `threads`.
pub fn threads_json(profile: &Profile, basis: &Basis, options: &Options) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        threads: Vec<OwnerObject<'a>>,
    }
    let threads = owners(profile, basis, &thread_costs(profile, basis), options);
    text(&Document { view: "threads", run: run(profile, basis), threads })
}

/// The cost of every process as JSON: `run` and `processes`.
pub fn processes_json(profile: &Profile, basis: &Basis, options: &Options) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        processes: Vec<OwnerObject<'a>>,
    }
    let processes = owners(profile, basis, &process_costs(profile, basis), options);
    text(&Document { view: "processes", run: run(profile, basis), processes })
}

fn owners<'a>(
    profile: &'a Profile,
    basis: &Basis,
    owners: &[OwnerCost],
    options: &Options,
) -> Vec<OwnerObject<'a>> {
    let shown = owners.iter().filter(|of| basis.share(of.cost.cost) >= options.min_share);
    shown.take(options.limit.unwrap_or(usize::MAX)).map(|of| owner(profile, basis, of)).collect()
}

fn owner<'a>(profile: &'a Profile, basis: &Basis, of: &OwnerCost) -> OwnerObject<'a> {
    let process = &profile.processes[of.process.index()];
    let thread = of.thread.map(|thread| &profile.threads[thread.index()]);
    let (total_low, total_high) = bounds(of.interval(basis), basis.run.cost);
    OwnerObject {
        run_number: process.run.index() + 1,
        pid: process.pid,
        process: &process.name,
        tid: thread.map(|thread| thread.tid),
        thread: thread.map(|thread| thread.name.as_str()),
        thread_count: of.thread.is_none().then_some(of.threads),
        total_cost: of.cost.cost,
        total_samples: basis.samples.map(|_| of.cost.samples),
        total_low,
        total_high,
    }
}

#[derive(Serialize)]
struct MetricObject<'a> {
    name: &'a str,
    unit: Unit,
    run_cost: u64,
    samples: Option<u64>,
    counts_samples_of: Option<String>,
    is_level: bool,
}

/// The metrics of a profile as JSON: `metrics`.
pub fn metrics_json(profile: &Profile) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        metrics: Vec<MetricObject<'a>>,
    }
    let shown = profile.metrics().filter(|&(id, _)| !profile.holds_weights(id));
    let metric = |(id, metric): (_, &'_ treering_profile::Metric)| MetricObject {
        name: &profile.metrics[treering_profile::MetricId::index(id)].name,
        unit: metric.unit,
        run_cost: profile.run_cost(id),
        samples: metric.counted_by().map(|by| profile.run_cost(by)),
        counts_samples_of: counts_samples_of(profile, id),
        is_level: metric.is_level,
    };
    text(&Document { view: "metrics", metrics: shown.map(metric).collect() })
}
