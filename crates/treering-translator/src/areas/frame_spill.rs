//! Frames that are spilled to the tracer's memory when calls nest deeper than the area has room for.
//!
//! When all frames are in use, the tracer takes the outer half and moves the others down. The outermost
//! remaining frame then takes the place of the thread's first frame. Its stack pointer is set to 0, so that
//! the return from it matches no frame: the thread makes a request, and the tracer puts the spilled frames
//! back. A jump from that one frame to another function counts as a jump within the function.

use std::io;

use treering_x86::Register;
use treering_x86::context::{FRAME, FRAME_STACK};

use crate::areas::thread_areas::ThreadAreas;
use crate::areas::tree_layout::{FIRST_FRAME, SLOTS};
use crate::error::Exhausted;
use crate::sys::layout::THREAD_AREA;
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::{self, Registers};

/// The spilled frames of a thread, outermost first.
#[derive(Debug, Default)]
pub(crate) struct Spilled {
    frames: Vec<Words>,
    /// The stack pointer at the entry of the frame that takes the place of the first one.
    stack: u64,
}

/// A frame.
pub(crate) type Words = [u64; FRAME as usize / 8];

/// The word of a frame that holds the stack pointer.
const STACK: usize = FRAME_STACK as usize / 8;

/// How many frames are put back at a time.
const PUT_BACK: usize = 1 << 20;

impl Spilled {
    pub(crate) fn frames(&self) -> &[Words] {
        &self.frames
    }
}

impl ThreadAreas {
    /// The spilled frames of a thread.
    pub(crate) fn spilled(&self, area: usize) -> &[Words] {
        let thread = self.trees.as_ref().and_then(|trees| trees.threads.get(&area));
        thread.map_or(&[], |thread| thread.spilled.frames())
    }

    /// How far the remaining frames of a thread have moved down.
    pub(crate) fn moved(&self, area: usize) -> u64 {
        self.spilled(area).len() as u64 * u64::from(FRAME)
    }

    /// Where the current frame would be if no frame had moved.
    pub(crate) fn whole_top(&self, area: usize) -> u64 {
        self.slot(area, SLOTS.top) + self.moved(area)
    }

    /// The stack pointer at which a frame's function was entered. `frame` is where the frame would be if none
    /// had moved.
    pub(crate) fn entered_at(&self, area: usize, frame: u64) -> u64 {
        let spilled = self.spilled(area);
        let number = (frame.saturating_sub(FIRST_FRAME) / u64::from(FRAME)) as usize;
        match spilled.get(number) {
            Some(words) if frame >= FIRST_FRAME => words[STACK],
            _ if !spilled.is_empty() && number == spilled.len() => {
                let thread = self.trees.as_ref().and_then(|trees| trees.threads.get(&area));
                thread.map_or(0, |thread| thread.spilled.stack)
            }
            _ => self.frame_stack(area, frame - self.moved(area)),
        }
    }

    /// Makes room for a frame whose access stopped a thread.
    ///
    /// # Errors
    /// There is no room, and the thread is not about to enter a function.
    pub(crate) fn give_frames(
        &mut self,
        area: usize,
        address: u64,
        registers: &mut Registers,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let frame = address - self.gs_base(area);
        if frame + u64::from(FRAME) <= self.frames_end(area) {
            return self.open_frames(area, address, thread);
        }
        let top = self.slot(area, SLOTS.top);
        if registers.get(Register::R11) != top {
            return Err(Exhausted::Nesting.into());
        }
        let moved = self.spill(area)?;
        registers.set(Register::R11, top - moved);
        sys::set_registers(thread.tid, registers)
    }

    /// Takes the outer half of a thread's frames away. Returns how far the others move.
    ///
    /// # Errors
    /// There are too few frames to take any.
    pub(crate) fn spill(&mut self, area: usize) -> io::Result<u64> {
        let top = self.slot(area, SLOTS.top);
        let frames = self.read_frames(area, FIRST_FRAME, top + u64::from(FRAME));
        let many = frames.len() / 2;
        let Some(thread) = self.thread_tree(area).filter(|_| many > 0) else {
            return Err(Exhausted::Nesting.into());
        };
        let (outer, inner) = frames.split_at(many);
        let first = thread.spilled.frames.len();
        thread.spilled.frames.extend_from_slice(outer);
        if first > 0 {
            thread.spilled.frames[first][STACK] = thread.spilled.stack;
        }
        thread.spilled.stack = inner[0][STACK];
        self.write_frames(area, FIRST_FRAME, inner);
        self.set_slot(area, FIRST_FRAME as u32 + FRAME_STACK, 0);
        let moved = many as u64 * u64::from(FRAME);
        self.set_slot(area, SLOTS.top, top - moved);
        Ok(moved)
    }

    /// Puts spilled frames back when the current frame is the one that takes the place of the first one.
    pub(crate) fn put_back(&mut self, area: usize) {
        let mut current = self.read_frames(area, FIRST_FRAME, FIRST_FRAME + u64::from(FRAME));
        let Some(thread) = self.thread_tree(area) else { return };
        let left = thread.spilled.frames.len().saturating_sub(PUT_BACK);
        let mut frames = thread.spilled.frames.split_off(left);
        if frames.is_empty() {
            return;
        }
        current[0][STACK] = thread.spilled.stack;
        if left > 0 {
            thread.spilled.stack = std::mem::take(&mut frames[0][STACK]);
        }
        let top = FIRST_FRAME + frames.len() as u64 * u64::from(FRAME);
        frames.append(&mut current);
        self.write_frames(area, FIRST_FRAME, &frames);
        self.set_slot(area, SLOTS.top, top);
    }

    fn read_frames(&self, area: usize, from: u64, to: u64) -> Vec<Words> {
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        self.tree_memory(area).read(from - THREAD_AREA, &mut bytes);
        let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let words = bytes.as_chunks::<8>().0.as_chunks::<{ FRAME as usize / 8 }>().0;
        words.iter().map(|words| std::array::from_fn(|at| word(&words[at]))).collect()
    }

    fn write_frames(&self, area: usize, from: u64, frames: &[Words]) {
        let bytes: Vec<u8> = frames.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        self.tree_memory(area).write(from - THREAD_AREA, &bytes);
    }
}
