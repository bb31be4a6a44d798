//! The selected part of a run: within functions, between the program's own marks, or up to some time.
//!
//! Translated code stays the same. The first instructions of functions, and marks, are watched: a thread that arrives
//! there makes a request, as it does where code may have changed. A thread's counters are saved when it leaves the
//! selection, and cleared when it enters it. So code outside of the selection costs nothing extra and counts nothing.

use std::io;

use treering_profile::{BranchKind, UncountedReason};
use treering_x86::Register;
use treering_x86::interpret::{self, Machine, Place};

use crate::address_space::AddressSpace;
use crate::areas::counters::{ACTIVE, INACTIVE};
use crate::program::watch::Watch;
use crate::sys;
use crate::sys::layout::{SAVED_R11, SAVED_RAX, SAVED_RCX, SELECTED};
use crate::tracer::state::Tracer;
use crate::tracer::thread::{Elsewhere, Entered, Frame, State, Thread};
use crate::tracer::thread_stop::ThreadStop;

impl Entered {
    fn is_active(&self) -> bool {
        self.frame.is_some() || self.marked
    }

    /// The stack pointer is about to get another value. Returns whether the activation goes on elsewhere, or one that did
    /// is there again.
    fn move_stack(&mut self, from: u64, to: u64) -> bool {
        /// How much room a function may take at once on its own stack: a variable-length array.
        const ROOM: u64 = 64 << 10;
        let is_left =
            |frame: &mut Frame| to > frame.stack || from.checked_sub(to).is_some_and(|room| room > ROOM);
        let left = self.frame.take_if(is_left);
        self.elsewhere.extend(left.map(|frame| Elsewhere { frame, lowest: from }));
        let back = self.elsewhere.iter().position(|one| one.holds(to)).filter(|_| self.frame.is_none());
        self.frame = back.map(|at| self.elsewhere.swap_remove(at).frame).or(self.frame);
        left.is_some() || back.is_some()
    }
}

impl ThreadStop<'_, '_> {
    /// The stack pointer that the program's instruction at an address sets, for a thread that has asked before it.
    fn moved_stack(&mut self, address: u64, mut registers: sys::Registers) -> Option<u64> {
        const LONGEST: usize = 15;
        let code = self.space.program.regions.window(address, LONGEST, self.stopped);
        // The request has used these.
        for (register, slot) in
            [(Register::RAX, SAVED_RAX), (Register::RCX, SAVED_RCX), (Register::R11, SAVED_R11)]
        {
            registers.set(register, self.slot(slot));
        }
        interpret::moved_stack(&code, address, &mut OwnState { tid: self.stopped.tid, registers })
    }
}

/// The registers and the memory of a program.
struct OwnState {
    tid: i32,
    registers: sys::Registers,
}

impl Machine for OwnState {
    fn register(&self, register: Register) -> u64 {
        self.registers.get(register)
    }

    fn set_register(&mut self, register: Register, value: u64) {
        self.registers.set(register, value);
    }

