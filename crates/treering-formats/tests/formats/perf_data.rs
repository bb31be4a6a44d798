//! Files of perf record, compared with what perf report prints, and small ones made by hand.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeMap;

use common::{Here, fixture};
use treering_formats::perf_data::{self, needs_unwinding};
use treering_formats::{Format, ReadReport, read_any};
use treering_profile::{FunctionKind, NodeId, Profile, Unit};

/// Samples by event, thread and file of the innermost frame.
type Table = BTreeMap<(String, String, String), u64>;

fn table(profile: &Profile) -> Table {
    let mut table = Table::new();
    for (metric, description) in profile.metrics() {
        let alone = description.name == "samples";
        let Some(event) = description.name.strip_suffix(" samples").or(alone.then_some("cpu-clock")) else {
            continue;
        };
        for node in profile.tree.nodes() {
            let cost = profile.tree.self_cost(metric, node);
            if cost > 0 {
                let module = profile.functions[profile.tree.function(node)].module.unwrap();
                let path = &profile.strings[profile.modules[module].path];
                let key = (event.to_owned(), thread_of(profile, node), file(path));
                *table.entry(key).or_default() += cost;
            }
        }
    }
    table
}

fn thread_of(profile: &Profile, mut node: NodeId) -> String {
    while let Some(parent) = profile.tree.parent(node) {
        node = parent;
    }
    profile.threads.iter().find(|thread| thread.root == node).unwrap().name.clone()
}

fn file(path: &str) -> String {
    match path.rsplit('/').next().unwrap() {
        "[kernel.kallsyms]" => "[kernel]".to_owned(),
        name => name.to_owned(),
    }
}

fn perf_report(name: &str) -> Table {
    let text = String::from_utf8(fixture(&format!("perf-data/{name}.tsv"))).unwrap();
    let row = |line: &str| {
        let cells: Vec<_> = line.split('\t').collect();
        ((cells[0].to_owned(), cells[2].to_owned(), file(cells[3])), cells[1].parse().unwrap())
    };
    text.lines().map(row).collect()
}

#[test]
fn samples_by_event_thread_and_file_are_those_of_perf_report() {
    for name in ["chains", "stacks", "events", "compressed", "pipe", "group"] {
        let (format, profile, report) = read_any(&fixture(&format!("perf-data/{name}.data"))).unwrap();
        assert_eq!(format, Format::PerfData);
        assert_eq!(table(&profile), perf_report(name), "{name}");
        let told = |what: &str| report.notes.iter().any(|note| note.contains(what));
        assert_eq!(told("a copy of the stack"), name == "stacks", "{report:?}");
        assert_eq!(told("the values of the others"), name == "group", "{report:?}");
        let notes = format!("{:?}", profile.metadata.notes);
        assert_eq!(notes.contains("no sample of cpu-clock has a caller"), name == "pipe", "{name}: {notes}");
        assert_eq!(needs_unwinding(&fixture(&format!("perf-data/{name}.data"))), name == "stacks");
    }
}

#[test]
fn events_cost_what_perf_report_adds_up() {
    let cost = |name: &str, metric: &str| {
        let profile = read_any(&fixture(&format!("perf-data/{name}.data"))).unwrap().1;
        let metric = profile.find_metric(metric).unwrap();
        (profile.run_cost(metric), profile.metrics[metric.index()].unit)
    };
    // "Event count (approx.)" of perf report.
    assert_eq!(cost("chains", "cpu-clock"), (446_700_496, Unit::Nanoseconds));
    assert_eq!(cost("compressed", "cpu-clock"), (447_811_399, Unit::Nanoseconds));
    assert_eq!(cost("events", "cpu-clock/period=20000000/"), (420_000_000, Unit::Nanoseconds));
    assert_eq!(cost("events", "page-faults/period=5/"), (65, Unit::Count));
}

#[test]
fn the_file_of_a_killed_recorder_is_read() {
    let mut file = fixture("perf-data/chains.data");
    // The size of the records and the list of features, which perf writes at its end.
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    file.truncate(number(40) + number(48));
    file[48..56].fill(0);
    file[72..104].fill(0);
    let (profile, report) = perf_data::read(&file).unwrap();
    assert_eq!(table(&profile), perf_report("chains"));
    assert!(report.unfinished);
    assert!(profile.find_metric("cpu-clock").is_some());
}

