//! The events of a `perf.data` file: what was sampled, and which fields its samples have.

use crate::perf_data::file::Fields;

/// Fields of samples (`PERF_SAMPLE_*` of `perf_event_open(2)`).
pub(crate) mod sample {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// An event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// `PERF_TYPE_*` and the number in it.
    kind: (u32, u64),
    /// The period, unless a frequency was asked for.
    pub(crate) period: Option<u64>,
    /// The fields of samples.
    pub(crate) fields: u64,
    /// The fields of the values of counters.
    pub(crate) read_format: u64,
    /// Whether other records have a time, a thread and so on at their end.
    pub(crate) marks_all: bool,
    /// Whether call chains are branches that the processor recorded, rather than those of the kernel.
    pub(crate) chains_by_branches: bool,
    /// The name, if the file has one.
    pub(crate) name: String,
    /// By which samples name it.
    pub(crate) ids: Vec<u64>,
}

impl Event {
    /// Reads a `struct perf_event_attr`; gives the size that it states as well.
    pub(crate) fn parse(fields: &mut Fields<'_>) -> Option<(Self, u32)> {
        let start = fields.at();
        let kind = fields.u32()?;
        let stated = fields.u32()?;
        let config = fields.u64()?;
        let period = fields.u64()?;
        let sample = fields.u64()?;
        let read_format = fields.u64()?;
        let flags = fields.u64()?;
        // The first bit of a bit field is the most significant one there.
        let flags = if fields.big_endian() { flags.reverse_bits() } else { flags };
        let branches = fields.from(start + 72).and_then(|mut at| at.u64()).filter(|_| stated >= 80);
        const FREQUENCY: u64 = 1 << 10;
        const SAMPLE_ID_ALL: u64 = 1 << 18;
        const CALL_STACK: u64 = 1 << 11;
        let event = Self {
            kind: (kind, config),
            period: Some(period).filter(|_| flags & FREQUENCY == 0),
            fields: sample,
            read_format,
            marks_all: flags & SAMPLE_ID_ALL != 0,
            chains_by_branches: sample & sample::BRANCH_STACK != 0
                && branches.is_some_and(|kinds| kinds & CALL_STACK != 0),
            ..Self::default()
        };
        Some((event, stated))
    }

    /// Whether callers are yet to be found, in a copy of the stack or in a record of branches.
    pub(crate) fn needs_unwinding(&self) -> bool {
        self.fields & sample::STACK_USER != 0 || self.chains_by_branches
    }

    /// Whether samples have the values of other events with them.
    pub(crate) fn reads_group(&self) -> bool {
        const GROUP: u64 = 1 << 3;
        self.fields & sample::READ != 0 && self.read_format & GROUP != 0
    }

    /// Its name, or what its numbers stand for.
    pub(crate) fn name(&self) -> String {
        const SOFTWARE: [&str; 12] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
            "bpf-output",
            "cgroup-switches",
        ];
        const HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let (kind, config) = self.kind;
        let known = |names: &[&str]| names.get(usize::try_from(config).ok()?).map(|name| (*name).to_owned());
        let known = match kind {
            0 => known(&HARDWARE),
            1 => known(&SOFTWARE),
            _ => None,
        };
        known.unwrap_or_else(|| format!("event {kind}:{config:#x}"))
    }

    /// How many bytes from the start of a sample its time has, and from the end of another record.
    pub(crate) fn time_at(&self) -> Option<(usize, usize)> {
        use sample::{CPU, ID, IDENTIFIER, IP, STREAM_ID, TID, TIME};
        let bytes = |mask: u64| (self.fields & mask).count_ones() as usize * 8;
        let from_end = bytes(TIME | ID | STREAM_ID | CPU | IDENTIFIER);
        (self.fields & TIME != 0).then(|| (bytes(IDENTIFIER | IP | TID), from_end))
    }

    /// How many bytes from the start of a sample the event's identifier has.
    pub(crate) fn id_at(&self) -> Option<usize> {
        use sample::{ADDR, ID, IDENTIFIER, IP, TID, TIME};
        if self.fields & IDENTIFIER != 0 {
            return Some(0);
        }
        let before = (self.fields & (IP | TID | TIME | ADDR)).count_ones() as usize * 8;
        (self.fields & ID != 0).then_some(before)
    }
}
