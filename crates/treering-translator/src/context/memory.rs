//! The memory of trees: frames, tables and nodes of each thread.

use std::io;

use crate::layout::{COUNTERS, SLICE};
use crate::region::PAGE;
use crate::remote::Stopped;
use crate::shared_memory::SharedMemory;
use crate::space::Space;

use super::{CONTEXT_SLICE, GUARD, SLOTS};

impl Space {
    /// Maps a new slice, if trees are kept: its counters, and the memory of its tree behind them.
    pub(crate) fn map_contexts(&mut self, slice: usize, thread: &mut Stopped<'_>) -> io::Result<()> {
        if !self.has_contexts() {
            return Ok(());
        }
        let size = CONTEXT_SLICE - SLICE;
        let memory = SharedMemory::new("treering contexts", size)?;
        let base = COUNTERS + slice as u64 * CONTEXT_SLICE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        thread.remotely(|calls| {
            calls.map_part(self.slice(slice), base, SLICE, protection, false)?;
            calls.map(&memory, base + SLICE, size, protection, false)?;
            calls.call(libc::SYS_mprotect, [base + GUARD, PAGE, libc::PROT_NONE as u64, 0, 0, 0])
        })?;
        if let Some(context) = &mut self.context {
            context.memory.push(memory);
        }
        Ok(())
    }

    /// The memory of a slice's tree, which begins where its counters end.
    ///
    /// # Panics
    /// If no trees are kept: nobody has offsets of it then.
    pub(crate) fn context_memory(&self, slice: usize) -> &SharedMemory {
        let context = self.context.as_ref();
        context.and_then(|context| context.memory.get(slice)).expect("trees are kept")
    }

    /// Forgets the tree of a thread that is gone.
    pub(crate) fn clear_context(&self, slice: usize) {
        if self.has_contexts() {
            let end = self.slot(slice, SLOTS.next);
            self.context_memory(slice).clear(0, end.saturating_sub(SLICE).next_multiple_of(PAGE));
        }
    }

    /// Whether an address is behind the last frame that there is room for.
    pub(crate) fn is_behind_frames(&self, address: u64) -> bool {
        let offset = address.wrapping_sub(COUNTERS) % CONTEXT_SLICE;
        self.has_contexts() && address >= COUNTERS && (GUARD..GUARD + PAGE).contains(&offset)
    }
}
