//! `gmon.out`: what programs compiled with `-pg` write, and GNU gprof reads.
//!
//! The file knows addresses only. [`read`] gives its contents; [`Gmon::profile`] makes a profile of them, for which
//! it must be told where the functions of the program begin and end. Functions of the profile are addresses of the
//! program's file; a symboliser adds their names.
//!
//! ```
//! use treering_formats::gmon::{self, ArcCount, Gmon, Layout, Program};
//!
//! let arc = ArcCount { from: 0x1010, callee: 0x1104, calls: 3 };
//! let gmon = Gmon { arcs: vec![arc], ..Gmon::new(Layout::default()) };
//! let mut file = Vec::new();
//! gmon.write(&mut file)?;
//! let (read, _) = gmon::read(&file)?;
//! assert_eq!(read, gmon);
//!
//! let program = Program { functions: vec![0x1000..0x1100, 0x1100..0x1200], ..Program::default() };
//! let profile = read.profile(&program)?;
//! assert_eq!((profile.arcs.len(), profile.arcs[0].calls), (1, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bsd;
mod profile;
mod program;
mod read;
mod write;

use crate::Problem;
use crate::format::{Description, Writing};

use profile::FASTEST_TIMER;
pub use profile::Program;
pub(crate) use profile::read_within;
pub use program::{NotExportable, of_profile};
pub use read::{read, read_of_width};

/// Its row in the table of formats.
pub(crate) const DESCRIPTION: Description = Description {
    import: Some("gmon.out, which programs compiled with -pg write"),
    export: Some("For GNU gprof, with the program that was profiled"),
    begins: |start| {
        let of_c_library = start.starts_with(MAGIC) && start.len() > 4 && start[4] <= 1;
        of_c_library || bsd::layout(start).is_some()
    },
    // The format has no field for the writing program. That of BSD is not written.
    says_ours: |start| start.starts_with(MAGIC),
    writing: Writing::Custom { one_metric: true },
    ..Description::as_it_is("gmon", "gmon.out", read_within)
};

/// The start of files of the C library.
pub(crate) const MAGIC: &[u8] = b"gmon";

/// The version that GNU's C library writes.
const VERSION: u32 = 1;

/// How many bytes come before the first record.
const HEADER: usize = 20;

const HISTOGRAM: u8 = 0;
const ARC: u8 = 1;
const BLOCKS: u8 = 2;

/// How numbers are written in a file; it says only part of that itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Whether addresses have 64 bits, or else 32.
    pub wide: bool,
    /// Whether the first byte of a number is the most significant one.
    pub big_endian: bool,
}

impl Default for Layout {
    /// The layout on x86-64.
    fn default() -> Self {
        Self { wide: true, big_endian: false }
    }
}

impl Layout {
    /// The bytes of an address.
    fn address(self) -> usize {
        if self.wide { 8 } else { 4 }
    }
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gmon {
    /// How it was written, or is to be.
    pub layout: Layout,
    /// Where samples of the program counter fell; each of addresses of its own.
    pub histograms: Vec<Histogram>,
    /// Calls.
    pub arcs: Vec<ArcCount>,
    /// How often basic blocks were executed, as old compilers counted with `-a`.
    pub blocks: Vec<BlockCount>,
}

/// How often each of equally long pieces of code was found executing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// The address at which the first bin begins.
    pub low: u64,
    /// The address behind the last bin.
    pub high: u64,
    /// How many samples were taken in one `dimension`, such as a second.
    pub rate: u32,
    /// The quantity that the samples measure, such as `seconds`; at most 15 bytes are written.
    pub dimension: String,
    /// A letter for it, such as `s`.
    pub abbreviation: u8,
    /// The samples in each bin.
    pub bins: Vec<u64>,
}

/// How often a function was called from a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArcCount {
    /// A place in the caller: the return address, which C libraries round down.
    pub from: u64,
    /// A place in the function that was called: behind the call with which it counts.
    pub callee: u64,
    /// How often.
    pub calls: u64,
}

