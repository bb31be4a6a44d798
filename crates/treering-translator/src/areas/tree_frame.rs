//! The tracer's work on a thread's frames: it begins them, leaves several at once, and inserts those of signals.
//!
//! A frame ends when the stack pointer rises above its value at the function's entry. So `longjmp` and exceptions end
//! all frames that they skip. Code that continues on another stack runs below the function that switched to it: frames
//! at lower addresses than the new stack pointer end, others stay.

use std::io;

use treering_x86::context::{FRAME, FRAME_NODE, FRAME_STACK};

use crate::areas::thread_areas::ThreadAreas;
use crate::areas::tree_layout::{
    COUNT, FIRST_FRAME, FRAMES, HANDLERS, INHERITED, INHERITED_TO, NEW, NODES, OWNER, SLOTS,
    UNMATCHED_RETURNS, Vector,
};
use crate::areas::trees::{SignalFrame, ThreadTree};
use crate::program::program_code::ProgramCode;
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::{self, Registers};

/// How much of the program's own xmm15 is in the register, which otherwise holds the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lent {
    /// Nothing that the area does not hold as well.
    Nothing,
    /// The lower sixteen bytes; the others are in the area.
    Lower,
    /// The whole register.
    Whole,
}

/// The state that a new thread or process inherits from its parent.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    /// The program's own xmm15.
    own: Vector,
    /// The functions that are active, outermost first, and their stack pointers.
    frames: Vec<(u64, u64)>,
    signals: Vec<SignalFrame>,
}

impl ThreadAreas {
    /// The state that a child of a thread inherits. It includes all active functions if the child continues
    /// on the thread's stack or on a copy of it.
    pub(crate) fn inheritance(&self, area: usize, with_frames: bool) -> Inherited {
        let Some(trees) = &self.trees else { return Inherited::default() };
        let own = self.own(area);
        let Some(thread) = trees.threads.get(&area).filter(|_| with_frames) else {
            return Inherited { own, ..Inherited::default() };
        };
        let (top, moved) = (self.slot(area, SLOTS.top), self.moved(area));
        let address = |node: u32| {
            let number = self.slot(area, node + treering_x86::context::NODE_KEY);
            trees.functions.addresses[number as u32 as usize]
        };
        let spilled = self.spilled(area).iter().map(|words| words[FRAME_NODE as usize / 8] as u32);
        let here = (FIRST_FRAME..=top).step_by(FRAME as usize).map(|frame| self.frame_node(area, frame));
        let frames = spilled.chain(here).zip((FIRST_FRAME..=top + moved).step_by(FRAME as usize));
        let frames = frames.map(|(node, frame)| (address(node), self.entered_at(area, frame)));
        Inherited { own, frames: frames.collect(), signals: thread.signals.clone() }
    }

    /// Begins the tree of a thread that is about to execute the instruction at `start`.
    pub(crate) fn begin_tree(
        &mut self,
        area: usize,
        thread: &mut StoppedThread<'_>,
        program: &ProgramCode,
        start: u64,
        inherited: Inherited,
    ) -> io::Result<()> {
        if !self.has_trees() {
            return Ok(());
        }
        let tid = thread.tid;
        let registers = sys::registers(tid)?;
        self.begin_nodes(area);
        self.set_slot(area, FRAMES as u32 + FRAME_NODE, NODES);
        self.set_slot(area, FRAMES as u32 + FRAME_STACK, u64::MAX);
        self.set_slot(area, SLOTS.top, FRAMES);
        self.set_slot(area, OWNER as u32, u64::from(tid.cast_unsigned()));
        self.set_own(area, &inherited.own);
        self.set_slot(area, HANDLERS as u32, inherited.signals.len() as u64);
        if let Some(trees) = &mut self.trees {
            let thread = ThreadTree { signals: inherited.signals, ..ThreadTree::default() };
            trees.threads.insert(area, thread);
        }
        if inherited.frames.is_empty() {
            self.push(area, start, registers.0.rsp, INHERITED, program, thread)?;
            sys::set_whole_vector(tid, &widened(NEW))?;
        } else {
            for (address, stack) in inherited.frames {
                self.push(area, address, stack, INHERITED, program, thread)?;
            }
            self.set_slot(area, INHERITED_TO as u32, self.whole_top(area));
            sys::set_whole_vector(tid, &widened(INHERITED))?;
        }
        Ok(())
    }

