//! The model's counts of a thread.

use std::collections::HashMap;

/// The number of cells that are allocated at a time.
const CELLS: usize = 512;

/// The counts of one event of one block: misses in the first cache, misses in the last, and accesses if these
/// differ from the executions.
pub(crate) type Cell = [u64; 3];

/// Cells by the number of an event; unused ones take no memory.
#[derive(Debug, Default)]
pub(crate) struct Cells(Vec<Option<Box<[Cell; CELLS]>>>);

impl Cells {
    /// The cell of an event.
    pub(crate) fn at(&mut self, event: usize) -> &mut Cell {
        let chunk = event / CELLS;
        if self.0.len() <= chunk {
            self.0.resize_with(chunk + 1, || None);
        }
        let chunk = self.0[chunk].get_or_insert_with(|| Box::new([[0; 3]; CELLS]));
        &mut chunk[event % CELLS]
    }

    /// The value of a cell.
    pub(crate) fn get(&self, event: usize) -> Cell {
        self.0.get(event / CELLS).and_then(Option::as_ref).map_or([0; 3], |chunk| chunk[event % CELLS])
    }
}

/// The counts of a block as a whole.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct BlockTally {
    pub(crate) executions: u64,
    /// Executions of its last instruction that were mispredicted.
    pub(crate) mispredicted: u64,
}

/// The counts of a thread.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) cells: Cells,
    /// By the block's number.
    pub(crate) blocks: Vec<BlockTally>,
    /// The number of executions that ended before an instruction, by block and instruction.
    pub(crate) cut: HashMap<(u32, u8), u64>,
    /// Whether the thread's buffer held words that no block writes.
    pub(crate) broken: bool,
}

impl Tally {
    /// The counts of a block.
    pub(crate) fn block(&mut self, block: u32) -> &mut BlockTally {
        let at = block as usize;
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, BlockTally::default());
        }
        &mut self.blocks[at]
    }
}
