//! Where the parts of a binary lie in its file and in memory.

use crate::{FileOffset, RuntimeAddress, StatedAddress};

/// A part of a binary that the loader maps as one: a program header of type `PT_LOAD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Whether the loader maps it executable (`PF_X`).
    pub executable: bool,
    /// Where it starts in the file (`p_offset`); need not be a multiple of the page size.
    pub file_offset: FileOffset,
    /// Where it wants to be in memory (`p_vaddr`).
    pub stated_address: StatedAddress,
    /// How many bytes of it are in the file (`p_filesz`).
    pub file_size: u64,
    /// How many bytes it takes in memory (`p_memsz`); what exceeds the file is zeros.
    pub memory_size: u64,
}

/// The smallest page a loader maps. With larger pages a mapping starts up to a page earlier,
/// which the choice by overlap allows for.
const PAGE: u64 = 4096;

impl Segment {
    /// The difference between a stated address and a file offset; wraps.
    fn displacement(&self) -> u64 {
        self.stated_address.0.wrapping_sub(self.file_offset.0)
    }

    fn holds(&self, offset: u64) -> bool {
        offset.checked_sub(self.file_offset.0).is_some_and(|into| into < self.file_size)
    }

    /// How many bytes of the file's range `start..end` belong to the segment.
    fn overlap(&self, start: u64, end: u64) -> u64 {
        let last = self.file_offset.0.saturating_add(self.file_size);
        end.min(last).saturating_sub(start.max(self.file_offset.0))
    }

    fn first_page(&self) -> u64 {
        self.file_offset.0 / PAGE * PAGE
    }
}

/// The segments of a binary, to get from mappings of its file to stated addresses.
///
/// The loader maps whole pages, so the mapping of one segment may begin and end with bytes of its
/// neighbours. LLD gives neighbours different displacements between file and memory (0x1000 apart
/// in what rustc 1.95 links), so taking whichever segment's file range holds a mapping's page
/// offset picks the wrong one, and every address is off by a page or more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentMap {
    segments: Vec<Segment>,
}

impl SegmentMap {
    /// Takes the segments in any order.
    pub fn new(segments: Vec<Segment>) -> Self {
        Self { segments }
    }

    /// The segments as given.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Runtime minus stated address, wrapping, for an *executable* mapping of `mapping_len` bytes
    /// of the file from `mapping_offset` on, that starts at `mapping_start`.
    ///
    /// Of the executable segments that the mapping shares bytes with, the one whose first page is
    /// the mapping's offset is chosen, else the one that shares the most bytes. Nothing when there
    /// is none: the file is not the one that was mapped, or the mapping holds no code.
    pub fn bias(
        &self,
        mapping_start: RuntimeAddress,
        mapping_offset: FileOffset,
        mapping_len: u64,
    ) -> Option<u64> {
        let (start, end) = (mapping_offset.0, mapping_offset.0.saturating_add(mapping_len));
        let shared = |segment: &&Segment| segment.overlap(start, end);
        let candidates = self.segments.iter().filter(|s| s.executable && shared(s) > 0);
        let chosen = candidates.max_by_key(|s| (s.first_page() == start, shared(s)))?;
        let stated_start = start.wrapping_add(chosen.displacement());
        Some(mapping_start.0.wrapping_sub(stated_start))
    }