/// Writes a file by hand.
#[derive(Default)]
struct Writer {
    big_endian: bool,
    records: Vec<u8>,
}

const SAMPLE_TYPE: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8;

impl Writer {
    fn numbers<const N: usize>(&self, numbers: [u64; N]) -> Vec<u8> {
        numbers.iter().flat_map(|&number| self.u64(number)).collect()
    }

    fn u64(&self, number: u64) -> [u8; 8] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn u32(&self, number: u32) -> [u8; 4] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn u16(&self, number: u16) -> [u8; 2] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let size = u16::try_from(8 + body.len()).unwrap();
        let header = [&self.u32(kind)[..], &self.u16(misc), &self.u16(size)].concat();
        self.records.extend(header);
        self.records.extend(body);
    }

    /// The process and the time that other records than samples end with.
    fn mark(&self, time: u64) -> Vec<u8> {
        [&self.u32(7)[..], &self.u32(7), &self.u64(time)].concat()
    }

    fn map(&mut self, process: u32, [start, length, offset]: [u64; 3], path: &[u8], time: u64) {
        let numbers = self.numbers([start, length, offset]);
        let ids = [self.u32(process), self.u32(process)].concat();
        let body = [&ids[..], &numbers, path, &vec![0; 8 - path.len() % 8], &self.mark(time)].concat();
        self.record(1, 2, &body);
    }

    fn comm(&mut self, thread: u32, name: &[u8; 8], time: u64) {
        let body = [&self.u32(7)[..], &self.u32(thread), name, &self.mark(time)].concat();
        self.record(3, 0, &body);
    }

    fn fork(&mut self, process: u32, parent: u32, time: u64) {
        let ids = [process, parent, process, parent].map(|id| self.u32(id)).concat();
        let body = [ids, self.u64(time).to_vec(), self.mark(time)].concat();
        self.record(7, 0, &body);
    }

    fn sample(&mut self, process: u32, time: u64, period: u64, chain: &[u64]) {
        let ids = [self.u32(process), self.u32(process)].concat();
        let head = [&self.u64(chain[1])[..], &ids, &self.u64(time), &self.u64(period)].concat();
        let chain = chain.iter().flat_map(|&entry| self.u64(entry)).collect::<Vec<_>>();
        let count = self.u64(chain.len() as u64 / 8);
        self.record(9, 2, &[head, count.to_vec(), chain].concat());
    }

    fn file(&self) -> Vec<u8> {
        let magic = if self.big_endian { b"2ELIFREP" } else { b"PERFILE2" };
        let data = 104 + 80;
        let size = self.records.len() as u64;
        let header = self.numbers([104, 80, 104, 80, data, size, 0, 0, 0, 0, 0, 0]);
        // Frequency and times everywhere: bits 10 and 18, from the other end where the first bit is the highest.
        let flags: u64 = 1 << 10 | 1 << 18;
        let flags = if self.big_endian { flags.reverse_bits() } else { flags };
        let attribute =
            [&self.u32(1)[..], &self.u32(64), &self.numbers([0, 99, SAMPLE_TYPE, 0, flags, 0, 0])];
        let header = [magic.as_slice(), &header[..]].concat();
        [header, attribute.concat(), self.numbers([0, 0]), self.records.clone()].concat()
    }
}

const USER: u64 = (-512_i64) as u64;
const KERNEL: u64 = (-128_i64) as u64;

fn made(big_endian: bool) -> Vec<u8> {
    let mut writer = Writer { big_endian, ..Writer::default() };
    // Not in the order of time, as from two processors.
    writer.sample(7, 50, 5, &[KERNEL, 0xffff_9000, 0xffff_9101, USER, 0x5000_0010, 0x5000_0123]);
    writer.sample(8, 60, 7, &[USER, 0x5000_0020, 0x6000_0000]);
    writer.sample(9, 70, 11, &[USER, 0x5000_0020]);
    writer.map(7, [0x5000_0000, 0x2000, 0x1000], b"/bin/mix", 10);
    writer.comm(7, b"seven\0\0\0", 5);
    writer.fork(8, 7, 20);
    let kernel = writer.numbers([0xffff_8000, 0x10_0000, 0xffff_8000]);
    let ids = [writer.u32(u32::MAX), writer.u32(0)].concat();
    let name = b"[kernel.kallsyms]_text\0\0".as_slice();
    let body = [&ids[..], &kernel, name, &writer.mark(1)].concat();
    writer.record(1, 1, &body);
    let lost = [writer.numbers([0, 17]), writer.mark(80)].concat();
    writer.record(2, 0, &lost);
    writer.file()
}

