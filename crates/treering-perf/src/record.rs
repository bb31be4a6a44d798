//! The records that the kernel writes into a ring, decoded (`perf_event_open(2)`, "MMAP layout").

use crate::registers::{self, Registers, Width};
use crate::sys::abi;

/// A record of the ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Sample(Sample<'a>),
    Mapped(Mapped<'a>),
    /// A thread took a name; `exec` when it did so by running another program.
    Named {
        pid: u32,
        tid: u32,
        name: &'a [u8],
        exec: bool,
        time: u64,
    },
    /// A thread or process was made by another.
    Forked {
        pid: u32,
        parent_pid: u32,
        tid: u32,
        /// The thread that made it.
        parent_tid: u32,
        time: u64,
    },
    Exited {
        pid: u32,
        tid: u32,
        time: u64,
    },
    /// An event's count in a thread that has ended, and how long the event counted there.
    Counted {
        tid: u32,
        event: u64,
        count: u64,
        running_ns: u64,
    },
    /// The ring was full.
    Lost {
        event: u64,
        samples: u64,
        time: u64,
    },
    /// The kernel paused sampling because it took too long.
    Throttled {
        event: u64,
    },
    /// A thread left a processor, or entered one. A thread that is preempted wants to go on; any
    /// other waits for something.
    Switched {
        pid: u32,
        tid: u32,
        time: u64,
        out: bool,
        preempted: bool,
    },
    /// A kind that we did not ask for, or that makes no sense.
    Other,
}

/// A sample.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    /// The event that it belongs to.
    pub(crate) event: u64,
    /// The very event that fired: a thread that inherits an event has one of its own.
    pub(crate) stream: u64,
    pub(crate) instruction: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time: u64,
    /// The counts that the sample stands for, as the kernel believes; stale where the period was
    /// changed after the event was opened.
    pub(crate) period: u64,
    /// Addresses by frame pointers, innermost first, with markers between the modes.
    pub(crate) chain: Chain<'a>,
    /// The record of the tracepoint, of events that ask for it.
    pub(crate) raw: Option<&'a [u8]>,
    /// The user's registers and the copy of its stack from the stack pointer up; nothing for
    /// kernel threads, and where no copy was asked for.
    pub(crate) stack: Option<(Registers, &'a [u8])>,
    /// How many bytes the kernel was about to copy: as many as were asked for and fit into a record.
    pub(crate) stack_room: usize,
}

/// Native 64-bit numbers in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain<'a>(&'a [u8]);

/// A mapping of a file or of memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mapped<'a> {
    pub(crate) pid: u32,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) file_offset: u64,
    /// The number of the file in its file system; 0 for none.
    pub(crate) inode: u64,
    pub(crate) executable: bool,
    pub(crate) path: &'a [u8],
}

impl Chain<'_> {
    /// Addresses taken while in the kernel, innermost first.
    pub(crate) fn kernel(&self) -> impl Iterator<Item = u64> {
        self.section(abi::PERF_CONTEXT_KERNEL)
    }

    /// Addresses of the user's frames, innermost first. Every one but the first is a return
    /// address.
    pub(crate) fn user(&self) -> impl Iterator<Item = u64> {
        self.section(abi::PERF_CONTEXT_USER)
    }

    /// The addresses between the marker `context` and the next marker.
    fn section(&self, context: u64) -> impl Iterator<Item = u64> {
        let (words, _) = self.0.as_chunks();
        let words = words.iter().map(|word| u64::from_ne_bytes(*word));
        let found = words.skip_while(move |&word| word != context).skip(1);
        found.take_while(|&word| word < abi::PERF_CONTEXT_MAX)
    }
}

/// Reads fields one after the other; nothing once they are used up.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*taken))
    }

    fn u32(&mut self) -> Option<u32> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*taken))
    }

    fn pair(&mut self) -> Option<(u32, u32)> {
        Some((self.u32()?, self.u32()?))
    }
}

