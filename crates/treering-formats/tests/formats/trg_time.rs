//! `.trg` files with the times of costs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use treering_formats::trg::{self, Damage, Kind};
use treering_profile::{
    EndedWaits, Life, LostSamples, Mark, MarkKind, Metric, MetricId, NodeId, Profile, ThreadId, Timeline,
    Unit, Wait, Waits, WakerKind, Waking,
};
use treering_testing::synthetic::{Shape, synthetic};

const MS: u64 = 1_000_000;

fn written(profile: &Profile) -> Vec<u8> {
    let mut file = Vec::new();
    trg::write(profile, &mut file).unwrap();
    file
}

/// A profile whose metric 0 has a cost of each node in some slots.
fn with_times(shape: &Shape, slots: u64, each: u64) -> Profile {
    let mut profile = synthetic(shape);
    let mut timeline = Timeline::new();
    let nodes = profile.tree.len() as u64;
    let mut costs = vec![0; nodes as usize];
    for at in 0..slots * each {
        let node = at * 7919 % nodes;
        timeline.add(at / each * MS, MetricId::new(0), (NodeId::new(node as u32), None), 1);
        costs[node as usize] += 1;
    }
    profile.tree.set_self_costs(MetricId::new(0), costs);
    profile.line_costs.retain(|cost| cost.metric != MetricId::new(0));
    timeline.compact();
    profile.timeline = Some(timeline);
    profile
}

/// The same with something of every other kind.
fn with_everything() -> Profile {
    let mut profile = with_times(&Shape::SMALL, 20, 10);
    let time = profile.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
    let count = profile.add_metric(Metric::exact("waits", Unit::Count));
    let name = profile.strings.intern("sort");
    let thread = ThreadId::new(1);
    let timeline = profile.timeline.as_mut().unwrap();
    for (start_ns, end_ns, preempted) in [(3, 900, false), (2 * MS, 9 * MS, true)] {
        let (node, waking) = (NodeId::new(5), None);
        timeline.add_wait(time, count, Wait { start_ns, end_ns, node, preempted, waking });
    }
    timeline.lives = vec![
        Life { thread: ThreadId::new(0), start_ns: None, end_ns: Some(20 * MS) },
        Life { thread, start_ns: Some(0), end_ns: None },
    ];
    timeline.marks = vec![
        Mark { time_ns: 5, end_ns: None, thread, kind: MarkKind::Exec, name },
        Mark { time_ns: 7, end_ns: Some(19), thread, kind: MarkKind::Mark, name },
    ];
    timeline.losses = vec![LostSamples { time_ns: 11, samples: 300 }];
    timeline.clock_steps_back = 4;
    timeline.extend_to(25 * MS);
    timeline.compact();
    assert_eq!(profile.validate(), Ok(()));
    profile
}

/// The same with waits whose wakers are known.
fn with_wakings() -> Profile {
    let mut profile = with_everything();
    let waking = Waking { woken_ns: 700, kind: WakerKind::Thread, waker: Some(NodeId::new(3)) };
    let timeline = profile.timeline.as_mut().unwrap();
    let Waits { time, count, .. } = *timeline.waits.as_ref().unwrap();
    for (start_ns, waking) in [
        (4, Some(waking)),
        (5, None),
        (3 * MS, Some(Waking { kind: WakerKind::Interrupt, waker: None, ..waking })),
    ] {
        let (end_ns, node) = (9 * MS, NodeId::new(5));
        timeline.add_wait(time, count, Wait { start_ns, end_ns, node, preempted: false, waking });
    }
    timeline.compact();
    assert_eq!(profile.validate(), Ok(()));
    profile
}

#[test]
fn times_are_read_as_they_were_written() {
    let profile = with_wakings();
    let (read, report) = trg::read(&written(&profile)).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(read.timeline, profile.timeline);
}

fn ends(waiting: u32, kind: WakerKind, waker: Option<u32>, waits: u64) -> EndedWaits {
    EndedWaits {
        waiting: NodeId::new(waiting),
        kind,
        waker: waker.map(NodeId::new),
        waits,
        time_ns: 10 * waits,
    }
}

