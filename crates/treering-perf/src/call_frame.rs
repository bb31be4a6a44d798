//! The call frame information of a binary: for every instruction, where the caller's registers are.
//!
//! DWARF 5, section 6.4; Linux Standard Base, "Exception Frames", for `.eh_frame` and its header.

mod expression;
mod rule;

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use gimli::{
    BaseAddresses, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, UnwindContext, UnwindSection,
};

pub(crate) use rule::{FrameRule, Plain, Rare};

use crate::binary::Bytes;
use crate::registers::Width;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// A section with the address at which it is loaded.
pub(crate) type Loaded = (Range<u64>, Bytes);

/// The call frame information of a binary.
#[derive(Default)]
pub(crate) struct CallFrames {
    width: Width,
    sections: Vec<Section>,
    context: RefCell<UnwindContext<usize>>,
}

impl std::fmt::Debug for CallFrames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallFrames").field("sections", &self.sections.len()).finish_non_exhaustive()
    }
}

struct Section {
    is_debug_frame: bool,
    bytes: Bytes,
    header: Option<Bytes>,
    bases: BaseAddresses,
    /// Where there is no header: the first address and the offset of each entry.
    index: OnceCell<Vec<(u64, usize)>>,
}

impl CallFrames {
    /// The sections as they are in the file: `.eh_frame`, `.eh_frame_hdr`, `.debug_frame`, and where
    /// `.text` is.
    pub(crate) fn new(
        width: Width,
        eh_frame: Option<Loaded>,
        header: Option<Loaded>,
        debug_frame: Option<Bytes>,
        text: Option<Range<u64>>,
    ) -> Self {
        let mut bases = BaseAddresses::default().set_text(text.map_or(0, |text| text.start));
        let mut sections = Vec::new();
        if let Some((range, bytes)) = eh_frame {
            bases = bases.set_eh_frame(range.start);
            let header = header.map(|(range, bytes)| {
                bases = bases.clone().set_eh_frame_hdr(range.start);
                bytes
            });
            let index = OnceCell::new();
            sections.push(Section { is_debug_frame: false, bytes, header, bases: bases.clone(), index });
        }
        if let Some(bytes) = debug_frame {
            let index = OnceCell::new();
            sections.push(Section { is_debug_frame: true, bytes, header: None, bases, index });
        }
        Self { width, sections, ..Self::default() }
    }

    /// The rule for the instruction at a stated address.
    pub(crate) fn rule(&self, address: u64) -> FrameRule {
        let size = self.width.numbering().word;
        for section in &self.sections {
            let rule = if section.is_debug_frame {
                let mut frames = DebugFrame::new(&section.bytes, LittleEndian);
                frames.set_address_size(size);
                self.rule_in(section, &frames, address)
            } else {
                let mut frames = EhFrame::new(&section.bytes, LittleEndian);
                frames.set_address_size(size);
                self.rule_in(section, &frames, address)
            };
            if let Some(rule) = rule {
                return rule;
            }
        }
        FrameRule::Uncovered
    }

    /// Whether a function begins at a stated address or right before it.
    pub(crate) fn begins_near(&self, address: u64) -> bool {
        self.starts(address).any(|start| address - start <= 1)
    }

    /// Where the function begins that holds a stated address.
    pub(crate) fn start(&self, address: u64) -> Option<u64> {
        self.starts(address).next()
    }

    /// Where the entries begin that hold a stated address.
    fn starts(&self, address: u64) -> impl Iterator<Item = u64> {
        let size = self.width.numbering().word;
        self.sections.iter().filter_map(move |section| {
            if section.is_debug_frame {
                let mut frames = DebugFrame::new(&section.bytes, LittleEndian);
                frames.set_address_size(size);
                section.first_address(&frames, address, self.width)
            } else {
                let mut frames = EhFrame::new(&section.bytes, LittleEndian);
                frames.set_address_size(size);
                section.first_address(&frames, address, self.width)
            }
        })
    }

    /// A section's rule for an address; nothing if it does not cover it.
    fn rule_in<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        section: &Section,
        frames: &S,
        address: u64,
    ) -> Option<FrameRule> {
        let offset = section.entry(frames, address, self.width)?;
        let entry = frames.fde_from_offset(&section.bases, offset.into(), S::cie_from_offset).ok()?;
        if !entry.contains(address) {
            return None;
        }
        let mut context = self.context.borrow_mut();
        let row = entry.unwind_info_for_address(frames, &section.bases, &mut context, address);
        let Ok(row) = row else { return Some(FrameRule::Unusable) };
        let signal = entry.is_signal_trampoline();
        Some(FrameRule::read(row, self.width, signal, entry.cie().encoding(), &section.bytes))
    }
}

impl Section {
    /// The offset of the entry that may cover an address.
    fn entry<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        frames: &S,
        address: u64,
        width: Width,
    ) -> Option<usize> {
        if let Some(header) = &self.header
            && let Ok(header) =
                EhFrameHdr::new(header, LittleEndian).parse(&self.bases, width.numbering().word)
            && let Some(table) = header.table()
        {
            let entry = table.lookup(address, &self.bases).ok()?;
            return Some(table.pointer_to_offset(entry).ok()?.0);
        }
        let index = self.index.get_or_init(|| self.read_index(frames));
        let behind = index.partition_point(|&(first, _)| first <= address);
        Some(index[behind.checked_sub(1)?].1)
    }

    /// Where the entry begins that covers an address.
    fn first_address<'a, S: UnwindSection<Slice<'a>>>(
        &self,
        frames: &S,
        address: u64,
        width: Width,
    ) -> Option<u64> {
        let offset = self.entry(frames, address, width)?;
        let entry = frames.fde_from_offset(&self.bases, offset.into(), S::cie_from_offset).ok()?;
        entry.contains(address).then(|| entry.initial_address())
    }

    fn read_index<'a, S: UnwindSection<Slice<'a>>>(&self, frames: &S) -> Vec<(u64, usize)> {
        let mut index = Vec::new();
        let mut entries = frames.entries(&self.bases);
        while let Ok(Some(entry)) = entries.next() {
            if let gimli::CieOrFde::Fde(entry) = entry
                && let Ok(entry) = entry.parse(S::cie_from_offset)
            {
                index.push((entry.initial_address(), entry.offset()));
            }
        }
        index.sort_unstable();
        index
    }
}
