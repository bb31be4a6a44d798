//! Where the translator's own memory lies in a program's address space.
//!
//! The system call page and the tables lie at the same addresses in every process: the system call filters, which live on in
//! children and across `exec`, name two of them, and translated code reaches the tables by 32 bits. Programs linked to a
//! fixed address begin at 4 MiB, and their heaps (`brk`) up to 1 GiB above their ends, from where they grow upwards. So
//! what must lie below 2 GiB is at the end of that.
//!
//! Counters lie where none of these wants memory (x86-64, 47 bits):
//!
//! | who | where |
//! |---|---|
//! | AddressSanitizer | 7fff7000–10007fff8000, 500000000000–540000000000, 600000000000–640000000000 |
//! | ThreadSanitizer | 8000000000–550000000000, 568000000000–7e8000000000 |
//! | MemorySanitizer | 10000000000–510000000000, 600000000000–740000000000 |
//! | Go, with its race detector | c000000000, 200000000000–310000000000 |
//! | JVM, V8, SBCL | 2 GiB–16 TiB |
//! | programs at any address, their heaps | from 555555554000 on, a 1 TiB at random |
//! | what is mapped anywhere, libraries, stacks | downwards from 7fffffffffff, less 1 TiB at random |
//!
//! A program that wants memory of ours all the same is told of by `tracer/memory_conflict.rs`.

use std::ops::Range;

use treering_x86::rewrite::Slots;

/// A page with a `syscall` instruction, with which the tracer makes calls in a program's name.
pub(crate) const SYSCALL_PAGE: u64 = 0x7a50_0000;
/// Size of that page.
pub(crate) const SYSCALL_PAGE_SIZE: u64 = 0x1000;
/// Another one on that page, for the calls of programs that ran before; see `system call page`.
pub(crate) const CALL: u64 = SYSCALL_PAGE + 0x100;
/// Code on that page which makes a list of the tracer's calls.
pub(crate) const CALLS: u64 = SYSCALL_PAGE + 0x300;
/// Behind it what the tracer's calls read and write. The stack would not do: nothing may be mapped below it
/// yet, or memory that is others'.
pub(crate) const ROOM: u64 = SYSCALL_PAGE + SYSCALL_PAGE_SIZE;
/// Size of that room.
pub(crate) const ROOM_SIZE: u64 = 0x1000;

/// The return table, by the lower 16 bits of an address; behind it those of call sites.
pub(crate) const TABLES: u64 = 0x7a51_0000;
/// How many entries the return table has.
pub(crate) const RETURN_ENTRIES: usize = 1 << 16;
/// Where the entry of an address that is returned to lies.
pub(crate) const fn return_entry(address: u64) -> u64 {
    TABLES + address % RETURN_ENTRIES as u64 * 8
}
/// Where tables of call sites begin, from [`TABLES`] on. The first is of all targets that are known.
pub(crate) const SITE_TABLES: u64 = RETURN_ENTRIES as u64 * 8;
/// Entries of a call site's table, by bits 4 to 11 of an address.
pub(crate) const SITE_ENTRIES: usize = 256;
/// How many call sites may have a table.
pub(crate) const MOST_SITE_TABLES: usize = 1 << 13;
/// Size of all tables.
pub(crate) const TABLES_SIZE: u64 = SITE_TABLES + (MOST_SITE_TABLES * SITE_ENTRIES * 8) as u64;

/// Where the areas of threads may lie, with saved registers and counters: the first that are free, in this order.
pub(crate) const COUNTERS: [Range<u64>; 3] = [
    0x5500_0000_0000..0x5554_0000_0000,
    0x7e80_0000_0000..0x7ef0_0000_0000,
    // Of no sanitizer that has not taken it by then.
    0x3000_0000_0000..0x5000_0000_0000,
];
/// How much of that is mapped at a time: so many areas, or one that has a tree.
pub(crate) const SEGMENT_SIZE: u64 = THREAD_AREA * AREAS_PER_SEGMENT as u64;
/// Size of a thread's area, of which only what is used takes memory.
pub(crate) const THREAD_AREA: u64 = 128 << 20;
/// How many areas are mapped at a time.
pub(crate) const AREAS_PER_SEGMENT: usize = 16;
/// Where counters begin in an area, behind the saved registers.
pub(crate) const FIRST_COUNTER: u32 = 0x1000;
/// Where the second half of an area begins: what each counter had come to, if only a part of the
/// run is counted.
pub(crate) const SAVED_COUNTS: u32 = THREAD_AREA as u32 / 2;
/// Where a filter of system calls lies that the thread is about to install: at most 4,096 instructions, what
/// goes before them, and where they are.
pub(crate) const FILTER: u32 = SAVED_COUNTS - FILTER_SIZE;
pub(crate) const FILTER_SIZE: u32 = 0x9000;
/// How many counters an area has room for.
pub(crate) const MOST_COUNTERS: u32 = (FILTER - FIRST_COUNTER) / 8;