#[test]
fn ends_of_waits_are_read_as_they_were_written() {
    let mut profile = with_everything();
    profile.ended_waits = vec![
        ends(5, WakerKind::Thread, Some(3), 7),
        ends(5, WakerKind::Interrupt, None, 1),
        ends(9, WakerKind::Program, Some(2), 4),
    ];
    let (read, report) = trg::read(&written(&profile)).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(read.ended_waits, profile.ended_waits);
    profile.ended_waits[0].waker = Some(NodeId::new(profile.tree.len() as u32));
    let (read, report) = trg::read(&written(&profile)).unwrap();
    assert!(!report.is_complete() && read.ended_waits.is_empty(), "{report:?}");
}

#[test]
fn ends_of_waits_that_grow_are_appended() {
    let mut profile = synthetic(&Shape::SMALL);
    let mut file = Vec::new();
    let mut appender = trg::Appender::new(&mut file).unwrap();
    profile.ended_waits = vec![ends(9, WakerKind::Thread, Some(3), 7)];
    appender.append(&profile).unwrap();
    appender.append(&profile).unwrap();
    profile.ended_waits[0] = ends(9, WakerKind::Thread, Some(3), 8);
    profile.ended_waits.push(ends(5, WakerKind::KernelThread, None, 2));
    appender.append(&profile).unwrap();
    profile.ended_waits.push(ends(5, WakerKind::SoftInterrupt, Some(1), 1));
    appender.finish(&profile).unwrap();
    let (read, report) = trg::read(&file).unwrap();
    assert!(report.is_complete(), "{report:?}");
    profile.compact_ended_waits();
    assert_eq!(read.ended_waits, profile.ended_waits);
    assert_eq!(read.ended_waits.iter().map(|row| row.waits).sum::<u64>(), 11);
}

#[test]
fn readers_that_do_not_know_times_have_the_same_costs() {
    let profile = with_wakings();
    let file = written(&profile);
    let mut without = profile.clone();
    without.timeline = None;
    // To such a reader the frames are of kinds that do not exist.
    let mut unknown = Vec::new();
    for row in trg::dump(&file).unwrap() {
        let json = row.json();
        let (offset, kind) =
            (json["offset"].as_u64().unwrap() as usize, json["kind"].as_str().unwrap().to_owned());
        let of_time = ["TIMELINE", "TIME_COSTS", "WAITS", "LIVES", "MARKS", "LOST_SAMPLES", "WAKINGS"];
        if of_time.contains(&kind.as_str()) {
            unknown.push(offset);
        }
    }
    assert_eq!(unknown.len(), 7);
    let mut old = file.clone();
    for &offset in &unknown {
        let length = u32::from_le_bytes(old[offset + 8..offset + 12].try_into().unwrap()) as usize;
        old[offset..offset + 2].copy_from_slice(&900_u16.to_le_bytes());
        let checksum = crc32c::crc32c_append(
            crc32c::crc32c(&old[offset..offset + 12]),
            &old[offset + 16..offset + 16 + length],
        );
        old[offset + 12..offset + 16].copy_from_slice(&checksum.to_le_bytes());
    }
    let (read, _) = trg::read(&old).unwrap();
    assert_eq!(read.timeline, None);
    assert_eq!(crate::common::canonical(&read), crate::common::canonical(&without));
}

#[test]
fn times_that_grow_are_appended_and_joined_ones_are_stated_anew() {
    let mut profile = with_wakings();
    let whole = profile.timeline.take().unwrap();
    profile.timeline = Some(Timeline::new());
    let (time, count) = (whole.waits.as_ref().unwrap().time, whole.waits.as_ref().unwrap().count);
    let mut file = Vec::new();
    let mut appender = trg::Appender::new(&mut file).unwrap();
    for (at, cost) in whole.costs.iter().enumerate() {
        let timeline = profile.timeline.as_mut().unwrap();
        timeline.add(u64::from(cost.slot) * MS, cost.metric, (cost.node, cost.line), cost.amount);
        if at % 50 == 0 {
            appender.append(&profile).unwrap();
        }
        if at == 120 {
            profile.timeline.as_mut().unwrap().coarsen();
        }
    }
    let timeline = profile.timeline.as_mut().unwrap();
    for wait in &whole.waits.as_ref().unwrap().intervals {
        timeline.add_wait(time, count, *wait);
    }
    appender.append(&profile).unwrap();
    appender.finish(&profile).unwrap();
    let (read, report) = trg::read(&file).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let mut expected = profile.timeline.unwrap();
    let revision = expected.revision;
    expected.compact();
    expected.revision = revision;
    assert_eq!(expected.slot_ns, 2 * MS);
    assert_eq!(read.timeline, Some(expected));
}

