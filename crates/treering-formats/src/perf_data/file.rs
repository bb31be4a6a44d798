//! The parts of a `perf.data` file: header, events, build-ids, what is known of the machine, and records.

use std::collections::HashMap;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::budget::Budget;
use crate::perf_data::event::Event;
use crate::sampled_event::{MOST_EVENTS, too_many_events};
use crate::{Problem, ReadError};

/// Numbers one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8], big_endian: bool) -> Self {
        Self { bytes, at: 0, big_endian }
    }

    pub(crate) fn big_endian(&self) -> bool {
        self.big_endian
    }

    /// How many bytes were read.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The same bytes from another place on.
    pub(crate) fn from(&self, at: usize) -> Option<Self> {
        (at <= self.bytes.len()).then_some(Self { at, ..*self })
    }

    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?.try_into().ok()?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        let bytes = self.take(4)?.try_into().ok()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        let bytes = self.take(8)?.try_into().ok()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// The bytes up to the next zero or the end.
    pub(crate) fn text(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        self.at += (end + 1).min(rest.len());
        &rest[..end]
    }

    /// A text with its length before it.
    fn counted_text(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        let bytes = self.take(usize::try_from(length).ok()?)?;
        Some(Fields::new(bytes, self.big_endian).text())
    }
}

/// Kinds of records (`PERF_RECORD_*`).
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const HEADER_TRACING_DATA: u32 = 66;
    pub(crate) const HEADER_BUILD_ID: u32 = 67;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
    /// The kinds of records that perf adds to the kernel's begin here.
    pub(crate) const FIRST_OF_PERF: u32 = 64;
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Where in the file it begins; for those that were compressed, where the file ends.
    pub(crate) offset: u64,
    pub(crate) body: &'a [u8],
}

impl Record<'_> {
    /// A problem with this record.
    pub(crate) fn error(&self, problem: impl Into<Problem>) -> ReadError {
        ReadError::at_byte(self.offset as usize, problem)
    }
}

/// How many bytes the header of a record has.
const RECORD_HEADER: usize = 8;

/// The parts of a file besides its records.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) big_endian: bool,
    pub(crate) events: Vec<Event>,
    /// The place of an event by its identifier.
    pub(crate) by_id: HashMap<u64, usize>,
    pub(crate) build_ids: HashMap<Vec<u8>, Vec<u8>>,
    pub(crate) machine: Vec<(&'static str, Vec<u8>)>,
    pub(crate) command: Vec<Vec<u8>>,
    /// Where the records are.
    records: (usize, usize),
    /// Whether its writer was stopped, or something was cut off.
    pub(crate) unfinished: bool,
    /// Whether data of processor traces was passed over.
    pub(crate) has_traces: bool,
}

const MAGIC: &[u8] = b"PERFILE2";
const MAGIC_BIG: &[u8] = b"2ELIFREP";

/// How many bytes the header of the output of `perf record -o -` has.
const PIPE_HEADER: u64 = 16;

/// Reads all but the records.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parts, ReadError> {
    let big_endian = match bytes.get(..8) {
        Some(MAGIC) => false,
        Some(MAGIC_BIG) => true,
        _ if bytes.starts_with(b"PERFFILE") => {
            return Err(Problem::unsupported("perf.data of perf before Linux 3.0 is not read").into());
        }
        _ => return Err(Problem::OtherFormat("a perf.data file").into()),
    };
    let mut parts = Parts { big_endian, ..Parts::default() };
    let mut fields = Fields { at: 8, ..Fields::new(bytes, big_endian) };
    let cut = |part| ReadError::at_byte(bytes.len(), Problem::EndsWithin(part));
    if fields.u64().ok_or_else(|| cut("its header"))? == PIPE_HEADER {
        parts.records = (fields.at(), bytes.len());
        return Ok(parts);
    }
    let mut numbers = [0; 11];
    for number in &mut numbers {
        *number = fields.u64().ok_or_else(|| cut("its header"))?;
    }
    let [entry, attributes, attributes_size, data, data_size, _, _, features @ ..] = numbers;
    let section = |offset: u64, size: u64| {
        let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
        bytes.get(offset..)?.get(..size)
    };
    let attributes = section(attributes, attributes_size).ok_or_else(|| cut("its list of events"))?;
    parts.add_events(bytes, attributes, entry)?;
    let start = usize::try_from(data).ok().filter(|start| *start <= bytes.len());
    let start = start.ok_or_else(|| cut("its header"))?;
    // perf states the size at its end: before that, records go on to the end of the file.
    let size = usize::try_from(data_size).unwrap_or(usize::MAX);
    let left = bytes.len() - start;
    parts.unfinished = size == 0 && left > 0 || size > left;
    let end = if parts.unfinished { bytes.len() } else { start + size };
    parts.records = (start, end);
    if !parts.unfinished {
        parts.add_features(bytes, end, &features, section);
    }
    Ok(parts)
}