    /// The stated address of a byte of the file; of code, where a byte is mapped twice. Nothing
    /// for bytes that no segment maps, such as debug information.
    pub fn stated(&self, offset: FileOffset) -> Option<StatedAddress> {
        let holders = self.segments.iter().filter(|segment| segment.holds(offset.0));
        let chosen = holders.max_by_key(|segment| segment.executable)?;
        Some(StatedAddress(offset.0.wrapping_add(chosen.displacement())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(executable: bool, file_offset: u64, stated_address: u64, file_size: u64) -> Segment {
        Segment {
            executable,
            file_offset: FileOffset(file_offset),
            stated_address: StatedAddress(stated_address),
            file_size,
            memory_size: file_size,
        }
    }

    /// The program headers that LLD writes for a small Rust program: each segment is displaced
    /// by 0x1000 more than the one before, and none starts on a page of the file.
    fn linked_by_lld() -> SegmentMap {
        SegmentMap::new(vec![
            segment(false, 0x0, 0x0, 0x114a4),
            segment(true, 0x114b0, 0x124b0, 0x3f3c1),
            segment(false, 0x50878, 0x52878, 0x3330),
            segment(false, 0x53ba8, 0x56ba8, 0x128),
        ])
    }

    fn bias(map: &SegmentMap, start: u64, offset: u64, len: u64) -> Option<u64> {
        map.bias(RuntimeAddress(start), FileOffset(offset), len)
    }

    #[test]
    fn a_page_shared_with_the_segment_before_does_not_displace_code_linked_by_lld() {
        // The mapping's offset, 0x11000, lies in the file range of the read-only segment.
        assert_eq!(bias(&linked_by_lld(), 0x5555_5556_6000, 0x11000, 0x40000), Some(0x5555_5555_4000));
    }

    #[test]
    fn a_part_of_a_mapping_gives_the_same_bias_as_the_whole() {
        assert_eq!(bias(&linked_by_lld(), 0x5555_5557_6000, 0x21000, 0x2000), Some(0x5555_5555_4000));
    }

    #[test]
    fn a_loader_with_pages_of_64_kib_gives_the_same_bias() {
        let map =
            SegmentMap::new(vec![segment(false, 0, 0, 0x1800), segment(true, 0x11800, 0x21800, 0x9000)]);
        assert_eq!(bias(&map, 0x7f00_0002_0000, 0x10000, 0x10000), Some(0x7f00_0000_0000));
    }

    #[test]
    fn of_two_executable_segments_in_one_page_the_one_that_starts_there_is_chosen() {
        let map = SegmentMap::new(vec![
            segment(true, 0x1000, 0x1000, 0x1200),
            segment(true, 0x2200, 0x5200, 0x9000),
        ]);
        assert_eq!(bias(&map, 0x10000, 0x1000, 0x2000), Some(0xf000));
        assert_eq!(bias(&map, 0x15000, 0x2000, 0xa000), Some(0x10000));
    }

    #[test]
    fn a_mapping_without_code_or_beyond_the_file_has_no_bias() {
        assert_eq!(bias(&linked_by_lld(), 0x1000, 0x53000, 0x1000), None);
        assert_eq!(bias(&linked_by_lld(), 0x1000, 0x900000, 0x1000), None);
        assert_eq!(bias(&linked_by_lld(), 0x1000, u64::MAX, u64::MAX), None);
        assert_eq!(bias(&SegmentMap::default(), 0, 0, 0x1000), None);
    }

    #[test]
    fn a_fixed_executable_may_be_mapped_below_its_stated_address() {
        let map = SegmentMap::new(vec![segment(true, 0, 0x40_0000, 0x5000)]);
        assert_eq!(bias(&map, 0x1000, 0, 0x5000), Some(0x1000_u64.wrapping_sub(0x40_0000)));
    }

    #[test]
    fn file_offsets_become_stated_addresses_of_their_own_segment() {
        let map = linked_by_lld();
        assert_eq!(map.stated(FileOffset(0x114a3)), Some(StatedAddress(0x114a3)));
        assert_eq!(map.stated(FileOffset(0x114b0)), Some(StatedAddress(0x124b0)));
        assert_eq!(map.stated(FileOffset(0x50870)), Some(StatedAddress(0x51870)));
        assert_eq!(map.stated(FileOffset(0x50871)), None);
        assert_eq!(map.stated(FileOffset(0x53ccf)), Some(StatedAddress(0x56ccf)));
    }

    #[test]
    fn a_byte_mapped_twice_is_taken_as_code() {
        let map =
            SegmentMap::new(vec![segment(true, 0, 0x40_0000, 0x5000), segment(false, 0, 0x60_0000, 0x5000)]);
        assert_eq!(map.stated(FileOffset(0x10)), Some(StatedAddress(0x40_0010)));
    }
}
