//! The buffers that a translation is written into before it is appended to the code cache.

use treering_x86::registers::Registers;
use treering_x86::{Assembler, Decoded};

use crate::cache::batch::Batch;
use crate::cache::block::Steps;

/// The code that is being written, and buffers that every block uses again.
#[derive(Debug)]
pub(crate) struct Emitter {
    pub(crate) code: Assembler,
    pub(crate) registers: Registers,
    pub(crate) decoded: Vec<Decoded>,
    pub(crate) steps: Steps,
    pub(crate) work: Vec<u64>,
    pub(crate) batch: Batch,
    /// Indirect transfers with the targets that the history predicts.
    pub(crate) presumed: Vec<(u32, u64)>,
}

impl Emitter {
    /// Writes a step: the translation of an instruction of `length` bytes, or, with 0, added code, which may be none.
    pub(crate) fn write_step<T>(&mut self, length: usize, write: impl FnOnce(&mut Assembler) -> T) -> T {
        let start = self.code.here();
        let result = write(&mut self.code);
        let emitted = self.code.here() - start;
        if length != 0 || emitted != 0 {
            self.steps.push(length, emitted);
        }
        result
    }
}

impl Default for Emitter {
    fn default() -> Self {
        Self {
            code: Assembler::new(0),
            registers: Registers::default(),
            decoded: Vec::new(),
            steps: Steps::default(),
            work: Vec::new(),
            batch: Batch::default(),
            presumed: Vec::new(),
        }
    }
}