impl Parts {
    fn add_events(&mut self, bytes: &[u8], list: &[u8], entry: u64) -> Result<(), ReadError> {
        const SECTION: usize = 16;
        let cut = || ReadError::at_byte(bytes.len(), Problem::EndsWithin("its list of events"));
        let entry = usize::try_from(entry).ok().filter(|size| *size > SECTION).ok_or_else(cut)?;
        for event in list.chunks_exact(entry) {
            let (mut parsed, _) = Event::parse(&mut Fields::new(event, self.big_endian)).ok_or_else(cut)?;
            let mut section = Fields::new(&event[entry - SECTION..], self.big_endian);
            let place = section.u64().zip(section.u64()).ok_or_else(cut)?;
            let ids = usize::try_from(place.0).ok().and_then(|start| bytes.get(start..));
            let ids = usize::try_from(place.1).ok().and_then(|size| ids?.get(..size)).ok_or_else(cut)?;
            let mut ids = Fields::new(ids, self.big_endian);
            parsed.ids = std::iter::from_fn(|| ids.u64()).collect();
            self.add_event(parsed)?;
        }
        Ok(())
    }

    fn add_event(&mut self, event: Event) -> Result<(), Problem> {
        if self.events.len() == MOST_EVENTS {
            return Err(too_many_events());
        }
        let at = self.events.len();
        self.by_id.extend(event.ids.iter().map(|id| (*id, at)));
        self.events.push(event);
        Ok(())
    }

    /// Reads the parts behind the records. Damaged ones are left out: nothing is counted by them.
    fn add_features<'a>(
        &mut self,
        bytes: &'a [u8],
        end: usize,
        features: &[u64],
        section: impl Fn(u64, u64) -> Option<&'a [u8]>,
    ) {
        let mut places = Fields { at: end, ..Fields::new(bytes, self.big_endian) };
        for feature in 0..features.len() as u64 * 64 {
            if features[(feature / 64) as usize] & 1 << (feature % 64) == 0 {
                continue;
            }
            let content = places.u64().zip(places.u64()).and_then(|(offset, size)| section(offset, size));
            match content {
                Some(content) => drop(self.add_feature(feature, content)),
                None => self.unfinished = true,
            }
        }
    }

    fn add_feature(&mut self, feature: u64, content: &[u8]) -> Option<()> {
        const BUILD_ID: u64 = 2;
        const CMDLINE: u64 = 11;
        const EVENT_DESC: u64 = 12;
        let mut fields = Fields::new(content, self.big_endian);
        match feature {
            BUILD_ID => {
                while let Some(record) = take_record(&mut fields, 0) {
                    self.add_build_id(record);
                }
            }
            3 => self.machine.push(("host", fields.counted_text()?.to_vec())),
            4 => self.machine.push(("kernel", fields.counted_text()?.to_vec())),
            8 => self.machine.push(("cpu", fields.counted_text()?.to_vec())),
            CMDLINE => {
                for _ in 0..fields.u32()? {
                    self.command.push(fields.counted_text()?.to_vec());
                }
            }
            EVENT_DESC => self.add_names(&mut fields)?,
            _ => {}
        }
        Some(())
    }

    /// The names of the events, which stand beside what the list of events says of them.
    fn add_names(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (count, size) = (fields.u32()?, fields.u32()?);
        for at in 0..count as usize {
            fields.take(usize::try_from(size).ok()?)?;
            let ids = fields.u32()?;
            let name = fields.counted_text()?;
            let first = fields.from(fields.at())?.u64().filter(|_| ids > 0);
            fields.take(usize::try_from(u64::from(ids) * 8).ok()?)?;
            let known = first.and_then(|id| self.by_id.get(&id).copied());
            if let Some(event) = self.events.get_mut(known.unwrap_or(at)) {
                event.name = String::from_utf8_lossy(name).into_owned();
            }
        }
        Some(())
    }

    fn add_build_id(&mut self, record: Record<'_>) {
        const SIZE_IS_GIVEN: u16 = 1 << 15;
        let mut fields = Fields::new(record.body, self.big_endian);
        let Some((_, id)) = fields.u32().zip(fields.take(24)) else { return };
        // Without a length, words of zeros at the end are not part of it.
        let filled = id[..20].iter().rposition(|&byte| byte != 0).map_or(0, |last| last / 4 * 4 + 4);
        let given = if record.misc & SIZE_IS_GIVEN != 0 { usize::from(id[20]).min(20) } else { filled };
        self.build_ids.insert(fields.text().to_vec(), id[..given].to_vec());
    }

    /// Reads a record of `perf record -o -` that holds what stands in the header of a file.
    pub(crate) fn add_header_record(&mut self, record: Record<'_>) -> Result<(), Problem> {
        let mut fields = Fields::new(record.body, self.big_endian);
        match record.kind {
            kind::HEADER_ATTR => {
                let Some((mut event, size)) = Event::parse(&mut fields) else { return Ok(()) };
                let mut ids = fields.from(size as usize).unwrap_or(Fields::new(&[], self.big_endian));
                event.ids = std::iter::from_fn(|| ids.u64()).collect();
                self.add_event(event)?;
            }
            kind::HEADER_BUILD_ID => self.add_build_id(record),
            kind::HEADER_FEATURE => {
                if let Some(feature) = fields.u64() {
                    let _ = self.add_feature(feature, fields.rest());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// All compressed records, decompressed one after the other.
    pub(crate) fn decompressed(&self, bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, ReadError> {
        let mut output = Vec::new();
        let mut decoder = None;
        let mut records = self.records(bytes);
        while let Some(record) = records.next_record()? {
            let body = match record.kind {
                kind::COMPRESSED => record.body,
                kind::COMPRESSED2 => {
                    let mut fields = Fields::new(record.body, self.big_endian);
                    let size = fields.u64().and_then(|size| usize::try_from(size).ok());
                    size.and_then(|size| fields.take(size)).unwrap_or_default()
                }
                _ => continue,
            };
            let decoder = match &mut decoder {
                Some(decoder) => decoder,
                none => none.insert(Decoder::new().map_err(|error| record.error(undecodable(error)))?),
            };
            decompress(decoder, body, &mut output, budget).map_err(|problem| record.error(problem))?;
        }
        Ok(output)
    }

    /// The records of the file.
    pub(crate) fn records<'a>(&self, bytes: &'a [u8]) -> Records<'a> {
        let (start, end) = self.records;
        let fields = Fields { at: start, ..Fields::new(&bytes[..end], self.big_endian) };
        Records { fields, offset: None, is_cut: false }
    }

    /// The records that were compressed.
    pub(crate) fn records_of<'a>(&self, decompressed: &'a [u8]) -> Records<'a> {
        let fields = Fields::new(decompressed, self.big_endian);
        Records { fields, offset: Some(self.records.1 as u64), is_cut: false }
    }
}

