//! What a profiler needs of an ELF file to tell addresses in it from each other.

use object::elf::PF_X;
use object::{File, Object as _, ObjectSegment as _, ReadRef, SegmentFlags};
use treering_profile::{FileOffset, Segment, SegmentMap, StatedAddress};

/// The segments that the loader maps from a file.
pub fn segments<'data>(file: &File<'data, impl ReadRef<'data>>) -> SegmentMap {
    let segments = file.segments().map(|segment| {
        let (file_offset, file_size) = segment.file_range();
        let is_executable = match segment.flags() {
            SegmentFlags::Elf { p_flags, .. } => p_flags.contains(PF_X),
            _ => false,
        };
        Segment {
            executable: is_executable,
            file_offset: FileOffset(file_offset),
            stated_address: StatedAddress(segment.address()),
            file_size,
            memory_size: segment.size(),
        }
    });
    SegmentMap::new(segments.collect())
}

/// The build-id of a file, by which it is known again; nothing if it has none.
pub fn build_id<'data>(file: &File<'data, impl ReadRef<'data>>) -> Option<&'data [u8]> {
    file.build_id().ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_has_code_where_its_symbols_say() {
        let bytes = std::fs::read(std::env::current_exe().expect("our path")).expect("our program");
        let file = File::parse(&bytes[..]).expect("an ELF file");
        let map = segments(&file);
        let entry = file.entry();
        let holds_entry = |segment: &Segment| {
            let start = segment.stated_address.0;
            segment.executable && (start..start + segment.memory_size).contains(&entry)
        };
        assert!(map.segments().iter().any(holds_entry));
        assert_eq!(build_id(&file), file.build_id().ok().flatten());
    }
}