/// The size of a record's header.
pub(crate) const HEADER: usize = 8;

/// The kind, flags and size, header included, that a record's first bytes state.
pub(crate) fn header(bytes: [u8; HEADER]) -> (u32, u16, usize) {
    let [a, b, c, d, e, f, g, h] = bytes;
    let kind = u32::from_ne_bytes([a, b, c, d]);
    (kind, u16::from_ne_bytes([e, f]), u16::from_ne_bytes([g, h]).into())
}

/// Where the time stands in a record of the given kind, counted from its start.
///
/// In a sample it follows identifier, address and thread; in all others it is in the trailer of
/// {thread, time, stream, processor, identifier} that `sample_id_all` adds.
pub(crate) fn time_position(kind: u32, size: usize) -> Option<usize> {
    match kind {
        abi::PERF_RECORD_SAMPLE => Some(HEADER + 24),
        _ => size.checked_sub(TRAILER - 8).filter(|&at| at >= HEADER),
    }
}

/// The size of that trailer: pid and tid, time, stream, processor, identifier.
const TRAILER: usize = 40;

/// The fields that samples of some events have, and those of others do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Whether they hold the record of a tracepoint.
    pub(crate) has_raw: bool,
    /// The counts that a sample stands for, where samples do not state it.
    pub(crate) period: Option<u64>,
}

/// Decodes a whole record, header included. `extent` says which fields the samples of an event have.
pub(crate) fn decode(record: &[u8], extent: impl FnOnce(u64) -> Extent) -> Record<'_> {
    let Some((first, body)) = record.split_first_chunk::<HEADER>() else { return Record::Other };
    let (kind, flags, _) = header(*first);
    let decoded = match kind {
        abi::PERF_RECORD_SAMPLE => sample(body, extent).map(Record::Sample),
        _ => body.split_last_chunk::<TRAILER>().and_then(|(body, trailer)| other(kind, flags, body, trailer)),
    };
    decoded.unwrap_or(Record::Other)
}

/// Decodes any record but a sample.
fn other<'a>(kind: u32, flags: u16, body: &'a [u8], trailer: &'a [u8; TRAILER]) -> Option<Record<'a>> {
    let mut trailer = Fields(trailer);
    let ((pid, tid), time) = (trailer.pair()?, trailer.u64()?);
    let (_stream, _processor, event) = (trailer.u64()?, trailer.u64()?, trailer.u64()?);
    let mut fields = Fields(body);
    Some(match kind {
        abi::PERF_RECORD_MMAP2 => Record::Mapped(mapped(&mut fields)?),
        abi::PERF_RECORD_COMM => {
            let (pid, tid) = fields.pair()?;
            let exec = u32::from(flags) & abi::PERF_RECORD_MISC_COMM_EXEC != 0;
            Record::Named { pid, tid, name: until_zero(fields.0), exec, time }
        }
        abi::PERF_RECORD_FORK => {
            let ((pid, parent_pid), (tid, parent_tid)) = (fields.pair()?, fields.pair()?);
            Record::Forked { pid, parent_pid, tid, parent_tid, time }
        }
        abi::PERF_RECORD_EXIT => {
            let ((pid, _), (tid, _)) = (fields.pair()?, fields.pair()?);
            Record::Exited { pid, tid, time }
        }
        abi::PERF_RECORD_READ => {
            let (_, tid) = fields.pair()?;
            Record::Counted { tid, event, count: fields.u64()?, running_ns: fields.u64()? }
        }
        abi::PERF_RECORD_LOST => Record::Lost { event, samples: fields.u64().and(fields.u64())?, time },
        abi::PERF_RECORD_LOST_SAMPLES => Record::Lost { event, samples: fields.u64()?, time },
        abi::PERF_RECORD_THROTTLE => Record::Throttled { event },
        abi::PERF_RECORD_SWITCH => {
            let set = |flag| u32::from(flags) & flag != 0;
            let out = set(abi::PERF_RECORD_MISC_SWITCH_OUT);
            let preempted = set(abi::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
            Record::Switched { pid, tid, time, out, preempted }
        }
        _ => Record::Other,
    })
}

fn mapped<'a>(fields: &mut Fields<'a>) -> Option<Mapped<'a>> {
    let (pid, _) = fields.pair()?;
    let (start, length, file_offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (_device, inode, _generation) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let (protection, _) = fields.pair()?;
    let executable = protection & libc::PROT_EXEC as u32 != 0;
    Some(Mapped { pid, start, length, file_offset, inode, executable, path: until_zero(fields.0) })
}

