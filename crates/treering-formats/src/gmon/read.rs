//! Reads `gmon.out` files.

use super::{
    ARC, ArcCount, BLOCKS, BlockCount, FASTEST_TIMER, Gmon, HEADER, HISTOGRAM, Histogram, Layout, MAGIC,
    VERSION, bsd,
};
use crate::budget::Budget;
use crate::gzip::unzip;
use crate::{Position, Problem, ReadError, ReadReport};

/// Reads a `gmon.out`, or a sum of several as `gprof -s` writes it.
///
/// Histograms of the same addresses are added up. A file of the C library does not say how wide its addresses are:
/// both widths are tried, and records that fit the file to its end tell. It may be compressed with gzip.
///
/// # Errors
/// The first record that cannot be used, with its position. If neither width fits, the error of the one that fits
/// longer.
pub fn read(bytes: &[u8]) -> Result<(Gmon, ReadReport), ReadError> {
    let bytes = &*unzip(bytes)?;
    if let Some(layout) = bsd::layout(bytes) {
        return read_of_bsd(bytes, layout);
    }
    let offset = |error: &ReadError| match error.position {
        Position::Byte(offset) => offset,
        _ => 0,
    };
    read_of_c_library(bytes, true).or_else(|of_wide| {
        let narrow = read_of_c_library(bytes, false);
        narrow.map_err(|of_narrow| if offset(&of_narrow) > offset(&of_wide) { of_narrow } else { of_wide })
    })
}

/// Reads a `gmon.out` of a program whose addresses are known to have 64 bits, or else 32.
///
/// # Errors
/// Where the first record is that cannot be used.
pub fn read_of_width(bytes: &[u8], wide: bool) -> Result<(Gmon, ReadReport), ReadError> {
    let bytes = &*unzip(bytes)?;
    match bsd::layout(bytes) {
        Some(layout) if layout.wide != wide => {
            let (own, other) = if layout.wide { (64, 32) } else { (32, 64) };
            let text =
                format!("it has addresses of {own} bits, and its program has addresses of {other} bits");
            Err(Problem::unsupported(text).into())
        }
        Some(layout) => read_of_bsd(bytes, layout),
        None => read_of_c_library(bytes, wide),
    }
}

fn read_of_bsd(bytes: &[u8], layout: Layout) -> Result<(Gmon, ReadReport), ReadError> {
    let (mut reader, mut gmon) = (Reader::new(bytes, 0, layout), Gmon::new(layout));
    bsd::read(&mut reader, &mut gmon).map_err(|problem| ReadError::at_byte(0, problem))?;
    reader.all(gmon, Reader::bsd_arc)
}

fn read_of_c_library(bytes: &[u8], wide: bool) -> Result<(Gmon, ReadReport), ReadError> {
    let layout = Layout { wide, big_endian: big_endian(bytes)? };
    Reader::new(bytes, HEADER, layout).all(Gmon::new(layout), Reader::record)
}

/// The order of bytes, by the version, which is a small number.
fn big_endian(bytes: &[u8]) -> Result<bool, ReadError> {
    if !bytes.starts_with(MAGIC) {
        return Err(Problem::OtherFormat("a gmon.out file").into());
    }
    let Some(header) = bytes.get(..HEADER) else {
        let (needed, left) = (HEADER as u64, bytes.len() as u64);
        return Err(ReadError::at_byte(0, Problem::PartCutShort { part: "the header", needed, left }));
    };
    let version = [header[4], header[5], header[6], header[7]];
    match (u32::from_le_bytes(version), u32::from_be_bytes(version)) {
        (VERSION, _) => Ok(false),
        (_, VERSION) => Ok(true),
        (little, big) => {
            let text = format!("version {} of gmon.out is not known; version 1 is read", little.min(big));
            Err(Problem::unsupported(text).into())
        }
    }
}

const HISTOGRAM_RECORD: &str = "a histogram";

/// A counter of 16 bits that is so full may have been full before.
const NEARLY_FULL: u64 = 1 << 15;

fn notes(gmon: &Gmon) -> Vec<String> {
    let of_timer = gmon.histograms.iter().filter(|histogram| histogram.rate <= FASTEST_TIMER);
    let most = of_timer.flat_map(|histogram| &histogram.bins).max();
    let full = most.filter(|&&most| most >= NEARLY_FULL).map(|most| {
        format!(
            "a bin of the histogram holds {most} samples: bins of a running program start again at 0 after 65,535, \
             so time may be missing"
        )
    });
    full.into_iter().collect()
}

pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(super) layout: Layout,
    budget: Budget,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, layout: Layout) -> Self {
        Self { bytes, at, layout, budget: Budget::new(bytes.len()) }
    }

    /// Reads all records up to the end.
    fn all(
        mut self,
        mut gmon: Gmon,
        read: fn(&mut Self, &mut Gmon) -> Result<(), Problem>,
    ) -> Result<(Gmon, ReadReport), ReadError> {
        while self.at < self.bytes.len() {
            let offset = self.at;
            read(&mut self, &mut gmon).map_err(|problem| ReadError::at_byte(offset, problem))?;
        }
        let report = ReadReport { notes: notes(&gmon), ..ReadReport::default() };
        Ok((gmon, report))
    }

    fn record(&mut self, gmon: &mut Gmon) -> Result<(), Problem> {
        let tag = self.bytes[self.at];
        self.at += 1;
        match tag {
            HISTOGRAM => {
                let histogram = self.histogram()?;
                if histogram.bins.is_empty() { Ok(()) } else { gmon.add_histogram(histogram) }
            }
            ARC => {
                self.need("an arc record", 2 * self.layout.address() as u64 + 4)?;
                let (from, callee) = (self.address(), self.address());
                let calls = self.number(4);
                self.add_arc(gmon, ArcCount { from, callee, calls })
            }
            BLOCKS => self.blocks(gmon),
            other => Err(format!("the record is of the kind {other}, which is not known").into()),
        }
    }

    fn bsd_arc(&mut self, gmon: &mut Gmon) -> Result<(), Problem> {
        let arc = bsd::arc(self)?;
        self.add_arc(gmon, arc)
    }

    fn add_arc(&mut self, gmon: &mut Gmon, arc: ArcCount) -> Result<(), Problem> {
        self.budget.bytes(size_of::<ArcCount>() as u64)?;
        gmon.arcs.push(arc);
        Ok(())
    }

    fn histogram(&mut self) -> Result<Histogram, Problem> {
        self.need(HISTOGRAM_RECORD, 2 * self.layout.address() as u64 + 24)?;
        let (low, high) = (self.address(), self.address());
        let (bins, rate) = (self.number(4), self.number(4) as u32);
        let name = &self.bytes[self.at..self.at + 15];
        let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
        let dimension = String::from_utf8_lossy(&name[..length]).into_owned();
        let abbreviation = self.bytes[self.at + 15];
        self.at += 16;
        let bins = self.bins(low, high, bins, rate)?;
        Ok(Histogram { low, high, rate, dimension, abbreviation, bins })
    }

    /// Reads `count` bins of the addresses from `low` to `high`.
    pub(super) fn bins(&mut self, low: u64, high: u64, count: u64, rate: u32) -> Result<Vec<u64>, Problem> {
        if high < low || (high == low && count > 0) {
            return Err(format!("the histogram from {low:#x} to {high:#x} covers no code").into());
        }
        if rate == 0 && count > 0 {
            return Err("the histogram has 0 samples a second".into());
        }
        self.need(HISTOGRAM_RECORD, count * 2)?;
        self.budget.bytes(count * 8)?;
        Ok((0..count).map(|_| self.number(2)).collect())
    }

    fn blocks(&mut self, gmon: &mut Gmon) -> Result<(), Problem> {
        const RECORD: &str = "a record of basic blocks";
        self.need(RECORD, 4)?;
        let count = self.number(4);
        self.need(RECORD, count * 2 * self.layout.address() as u64)?;
        self.budget.bytes(count * size_of::<BlockCount>() as u64)?;
        for _ in 0..count {
            let (address, executions) = (self.address(), self.address());
            gmon.blocks.push(BlockCount { address, executions });
        }
        Ok(())
    }

    /// Checks that `needed` bytes are left.
    pub(super) fn need(&self, part: &'static str, needed: u64) -> Result<(), Problem> {
        let left = (self.bytes.len() - self.at) as u64;
        if needed <= left { Ok(()) } else { Err(Problem::PartCutShort { part, needed, left }) }
    }

    pub(super) fn address(&mut self) -> u64 {
        self.number(self.layout.address())
    }

    /// A number of `length` bytes, which were checked to be there.
    pub(super) fn number(&mut self, length: usize) -> u64 {
        let bytes = &self.bytes[self.at..self.at + length];
        self.at += length;
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self.layout.big_endian {
            true => bytes.iter().fold(0, add),
            false => bytes.iter().rev().fold(0, add),
        }
    }
}
