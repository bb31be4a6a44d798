//! Writes `gmon.out` files.

use std::io::{self, Write};

use super::{ARC, BLOCKS, Gmon, HEADER, HISTOGRAM, Histogram, Layout, MAGIC, VERSION};

/// The largest count of a bin.
const FULL_BIN: u64 = u16::MAX as u64;

/// The largest count of an arc.
const FULL_ARC: u64 = u32::MAX as u64;

impl Gmon {
    /// Writes the file. Counts that are too large for a record are divided among several, which
    /// readers add up.
    ///
    /// # Errors
    /// When the output fails, or an address or the number of bins needs more bits than the layout has.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut writer = Writer { output, layout: self.layout };
        writer.header()?;
        for histogram in &self.histograms {
            let most = histogram.bins.iter().copied().max().unwrap_or(0);
            for part in 0..most.div_ceil(FULL_BIN).max(1) {
                writer.histogram(histogram, part)?;
            }
        }
        for arc in &self.arcs {
            let mut left = arc.calls;
            loop {
                let calls = left.min(FULL_ARC);
                writer.output.write_all(&[ARC])?;
                writer.address(arc.from)?;
                writer.address(arc.callee)?;
                writer.number(calls, 4)?;
                left -= calls;
                if left == 0 {
                    break;
                }
            }
        }
        if !self.blocks.is_empty() {
            writer.output.write_all(&[BLOCKS])?;
            writer.number(self.blocks.len() as u64, 4)?;
            for block in &self.blocks {
                writer.address(block.address)?;
                writer.address(block.executions)?;
            }
        }
        writer.output.flush()
    }
}

struct Writer<W> {
    output: W,
    layout: Layout,
}

impl<W: Write> Writer<W> {
    fn header(&mut self) -> io::Result<()> {
        self.output.write_all(MAGIC)?;
        self.number(VERSION.into(), 4)?;
        self.output.write_all(&[0; HEADER - 8])
    }

    /// Writes the contents of the bins beyond `part` full ones.
    fn histogram(&mut self, histogram: &Histogram, part: u64) -> io::Result<()> {
        self.output.write_all(&[HISTOGRAM])?;
        self.address(histogram.low)?;
        self.address(histogram.high)?;
        self.number(histogram.bins.len() as u64, 4)?;
        self.number(histogram.rate.into(), 4)?;
        let mut dimension = [0; 16];
        let name = histogram.dimension.as_bytes();
        let length = name.len().min(15);
        dimension[..length].copy_from_slice(&name[..length]);
        dimension[15] = histogram.abbreviation;
        self.output.write_all(&dimension)?;
        let mut bins = Vec::with_capacity(histogram.bins.len() * 2);
        for &samples in &histogram.bins {
            let samples = samples.saturating_sub(part * FULL_BIN).min(FULL_BIN) as u16;
            bins.extend(if self.layout.big_endian { samples.to_be_bytes() } else { samples.to_le_bytes() });
        }
        self.output.write_all(&bins)
    }

    fn address(&mut self, address: u64) -> io::Result<()> {
        self.number(address, self.layout.address())
    }

    fn number(&mut self, number: u64, length: usize) -> io::Result<()> {
        if length < 8 && number >> (8 * length) != 0 {
            return Err(io::Error::other("a number does not fit into a gmon.out file of 32 bits"));
        }
        match self.layout.big_endian {
            true => self.output.write_all(&number.to_be_bytes()[8 - length..]),
            false => self.output.write_all(&number.to_le_bytes()[..length]),
        }
    }
}
