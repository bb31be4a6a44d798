//! Debug information reduced to the units that cover certain addresses.
//!
//! To look for frames, a reader first has to read the abbreviations, the first entry and the header of the line table
//! of every unit, to learn which code it describes. A C library has more than a thousand units, and the samples of a
//! program lie in a dozen of them. The table `.debug_aranges` (DWARF 5, section 6.1.2) tells which ones.

use gimli::{DebugAranges, DebugInfo, Reader as _, RunTimeEndian, Section as _};

use crate::object_file::Slice;

/// Less debug information than this is read as a whole sooner than it is reduced.
const WORTH_REDUCING: usize = 1 << 18;

/// The section `.debug_info` without the units of which `aranges` says that none of `addresses`,
/// which are sorted, is in their code; nothing where that would leave out little.
///
/// All that is left stands where it stood, so references between units that are left stay right;
/// those to units that are left out find nothing. Units that the table does not mention are left
/// in, since it may not know of all: not every compiler makes one.
pub(crate) fn reduced(
    info: DebugInfo<Slice<'_>>,
    aranges: DebugAranges<Slice<'_>>,
    addresses: &[u64],
) -> Option<Vec<u8>> {
    let whole = info.reader();
    if whole.len() < WORTH_REDUCING || whole.endian() != RunTimeEndian::Little {
        return None;
    }
    let covering = Covering::read(aranges, addresses)?;
    let gaps = gaps(info, &covering)?;
    let left_out: usize = gaps.iter().map(|gap| gap.length).sum();
    if left_out < whole.len() / 2 {
        return None;
    }
    // Most of these zeros are never touched, which is cheaper than a copy.
    let mut reduced = vec![0; whole.len()];
    let mut kept_from = 0;
    for gap in gaps {
        reduced[kept_from..gap.start].copy_from_slice(&whole.slice()[kept_from..gap.start]);
        reduced[gap.start..gap.start + FILLER].copy_from_slice(&gap.filler()?);
        kept_from = gap.start + gap.length;
    }
    reduced[kept_from..].copy_from_slice(&whole.slice()[kept_from..]);
    Some(reduced)
}

/// The address ranges of units, by their positions.
struct Covering {
    /// Sorted by position; a unit may occur several times.
    units: Vec<(usize, bool)>,
}

impl Covering {
    fn read(aranges: DebugAranges<Slice<'_>>, addresses: &[u64]) -> Option<Self> {
        let mut units = Vec::new();
        let mut headers = aranges.headers();
        while let Some(header) = headers.next().ok()? {
            let mut entries = header.entries();
            let is_needed = loop {
                match entries.next() {
                    Ok(Some(entry)) => {
                        let range = entry.range();
                        let first = addresses.partition_point(|&address| address < range.begin);
                        if addresses.get(first).is_some_and(|&address| address < range.end) {
                            break true;
                        }
                    }
                    Ok(None) => break false,
                    // A unit that cannot be read may be a needed one.
                    Err(_) => break true,
                }
            };
            units.push((header.debug_info_offset().0, is_needed));
        }
        units.sort_unstable();
        Some(Self { units })
    }

    /// Whether the unit at a position is known to cover none of the addresses.
    fn excludes(&self, unit: usize) -> bool {
        let first = self.units.partition_point(|&(start, _)| start < unit);
        let mut same = self.units[first..].iter().take_while(|&&(start, _)| start == unit).peekable();
        same.peek().is_some() && same.all(|&(_, is_needed)| !is_needed)
    }
}

/// Units in a row that are left out.
struct Gap {
    start: usize,
    length: usize,
}

/// The size of a type unit's header.
const FILLER: usize = 24;

fn gaps(info: DebugInfo<Slice<'_>>, covering: &Covering) -> Option<Vec<Gap>> {
    let mut gaps: Vec<Gap> = Vec::new();
    let mut headers = info.units();
    while let Some(header) = headers.next().ok()? {
        let (start, length) = (header.debug_info_offset()?.0, header.length_including_self());
        if !covering.excludes(start) {
            continue;
        }
        match gaps.last_mut() {
            Some(gap) if gap.start + gap.length == start => gap.length += length,
            _ => gaps.push(Gap { start, length }),
        }
    }
    gaps.retain(|gap| gap.length >= FILLER && gap.length < u32::MAX as usize - 0x100);
    Some(gaps)
}

impl Gap {
    /// The header of a type unit without entries that is as long as the gap (DWARF 5, section 7.5.1.3). Type units
    /// contain no code, so they are not searched.
    fn filler(&self) -> Option<[u8; FILLER]> {
        const VERSION: u16 = 5;
        const ADDRESS_SIZE: u8 = 8;
        let mut filler = [0; FILLER];
        let length = u32::try_from(self.length - 4).ok()?;
        filler[..4].copy_from_slice(&length.to_le_bytes());
        filler[4..6].copy_from_slice(&VERSION.to_le_bytes());
        filler[6] = gimli::DW_UT_type.0;
        filler[7] = ADDRESS_SIZE;
        Some(filler)
    }
}
