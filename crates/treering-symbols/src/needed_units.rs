//! Debug information reduced to the units that cover certain addresses.
//!
//! To look for frames, a reader first has to read the abbreviations, the first entry and the header of the line table
//! of every unit, to learn which code it describes. A C library has more than a thousand units, and the samples of a
//! program lie in a dozen of them. The table `.debug_aranges` (DWARF 5, section 6.1.2) tells which ones.

use gimli::{DebugAranges, Reader as _, RunTimeEndian, Section as _};

use crate::object_file::Slice;
use crate::section::Section;

/// Less debug information than this is read as a whole sooner than it is reduced.
const WORTH_REDUCING: u64 = 1 << 18;

/// The section `.debug_info` without the units of which `aranges` says that none of `addresses`,
/// which are sorted, is in their code; nothing where that would leave out little.
///
/// All that is left stands where it stood, so references between units that are left stay right;
/// those to units that are left out find nothing. Units that the table does not mention are left
/// in, since it may not know of all: not every compiler makes one.
pub(crate) fn reduced(
    info: &Section<'_>,
    aranges: DebugAranges<Slice<'_>>,
    addresses: &[u64],
) -> Option<Vec<u8>> {
    let length = info.len();
    if length < WORTH_REDUCING || aranges.reader().endian() != RunTimeEndian::Little {
        return None;
    }
    let covering = Covering::read(aranges, addresses)?;
    let gaps = gaps(info, &covering)?;
    let left_out: u64 = gaps.iter().map(|gap| gap.length).sum();
    if left_out < length / 2 {
        return None;
    }
    // Most of these zeros are never touched, which is cheaper than a copy.
    let mut reduced = vec![0; usize::try_from(length).ok()?];
    let mut kept_from = 0;
    let keep = |from: u64, to: u64, reduced: &mut [u8]| {
        info.read(from, &mut reduced[from as usize..to as usize]).ok()
    };
    for gap in gaps {
        keep(kept_from, gap.start, &mut reduced)?;
        reduced[gap.start as usize..][..FILLER].copy_from_slice(&gap.filler()?);
        kept_from = gap.start + gap.length;
    }
    keep(kept_from, length, &mut reduced)?;
    Some(reduced)
}

/// The length of each unit, one behind the other; nothing if they do not fill the section.
pub(crate) fn lengths(info: &Section<'_>) -> Option<Vec<u32>> {
    Units::new(info).map(|unit| u32::try_from(unit?.1).ok()).collect()
}

/// The units of a section by their headers: where each begins, and its length. Nothing for one that cannot be read,
/// which is the last.
struct Units<'s> {
    info: &'s Section<'s>,
    lengths: Option<std::slice::Iter<'s, u32>>,
    next: u64,
    /// Bytes of the section, so that headers which lie close together are read at once.
    window: (u64, Vec<u8>),
}

/// How many bytes are read for a header. Most units are longer.
const WINDOW: u64 = 2048;

impl<'s> Units<'s> {
    fn new(info: &'s Section<'s>) -> Self {
        let lengths = info.unit_lengths().map(<[u32]>::iter);
        Self { info, lengths, next: 0, window: (0, Vec::new()) }
    }

    /// The length that a header states, with that of the field itself (DWARF 5, section 7.4).
    fn stated_length(&mut self) -> Option<u64> {
        let bytes = self.bytes(4)?;
        let short = u32::from_le_bytes(bytes.try_into().ok()?);
        match short {
            u32::MAX => u64::from_le_bytes(self.bytes(12)?[4..].try_into().ok()?).checked_add(12),
            0xffff_fff0.. => None,
            short => Some(u64::from(short) + 4),
        }
    }

    /// So many bytes of the next header.
    fn bytes(&mut self, count: usize) -> Option<&[u8]> {
        let (start, window) = &mut self.window;
        let is_here = self.next >= *start && self.next + count as u64 <= *start + window.len() as u64;
        if !is_here {
            *start = self.next;
            window.resize(WINDOW.min(self.info.len() - self.next) as usize, 0);
            self.info.read(*start, window).ok()?;
        }
        window.get((self.next - *start) as usize..)?.get(..count)
    }
}

impl Iterator for Units<'_> {
    type Item = Option<(u64, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.next;
        if start >= self.info.len() {
            return None;
        }
        let length = match &mut self.lengths {
            Some(lengths) => lengths.next().copied().map(u64::from),
            None => self.stated_length(),
        };
        let end = length.and_then(|length| start.checked_add(length)).filter(|end| *end <= self.info.len());
        self.next = end.unwrap_or(u64::MAX);
        Some(end.filter(|end| *end > start).map(|end| (start, end - start)))
    }
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
    start: u64,
    length: u64,
}

/// The size of a type unit's header.
const FILLER: usize = 24;

fn gaps(info: &Section<'_>, covering: &Covering) -> Option<Vec<Gap>> {
    let mut gaps: Vec<Gap> = Vec::new();
    for unit in Units::new(info) {
        let (start, length) = unit?;
        if !covering.excludes(usize::try_from(start).ok()?) {
            continue;
        }
        match gaps.last_mut() {
            Some(gap) if gap.start + gap.length == start => gap.length += length,
            _ => gaps.push(Gap { start, length }),
        }
    }
    gaps.retain(|gap| gap.length >= FILLER as u64 && gap.length < u64::from(u32::MAX) - 0x100);
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
