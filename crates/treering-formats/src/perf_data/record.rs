//! The contents of records of the kernel.

use crate::perf_data::event::{Event, sample};
use crate::perf_data::file::{Fields, Record, kind};

/// A sample.
#[derive(Debug)]
pub(crate) struct Sample<'a> {
    pub(crate) ip: Option<u64>,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) period: Option<u64>,
    pub(crate) chain: Option<Fields<'a>>,
}

impl<'a> Sample<'a> {
    /// The fields up to the call chain, in the order of `perf_event_open(2)`.
    pub(crate) fn parse(record: Record<'a>, event: &Event, big_endian: bool) -> Option<Self> {
        use sample::{ADDR, CALLCHAIN, CPU, ID, IDENTIFIER, IP, PERIOD, READ, STREAM_ID, TID, TIME};
        let mut fields = Fields::new(record.body, big_endian);
        let has = |field: u64| event.fields & field != 0;
        let mut number =
            |field: u64| has(field).then(|| fields.u64()).map_or(Some(None), |read| read.map(Some));
        number(IDENTIFIER)?;
        let ip = number(IP)?;
        let (process, thread) = match has(TID) {
            true => (fields.u32()?, fields.u32()?),
            false => (u32::MAX, u32::MAX),
        };
        let mut number =
            |field: u64| has(field).then(|| fields.u64()).map_or(Some(None), |read| read.map(Some));
        for field in [TIME, ADDR, ID, STREAM_ID, CPU] {
            number(field)?;
        }
        let period = number(PERIOD)?.or(event.period);
        if has(READ) {
            skip_values(&mut fields, event.read_format)?;
        }
        let chain = match has(CALLCHAIN) {
            true => {
                let length = usize::try_from(fields.u64()?).ok()?.checked_mul(8)?;
                Some(Fields::new(fields.take(length)?, big_endian))
            }
            false => None,
        };
        Some(Self { ip, process, thread, period, chain })
    }
}

/// Passes over the values of counters (`PERF_FORMAT_*`).
fn skip_values(fields: &mut Fields<'_>, format: u64) -> Option<()> {
    const TIMES: u64 = 0b11;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let times = (format & TIMES).count_ones() as usize;
    let each = 1 + (format & (ID | LOST)).count_ones() as usize;
    let values = match format & GROUP {
        0 => each,
        _ => usize::try_from(fields.u64()?).ok()?.checked_mul(each)?,
    };
    fields.take(times.checked_add(values)?.checked_mul(8)?).map(|_| ())
}

/// The marks in call chains that say where the next addresses are (`PERF_CONTEXT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    Kernel,
    User,
    /// A guest of a virtual machine, or its host.
    Elsewhere,
}

impl Context {
    /// The context that an entry of a call chain marks; nothing if it is an address.
    pub(crate) fn of_mark(entry: u64) -> Option<Self> {
        const LOWEST: u64 = (-4095_i64) as u64;
        const KERNEL: u64 = (-128_i64) as u64;
        const USER: u64 = (-512_i64) as u64;
        match entry {
            KERNEL => Some(Self::Kernel),
            USER => Some(Self::User),
            LOWEST.. => Some(Self::Elsewhere),
            _ => None,
        }
    }

    /// Where the processor was, as the header of a sample says.
    pub(crate) fn of_misc(misc: u16) -> Self {
        match misc & 7 {
            1 => Self::Kernel,
            2 => Self::User,
            _ => Self::Elsewhere,
        }
    }
}

/// Something mapped into a process.
#[derive(Debug)]
pub(crate) struct Mapped<'a> {
    pub(crate) process: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    /// The build-id, if the record has one.
    pub(crate) build_id: Option<&'a [u8]>,
    pub(crate) is_code: bool,
    pub(crate) of_kernel: bool,
    pub(crate) path: &'a [u8],
}

impl<'a> Mapped<'a> {
    pub(crate) fn parse(record: Record<'a>, big_endian: bool) -> Option<Self> {
        const IS_DATA: u16 = 1 << 13;
        const HAS_BUILD_ID: u16 = 1 << 14;
        const EXECUTABLE: u32 = 4;
        let mut fields = Fields::new(record.body, big_endian);
        let (process, _) = (fields.u32()?, fields.u32()?);
        let (start, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (mut build_id, mut is_code) = (None, record.misc & IS_DATA == 0);
        if record.kind == kind::MMAP2 {
            let file = fields.take(24)?;
            if record.misc & HAS_BUILD_ID != 0 {
                build_id = file[4..].get(..usize::from(file[0]));
            }
            let (protection, _) = (fields.u32()?, fields.u32()?);
            is_code = protection & EXECUTABLE != 0;
        }
        let of_kernel = Context::of_misc(record.misc) == Context::Kernel;
        let end = start.saturating_add(length);
        let path = fields.text();
        Some(Self { process, start, end, offset, build_id, is_code, of_kernel, path })
    }
}

/// Where a record stands in time; nothing if that is not told.
pub(crate) fn time_of(record: Record<'_>, event: &Event, big_endian: bool) -> Option<u64> {
    let (in_sample, from_end) = event.time_at()?;
    let at = match record.kind {
        kind::SAMPLE => in_sample,
        _ if event.marks_all => record.body.len().checked_sub(from_end)?,
        _ => return None,
    };
    Fields::new(record.body, big_endian).from(at)?.u64()
}