    /// Adds a frame for a function, and stores the caller's count in the caller's frame.
    fn push(
        &mut self,
        area: usize,
        address: u64,
        stack: u64,
        count: [u64; 2],
        program: &ProgramCode,
        thread: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let mut top = self.slot(area, SLOTS.top);
        let region = program.region_at(address);
        let number = self.trees.as_mut().map_or(0, |trees| trees.functions.number(address, region));
        let node = self.child(area, self.frame_node(area, top), number, thread)?;
        if top + 2 * u64::from(FRAME) > self.frames_end(area) {
            top -= self.spill(area)?;
        }
        let frame = top + u64::from(FRAME);
        self.reserve_frames(area, frame, thread)?;
        self.set_pair(area, frame as u32, count);
        self.set_slot(area, frame as u32 + FRAME_NODE, node.into());
        self.set_slot(area, frame as u32 + FRAME_STACK, stack);
        self.set_slot(area, SLOTS.top, frame);
        Ok(())
    }

    /// Leaves the top frame with its count, and returns the caller's count.
    fn pop(&mut self, area: usize, count: [u64; 2]) -> [u64; 2] {
        if self.slot(area, SLOTS.top) == FIRST_FRAME {
            self.put_back(area);
        }
        let top = self.slot(area, SLOTS.top);
        self.add_to_node(area, self.frame_node(area, top), count);
        self.set_slot(area, SLOTS.top, top - u64::from(FRAME));
        self.pair(area, top as u32)
    }

    /// Leaves all frames from `frame` on, which is given as if no frame had moved.
    fn pop_from(&mut self, area: usize, frame: u64, mut count: [u64; 2]) -> [u64; 2] {
        while self.whole_top(area) >= frame.max(FIRST_FRAME + u64::from(FRAME)) {
            count = self.pop(area, count);
        }
        count
    }

    /// Leaves all frames whose stack pointer at entry is not above `limit`. Returns whether there were any.
    pub(crate) fn unwind(&mut self, area: usize, limit: u64, tid: i32) -> io::Result<bool> {
        let before = self.whole_top(area);
        let mut count = sys::vector(tid)?;
        let mut signals = self.take_signals(area);
        while let Some(last) = signals.pop() {
            // A handler on its own stack ends when the thread leaves that stack, whichever address comes next.
            let on_it = last.stack.is_none_or(|(start, end)| (start..end).contains(&limit));
            if on_it || self.entered_at(area, last.frame) > limit {
                signals.push(last);
                break;
            }
            count = self.pop_from(area, last.frame, count);
        }
        loop {
            let top = self.whole_top(area);
            if top <= FIRST_FRAME || self.entered_at(area, top) > limit {
                break;
            }
            count = self.pop(area, count);
        }
        let top = self.whole_top(area);
        signals.retain(|signal| signal.frame <= top);
        self.set_signals(area, signals);
        sys::set_vector(tid, count)?;
        Ok(top != before)
    }

    fn take_signals(&mut self, area: usize) -> Vec<SignalFrame> {
        let thread = self.thread_tree(area);
        thread.map(|thread| std::mem::take(&mut thread.signals)).unwrap_or_default()
    }

    fn set_signals(&mut self, area: usize, signals: Vec<SignalFrame>) {
        self.set_slot(area, HANDLERS as u32, signals.len() as u64);
        if let Some(thread) = self.thread_tree(area) {
            thread.signals = signals;
        }
    }

    pub(crate) fn thread_tree(&mut self, area: usize) -> Option<&mut ThreadTree> {
        self.trees.as_mut()?.threads.get_mut(&area)
    }

    pub(crate) fn note_stray(&self, area: usize) {
        self.set_slot(area, UNMATCHED_RETURNS as u32, self.slot(area, UNMATCHED_RETURNS as u32) + 1);
    }

    /// Adds to the instructions of the current node.
    pub(crate) fn correct_running_count(&self, area: usize, instructions: i64) {
        if self.has_trees() {
            let node = self.frame_node(area, self.slot(area, SLOTS.top));
            self.add_to_node(area, node, [instructions as u64, 0]);
        }
    }

    /// Puts the count back into the register when control leaves a block that had loaded the program's own xmm15.
    pub(crate) fn return_count(&self, area: usize, lent: Lent, tid: i32) -> io::Result<()> {
        self.set_own(area, &self.lent_value(area, lent, tid)?);
        sys::set_whole_vector(tid, &widened(self.pair(area, COUNT)))
    }