/// Size of a unit of translated code, of which only what is used takes memory.
pub(crate) const UNIT_SIZE: u64 = 256 << 20;
/// Where units lie for code below 2 GiB, which is all within their reach: the highest first, so that heaps have room.
pub(crate) const LOW_UNITS: [u64; 3] = [0x6800_0000, 0x5800_0000, 0x4800_0000];
/// Below 2 GiB, nothing of ours lies below this address.
pub(crate) const LOW_START: u64 = 0x4800_0000;
/// The end of what 32 bits with a sign reach.
pub(crate) const LOW_END: u64 = 1 << 31;
/// How far a unit's base may be from the code that is translated into it.
pub(crate) const REACH: u64 = 0x6000_0000;

/// Keeps rcx while an indirect transfer looks for its target.
pub(crate) const SAVED_RCX: u32 = 0x00;
/// Keeps r11 while more than that is needed.
pub(crate) const SAVED_R11: u32 = 0x08;
/// Stays 0, as the number of nobody where a node is looked at that is not there.
pub(crate) const NOBODY: u32 = 0x10;
/// The address that an indirect jump or call wants to go to, by which its target knows itself; that of
/// a return only if the tracer is asked for it.
pub(crate) const TARGET: u32 = 0x18;
/// Where to go on after a request.
pub(crate) const RESUME: u32 = 0x20;
/// Which exit makes a request; 0 if none does. That of an indirect transfer has its block in the upper half.
pub(crate) const REQUEST: u32 = 0x28;
/// Keeps the register in which a loop counts itself.
pub(crate) const LOOP_REGISTER: u32 = 0x30;
/// The base of GS that the program believes in.
pub(crate) const OWN_GS: u32 = 0x38;

/// Whether the thread's counters count; see `selection`.
pub(crate) const SELECTED: u32 = 0x50;
/// Where the next entry of the log goes, in words from the beginning of the area.
pub(crate) const LOG_POSITION: u32 = 0x58;
/// The log of indirect transfers to targets that others went to before: see `known`.
pub(crate) const LOG: u32 = 0x400;
/// How many words each entry of it has: the target, and who went there as in [`REQUEST`].
pub(crate) const LOG_ENTRY: u32 = 2;
/// [`LOG_POSITION`] while the log is empty.
pub(crate) const LOG_EMPTY: u32 = LOG / 8;
/// The same once it is full; its second byte is 0 before.
pub(crate) const LOG_FULL: u32 = 0x100;
/// Where to go on behind a call that is made at [`CALL`].
pub(crate) const CALL_NEXT: u32 = 0x60;
/// Keeps rax during a request, or while it counts.
pub(crate) const SAVED_RAX: u32 = 0x68;

/// Keep registers while a block tells the model what it does.
pub(crate) const MODEL_FIRST: u32 = 0x900;
pub(crate) const MODEL_SECOND: u32 = 0x908;
/// How many words a thread has told the model.
pub(crate) const MODEL_POSITION: u32 = 0x910;
/// The byte of that number which is 0 while there is room.
pub(crate) const MODEL_FULL_BYTE: u32 = MODEL_POSITION + 2;
/// How many words there is room for: so many until it is full, and what the last block tells.
pub(crate) const MODEL_WORDS: usize = (1 << 16) + (1 << 9);
/// What a thread tells the model, at the end of its area.
pub(crate) const MODEL_BUFFER: u32 = THREAD_AREA as u32 - 8 * MODEL_WORDS as u32;

/// How many counters an area has room for if it has that buffer as well.
pub(crate) const MOST_COUNTERS_BESIDE_MODEL: u32 = (MODEL_BUFFER - FIRST_COUNTER) / 8;

/// What rewritten instructions use.
pub(crate) const SLOTS: Slots = Slots { first: 0x40, second: 0x48, r11: SAVED_R11, own_gs: OWN_GS };

/// The number of the system call that asks the tracer for something. The kernel has no such call.
pub(crate) const REQUEST_CALL: u32 = 0x5472_6565;

/// The offset of a counter in an area.
pub(crate) fn counter_slot(counter: u32) -> u32 {
    FIRST_COUNTER + counter * 8
}
