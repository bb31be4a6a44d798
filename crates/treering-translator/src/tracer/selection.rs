//! Which part of a program's run is counted: within functions, between the program's own marks, up to
//! some time.
//!
//! Nothing is added to translated code for it. The first instructions of the functions, and marks, are
//! watched: whoever arrives there asks the tracer, as where code may have changed. A thread's counters are
//! saved when it leaves what was selected, and set back to 0 when it enters it, so that what lies
//! between costs nothing and counts nothing.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hashbrown::HashMap;
use treering_profile::{BranchKind, UncountedReason};

use crate::address_space::AddressSpace;
use crate::counting::active_blocks::BlockSet;
use crate::counting::result::Translated as _;
use crate::program::region::Region;
use crate::sys;
use crate::sys::layout::{FIRST_COUNTER, SAVED_COUNTS, SELECTED, counter_slot};
use crate::sys::remote_syscall::StoppedThread;
use crate::tracer::event_loop::Tracer;
use crate::tracer::thread::{State, Thread};

/// Where functions begin in a file, as offsets.
pub type FindFunctions = Rc<dyn Fn(&Path) -> Vec<u64>>;

/// Which part of a program's run is counted, by each thread on its own.
#[derive(Clone)]
pub struct Selection {
    /// Which functions: from the enter of one of them to its leave is counted. Asked once for each file
    /// with code.
    pub functions: FindFunctions,
    /// Whether the program's own marks start and stop as well: [`START`] and [`STOP`].
    pub marks: bool,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("marks", &self.marks).finish_non_exhaustive()
    }
}

/// The instruction from which on a thread is counted: a `nop` with an operand that nobody else writes.
pub const START: [u8; 7] = [0x0f, 0x1f, 0x80, b't', b'r', b'g', b'1'];
/// The instruction from which on it is not.
pub const STOP: [u8; 7] = [0x0f, 0x1f, 0x80, b't', b'r', b'g', b'0'];

/// What is watched at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    Function,
    Start,
    Stop,
}

/// A selection, with what it said of files.
#[derive(Debug)]
pub(crate) struct Watcher {
    selection: Selection,
    files: RefCell<HashMap<PathBuf, Rc<[u64]>>>,
}

impl Watcher {
    pub(crate) fn new(selection: Selection) -> Self {
        Self { selection, files: RefCell::default() }
    }

    /// Where functions begin in a region.
    pub(crate) fn functions(&self, region: &Region) -> Vec<u64> {
        let (Some(path), Some((_, from))) = (region.path(), &region.file) else { return Vec::new() };
        let mut files = self.files.borrow_mut();
        let offsets =
            files.entry_ref(path.as_path()).or_insert_with(|| (self.selection.functions)(&path).into());
        let addresses = offsets.iter().filter_map(|offset| Some(offset.checked_sub(*from)? + region.start));
        addresses.filter(|&address| address < region.end).collect()
    }

    /// Whether the program's marks count.
    pub(crate) fn has_marks(&self) -> bool {
        self.selection.marks
    }

    /// Whether code begins with a mark.
    pub(crate) fn mark(&self, bytes: &[u8]) -> Option<Watch> {
        match bytes.first_chunk() {
            Some(&START) if self.selection.marks => Some(Watch::Start),
            Some(&STOP) if self.selection.marks => Some(Watch::Stop),
            _ => None,
        }
    }
}

/// What a thread has entered and not left.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entered {
    /// The activation of a watched function that is the outermost.
    frame: Option<Frame>,
    /// Whether the last mark was one to start.
    marked: bool,
}

/// An activation of a watched function.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// The stack pointer at its first instruction.
    stack: u64,
    /// Where it returns to.
    to: u64,
}

impl Entered {
    fn is_active(self) -> bool {
        self.frame.is_some() || self.marked
    }
}

/// Whether a thread's counters count, as its area states it.
pub(crate) const WHOLE: u64 = 0;
/// They do not; what was counted before was saved.
pub(crate) const INACTIVE: u64 = 1;
/// They do, and are to be added to what was saved.
pub(crate) const ACTIVE: u64 = 2;

