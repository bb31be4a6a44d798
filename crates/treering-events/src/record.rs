//! The records, field by field.

use core::cell::Cell;
use core::mem::{offset_of, size_of};

use crate::{NEAR_CHILDREN, Ref, SIZE_CLASSES};

/// Defines records that are written in memory as they stand and read from little-endian bytes.
macro_rules! records {
    ($($(#[$about:meta])* $name:ident: $bytes:literal { $($(#[$doc:meta])* $at:literal $field:ident: $type:ty,)* })*) => { $(
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        #[repr(C)]
        #[allow(missing_docs, reason = "the names of most fields say all; the others have a sentence")]
        pub struct $name { $($(#[$doc])* pub $field: $type,)* }

        const _: () = {
            assert!(size_of::<$name>() == $bytes);
            $(assert!(offset_of!($name, $field) == $at);)*
        };

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: <$type as Field>::ZERO,)* }
            }
        }

        impl $name {
            /// How many bytes the record takes in the file.
            pub const BYTES: usize = $bytes;

            /// Reads the record from the first [`BYTES`](Self::BYTES) of `bytes`; nothing when
            /// there are fewer.
            pub fn read(bytes: &[u8]) -> Option<Self> {
                let bytes = bytes.get(..$bytes)?;
                Some(Self { $($field: <$type as Field>::read(bytes, $at),)* })
            }
        }
    )*

        /// The records as their writer changes them where they stand, field by field.
        pub mod cells {
            use super::*;

            $(
                #[doc = concat!("A [`", stringify!($name), "`](super::", stringify!($name), ") in its place.")]
                #[derive(Debug)]
                #[repr(C)]
                #[allow(missing_docs, reason = "the fields are those of the record")]
                pub struct $name { $(pub $field: <$type as Field>::Cell,)* }

                const _: () = {
                    assert!(size_of::<$name>() == $bytes);
                    $(assert!(offset_of!($name, $field) == $at);)*
                };

                impl InPlace for $name {
                    type Record = super::$name;
                }
            )*
        }
    };
}

use field::Field;

/// Keeps other crates from adding kinds of fields.
mod field {
    /// A number, text or list in a record.
    pub trait Field: Sized {
        /// The same in a record that its writer changes in its place.
        type Cell;
        const ZERO: Self;
        fn read(bytes: &[u8], at: usize) -> Self;
    }
}

/// One of the [`cells`], which consist of numbers, so that any bytes are one.
pub trait InPlace {
    /// The record that stands there.
    type Record: Copy;
}

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl Field for $type {
            type Cell = Cell<Self>;
            const ZERO: Self = 0 as $type;

            fn read(bytes: &[u8], at: usize) -> Self {
                let mut number = [0; size_of::<$type>()];
                number.copy_from_slice(&bytes[at..at + size_of::<$type>()]);
                <$type>::from_le_bytes(number)
            }
        }
    )* };
}

numbers!(u8, u32, i64, u64, f64);

impl<T: Field + Copy, const N: usize> Field for [T; N] {
    type Cell = [T::Cell; N];
    const ZERO: Self = [T::ZERO; N];

    fn read(bytes: &[u8], at: usize) -> Self {
        let mut list = [T::ZERO; N];
        for (index, item) in list.iter_mut().enumerate() {
            *item = T::read(bytes, at + index * size_of::<T>());
        }
        list
    }
}

impl Field for Text {
    type Cell = Cell<Self>;
    const ZERO: Self = Self { at: 0, length: 0, check: 0 };

    fn read(bytes: &[u8], at: usize) -> Self {
        Self { at: u64::read(bytes, at), length: u32::read(bytes, at + 8), check: u32::read(bytes, at + 12) }
    }
}

/// Bytes somewhere in the file: a name as the program gave it, in no particular encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Text {
    /// The first byte, from the start of the file.
    pub at: u64,
    /// How many bytes.
    pub length: u32,
    /// Their checksum: [`text_check`](crate::text_check).
    pub check: u32,
}