/// A file may be a quarter longer for its times, or 64 KiB.
#[test]
fn slots_are_joined_until_times_take_a_quarter_of_a_file() {
    let shape = Shape { nodes: 30_000, ..Shape::SMALL };
    let mut profile = with_times(&shape, 20_000, 40);
    let file = written(&profile);
    let (read, _) = trg::read(&file).unwrap();
    let (before, after) = (profile.timeline.take().unwrap(), read.timeline.clone().unwrap());
    let without = written(&profile);
    assert!(
        file.len() <= without.len() + (without.len() / 4).max(64 << 10) + 200,
        "{} {}",
        file.len(),
        without.len()
    );
    assert!(after.slot_ns > before.slot_ns && after.slot_ns.is_multiple_of(before.slot_ns));
    let sum = |timeline: &Timeline| timeline.costs.iter().map(|cost| cost.amount).sum::<u64>();
    assert_eq!((sum(&after), after.length_ns), (sum(&before), before.length_ns));
    let small = with_times(&Shape::SMALL, 100, 10);
    assert_eq!(trg::read(&written(&small)).unwrap().0.timeline, small.timeline);
}

#[test]
fn times_that_fit_nothing_are_reported() {
    let profile = with_everything();
    let whole = written(&profile);
    let end = trg::dump(&whole).unwrap().last().unwrap().json()["offset"].as_u64().unwrap() as usize;
    let missing = "a cost of a slot refers to something missing";
    // In columns of one row, as differences where the page says so; the profile has 25 slots.
    let wrong: &[(Kind, &[u8], &str)] = &[
        (Kind::Timeline, &[1, 0, 9, 0, 1, 0, 0], "it has too many slots"),
        (Kind::Timeline, &[1, 1, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 1, 0, 0], "it has too many slots"),
        (Kind::Timeline, &[1, 1, 9, 0, 1, 99, 99], "the metrics of waits are missing"),
        (Kind::Timeline, &[1, 1, 9, 0, 1, 1, 0], "a metric of waits is missing"),
        (Kind::TimeCosts, &[1, 60, 0, 0, 0, 1], missing),
        (Kind::TimeCosts, &[1, 0, 90, 0, 0, 1], missing),
        (Kind::TimeCosts, &[1, 0, 0, 0xfe, 0x7f, 0, 1], missing),
        (Kind::TimeCosts, &[1, 0, 0, 0, 0xfe, 0x7f, 1], missing),
        (Kind::Waits, &[1, 8, 2, 0, 0], "a wait refers to something missing"),
        (Kind::Lives, &[1, 90, 0, 0], "the thread of a life is missing"),
        (Kind::Marks, &[1, 0, 0, 90, 0, 0], "a mark refers to something missing"),
        (Kind::Marks, &[1, 0, 0, 0, 9, 0], "a mark is of an unknown kind"),
    ];
    for &(kind, payload, said) in wrong {
        let mut file = whole[..end].to_vec();
        let mut head = Vec::new();
        head.extend((kind as u16).to_le_bytes());
        head.extend(1_u16.to_le_bytes());
        head.extend((payload.len() as u32).to_le_bytes());
        head.extend((payload.len() as u32).to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&head), payload);
        file.extend(&head);
        file.extend(checksum.to_le_bytes());
        file.extend(payload);
        let (read, report) = trg::read(&file).unwrap();
        let damage: Vec<_> = report.losses.iter().map(|loss| &loss.damage).collect();
        assert_eq!(damage, [&Damage::Content(said)], "{kind} {payload:?}");
        assert_eq!(read.timeline, profile.timeline, "{kind} {payload:?}");
    }
}

/// Later versions read what the first one with times wrote. The file is a seed of the fuzzer, too.
#[test]
fn the_fixture_with_times_is_read() {
    let (read, report) = trg::read(&crate::common::fixture("trg/timed.trg")).unwrap();
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(read.timeline, with_everything().timeline);
}

#[test]
#[ignore = "writes the fixture anew"]
fn write_the_fixture_with_times() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/formats/trg/timed.trg");
    std::fs::write(path, written(&with_everything())).unwrap();
}