/// The slot of what a counter had come to.
fn saved_count_slot(counter: u32) -> u32 {
    SAVED_COUNTS + counter * 8
}

/// What all counters of a thread come to.
#[derive(Debug)]
pub(crate) struct CounterValues {
    all: Vec<u64>,
    /// Those that may be other than 0.
    parts: Vec<Range<u32>>,
}

impl CounterValues {
    /// What a counter comes to.
    pub(crate) fn of(&self, counter: u32) -> u64 {
        self.all[counter as usize]
    }

    /// Those that are not 0, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let all = self.parts.iter().cloned().flatten().map(|counter| (counter, self.of(counter)));
        all.filter(|(_, count)| *count != 0)
    }
}

impl AddressSpace {
    /// What a counter of a thread comes to.
    pub(crate) fn count(&self, area: usize, counter: u32) -> u64 {
        let now = || self.slot(area, counter_slot(counter));
        match self.slot(area, SELECTED) {
            WHOLE => now(),
            INACTIVE => self.slot(area, saved_count_slot(counter)),
            _ => self.slot(area, saved_count_slot(counter)) + now(),
        }
    }

    /// What all counters of a thread come to, by number.
    pub(crate) fn counts(&self, area: usize) -> CounterValues {
        if self.slot(area, SELECTED) != WHOLE {
            let all = (0..self.counters()).map(|counter| self.count(area, counter)).collect();
            let whole = 0..self.counters();
            return CounterValues { all, parts: Vec::from([whole]) };
        }
        let (memory, offset) = self.area_memory(area);
        let first = offset + u64::from(FIRST_COUNTER);
        let counter = |at: u64| (at - first) / 8;
        let mut all = vec![0; self.counters() as usize];
        let mut parts = Vec::new();
        // What was never touched need not be read.
        for written in memory.written(first, u64::from(self.counters()) * 8) {
            let part = counter(written.start)..counter(written.end);
            for (count, at) in all[part.start as usize..part.end as usize].iter_mut().zip(part.clone()) {
                *count = memory.load(first + at * 8);
            }
            parts.push(part.start as u32..part.end as u32);
        }
        CounterValues { all, parts }
    }

    /// The blocks that a thread's counters say something of.
    pub(crate) fn active_blocks(&mut self, counts: &CounterValues) -> BlockSet {
        let mut owners = std::mem::take(&mut self.owners);
        owners.follow(self, self.arcs.len() as u32);
        let active = owners.active(counts.iter().map(|(counter, _)| counter), self.block_count());
        self.owners = owners;
        active
    }

    /// Sets a thread's counters to 0; what they counted goes to `save`.
    fn take_counts(&self, area: usize, mut save: impl FnMut(u32, u64)) {
        let mut bytes = vec![0; self.counters() as usize * 8];
        self.read_area(area, FIRST_COUNTER, &mut bytes);
        for (counter, bytes) in (0..).zip(bytes.as_chunks::<8>().0) {
            let count = u64::from_le_bytes(*bytes);
            if count != 0 {
                save(counter, count);
                self.set_slot(area, counter_slot(counter), 0);
            }
        }
    }

    fn activate(&self, area: usize) {
        self.take_counts(area, |_, _| {});
        self.set_slot(area, SELECTED, ACTIVE);
    }

    /// # Errors
    /// There is no room for what was counted.
    fn deactivate(&self, area: usize) -> io::Result<()> {
        if self.slot(area, SELECTED) != INACTIVE {
            self.reserve_saved_counts(area)?;
            self.take_counts(area, |counter, count| {
                let slot = saved_count_slot(counter);
                self.set_slot(area, slot, self.slot(area, slot) + count);
            });
        }
        self.set_slot(area, SELECTED, INACTIVE);
        Ok(())
    }
}