records! {
    /// The start of the file.
    Header: 512 {
        /// [`MAGIC`](crate::MAGIC).
        0 magic: [u8; 8],
        /// [`VERSION`](crate::VERSION).
        8 version: u32,
        /// [`flag`](crate::flag)s, with their opposites in the upper half.
        12 flags: u32,
        /// The process that writes.
        16 pid: u32,
        /// The [`clock`](crate::clock) of the ticks.
        20 clock: u32,
        /// The kind of recording: a [`mode`](crate::mode).
        24 mode: u32,
        /// The recursion [`rule`](crate::rule).
        28 rule: u32,
        /// When the writer began, in nanoseconds since the Unix epoch.
        32 start_unix_ns: u64,
        /// When the process began, in the clock ticks of `/proc/PID/stat` since the machine
        /// started; tells whether `pid` still is the writer.
        40 process_start: u64,
        /// The clock and `CLOCK_MONOTONIC_RAW` in nanoseconds, read together at the start.
        48 start_ticks: u64,
        /// See `start_ticks`.
        56 start_raw_ns: u64,
        /// The same two, read together last.
        64 last_ticks: u64,
        /// See `last_ticks`.
        72 last_raw_ns: u64,
        /// Nanoseconds in a tick.
        80 ns_per_tick: f64,
        /// How many [`UNIT`](crate::UNIT)s are in use, the header included.
        88 used_units: u64,
        /// The cost of an enter and leave that falls inside of the measured interval, in
        /// nanoseconds, calibrated around work. Negative where the caller's time holds some of the
        /// function's own.
        96 inside_ns: f64,
        /// The part that falls outside, into the caller.
        104 outside_ns: f64,
        /// Both, calibrated around nothing: the upper end.
        112 empty_inside_ns: f64,
        /// See `empty_inside_ns`.
        120 empty_outside_ns: f64,
        /// How far the calibrations around different kinds of work are from the one that is taken,
        /// in nanoseconds.
        128 spread_ns: f64,
        /// In layout 2: the first of each kind of record.
        136 first_thread: Ref,
        /// See `first_thread`.
        140 first_function: Ref,
        /// See `first_thread`.
        144 first_module: Ref,
        /// See `first_thread`.
        148 first_point: Ref,
        /// See `first_thread`.
        152 first_setting: Ref,
        /// How many functions were ignored by a filter or by the depth limit.
        156 ignored_functions: u32,
        /// Events in threads that have no record, or in a handler that interrupted another event.
        160 dropped_events: u64,
        /// Bytes and count of allocations while no activation ran.
        168 stray_allocations: u64,
        /// See `stray_allocations`.
        176 stray_allocated: u64,
        /// When recording was switched off last; 0 while it is on.
        184 off_ticks: u64,
        /// The program's name and arguments, each ended by a zero byte.
        192 command: Text,
        /// The file's own path when it was made.
        208 path: Text,
        /// Processor time of the process from the profile's begin to its end, in nanoseconds; 0 while it runs.
        224 user_ns: u64,
        /// See `user_ns`.
        232 system_ns: u64,
        /// How many activations a thread may have open before further ones are not recorded;
        /// 0 for no limit.
        240 depth_limit: u32,
        /// How many copies of the runtime were found in the process before this one.
        244 earlier_copies: u32,
        /// The process that this one was forked from, or 0.
        248 parent_pid: u32,
        /// Number of the error that kept the file from growing, or 0.
        252 growth_error: u32,
        /// Where the file is mapped in the writer's memory.
        256 base_address: u64,
        /// The newest of each kind of record, each leading to the one before it, and how many there
        /// are: [`link`](crate::link).
        264 threads: u64,
        /// See `threads`.
        272 functions: u64,
        /// See `threads`.
        280 modules: u64,
        /// See `threads`.
        288 points: u64,
        /// See `threads`.
        296 settings: u64,
        /// Of everything in the header but the lists, the flags, `used_units` and what counts up.
        304 check: u32,
        308 padding: u32,
        312 reserved: [u64; 25],
    }

    /// Something that can be entered.
    Function: 128 {
        0 next: Ref,
        /// From 1, in the order in which they were first seen.
        4 id: u32,
        /// A [`function_kind`](crate::function_kind).
        8 kind: u32,
        /// The line of its definition, or 0.
        12 line: u32,
        16 name: Text,
        /// The file that defines it.
        32 file: Text,
        /// Of code in a module: the address as stated there.
        48 address: u64,
        /// Of code in a module: the module.
        56 module: Ref,
        /// One in so many activations is timed: 1 for all, 0 for none.
        60 timed_one_in: u32,
        /// Of everything else in use.
        64 check: u32,
        /// Of calls that were made from one line of their caller's file: the line; 0 where that is not
        /// told. Each line has a record of its own.
        68 call_line: u32,
        72 reserved: [u64; 7],
    }

    /// A binary with instrumented functions.
    Module: 64 {
        0 next: Ref,
        4 build_id_length: u32,
        8 path: Text,
        /// At most 32 bytes.
        24 build_id: [u8; 32],
        /// Of everything before.
        56 check: u32,
        60 padding: u32,
    }

    /// A thread, or several short ones that followed each other.
    Thread: 320 {
        /// Where the topmost open [`Activation`] stands in the writer's memory. How many are open
        /// follows from it and `stack_address`; the first is that of the root.
        0 top: u64,
        /// Private to the writer: the last activation that there is room for.
        8 private_limit: u64,
        /// Private to the writer: tells this use of the record from all others.
        16 private_tag: u64,
        /// The period of recording that the open activations belong to.
        24 epoch: u32,
        /// A [`thread_state`](crate::thread_state).
        28 state: u32,
        /// The clock at the last leave.
        32 last_ticks: u64,
        /// Where the stack stands in the writer's memory.
        40 stack_address: u64,
        /// Private to the writer: when processor time is to be read next.
        48 private_next_cpu: u64,
        /// Activations beyond the depth limit that are open now.
        56 beyond_limit: u64,
        64 next: Ref,
        /// The root of its tree.
        68 root: Ref,
        /// The open [`Activation`]s, outermost first. The first is the root's.
        72 stack: Ref,
        76 tid: u32,
        /// How many threads have used the record.
        80 threads: u32,
        /// How many activations there is room for.
        84 capacity: u32,
        /// When it began.
        88 start_ticks: u64,
        /// When it ended; 0 while it runs.
        96 end_ticks: u64,
        /// Leaves of something that was not entered.
        104 unbalanced: u64,
        /// Leaves at which the clock showed less than at the enter.
        112 clock_steps_back: u64,
        /// Events that could not be recorded.
        120 dropped: u64,
        /// Activations that ended without a leave of their own, by reason: [`unwound`](crate::unwound).
        128 unwound: [u64; 4],
        /// Processor time of the thread when it was read last, in nanoseconds.
        160 user_ns: u64,
        168 system_ns: u64,
        176 name: [u8; 16],
        /// Private to the writer: where it takes room for records.
        192 private_room: [u64; 2],
        /// Activations beyond the depth limit altogether.
        208 too_deep: u64,
        /// Private to the writer.
        216 private: [u64; 10],
        /// New callees that were entered on a stack that is neither the thread's nor that of its signal
        /// handlers.
        296 other_stacks: u64,
        /// Of `state`, `stack_address`, `next` to `end_ticks` and `name`.
        304 check: u32,
        308 padding: u32,
        /// Activations of leaves in which others ended, and which were not timed for that reason.
        312 branched_leaves: u64,
    }

    /// An activation that is open. Its size is no power of two, so that one wrong bit in
    /// [`Thread::top`] is seen.
    Activation: 56 {
        /// The clock when it was entered.
        0 start: u64,
        /// Where its node stands in the writer's memory, to be compared with
        /// [`Header::base_address`].
        8 node: u64,
        /// The stack pointer of the code that it ends with, or `u64::MAX`.
        16 frame: u64,
        /// [`flag`](crate::flag)s.
        24 flags: u64,
        /// In a flat profile: ticks of the activations made by it.
        32 children: u64,
        /// Of a function that the compiler has report itself: where the code stands that reported
        /// the enter. Else 0.
        40 reporter: u64,
        /// All bits of `node` and `flags`, combined by exclusive or, the other way round.
        48 check: u64,
    }

    /// A node of the calling context tree, or a function's node in a flat profile.
    Node: 320 {
        /// The number of its function.
        0 function: u32,
        /// Selects the calls that are timed: all if it is `u32::MAX`, else those whose number times 2^32
        /// divided by the golden ratio, modulo 2^32, is below this. The fields that every call touches are in
        /// one line of the cache, up to `squares`.
        4 threshold: u32,
        /// How often it was entered.
        8 calls: u64,
        /// How many activations were left and timed.
        16 timed: u64,
        /// Ticks of the shortest activation that was timed; `u64::MAX` before any.
        24 least: u64,
        /// Ticks of its outermost activations that were timed.
        32 total: u64,
        /// Ticks of the longest one.
        40 greatest: u64,
        /// Ticks of the first one that was timed, and the sum of the squares of the differences of
        /// all from it; with the ticks of all, mean and variance follow.
        48 first: u64,
        56 squares: f64,
        /// Ticks of all `timed` activations less `total`, modulo 2^64: those of the inner ones,
        /// less those of activations that were counted elsewhere.
        64 besides: u64,
        /// How many of the timed activations were made while another of the node was open.
        72 timed_inner: u64,
        /// How many of the timed activations took twice the shortest so far or more, or came before
        /// one below a lower power of two than all until then, and their ticks. All others are
        /// calm: they were not interrupted.
        80 restless: u64,
        /// How many of the calls were folded into the node by the recursion rule.
        88 recursive: u64,
        /// See `restless`.
        96 restless_total: u64,
        /// In a flat profile: ticks of its activations less those made by them.
        104 self_total: u64,
        /// How many activations are open, where the writer has to know: in flat profiles and
        /// under the rule of SWI-Prolog.
        112 open: u32,
        /// Private to the writer: how far it is to the table of its children, in units; 0 for none.
        116 private_table: u32,
        120 parent: Ref,
        /// In layout 2: the newest child. Later writers leave it 0, and have it in `child_list`.
        124 first_child: Ref,
        /// Private to the writer: children by the lowest bits of their functions' numbers.
        128 private_children: [u64; NEAR_CHILDREN],
        /// Allocations made while it ran.
        192 allocations: u64,
        200 allocated: u64,
        /// Bytes that it allocated, less those that its own thread has freed.
        208 live: i64,
        216 peak: i64,
        /// Bytes that it allocated and other threads have freed.
        224 freed_elsewhere: u64,
        /// Processor time charged to it, in nanoseconds.
        232 user_ns: u64,
        240 system_ns: u64,
        /// Ports of logic programs. Exits are those of a writer that counts them itself, as
        /// [`flag::EXITS`](crate::flag::EXITS) says.
        248 exits: u64,
        256 redos: u64,
        264 fails: u64,
        272 exceptions: u64,
        280 cuts: u64,
        288 next_sibling: Ref,
        /// In layout 2: how many children it has.
        292 children: u32,
        /// Calls and costs by size of an argument.
        296 sizes: Ref,
        /// The costs of its lines.
        300 lines: Ref,
        /// Its newest child, and how many it has: [`link`](crate::link).
        304 child_list: u64,
        /// Of `function`, `threshold`, `parent` and `next_sibling`.
        312 check: u32,
        /// Of `sizes` and `lines`.
        316 links_check: u32,
    }

    /// Calls and costs of a node by [class](crate::size_class) of an argument's size.
    Sizes: 1024 {
        0 calls: [u64; SIZE_CLASSES],
        512 ticks: [u64; SIZE_CLASSES],
    }

    /// The cost of a line of a node's function.
    LineCost: 64 {
        0 next: Ref,
        /// The number of the line, from 1.
        4 line: u32,
        /// How often a statement of the line was run.
        8 hits: u64,
        /// Ticks of its statements, with all that they called.
        16 total: u64,
        /// Ticks of its statements themselves.
        24 self_ticks: u64,
        /// Of `next`, `line` and `node`.
        32 check: u32,
        /// The node.
        36 node: Ref,
        40 reserved: [u64; 3],
    }

    /// A moment with the memory then in use.
    Point: 64 {
        0 next: Ref,
        /// The node that ran.
        4 node: Ref,
        8 thread: Ref,
        12 padding: u32,
        16 ticks: u64,
        24 virtual_bytes: u64,
        32 resident_bytes: u64,
        40 description: Text,
        /// Of everything before.
        56 check: u32,
        60 padding_at_end: u32,
    }

    /// A fact about the run.
    Setting: 64 {
        0 next: Ref,
        /// A [`setting`](crate::setting).
        4 kind: u32,
        8 name: Text,
        24 value: Text,
        /// Of everything before.
        40 check: u32,
        44 padding: u32,
        48 reserved: [u64; 2],
    }
}