/// How often a basic block was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCount {
    /// The address of its first instruction.
    pub address: u64,
    /// How often.
    pub executions: u64,
}

impl Gmon {
    /// A file that holds nothing.
    pub fn new(layout: Layout) -> Self {
        Self { layout, histograms: Vec::new(), arcs: Vec::new(), blocks: Vec::new() }
    }

    /// Adds what another file of the same program holds, as `gprof -s` does.
    ///
    /// # Errors
    /// When their histograms cannot be added: they overlap without being of the same addresses, or
    /// differ in rate or dimension.
    pub fn add(&mut self, other: Self) -> Result<(), Problem> {
        other.histograms.into_iter().try_for_each(|histogram| self.add_histogram(histogram))?;
        self.arcs.extend(other.arcs);
        self.blocks.extend(other.blocks);
        Ok(())
    }

    /// Adds a histogram to the one of the same addresses, if there is one.
    pub(crate) fn add_histogram(&mut self, histogram: Histogram) -> Result<(), Problem> {
        if let Some(first) = self.histograms.first() {
            let unit = |histogram: &Histogram| (histogram.dimension.clone(), histogram.abbreviation);
            if unit(first) != unit(&histogram) {
                let (one, other) = (&first.dimension, &histogram.dimension);
                return Err(format!("the histogram is of {other:?}, and another one is of {one:?}").into());
            }
            if first.rate != histogram.rate {
                let (one, other) = (first.rate, histogram.rate);
                let text = format!("the histogram has {other} samples a second, and another one has {one}");
                return Err(text.into());
            }
        }
        let overlaps = |known: &&mut Histogram| known.low < histogram.high && histogram.low < known.high;
        let Some(known) = self.histograms.iter_mut().find(overlaps) else {
            self.histograms.push(histogram);
            return Ok(());
        };
        let shape = |histogram: &Histogram| (histogram.low, histogram.high, histogram.bins.len());
        if shape(known) != shape(&histogram) {
            let (low, high) = (histogram.low, histogram.high);
            let text = format!("the histogram from {low:#x} to {high:#x} shares addresses with another one");
            return Err(text.into());
        }
        for (bin, more) in known.bins.iter_mut().zip(&histogram.bins) {
            *bin = bin.saturating_add(*more);
        }
        Ok(())
    }

    /// Keeps the lower 32 bits of the counts of arcs, as C's `long` has them on Windows: a 64-bit program leaves in the
    /// upper ones what was in memory.
    pub fn keep_short_counts(&mut self) {
        self.arcs.iter_mut().for_each(|arc| arc.calls &= u64::from(u32::MAX));
    }

    /// Addresses of which the file says something: those with samples, ends of arcs, blocks.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        let sampled = self.histograms.iter().flat_map(|histogram| {
            let bins = histogram.bins.iter().enumerate();
            bins.filter(|(_, samples)| **samples > 0).map(|(at, _)| histogram.bin_start(at))
        });
        let arcs = self.arcs.iter().flat_map(|arc| [arc.from, arc.callee]);
        sampled.chain(arcs).chain(self.blocks.iter().map(|block| block.address))
    }
}

/// gprof counts code in units of this many bytes.
const UNIT: u64 = 2;

impl Histogram {
    /// How many units of two bytes a bin covers.
    fn scale(&self) -> f64 {
        (self.high.saturating_sub(self.low) / UNIT) as f64 / self.bins.len().max(1) as f64
    }

    /// The first unit of a bin; GNU gprof rounds down like this.
    fn first_unit(&self, bin: usize) -> u64 {
        (self.low / UNIT).saturating_add((self.scale() * bin as f64) as u64)
    }

    /// The address at which a bin begins.
    pub fn bin_start(&self, bin: usize) -> u64 {
        self.first_unit(bin).saturating_mul(UNIT).max(self.low)
    }
}
