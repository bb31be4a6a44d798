//! Blocks of functions that lie outside of the functions' own code.
//!
//! The Glasgow Haskell Compiler states only the beginning of a function as its code. The rest is in blocks
//! below the function's entry, elsewhere in the unit.

use std::ops::Range;

use gimli::{UnitOffset, UnitRef};

use crate::object_file::Slice;

/// The blocks of a unit, with the functions around them.
#[derive(Debug, Default)]
pub(crate) struct StrayBlocks {
    blocks: Vec<(Range<u64>, UnitOffset)>,
}

impl StrayBlocks {
    /// Reads the unit once through; what cannot be read ends the list.
    pub(crate) fn read(unit: UnitRef<'_, Slice<'_>>) -> Self {
        let mut blocks = Self::default();
        let _ = blocks.read_entries(unit);
        blocks
    }

    /// The function around the smallest block that holds an address.
    pub(crate) fn function(&self, address: u64) -> Option<UnitOffset> {
        let holding = self.blocks.iter().filter(|(code, _)| code.contains(&address));
        holding.min_by_key(|(code, _)| code.end - code.start).map(|(_, function)| *function)
    }

    fn read_entries(&mut self, unit: UnitRef<'_, Slice<'_>>) -> gimli::Result<()> {
        let mut entries = unit.entries();
        let mut around: Vec<(isize, UnitOffset)> = Vec::new();
        while let Some(entry) = entries.next_dfs()? {
            let depth = entry.depth();
            around.truncate(around.partition_point(|(outer, _)| *outer < depth));
            match entry.tag() {
                gimli::DW_TAG_subprogram => around.push((depth, entry.offset())),
                gimli::DW_TAG_lexical_block => {
                    let Some(&(_, function)) = around.last() else { continue };
                    let mut ranges = unit.die_ranges(entry)?;
                    while let Some(range) = ranges.next()? {
                        self.blocks.push((range.begin..range.end, function));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
