//! Where the translator's own memory lies in a program's address space.
//!
//! The system call page and the tables lie at the same addresses in every process: the system call filters, which
//! live on in children and across `exec`, contain some of these addresses, and translated code reaches the tables by
//! 32 bits. Programs linked to a fixed address begin at 4 MiB, and their heaps (`brk`) up to 1 GiB above their ends,
//! from where they grow upwards. So memory that must lie below 2 GiB is put at the end of that range.
//!
//! Counters lie where none of the following uses memory (x86-64, 47 bits):
//!
//! | program | addresses |
//! |---|---|
//! | AddressSanitizer | 7fff7000–10007fff8000, 500000000000–540000000000, 600000000000–640000000000 |
//! | ThreadSanitizer | 8000000000–550000000000, 568000000000–7e8000000000 |
//! | MemorySanitizer | 10000000000–510000000000, 600000000000–740000000000 |
//! | Go, with its race detector | c000000000, 200000000000–310000000000 |
//! | JVM, V8, SBCL | 2 GiB–16 TiB |
//! | programs at any address, their heaps | from 555555554000 on, a 1 TiB at random |
//! | mappings without a fixed address, libraries, stacks | downwards from 7fffffffffff, less 1 TiB at random |
//!
//! `tracer/memory_conflict.rs` handles a program that asks for our addresses all the same.

use std::ops::Range;

use treering_x86::rewrite::Slots;

/// A page with a `syscall` instruction, with which the tracer makes calls in a program's name.
pub(crate) const SYSCALL_PAGE: u64 = 0x7a50_0000;
/// The size of that page.
pub(crate) const SYSCALL_PAGE_SIZE: u64 = 0x1000;
/// Another `syscall` on that page, for the calls of programs that ran before; see `sys/syscall_page.rs`.
pub(crate) const CALL: u64 = SYSCALL_PAGE + 0x100;
/// Code on that page that makes the calls of a list for the tracer.
pub(crate) const CALLS: u64 = SYSCALL_PAGE + 0x300;
/// The page behind it, for data that the tracer's calls read and write. The stack cannot be used: below it,
/// memory may not be mapped yet, or may be used otherwise.
pub(crate) const ROOM: u64 = SYSCALL_PAGE + SYSCALL_PAGE_SIZE;
/// The size of that room.
pub(crate) const ROOM_SIZE: u64 = 0x1000;

/// The return table, indexed by the lower 16 bits of an address; the tables of indirect sites follow it.
pub(crate) const TABLES: u64 = 0x7a51_0000;
/// The number of entries of the return table.
pub(crate) const RETURN_ENTRIES: usize = 1 << 16;
/// The address of the return table's entry for a return address.
pub(crate) const fn return_entry(address: u64) -> u64 {
    TABLES + address % RETURN_ENTRIES as u64 * 8
}
/// The offset of the indirect sites' tables from [`TABLES`]. The first one is the table of all known targets.
pub(crate) const SITE_TABLES: u64 = RETURN_ENTRIES as u64 * 8;
/// The entries of a site's table, indexed by bits 4 to 11 of an address.
pub(crate) const SITE_ENTRIES: usize = 256;
/// The most sites that may have a table.
pub(crate) const MOST_SITE_TABLES: usize = 1 << 13;
/// The size of all tables.
pub(crate) const TABLES_SIZE: u64 = SITE_TABLES + (MOST_SITE_TABLES * SITE_ENTRIES * 8) as u64;

/// The ranges for thread areas, with saved registers and counters; the first free range is used.
pub(crate) const COUNTERS: [Range<u64>; 3] = [
    0x5500_0000_0000..0x5554_0000_0000,
    0x7e80_0000_0000..0x7ef0_0000_0000,
    // Free of sanitizers, except one that has mapped its memory already.
    0x3000_0000_0000..0x5000_0000_0000,
];
/// The size that is mapped at a time: several areas, or one that has a tree.
pub(crate) const SEGMENT_SIZE: u64 = THREAD_AREA * AREAS_PER_SEGMENT as u64;
/// The size of a thread's area; only used pages take memory.
pub(crate) const THREAD_AREA: u64 = 128 << 20;
/// The number of areas that are mapped at a time.
pub(crate) const AREAS_PER_SEGMENT: usize = 16;
/// The offset of the first counter in an area, behind the saved registers.
pub(crate) const FIRST_COUNTER: u32 = 0x1000;
/// The offset of the second half of an area: the saved value of each counter, if only a part of the run is counted.
pub(crate) const SAVED_COUNTS: u32 = THREAD_AREA as u32 / 2;
/// The offset of the system call filter that the thread is about to install: at most 4,096 instructions, the
/// instructions put before them, and the filter's header.
pub(crate) const FILTER: u32 = SAVED_COUNTS - FILTER_SIZE;
pub(crate) const FILTER_SIZE: u32 = 0x9000;
/// The number of counters that an area has room for.
pub(crate) const MOST_COUNTERS: u32 = (FILTER - FIRST_COUNTER) / 8;