/// The checksum of a [`Node`] that is of what leads to its sizes and lines.
#[derive(Clone, Copy, Debug)]
pub struct NodeLinks;

macro_rules! sealed {
    ($($name:ident $at:literal: $($start:literal to $end:literal),*;)*) => { $(
        impl crate::Sealed for $name {
            const PARTS: crate::Parts = &[$(($start, $end)),*];
            const CHECK_AT: usize = $at;
        }
    )* };
}

sealed! {
    Header 304: 0 to 12, 16 to 88, 96 to 136, 184 to 264;
    Function 64: 0 to 64, 68 to 72;
    Module 56: 0 to 56;
    Thread 304: 28 to 32, 40 to 48, 64 to 104, 176 to 192;
    Node 312: 0 to 8, 120 to 124, 288 to 292;
    NodeLinks 316: 296 to 304;
    LineCost 32: 0 to 8, 36 to 40;
    Point 56: 0 to 56;
    Setting 40: 0 to 40;
}

impl Activation {
    /// The right [`check`](Self::check) for a node and flags.
    #[inline(always)]
    pub const fn check_of(node: u64, flags: u64) -> u64 {
        !(node ^ flags)
    }
}

/// A number that is stored as a multiple of [`CODE`](crate::CODE).
trait Coded {
    /// The number that was meant.
    fn decoded(self) -> Self;
}

