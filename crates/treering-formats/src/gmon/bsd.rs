//! Reads the `gmon.out` of 4.4BSD, which the C libraries of the BSD systems, of Cygwin and of MinGW write.
//!
//! A header with the range of addresses, the bins of one histogram, then arcs up to the end of the file. All numbers
//! have the order of bytes and the widths of the machine.

use super::read::Reader;
use super::{ArcCount, Gmon, Histogram, Layout};
use crate::Problem;

/// The version in the header of 4.4BSD; headers of other systems have other numbers.
const VERSION: u64 = 0x0005_1879;

/// How many spare numbers end the header.
const SPARE: usize = 3;

/// The bytes of a header: two addresses; the size, the version, the rate and the spare numbers.
fn header(layout: Layout) -> usize {
    2 * layout.address() + 4 * (3 + SPARE)
}

/// The layout of a file that begins like this, if it is one of BSD.
pub(super) fn layout(start: &[u8]) -> Option<Layout> {
    let layouts = [(true, false), (false, false), (true, true), (false, true)];
    layouts.map(|(wide, big_endian)| Layout { wide, big_endian }).into_iter().find(|&layout| {
        let mut reader = Reader::new(start, 0, layout);
        if start.len() < header(layout) {
            return false;
        }
        let (low, high, size) = (reader.address(), reader.address(), reader.number(4));
        reader.number(4) == VERSION && low <= high && size >= header(layout) as u64
    })
}

/// Reads a file that [`layout`] knows.
pub(super) fn read(reader: &mut Reader<'_>, gmon: &mut Gmon) -> Result<(), Problem> {
    let header = header(reader.layout) as u64;
    let (low, high) = (reader.address(), reader.address());
    let bins = reader.number(4).saturating_sub(header) / 2;
    let (_version, rate) = (reader.number(4), reader.number(4) as u32);
    let spare: [u64; SPARE] = std::array::from_fn(|_| reader.number(4));
    // The kernel of FreeBSD says here how many bits a bin has; MinGW leaves here what was in memory.
    if let [bits, 0, 0] = spare
        && matches!((bits as i32).unsigned_abs(), 8 | 32 | 64)
    {
        let bits = (bits as i32).unsigned_abs();
        let text =
            format!("bins of {bits} bits, as kernels write them, are not read; only bins of 16 bits are");
        return Err(Problem::unsupported(text));
    }
    let bins = reader.bins(low, high, bins, rate)?;
    if !bins.is_empty() {
        let dimension = "seconds".to_owned();
        gmon.add_histogram(Histogram { low, high, rate, dimension, abbreviation: b's', bins })?;
    }
    Ok(())
}

/// Reads an arc: the count is as wide as an address.
pub(super) fn arc(reader: &mut Reader<'_>) -> Result<ArcCount, Problem> {
    reader.need("an arc record", 3 * reader.layout.address() as u64)?;
    let (from, callee) = (reader.address(), reader.address());
    Ok(ArcCount { from, callee, calls: reader.address() })
}