/// The size of a unit of translated code; only used pages take memory.
pub(crate) const UNIT_SIZE: u64 = 256 << 20;
/// The addresses of units for code below 2 GiB, all of which is in their reach. The highest come first, so
/// that heaps have room.
pub(crate) const LOW_UNITS: [u64; 3] = [0x6800_0000, 0x5800_0000, 0x4800_0000];
/// The lowest address of our memory below 2 GiB.
pub(crate) const LOW_START: u64 = 0x4800_0000;
/// The end of the addresses that a signed 32-bit number reaches.
pub(crate) const LOW_END: u64 = 1 << 31;
/// The greatest distance of a unit's base from the code that is translated into it.
pub(crate) const REACH: u64 = 0x6000_0000;

/// Keeps rcx during the target checks of an indirect transfer.
pub(crate) const SAVED_RCX: u32 = 0x00;
/// Keeps r11 where code needs a second register.
pub(crate) const SAVED_R11: u32 = 0x08;
/// Always 0: read as the node number where there is no node.
pub(crate) const NOBODY: u32 = 0x10;
/// The target address of an indirect jump or call, which target checks compare. For a return, only if it asks
/// the tracer.
pub(crate) const TARGET: u32 = 0x18;
/// Where the thread continues after a request.
pub(crate) const RESUME: u32 = 0x20;
/// The number of the exit that makes a request; 0 if there is none. For an indirect transfer, the upper half
/// is its block.
pub(crate) const REQUEST: u32 = 0x28;
/// Keeps the register in which a loop counts.
pub(crate) const LOOP_REGISTER: u32 = 0x30;
/// The program's own base of GS.
pub(crate) const OWN_GS: u32 = 0x38;

/// Whether the thread's counters count; see `tracer/selection.rs`.
pub(crate) const SELECTED: u32 = 0x50;
/// The position of the next log entry, in words from the beginning of the area.
pub(crate) const LOG_POSITION: u32 = 0x58;
/// The log of indirect transfers to targets that other sites had reached before: see `cache/indirect_lookup.rs`.
pub(crate) const LOG: u32 = 0x400;
/// The number of words of a log entry: the target, and the site as in [`REQUEST`].
pub(crate) const LOG_ENTRY: u32 = 2;
/// [`LOG_POSITION`] while the log is empty.
pub(crate) const LOG_EMPTY: u32 = LOG / 8;
/// The same when the log is full; before that, the number's second byte is 0.
pub(crate) const LOG_FULL: u32 = 0x100;
/// Where the thread continues behind a call that is made at [`CALL`].
pub(crate) const CALL_NEXT: u32 = 0x60;
/// Keeps rax during a request, and in counter code.
pub(crate) const SAVED_RAX: u32 = 0x68;
/// Hold two registers around an instruction whose answer is the tracer's: see `emit/inquiry.rs`.
pub(crate) const ASKED_FIRST: u32 = 0x70;
pub(crate) const ASKED_SECOND: u32 = 0x78;

/// Keep registers while a block records words for the model.
pub(crate) const MODEL_FIRST: u32 = 0x900;
pub(crate) const MODEL_SECOND: u32 = 0x908;
/// The number of words that a thread has recorded for the model.
pub(crate) const MODEL_POSITION: u32 = 0x910;
/// The byte of that number that is 0 while there is room.
pub(crate) const MODEL_FULL_BYTE: u32 = MODEL_POSITION + 2;
/// The number of words that there is room for: those until the buffer is full, and those of the last block.
pub(crate) const MODEL_WORDS: usize = (1 << 16) + (1 << 9);
/// The words that a thread records for the model, at the end of its area.
pub(crate) const MODEL_BUFFER: u32 = THREAD_AREA as u32 - 8 * MODEL_WORDS as u32;

/// The number of counters that an area has room for beside that buffer.
pub(crate) const MOST_COUNTERS_BESIDE_MODEL: u32 = (MODEL_BUFFER - FIRST_COUNTER) / 8;

/// The slots that rewritten instructions use.
pub(crate) const SLOTS: Slots = Slots { first: 0x40, second: 0x48, r11: SAVED_R11, own_gs: OWN_GS };

/// The number of the system call with which translated code asks the tracer. The kernel has no such call.
pub(crate) const REQUEST_CALL: u32 = 0x5472_6565;

/// The offset of a counter in an area.
pub(crate) fn counter_slot(counter: u32) -> u32 {
    FIRST_COUNTER + counter * 8
}
