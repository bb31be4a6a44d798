//! The instructions that a translator has decoded already.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use treering_profile::CodeAddress;
use treering_x86::disassembly::Flow;

use super::instructions::Block;

/// The instructions of translated blocks, from when they were translated: they need not be read and decoded again.
///
/// Each block is here once, however many programs and threads executed it. Of some, nothing is known.
#[derive(Debug, Clone, Default)]
pub struct KnownInstructions {
    /// The bytes of each instruction, those of one block behind those of another.
    lengths: Vec<u8>,
    blocks: HashMap<Block, DecodedBlock>,
}

#[derive(Debug, Clone, Copy)]
struct DecodedBlock {
    /// Its part of the lengths.
    first: u32,
    instructions: u32,
    /// Where its last instruction leads.
    last: Flow,
}

impl KnownInstructions {
    /// Adds a block of so many bytes, if it is new, by the bytes of each of its instructions, and where the last one
    /// leads.
    pub fn add_block(&mut self, start: CodeAddress, length: u32, lengths: &[u8], last: Flow) {
        let (first, instructions) = (self.lengths.len() as u32, lengths.len() as u32);
        if let Entry::Vacant(free) = self.blocks.entry((start, length, instructions)) {
            self.lengths.extend_from_slice(lengths);
            free.insert(DecodedBlock { first, instructions, last });
        }
    }

    /// The bytes of each instruction of a block, and where the last one leads.
    pub(crate) fn of(&self, block: Block) -> Option<(&[u8], Flow)> {
        let DecodedBlock { first, instructions, last } = *self.blocks.get(&block)?;
        Some((&self.lengths[first as usize..(first + instructions) as usize], last))
    }
}
