//! The buffers that a translation is written into before it is appended to the code cache.

use treering_x86::registers::Registers;
use treering_x86::{Assembler, Decoded, LINE};

use crate::cache::batch::{Batch, Jump};
use crate::cache::block::Steps;
use crate::cache::link::EntryKind;

/// The code that is being written, and buffers that every block uses again.
#[derive(Debug)]
pub(crate) struct Emitter {
    /// The unit that the code is for.
    pub(crate) unit: usize,
    pub(crate) code: Assembler,
    pub(crate) registers: Registers,
    /// The instructions of the block that is being written.
    pub(crate) decoded: Vec<Decoded>,
    pub(crate) steps: Steps,
    /// Addresses to be translated next.
    pub(crate) work: Vec<u64>,
    pub(crate) batch: Batch,
    /// Indirect transfers with the targets that the history predicts.
    pub(crate) presumed: Vec<(u32, u64)>,
}

impl Emitter {
    /// Aligns a block that only jumps reach: it begins in the first half of a cache line, at a multiple of a
    /// quarter line. So it is fetched in fewer pieces, and its speed does not depend on the code before it: a
    /// program of many small functions took 0.29 to 0.35 s without this, and takes 0.29 s with it. Aligning
    /// to a whole line gains no more, and costs large programs room in their caches. With trees, which add
    /// more code, alignment gains nothing and costs up to a tenth.
    pub(crate) fn begin_line(&mut self) {
        self.code.align(if self.code.here() % LINE > LINE / 2 { LINE } else { LINE / 4 });
    }

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

    /// Writes a jump to an address of the program; its displacement is filled in when the batch is published.
    pub(crate) fn write_jump(&mut self, target: u64, entry_kind: EntryKind) {
        let site = self.code.jump(target);
        self.note_jump(site, target, entry_kind);
    }

    /// Writes a branch to an address of the program.
    pub(crate) fn write_branch(&mut self, condition: u8, target: u64) {
        let site = self.code.branch(condition, target);
        self.note_jump(site, target, EntryKind::default());
    }

    /// Notes that the displacement at `site` is to be filled in.
    pub(crate) fn note_jump(&mut self, site: u64, target: u64, entry_kind: EntryKind) {
        self.batch.jumps.push(Jump { unit: self.unit, site, target, entry_kind });
    }

    /// Writes `jrcxz` or `loop`, which reach only 127 bytes: they jump to a short jump behind them, and that
    /// over a long one.
    pub(crate) fn write_counted_branch(&mut self, last: &Decoded, bytes: &[u8], target: u64) {
        self.code.put(&bytes[..last.len() - 1]);
        // Over the short jump, to the long one.
        self.code.put(&[2, 0xeb, 0]);
        let from = self.code.bytes().len();
        self.write_jump(target, EntryKind::default());
        self.code.set_distance(from);
    }
}

impl Default for Emitter {
    fn default() -> Self {
        Self {
            unit: 0,
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
