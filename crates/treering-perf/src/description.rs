//! The description of a recording in its profile.

use treering_profile::{Metric, MetricId, Profile, Sampling, Unit};

use crate::attribute::Pace;
use crate::event::Nature;
use crate::options::Options;
use crate::session::{Purpose, Sampled, Session};
use crate::sys::is_root;

/// A cost and a count of samples for every event that is not there for its stacks alone.
pub(crate) fn add_metrics(profile: &mut Profile, session: &Session) -> Vec<(MetricId, MetricId)> {
    let counted: Vec<&Sampled> =
        session.events.iter().filter(|event| event.purpose == Purpose::Costs).collect();
    let alone = counted.len() == 1;
    let mut metrics = Vec::new();
    for sampled in counted {
        let name = &sampled.event.name;
        let unit = match sampled.event.nature() {
            Nature::Clock => Unit::Nanoseconds,
            _ => Unit::Count,
        };
        let cost = profile.add_metric(Metric::exact(name.clone(), unit));
        let count = if alone { "samples".to_owned() } else { format!("{name} samples") };
        let count = profile.add_metric(Metric::exact(count, Unit::Count));
        profile.metrics[cost.index()].sampling = sampling(sampled, count);
        metrics.push((cost, count));
    }
    metrics
}

/// How an event is sampled; nothing where every occurrence is noted.
fn sampling(sampled: &Sampled, counted_by: MetricId) -> Option<Sampling> {
    let (period, jittered) = match sampled.pace {
        Pace::Period(1) => return None,
        Pace::Period(period) => (Some(period), sampled.jittered),
        Pace::Frequency(_) => (None, false),
    };
    Some(Sampling { counted_by: counted_by.raw(), period, jittered: Some(jittered), weights: None })
}

/// Tells how the profile was made.
pub(crate) fn describe(profile: &mut Profile, options: &Options, session: &Session) {
    let metadata = &mut profile.metadata;
    metadata.collector = "treering record".to_owned();
    metadata.version = env!("CARGO_PKG_VERSION").to_owned();
    let counted = session.events.iter().filter(|event| event.purpose == Purpose::Costs);
    let events: Vec<_> = counted.map(|sampled| sampled.event.name.clone()).collect();
    let stacks = match session.stack_bytes {
        0 => "frame pointers".to_owned(),
        bytes => format!("unwind tables over {bytes} bytes of stack, then frame pointers"),
    };
    let modes = if session.kernel { "user and kernel" } else { "user" };
    let parameters = [
        ("events", events.join(",")),
        ("frequency", options.frequency.to_string()),
        ("intervals", if options.jitter { "random" } else { "fixed" }.to_owned()),
        ("modes", modes.to_owned()),
        ("stacks", stacks),
    ];
    metadata.parameters.extend(parameters.map(|(key, value)| (key.to_owned(), value)));
    if options.events.is_empty() && events == ["cpu-clock"] {
        metadata
            .note("this machine has no hardware counters: time is sampled by the kernel's timer (cpu-clock)");
    }
    if options.kernel && !session.kernel {
        metadata.note("the kernel's own frames and time are left out: this user may not sample them");
    }
    if options.off_cpu && !session.kernel {
        metadata.note(
            "stacks of blocked threads are those of their nearest samples, and unknown before a thread's first one: only \
             root may sample the switch itself",
        );
    }
    if options.off_cpu
        && let Err(refusal) = &session.wakings
    {
        metadata.note(refusal.to_string());
    }
    metadata.machine = machine();
}

/// The machine that the recording was made on.
fn machine() -> std::collections::BTreeMap<String, String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model =
        cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    let cpus = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    let facts = [
        ("kernel", kernel.trim().to_owned()),
        ("cpu", model.unwrap_or("unknown").to_owned()),
        ("cpus", cpus.to_string()),
        ("user", if is_root() { "root" } else { "not root" }.to_owned()),
    ];
    facts.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