    /// Restores the program's own xmm15 before a signal is delivered, so that the handler sees it. `lent`
    /// says how much of it is in the register already.
    pub(crate) fn interrupt(
        &mut self,
        area: usize,
        lent: Option<Lent>,
        registers: &Registers,
        tid: i32,
    ) -> io::Result<()> {
        let stack = registers.0.rsp;
        let Some(thread) = self.thread_tree(area) else { return Ok(()) };
        if thread.interrupted.replace(stack).is_some() {
            return Ok(());
        }
        if lent.is_none() {
            self.set_pair(area, COUNT, sys::vector(tid)?);
        }
        let own = self.lent_value(area, lent.unwrap_or(Lent::Nothing), tid)?;
        sys::set_whole_vector(tid, &own)
    }

    /// Enters a handler whose first instruction is next. Its caller is the function that it returns to, as
    /// unwinders show it, and that function's caller is the interrupted one.
    pub(crate) fn enter_signal(
        &mut self,
        area: usize,
        registers: &Registers,
        program: &ProgramCode,
        stopped: &mut StoppedThread<'_>,
    ) -> io::Result<()> {
        let Some(thread) = self.thread_tree(area) else { return Ok(()) };
        let Some(interrupted) = thread.interrupted.take() else { return Ok(()) };
        let (stack, tid) = (registers.0.rsp, stopped.tid);
        let mut restorer = [0; 8];
        sys::read_memory(tid, stack, &mut restorer);
        let (below, count) = (interrupted.wrapping_sub(1), self.pair(area, COUNT));
        self.push(area, u64::from_le_bytes(restorer), below, count, program, stopped)?;
        let frame = self.whole_top(area);
        self.push(area, registers.0.rip, stack, NEW, program, stopped)?;
        self.set_own(area, &sys::whole_vector(tid)?);
        let own_stack =
            alternate_stack(registers.0.rdx, tid).filter(|(start, end)| (*start..*end).contains(&stack));
        let mut signals = self.take_signals(area);
        signals.push(SignalFrame { frame, stack: own_stack });
        self.set_signals(area, signals);
        sys::set_whole_vector(tid, &widened(NEW))
    }

    /// Saves the count before a handler returns to the kernel, which loads all registers.
    pub(crate) fn keep_count(&self, area: usize, tid: i32) -> io::Result<()> {
        if self.has_trees() {
            self.set_pair(area, COUNT, sys::vector(tid)?);
        }
        Ok(())
    }

    /// Leaves a handler's frames: the kernel has loaded the registers that it returns to.
    pub(crate) fn leave_signal(&mut self, area: usize, tid: i32) -> io::Result<()> {
        if !self.has_trees() {
            return Ok(());
        }
        self.set_own(area, &sys::whole_vector(tid)?);
        let mut count = self.pair(area, COUNT);
        let mut signals = self.take_signals(area);
        let last = signals.pop();
        self.set_signals(area, signals);
        if let Some(last) = last {
            count = self.pop_from(area, last.frame, count);
        }
        sys::set_whole_vector(tid, &widened(count))
    }

    /// The program's own xmm15 of a stopped thread; `lent` says how much of it is in the register.
    fn lent_value(&self, area: usize, lent: Lent, tid: i32) -> io::Result<Vector> {
        let mut own = self.own(area);
        match lent {
            Lent::Nothing => {}
            Lent::Lower => own[..2].copy_from_slice(&sys::vector(tid)?),
            Lent::Whole => own = sys::whole_vector(tid)?,
        }
        Ok(own)
    }
}

/// A count, widened to the whole register.
fn widened([instructions, calls]: [u64; 2]) -> Vector {
    [instructions, calls, 0, 0, 0, 0, 0, 0]
}

/// The alternate signal stack, from the user context that the kernel gives a handler.
fn alternate_stack(user_context: u64, tid: i32) -> Option<(u64, u64)> {
    const STACK_AT: u64 = 16;
    let mut bytes = [0; 24];
    if sys::read_memory(tid, user_context.wrapping_add(STACK_AT), &mut bytes) != bytes.len() {
        return None;
    }
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    Some((word(0), word(0).checked_add(word(16))?))
}

/// The flags as `lahf` and `seto` have saved them: the overflow flag in the first byte, the others in the second.
pub(crate) fn with_flags(flags: u64, saved: u64) -> u64 {
    const OF_LAHF: u64 = 0xd5;
    const OVERFLOW: u64 = 1 << 11;
    let kept = flags & !(OF_LAHF | OVERFLOW);
    let overflow = if saved & 1 != 0 { OVERFLOW } else { 0 };
    kept | (saved >> 8) & OF_LAHF | overflow
}