impl Tracer {
    /// Says whether a thread that has just got its area is counted. A copy of a process goes on with
    /// what its parent had entered.
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
        space.set_slot(thread.area, SELECTED, if thread.slow_path.off { INACTIVE } else { ACTIVE });
        thread.frozen = self.stopped;
    }

    /// Looks at where a thread arrived, if that is watched: what it selects begins or ends there.
    pub(crate) fn select(&mut self, tid: i32) -> io::Result<()> {
        let stopped = self.stopped;
        let Some((thread, program)) = self.counted(tid) else { return Ok(()) };
        let Some(address) = program.space.arrived.take().filter(|_| !stopped) else { return Ok(()) };
        let (pid, before) = (thread.pid, thread.entered);
        let stack = sys::registers(tid)?.0.rsp;
        let mut jumped = false;
        if let Some(frame) = thread.entered.frame.filter(|frame| stack > frame.stack) {
            // It is gone, whether it returned or something jumped over it.
            jumped = frame.to != address;
            thread.entered.frame = None;
        }
        match program.space.regions.watched(address) {
            Some(Watch::Start) => thread.entered.marked = true,
            Some(Watch::Stop) => thread.entered.marked = false,
            Some(Watch::Function) if thread.entered.frame.is_none() => {
                let mut to = [0; 8];
                sys::read_memory(tid, stack, &mut to);
                let to = u64::from_le_bytes(to);
                program.space.watch_return(to)?;
                thread.entered.frame = Some(Frame { stack, to });
            }
            // By a jump to itself, or its former activation was left by one to elsewhere.
            Some(Watch::Function) => jumped |= thread.entered.frame.is_some_and(|frame| frame.stack == stack),
            None => {}
        }
        match (before.is_active(), thread.entered.is_active()) {
            (false, true) => {
                program.space.activate(thread.area);
                thread.slow_path.off = false;
                thread.slow_path.note_transfer(BranchKind::Start, None, Some(address));
            }
            (true, false) => {
                program.space.deactivate(thread.area)?;
                thread.slow_path.off = true;
            }
            _ => {}
        }
        if jumped {
            self.note(UncountedReason::Other, pid, JUMPED.to_owned());
        }
        Ok(())
    }

    /// Says so if a thread that ends is inside of a selected function: nobody can tell whether it is.
    pub(crate) fn look_for_open_function(&mut self, tid: i32) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let pid = thread.pid;
        if thread.entered.frame.is_some() {
            self.note(UncountedReason::Other, pid, NOT_RETURNED.to_owned());
        }
    }

    /// Counts nothing from now on. Threads that run are stopped for it one after the other.
    pub(crate) fn stop_counting(&mut self, why: &str) {
        self.stopped = true;
        let running: Vec<(i32, i32)> = self.threads.values().map(|thread| (thread.tid, thread.pid)).collect();
        for (tid, pid) in running {
            // One that is gone has been counted.
            let _ = sys::interrupt(tid);
            self.note(UncountedReason::Deselected, pid, why.to_owned());
        }
    }

    /// Takes the counts of a stopped thread up to the instruction that is next.
    pub(crate) fn freeze(&mut self, tid: i32) -> io::Result<()> {
        self.with(tid, false, |thread, space, registers, stopped| {
            if thread.frozen || thread.state != State::Running {
                return Ok(());
            }
            thread.frozen = true;
            restore_and_go_on(thread, space, registers, stopped)?;
            thread.slow_path.off = true;
            thread.entered = Entered::default();
            space.deactivate(thread.area)
        })?;
        Ok(())
    }
}

/// Leaves the block that a thread is in halfway, so that its counts are those of the instructions
/// executed.
fn restore_and_go_on(
    thread: &mut Thread,
    space: &mut AddressSpace,
    registers: &mut sys::Registers,
    stopped: &mut StoppedThread<'_>,
) -> io::Result<()> {
    let in_call = registers.0.orig_rax as i64 >= 0;
    let known = space.restore_program_state(thread.area, registers, &mut thread.slow_path, stopped)?;
    // The kernel goes on from behind the call, where a block ends anyway.
    if known && !in_call {
        let at = registers.0.rip;
        registers.0.rip = space.enter(at, stopped)?.unwrap_or(at);
        sys::set_registers(thread.tid, registers)?;
    }
    Ok(())
}

const JUMPED: &str = "a selected function was entered anew, and had not returned: if it was left by longjmp or \
                      an exception, what ran in between was counted too";
const NOT_RETURNED: &str = "a selected function had not returned when its thread was counted last: if it was left by \
                            longjmp or an exception, what ran since was counted too";