/// Decodes a sample with the fields that [`attribute`](crate::attribute) asks for.
fn sample(body: &[u8], extent: impl FnOnce(u64) -> Extent) -> Option<Sample<'_>> {
    let mut fields = Fields(body);
    let (event, instruction) = (fields.u64()?, fields.u64()?);
    let ((pid, tid), time, stream) = (fields.pair()?, fields.u64()?, fields.u64()?);
    fields.pair()?;
    let extent = extent(event);
    let period = extent.period.or_else(|| fields.u64())?;
    let frames = usize::try_from(fields.u64()?).ok()?;
    let chain = Chain(fields.bytes(frames.checked_mul(8)?)?);
    let raw = match extent.has_raw {
        true => {
            let size = fields.u32()?;
            Some(fields.bytes(usize::try_from(size).ok()?)?)
        }
        false => None,
    };
    let (stack, stack_room) = stack(&mut fields).unzip();
    let stack_room = stack_room.unwrap_or(0);
    Some(Sample { event, stream, instruction, pid, tid, time, period, chain, raw, stack, stack_room })
}

/// The registers with the copied stack, and the room that there was for the copy.
fn stack<'a>(fields: &mut Fields<'a>) -> Option<((Registers, &'a [u8]), usize)> {
    let words = fields.u64()?;
    if words == u64::from(abi::PERF_SAMPLE_REGS_ABI_NONE) {
        return None;
    }
    let mut registers = [0; registers::COUNT];
    for register in &mut registers {
        *register = fields.u64()?;
    }
    let size = usize::try_from(fields.u64()?).ok()?;
    let copy = fields.bytes(size)?;
    let used = if size > 0 { usize::try_from(fields.u64()?).ok()? } else { 0 };
    let width = match words == u64::from(abi::PERF_SAMPLE_REGS_ABI_64) {
        true => Width::Bits64,
        false => Width::Bits32,
    };
    Some(((Registers::from_sampled(width, registers), &copy[..used.min(size)]), size))
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, flags: u32, body: &[u64]) -> Vec<u8> {
        let size = (HEADER + body.len() * 8) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend((flags as u16).to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn pair(low: u64, high: u64) -> u64 {
        high << 32 | low
    }

    fn sample_record() -> Vec<u8> {
        let contexts = [abi::PERF_CONTEXT_KERNEL, abi::PERF_CONTEXT_USER];
        let chain = [6, contexts[0], 0xf1, 0xf2, contexts[1], 0x11, 0x12];
        let registers = [1, 2, 3, 4, 5, 6, 0xb0, 0x50, 0x11, 8, 9, 10, 11, 12, 13, 14, 15];
        let stack = [2].into_iter().chain(registers).chain([16, 0xaaaa, 0xbbbb, 8]);
        let mut body = vec![9, 0x11, pair(7, 8), 1000, 77, pair(1, 0), 500];
        body.extend(chain);
        body.extend(stack);
        record(abi::PERF_RECORD_SAMPLE, 2, &body)
    }

    #[test]
    fn a_sample_has_its_modes_and_only_the_used_part_of_the_stack() {
        let bytes = sample_record();
        let Record::Sample(sample) = decode(&bytes, |_| Extent::default()) else { panic!("not a sample") };
        assert_eq!((sample.event, sample.stream, sample.pid, sample.tid), (9, 77, 7, 8));
        assert_eq!((sample.time, sample.period), (1000, 500));
        assert_eq!(sample.chain.kernel().collect::<Vec<_>>(), [0xf1, 0xf2]);
        assert_eq!(sample.chain.user().collect::<Vec<_>>(), [0x11, 0x12]);
        let (registers, copy) = sample.stack.expect("a stack");
        assert_eq!(registers.width, Width::Bits64);
        assert_eq!((registers.base(), registers.stack(), registers.instruction()), (0xb0, 0x50, 0x11));
        assert_eq!((copy, sample.stack_room), (&0xaaaa_u64.to_ne_bytes()[..], 16));
        let at = time_position(abi::PERF_RECORD_SAMPLE, bytes.len()).expect("a time");
        assert_eq!(bytes[at..at + 8], 1000_u64.to_ne_bytes());
    }

    #[test]
    fn a_sample_that_does_not_state_its_period_has_that_of_its_event() {
        let body = [9, 0x11, pair(7, 8), 1000, 77, pair(1, 0), 1, abi::PERF_CONTEXT_KERNEL];
        let bytes = record(abi::PERF_RECORD_SAMPLE, 2, &body);
        let extent = |event| Extent { has_raw: false, period: Some(event + 1) };
        let Record::Sample(sample) = decode(&bytes, extent) else { panic!("not a sample") };
        assert_eq!((sample.tid, sample.period), (8, 10));
        assert_eq!(sample.chain.kernel().count(), 0);
    }

    #[test]
    fn the_record_of_a_tracepoint_comes_before_the_stack() {
        let chain = [1, abi::PERF_CONTEXT_KERNEL];
        let mut body = vec![9, 0x11, pair(7, 8), 1000, 77, pair(1, 0), 1];
        body.extend(chain);
        body.extend([pair(12, 0xa1), pair(0xa2, 0xa3), 0]);
        let bytes = record(abi::PERF_RECORD_SAMPLE, 2, &body);
        let Record::Sample(sample) = decode(&bytes, |event| Extent { has_raw: event == 9, period: None })
        else {
            panic!("not a sample")
        };
        let words = [0xa1_u32, 0xa2, 0xa3].map(u32::to_ne_bytes).concat();
        assert_eq!((sample.raw, sample.stack), (Some(&words[..]), None));
    }

    #[test]
    fn the_time_of_any_other_record_is_in_its_trailer() {
        let trailer = [pair(3, 4), 777, 9, 0, 9];
        let body: Vec<u64> =
            [pair(3, 4)].into_iter().chain([u64::from_ne_bytes(*b"prog\0\0\0\0")]).chain(trailer).collect();
        let bytes = record(abi::PERF_RECORD_COMM, abi::PERF_RECORD_MISC_COMM_EXEC, &body);
        let expected = Record::Named { pid: 3, tid: 4, name: b"prog", exec: true, time: 777 };
        assert_eq!(decode(&bytes, |_| Extent::default()), expected);
        let at = time_position(abi::PERF_RECORD_COMM, bytes.len()).expect("a time");
        assert_eq!(bytes[at..at + 8], 777_u64.to_ne_bytes());
    }

    #[test]
    fn counts_of_a_thread_name_the_event_in_their_trailer() {
        let bytes = record(abi::PERF_RECORD_READ, 0, &[pair(3, 4), 12_345, 99, pair(3, 4), 777, 11, 0, 9]);
        let expected = Record::Counted { tid: 4, event: 9, count: 12_345, running_ns: 99 };
        assert_eq!(decode(&bytes, |_| Extent::default()), expected);
    }

    #[test]
    fn no_prefix_of_a_record_panics() {
        let bytes = sample_record();
        for length in 0..bytes.len() {
            decode(&bytes[..length], |_| Extent::default());
            decode(&bytes[..length], |_| Extent { has_raw: true, period: Some(1) });
        }
    }
}
