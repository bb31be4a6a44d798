//! The layout of the *live file*: the calling context tree of a program that is being
//! instrumented, as it grows.
//!
//! The writer maps the file and changes it in place; nothing has to be flushed, so a program that
//! is killed loses nothing, and another process can read the file at any moment. The layout is
//! described in `docs/formats/live.md`. In short: a [`Header`], then records of fixed width at
//! multiples of [`UNIT`] bytes, which refer to each other by [`Ref`]s and are never moved or
//! removed. Every thread writes only its own records, so there are no locks between threads.
//!
//! This crate holds the layout, reads it from bytes and works out costs, statistics ([`ActivationStatistics`]) and cycles
//! ([`components`]), which profiles and reports of running programs share. It uses no operating system and does not build
//! profiles: `treering-runtime` writes, `treering-formats` reads.
//!
//! ```
//! use treering_events::{Damage, View};
//!
//! assert_eq!(View::new(b"something else").unwrap_err(), Damage::NotLive);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod arc_file;
pub mod character;
mod check;
mod component;
mod examine;
pub mod mark_file;
mod meaning;
mod note;
pub mod output_name;
mod record;
mod statistics;
mod tree;
mod view;

pub use check::{
    CALLS_START, CODE, Finding, Findings, Parts, Sealed, check_of, coded_flags, count, crc32c, first,
    is_sealed, is_sum_sealed, link, open_sum, seal_sum, text_check,
};
pub use component::components;
pub use meaning::{clock, flag, function_kind, mode, rule, setting, thread_state, unwound};
pub use note::{notes, pluralize};
pub use record::{
    Activation, Function, Header, InPlace, LineCost, Module, Node, NodeLinks, Point, Setting, Sizes, Text,
    Thread, cells,
};
pub use statistics::ActivationStatistics;
pub use tree::{Forest, Measured, MeasuredLine, ThreadTree};
pub use view::{Chain, Damage, View};

/// The first bytes of a live file.
pub const MAGIC: [u8; 8] = *b"\x89trl\r\n\x1a\n";

/// The major version of the layout. Readers know the one before as well, and refuse others. There is no
/// layout 3: it would differ from 2 in one bit, so that a damaged file could not be told from an older one.
pub const VERSION: u32 = 4;

/// The layout before this one, in which nothing could be checked.
pub const VERSION_WITHOUT_CHECKS: u32 = 2;

/// Records start at multiples of this many bytes.
pub const UNIT: u64 = 64;

/// The bytes of the file that the header takes.
pub const HEADER_BYTES: u64 = 4096;

/// Where a record stands: its distance from the start of the file in [`UNIT`]s; 0 for none.
pub type Ref = u32;

/// How many children a node leads to directly.
pub const NEAR_CHILDREN: usize = 8;

/// How many classes of argument sizes there are: one for size 0, then one for each power of two.
pub const SIZE_CLASSES: usize = 64;

/// The class of an argument's size: 0 for size 0, else one more than its logarithm to base 2,
/// rounded down, at most `SIZE_CLASSES - 1`.
pub const fn size_class(size: u64) -> usize {
    let class = (u64::BITS - size.leading_zeros()) as usize;
    if class < SIZE_CLASSES { class } else { SIZE_CLASSES - 1 }
}
