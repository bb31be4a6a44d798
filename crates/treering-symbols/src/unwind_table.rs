//! Bounds of functions that have no names, from the table that exceptions are unwound by.

use gimli::{BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameOffset, UnwindSection as _};
use object::{Object as _, ObjectSection as _};

use crate::object_file::{Object, Slice, Storage, endian};

/// Where functions start and end according to `.eh_frame`, which even stripped binaries have.
///
/// Linux Standard Base Core 5.0, section 10.6: a frame description entry covers one contiguous
/// piece of code, which is a function or a part that the compiler moved out of one.
#[derive(Debug, Default)]
pub(crate) struct UnwindTable {
    /// Start and end, sorted.
    bounds: Vec<(u64, u64)>,
}

impl UnwindTable {
    /// Reads the table; what cannot be read ends it.
    pub(crate) fn read<'a>(object: &Object<'a>, storage: &'a Storage) -> Self {
        let section = storage.section(object, ".eh_frame").unwrap_or_default();
        let mut frames = EhFrame::from(Slice::new(section, endian(object)));
        frames.set_address_size(if object.is_64() { 8 } else { 4 });
        let bases = bases(object);
        let mut entries = frames.entries(&bases);
        let mut bounds = Vec::new();
        // What thousands of functions have in common stands in few places, often in one.
        let mut latest = None;
        let mut common = |frames: &EhFrame<_>, bases: &BaseAddresses, at: EhFrameOffset| match &latest {
            Some((known, entry)) if *known == at => Ok(CommonInformationEntry::clone(entry)),
            _ => {
                let entry = frames.cie_from_offset(bases, at)?;
                latest = Some((at, entry.clone()));
                Ok(entry)
            }
        };
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            if let Ok(fde) = partial.parse(&mut common) {
                bounds.push((fde.initial_address(), fde.end_address()));
            }
        }
        bounds.sort_unstable();
        Self { bounds }
    }

    /// The start of the function that holds an address, and up to where it holds those behind it.
    pub(crate) fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.bounds.partition_point(|&(start, _)| start <= address);
        let (start, end) = *self.bounds.get(after.checked_sub(1)?)?;
        let next = self.bounds.get(after).map_or(u64::MAX, |&(next, _)| next);
        (address < end).then_some((start, end.min(next)))
    }
}

fn bases(object: &Object<'_>) -> BaseAddresses {
    let address = |name| object.section_by_name(name).map_or(0, |section| section.address());
    BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_eh_frame_hdr(address(".eh_frame_hdr"))
        .set_text(address(".text"))
        .set_got(address(".got"))
}