fn undecodable(error: std::io::Error) -> Problem {
    format!("the record cannot be decompressed: {error}").into()
}

/// Decompresses a part of a stream.
fn decompress(
    decoder: &mut Decoder<'static>,
    body: &[u8],
    output: &mut Vec<u8>,
    budget: &mut Budget,
) -> Result<(), Problem> {
    let mut input = InBuffer::around(body);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let mut part = OutBuffer::around(buffer.as_mut_slice());
        decoder.run(&mut input, &mut part).map_err(undecodable)?;
        let made = part.as_slice();
        budget.unpack(made.len() as u32)?;
        output.extend_from_slice(made);
        if made.len() < (1 << 16) && input.pos() == body.len() {
            return Ok(());
        }
        if made.is_empty() && input.pos() < body.len() {
            // A frame is over; the next one begins here.
            decoder.reinit().map_err(undecodable)?;
        }
    }
}

/// Goes through records.
pub(crate) struct Records<'a> {
    fields: Fields<'a>,
    /// The place that is stated for all records, where they have none of their own in the file.
    offset: Option<u64>,
    /// Whether the last record is not whole.
    pub(crate) is_cut: bool,
}

impl<'a> Records<'a> {
    /// The next whole record.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'a>>, ReadError> {
        let offset = self.offset.unwrap_or(self.fields.at() as u64);
        let mut header = self.fields;
        let Some(((_, _), size)) = header.u32().zip(header.u16()).zip(header.u16()) else {
            self.is_cut = !self.fields.rest().is_empty();
            return Ok(None);
        };
        if usize::from(size) < RECORD_HEADER {
            let text =
                format!("the record says that it has {size} bytes, and its header alone has {RECORD_HEADER}");
            return Err(ReadError::at_byte(offset as usize, text));
        }
        let record = take_record(&mut self.fields, offset);
        self.is_cut = record.is_none();
        Ok(record)
    }
}

/// A record with what follows it outside of its stated size; nothing if it is not whole.
fn take_record<'a>(fields: &mut Fields<'a>, offset: u64) -> Option<Record<'a>> {
    let mut next = *fields;
    let (kind, misc, size) = (next.u32()?, next.u16()?, next.u16()?);
    let body = next.take(usize::from(size).checked_sub(RECORD_HEADER)?)?;
    let mut stated = Fields::new(body, next.big_endian);
    let more = match kind {
        kind::AUXTRACE => stated.u64()?,
        kind::HEADER_TRACING_DATA => u64::from(stated.u32()?).next_multiple_of(8),
        _ => 0,
    };
    next.take(usize::try_from(more).ok()?)?;
    *fields = next;
    Some(Record { kind, misc, offset, body })
}
