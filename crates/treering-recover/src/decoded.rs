//! The instructions that a translator has decoded already.

use treering_x86::disassembly::Flow;

/// The instructions of translated blocks, from when they were translated: they need not be read and decoded again.
///
/// Each row of [`CodeCounts::translated`](treering_profile::CodeCounts::translated) is of one of the blocks here. Of
/// some blocks, and of rows behind the last one, nothing is known.
#[derive(Debug, Clone, Default)]
pub struct KnownInstructions {
    /// The bytes of each instruction, those of one block behind those of another.
    lengths: Vec<u8>,
    blocks: Vec<DecodedBlock>,
    /// By row, the number of its block.
    rows: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct DecodedBlock {
    /// Its part of the lengths.
    first: u32,
    instructions: u32,
    /// Where its last instruction leads; nothing if nothing is known of it.
    last: Option<Flow>,
}

impl KnownInstructions {
    /// An empty value with room for the given numbers.
    pub fn with_capacity(instructions: usize, blocks: usize, rows: usize) -> Self {
        Self {
            lengths: Vec::with_capacity(instructions),
            blocks: Vec::with_capacity(blocks),
            rows: Vec::with_capacity(rows),
        }
    }

    /// Adds a block by the bytes of each of its instructions, and where the last one leads.
    pub fn add_block(&mut self, lengths: &[u8], last: Option<Flow>) {
        let (first, instructions) = (self.lengths.len() as u32, lengths.len() as u32);
        self.lengths.extend_from_slice(lengths);
        self.blocks.push(DecodedBlock { first, instructions, last });
    }

    /// How many blocks there are, which is the number of the next one.
    pub fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Adds the next row, which is of a block.
    pub fn add_row(&mut self, block: u32) {
        self.rows.push(block);
    }

    /// The bytes of each instruction of a row's block, and where the last one leads.
    pub(crate) fn of(&self, row: u32) -> Option<(&[u8], Flow)> {
        let number = *self.rows.get(row as usize)?;
        let DecodedBlock { first, instructions, last } = self.blocks[number as usize];
        Some((&self.lengths[first as usize..(first + instructions) as usize], last?))
    }
}
