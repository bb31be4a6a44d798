//! The slow path: the first call of a thread, and the first along each arc.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::entry::{cell, nothing, set_cell};
use crate::file::{self, Table};
use crate::{object, sys};

/// The state of the file.
pub(crate) static STATE: AtomicU32 = AtomicU32::new(NOT_YET);
const NOT_YET: u32 = 0;
const IN_WORK: u32 = 1;
pub(crate) const READY: u32 = 2;
const FAILED: u32 = 3;

/// The thread that makes the file.
static MAKER: AtomicU32 = AtomicU32::new(0);

/// How often libraries were unloaded.
pub(crate) static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Cells are in memory that is zero in a process that is forked: its threads have no table there.
pub(crate) static CELLS: AtomicUsize = AtomicUsize::new(0);
pub(crate) static NEXT_CELL: AtomicUsize = AtomicUsize::new(0);
pub(crate) const MOST_CELLS: usize = 1 << 20;

/// The tables of threads that may have ended.
static TABLES: [AtomicUsize; MOST_TABLES] = [const { AtomicUsize::new(0) }; MOST_TABLES];
static NEXT_TABLE: AtomicUsize = AtomicUsize::new(0);
const MOST_TABLES: usize = 4096;

/// How many tables a new thread looks at for one whose thread has ended.
const LOOKED_AT: usize = 64;

/// How many arcs fit into a thread's first table, twice.
const FIRST_ENTRIES: usize = 512;

/// Counts a call for which the fast path found no entry. Changes no memory of the program, and calls no
/// other library.
pub(crate) extern "C" fn count_slowly(from: u64, callee: u64) {
    if STATE.load(Ordering::Acquire) == FAILED {
        return;
    }
    let mask = sys::block_signals();
    if is_ready() {
        count(from.max(1), callee);
    }
    sys::restore_signals(mask);
}

fn count(from: u64, callee: u64) {
    let (process, thread) = (sys::process(), sys::thread());
    let Some(mut table) = own_table(process, thread) else { return file::lose() };
    loop {
        match table.count(from, callee) {
            Some(is_new) => {
                if is_new {
                    object::note([from, callee], process, GENERATION.load(Ordering::Acquire));
                }
                return;
            }
            None => {
                let entries = (table.entries() * 2).min(1 << 22);
                let Some(larger) = new_table(entries, process, thread) else { return file::lose() };
                table = larger;
            }
        }
    }
}

/// Makes the file once. Other threads wait for the one that makes it; a process that was forked meanwhile makes
/// another.
fn is_ready() -> bool {
    loop {
        match STATE.load(Ordering::Acquire) {
            READY => return true,
            FAILED => return false,
            state => {
                let process = sys::process();
                let maker = MAKER.load(Ordering::Acquire);
                let abandoned = state == IN_WORK && maker != 0 && maker != process;
                let taken =
                    STATE.compare_exchange(NOT_YET, IN_WORK, Ordering::AcqRel, Ordering::Acquire).is_ok();
                if !taken && !abandoned {
                    sys::give_way();
                    continue;
                }
                MAKER.store(process, Ordering::Release);
                let cells = sys::zeros(MOST_CELLS * 8, true);
                CELLS.store(cells.map_or(0, |cells| cells as usize), Ordering::Release);
                let made = cells.is_some() && file::make();
                STATE.store(if made { READY } else { FAILED }, Ordering::Release);
            }
        }
    }
}

/// A cell, which is there as long as the process.
pub(crate) fn at_cell(cell: usize) -> &'static AtomicUsize {
    // SAFETY: cells are in memory that is never given back.
    unsafe { &*(cell as *const AtomicUsize) }
}

/// The table that this thread counts in.
fn own_table(process: u32, thread: u32) -> Option<Table> {
    let cell = cell();
    if cell == nothing() {
        let next = NEXT_CELL.fetch_add(1, Ordering::Relaxed);
        if next >= MOST_CELLS {
            return None;
        }
        set_cell(CELLS.load(Ordering::Acquire) + next * 8);
    } else {
        let table = at_cell(cell).load(Ordering::Acquire);
        if table != 0 {
            return Some(Table::at(table));
        }
    }
    if let Some(table) = abandoned_table(process, thread) {
        return Some(table);
    }
    new_table(FIRST_ENTRIES, process, thread)
}

/// Lets the thread count in a table, unless libraries were unloaded meanwhile.
fn adopt(table: Table, generation: u64) -> bool {
    at_cell(cell()).store(table.address(), Ordering::SeqCst);
    GENERATION.load(Ordering::SeqCst) == generation
}

fn new_table(entries: usize, process: u32, thread: u32) -> Option<Table> {
    loop {
        let generation = GENERATION.load(Ordering::SeqCst);
        let table = Table::make(entries, process, thread, generation)?;
        let next = NEXT_TABLE.fetch_add(1, Ordering::Relaxed);
        if let Some(place) = TABLES.get(next) {
            place.store(table.address(), Ordering::Release);
        }
        if adopt(table, generation) {
            return Some(table);
        }
    }
}

/// The table of a thread that has ended: programs may make any number of threads, one after the other.
fn abandoned_table(process: u32, thread: u32) -> Option<Table> {
    let generation = GENERATION.load(Ordering::SeqCst);
    let count = NEXT_TABLE.load(Ordering::Acquire).min(MOST_TABLES);
    let tables = TABLES.iter().take(count).rev().take(LOOKED_AT);
    let tables = tables.map(|table| table.load(Ordering::Acquire)).filter(|&table| table != 0).map(Table::at);
    let mut claimed = tables.filter(|table| table.claim(process, thread, generation));
    claimed.next().filter(|table| adopt(*table, generation))
}
