//! Bounds of functions that have no names, from the table that exceptions are unwound by.

use std::cell::OnceCell;

use gimli::{
    BaseAddresses, CieOrFde, CommonInformationEntry, EhFrame, EhFrameHdr, EhFrameOffset, ParsedEhFrameHdr,
    UnwindSection as _,
};
use object::{Object as _, ObjectSection as _};

use crate::object_file::{Object, Slice, Storage, endian};

/// Where functions start and end according to `.eh_frame`, which even stripped binaries have.
///
/// Linux Standard Base Core 5.0, section 10.6: a frame description entry covers one contiguous
/// piece of code, which is a function or a part that the compiler moved out of one. Section 10.6.2: most binaries have
/// a table of the entries in order, `.eh_frame_hdr`. Without, all of them have to be read.
#[derive(Debug)]
pub(crate) struct UnwindTable<'a> {
    frames: EhFrame<Slice<'a>>,
    bases: BaseAddresses,
    header: Option<ParsedEhFrameHdr<Slice<'a>>>,
    /// Start and end of all, sorted.
    all: OnceCell<Vec<(u64, u64)>>,
}

impl<'a> UnwindTable<'a> {
    /// Reads the sections that it is in.
    pub(crate) fn read(object: &Object<'a>, storage: &'a Storage) -> Self {
        let section = |name| Slice::new(storage.section(object, name).unwrap_or_default(), endian(object));
        let mut frames = EhFrame::from(section(".eh_frame"));
        let (bases, address_size) = (bases(object), if object.is_64() { 8 } else { 4 });
        frames.set_address_size(address_size);
        let header = EhFrameHdr::from(section(".eh_frame_hdr")).parse(&bases, address_size).ok();
        let begins = object.section_by_name(".eh_frame").map(|section| section.address());
        let header = header.filter(|header| header.eh_frame_ptr().direct().ok() == begins);
        Self { frames, bases, header, all: OnceCell::new() }
    }

    /// The start of the function that holds an address, and up to where it holds those behind it.
    pub(crate) fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        self.by_header(address).unwrap_or_else(|| self.by_all(address))
    }

    /// The same, if the table of the entries tells it.
    fn by_header(&self, address: u64) -> Option<Option<(u64, u64)>> {
        let header = self.header.as_ref()?;
        let (table, begins) = (header.table()?, header.eh_frame_ptr().direct().ok()?);
        let find = |address| {
            let place = table.lookup(address, &self.bases).ok()?;
            let offset = EhFrameOffset(usize::try_from(place.direct().ok()?.checked_sub(begins)?).ok()?);
            let fde = self.frames.fde_from_offset(&self.bases, offset, EhFrame::cie_from_offset).ok()?;
            Some((fde.initial_address(), fde.end_address()))
        };
        let (start, end) = find(address)?;
        if !(start..end).contains(&address) {
            return Some(None);
        }
        // None begins within it.
        (find(end - 1)? == (start, end)).then_some(Some((start, end)))
    }

    fn by_all(&self, address: u64) -> Option<(u64, u64)> {
        let all = self.all.get_or_init(|| self.read_all());
        let after = all.partition_point(|&(start, _)| start <= address);
        let (start, end) = *all.get(after.checked_sub(1)?)?;
        let next = all.get(after).map_or(u64::MAX, |&(next, _)| next);
        (address < end).then_some((start, end.min(next)))
    }

    /// All entries; what cannot be read ends them.
    fn read_all(&self) -> Vec<(u64, u64)> {
        let mut entries = self.frames.entries(&self.bases);
        let mut all = Vec::new();
        // The common rules of thousands of functions stand in few places, often in one.
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
                all.push((fde.initial_address(), fde.end_address()));
            }
        }
        all.sort_unstable();
        all
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_entries_agrees_with_all_entries() {
        let storage = Storage::default();
        let own = std::env::current_exe().unwrap();
        let object = storage.open(&own).unwrap();
        let table = UnwindTable::read(&object, &storage);
        assert!(table.header.is_some(), "this test has such a table");
        let all = table.read_all();
        assert!(all.len() > 1000, "{}", all.len());
        for &(start, end) in &all {
            for address in [start.wrapping_sub(1), start, end - 1, end] {
                let by_header = table.by_header(address);
                assert_eq!(
                    by_header.unwrap_or_else(|| table.by_all(address)),
                    table.by_all(address),
                    "{address:#x}"
                );
            }
        }
        let told = all.iter().filter(|(start, _)| table.by_header(*start).is_some()).count();
        assert!(told * 100 > all.len() * 99, "{told} of {}", all.len());
    }
}