macro_rules! coded_numbers {
    ($($type:ty),*) => { $(
        impl Coded for $type {
            fn decoded(self) -> Self {
                self / crate::CODE as $type
            }
        }
    )* };
}

coded_numbers!(u32, i64, u64);

/// Numbers as they were meant, from the multiples of [`CODE`](crate::CODE) that are stored.
macro_rules! decoded {
    ($record:ident: $($field:ident),*) => { $($record.$field = $record.$field.decoded();)* };
}

/// The numbers of a record that are stored as multiples of [`CODE`](crate::CODE).
macro_rules! coded {
    ($record:ident: $($field:ident),*) => { [$($record.$field as i64 as u64),*] };
}

/// Whether a number is one that a writer stores: a multiple of [`CODE`](crate::CODE), or less than 0.
fn is_coded(number: u64) -> bool {
    number.is_multiple_of(crate::CODE) || (number as i64) < 0 && (number as i64) % crate::CODE as i64 == 0
}

impl Header {
    /// Whether the numbers that count up, and the flags, are such as a writer stores.
    pub(crate) fn has_sound_numbers(&self) -> bool {
        let numbers =
            coded!(self: ignored_functions, dropped_events, stray_allocations, stray_allocated, used_units);
        numbers.into_iter().all(|number| number % crate::CODE == 0)
            && crate::coded_flags(self.flags) == self.flags
    }