    fn load(&mut self, place: Place) -> Option<u64> {
        let Place::Address(address) = place else { return None };
        let mut bytes = [0; 8];
        (sys::read_memory(self.tid, address, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
    }

    fn store(&mut self, _place: Place, _value: u64) -> Option<()> {
        None
    }
}

impl Tracer {
    /// Decides whether a thread that has just got its area is counted. A copy of a process inherits its
    /// parent's selection.
    pub(crate) fn begin_selecting(
        &self,
        thread: &mut Thread,
        space: &AddressSpace,
        entered: Option<Entered>,
    ) {
        if self.watcher.is_none() && !self.stopped {
            return;
        }
        thread.entered = entered.filter(|_| !self.stopped).unwrap_or_default();
        thread.slow_path.off = !thread.entered.is_active();
        space.areas.set_slot(thread.area, SELECTED, if thread.slow_path.off { INACTIVE } else { ACTIVE });
        thread.frozen = self.stopped;
    }

    /// Checks whether the address at which a thread arrived is watched: the selection begins or ends there.
    pub(crate) fn select(&mut self, tid: i32) -> io::Result<()> {
        let stopped = self.stopped;
        let Some((thread, program)) = self.counted(tid) else { return Ok(()) };
        let Some(address) = program.space.arrived.take().filter(|_| !stopped) else { return Ok(()) };
        let (pid, was_active) = (thread.pid, thread.entered.is_active());
        let registers = sys::registers(tid)?;
        let stack = registers.0.rsp;
        let (mut jumped, mut moved) = (false, false);
        if let Some(frame) = thread.entered.frame.filter(|frame| stack > frame.stack) {
            // The activation is over: it returned, or a jump left it.
            jumped = frame.to != address;
            thread.entered.frame = None;
        }
        // A stack that is in use now was left for good by the activations that were on it.
        thread.entered.elsewhere.retain(|one| !one.holds(stack));
        match program.space.program.regions.watched(address) {
            Some(Watch::Stack) => {
                let to = ThreadStop::with(thread, &mut program.space, true, |stop| {
                    stop.moved_stack(address, registers)
                });
                moved = to.is_some_and(|to| thread.entered.move_stack(stack, to));
            }
            Some(Watch::Start) => thread.entered.marked = true,
            Some(Watch::Stop) => thread.entered.marked = false,
            Some(Watch::Function) if thread.entered.frame.is_none() => {
                let mut to = [0; 8];
                sys::read_memory(tid, stack, &mut to);
                let to = u64::from_le_bytes(to);
                if program.space.program.regions.contains(to) {
                    program.space.cache.watch_return(to)?;
                }
                thread.entered.frame = Some(Frame { stack, to });
            }
            // The function jumped to itself, or a jump had left its former activation.
            Some(Watch::Function) => jumped |= thread.entered.frame.is_some_and(|frame| frame.stack == stack),
            None => {}
        }
        match (was_active, thread.entered.is_active()) {
            (false, true) => {
                program.space.areas.activate(thread.area);
                thread.slow_path.off = false;
                thread.slow_path.note_transfer(BranchKind::Start, None, Some(address));
            }
            (true, false) => {
                program.space.areas.deactivate(thread.area)?;
                thread.slow_path.off = true;
            }
            _ => {}
        }
        if jumped {
            self.note(UncountedReason::Other, pid, JUMPED.to_owned());
        }
        if moved {
            self.note(UncountedReason::Other, pid, MOVED.to_owned());
        }
        Ok(())
    }

    /// Notes a thread that ends inside of a selected function: whether the activation is still open cannot be known.
    pub(crate) fn look_for_open_function(&mut self, tid: i32) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let pid = thread.pid;
        if thread.entered.frame.is_some() {
            self.note(UncountedReason::Other, pid, NOT_RETURNED.to_owned());
        }
    }

    /// Ends counting. Running threads are stopped for it one after the other.
    pub(crate) fn stop_counting(&mut self, why: &str) {
        self.stopped = true;
        let running: Vec<(i32, i32)> = self.threads.values().map(|thread| (thread.tid, thread.pid)).collect();
        for (tid, pid) in running {
            // The counts of a thread that has ended were taken already.
            let _ = sys::interrupt(tid);
            self.note(UncountedReason::Deselected, pid, why.to_owned());
        }
    }

    /// Takes the counts of a stopped thread up to its next instruction.
    pub(crate) fn freeze(&mut self, tid: i32) -> io::Result<()> {
        self.with(tid, false, |stop, registers| {
            if stop.thread.frozen || stop.thread.state != State::Running {
                return Ok(());
            }
            stop.thread.frozen = true;
            restore_and_go_on(stop, registers)?;
            stop.thread.slow_path.off = true;
            stop.thread.entered = Entered::default();
            stop.space.areas.deactivate(stop.thread.area)
        })?;
        Ok(())
    }
}

/// Leaves the block that a thread is in, so that its counts are those of the executed instructions.
fn restore_and_go_on(stop: &mut ThreadStop<'_, '_>, registers: &mut sys::Registers) -> io::Result<()> {
    let in_call = registers.0.orig_rax as i64 >= 0;
    let known = stop.restore_program_state(registers)?;
    // In a system call, the kernel continues behind the call, where a block ends anyway.
    if known && !in_call {
        stop.continue_translated(registers)?;
    }
    Ok(())
}

const JUMPED: &str = "a selected function was entered anew, and had not returned: if it was left by longjmp or \
                      an exception, what ran in between was counted too";
const MOVED: &str = "a selected function was left for another stack, as by a coroutine, longjmp or an exception: it was \
                     not counted until its own stack was in use again";
const NOT_RETURNED: &str = "a selected function had not returned when its thread was counted last: if it was left by \
                            longjmp or an exception, what ran since was counted too";