fn stacks(profile: &Profile) -> Vec<(String, Vec<String>, u64)> {
    let metric = profile.find_metric("cpu-clock").unwrap();
    let name = |node: NodeId| {
        let function = profile.functions[profile.tree.function(node)];
        match (function.kind, function.address) {
            (FunctionKind::Address, Some(address)) => format!("{address}"),
            _ => profile.strings[function.name].to_owned(),
        }
    };
    let mut stacks = Vec::new();
    for leaf in profile.tree.nodes().filter(|&node| profile.tree.self_cost(metric, node) > 0) {
        let mut frames = Vec::new();
        let mut at = Some(leaf);
        while let Some(node) = at {
            at = profile.tree.parent(node);
            frames.extend(at.map(|_| name(node)));
        }
        frames.reverse();
        stacks.push((thread_of(profile, leaf), frames, profile.tree.self_cost(metric, leaf)));
    }
    stacks.sort();
    stacks
}

fn expected() -> Vec<(String, Vec<String>, u64)> {
    let row = |thread: &str, frames: &[&str], cost| {
        (thread.to_owned(), frames.iter().map(|&frame| frame.to_owned()).collect::<Vec<_>>(), cost)
    };
    let mut rows = vec![
        // Where calls return to is one behind the call; where the kernel was entered is not.
        row("seven", &["0x401122", "0x401010", "0xffff9100", "0xffff9000"], 5),
        // A forked process has the mappings of its parent; nothing is mapped at the second address.
        row("seven", &["[unknown]", "0x401020"], 7),
        row("", &["[unknown]"], 11),
    ];
    rows.sort();
    rows
}

#[test]
fn addresses_are_placed_by_mappings_in_the_order_of_time_in_both_byte_orders() {
    for big_endian in [false, true] {
        let (profile, report) = perf_data::read_with(&made(big_endian), &mut Here).unwrap();
        assert_eq!(stacks(&profile), expected(), "{big_endian}");
        assert_eq!(profile.metadata.losses.lost_samples, 17);
        assert_eq!(report.notes, ["samples are in no file that was mapped: 1"]);
    }
}

#[test]
fn samples_without_a_binary_are_noted() {
    let notes = |read: (Profile, ReadReport)| read.1.notes;
    let found = notes(perf_data::read(&made(false)).unwrap());
    assert!(found.iter().any(|note| note.starts_with("samples in the kernel have no names")), "{found:?}");
    assert!(found.iter().any(|note| note.starts_with("samples in /bin/mix have no names")), "{found:?}");
}

#[test]
fn damage_is_told_with_its_place() {
    let error = |bytes: &[u8]| perf_data::read(bytes).unwrap_err().to_string();
    assert_eq!(error(b"PERFILE2"), "byte 0x8: the file ends within its header");
    assert_eq!(error(b"PERFFILE\0"), "perf.data of perf before Linux 3.0 is not read");
    assert_eq!(error(b"PERF"), "not a perf.data file");
    assert_eq!(error(&Writer::default().file()), "it holds no samples");
    let mut file = made(false);
    file[184 + 6] = 7;
    assert_eq!(error(&file), "byte 0xb8: the record says that it has 7 bytes, and its header alone has 8");
    let mut file = fixture("perf-data/compressed.data");
    let data = 0x108;
    let at = (data..file.len() - 4).find(|&at| file[at..at + 4] == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    file[at..at + 24].fill(0xff);
    let damaged = error(&file);
    // The header of the record has 8 bytes.
    let place = format!("byte {:#x}: the record cannot be decompressed: ", at - 8);
    assert!(damaged.starts_with(&place), "{damaged}");
    // Another end than the stated one: what is there is read.
    let file = fixture("perf-data/chains.data");
    for length in [5_000, 10_000, file.len() - 1] {
        assert!(perf_data::read(&file[..length]).unwrap().1.unfinished, "{length}");
    }
    assert!(!perf_data::read(&file).unwrap().1.unfinished);
}