    /// As they were meant.
    pub(crate) fn decode(mut self) -> Self {
        decoded!(self: ignored_functions, dropped_events, stray_allocations, stray_allocated, used_units);
        self.flags &= 0xFFFF;
        self.first_thread = crate::first(self.threads);
        self.first_function = crate::first(self.functions);
        self.first_module = crate::first(self.modules);
        self.first_point = crate::first(self.points);
        self.first_setting = crate::first(self.settings);
        self
    }
}

impl Thread {
    pub(crate) fn has_sound_numbers(&self) -> bool {
        let numbers = coded!(self: unbalanced, clock_steps_back, dropped, too_deep, branched_leaves, other_stacks, last_ticks, start_ticks, end_ticks);
        numbers.into_iter().chain(self.unwound).all(is_coded)
    }

    pub(crate) fn decode(mut self) -> Self {
        decoded!(self: unbalanced, clock_steps_back, dropped, too_deep, branched_leaves, other_stacks);
        self.unwound = self.unwound.map(|count| count / crate::CODE);
        self
    }
}

impl Node {
    pub(crate) fn has_sound_numbers(&self) -> bool {
        let counts = coded!(self: timed, timed_inner, restless, recursive, allocations, allocated, live, peak,
            freed_elsewhere, user_ns, system_ns, exits, redos, fails, exceptions, cuts);
        let ticks = coded!(self: least, total, greatest, first, besides, restless_total, self_total);
        counts.into_iter().chain(ticks).all(is_coded)
            && self.calls % crate::CODE == crate::CALLS_START
            && crate::is_sum_sealed(self.squares)
    }

    pub(crate) fn decode(mut self) -> Self {
        self.calls = self.calls.saturating_sub(crate::CALLS_START);
        decoded!(self: calls, timed, timed_inner, restless, recursive, allocations, allocated, live, peak,
            freed_elsewhere, user_ns, system_ns, exits, redos, fails, exceptions, cuts);
        self.squares = crate::open_sum(self.squares);
        self.first_child = crate::first(self.child_list);
        self.children = crate::count(self.child_list);
        self
    }
}

impl Sizes {
    pub(crate) fn has_sound_numbers(&self) -> bool {
        self.calls.into_iter().chain(self.ticks).all(|number| number % crate::CODE == crate::CALLS_START)
    }

    pub(crate) fn decode(mut self) -> Self {
        self.calls = self.calls.map(|count| count.saturating_sub(crate::CALLS_START) / crate::CODE);
        self.ticks = self.ticks.map(|ticks| ticks.saturating_sub(crate::CALLS_START));
        self
    }
}

impl LineCost {
    pub(crate) fn has_sound_numbers(&self) -> bool {
        [self.hits, self.total, self.self_ticks].into_iter().all(is_coded)
    }

    pub(crate) fn decode(mut self) -> Self {
        self.hits /= crate::CODE;
        self
    }
}
