//! The model's counts of a thread.

use std::collections::HashMap;

/// How many cells are made at a time.
const CELLS: usize = 512;

/// Counts of one event of one block: misses in the first cache, misses in the last, and accesses if
/// they are not as many as executions.
pub(crate) type Cell = [u64; 3];

/// Cells by the number of an event; those that nobody touched take no memory.
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

    /// What the cell holds.
    pub(crate) fn get(&self, event: usize) -> Cell {
        self.0.get(event / CELLS).and_then(Option::as_ref).map_or([0; 3], |chunk| chunk[event % CELLS])
    }
}

/// What is counted of a block as a whole.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct BlockTally {
    pub(crate) executions: u64,
    /// How often its last instruction went another way than predicted.
    pub(crate) mispredicted: u64,
}

/// Everything that is counted of a thread.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) cells: Cells,
    /// By the block's number.
    pub(crate) blocks: Vec<BlockTally>,
    /// Executions that ended before an instruction: how often, by block and instruction.
    pub(crate) cut: HashMap<(u32, u8), u64>,
    /// Whether the thread's buffer held what no block writes.
    pub(crate) broken: bool,
}

impl Tally {
    /// What is counted of a block.
    pub(crate) fn block(&mut self, block: u32) -> &mut BlockTally {
        let at = block as usize;
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, BlockTally::default());
        }
        &mut self.blocks[at]
    }
}
