//! The layout of the file in which a program that was compiled with `-pg` counts its calls.
//!
//! The program maps the file and counts in it, so that what was counted is there whatever ends the
//! program. Processes that it forks count in the same file; a program that one of them executes has a
//! file of its own. All numbers are in the byte order of the machine.
//!
//! A header of [`HEADER`] bytes is followed by records, each a multiple of [`ALIGNMENT`] bytes long: tables of
//! calls, one or more for each thread, and objects, the files that code was mapped from. Space is taken
//! by adding to [`header::USED`]; [`record::SIZE`] is written next, and [`record::KIND`] last. A place where both
//! are 0 was taken and not used.

/// The first bytes of every file.
pub const MAGIC: [u8; 8] = *b"\x89tra\r\n\x1a\n";

/// The version that is written.
pub const VERSION: u32 = 1;

/// How many bytes the header has.
pub const HEADER: usize = 4096;

/// Records begin at multiples of this.
pub const ALIGNMENT: usize = 64;

/// Numbers of the header, by where they are.
pub mod header {
    /// The version, 32 bits.
    pub const VERSION: usize = 8;
    /// The process that made the file, 32 bits.
    pub const PID: usize = 12;
    /// How many bytes of the file are taken, the header included; may exceed the file's size.
    pub const USED: usize = 16;
    /// How many calls were not counted for want of room.
    pub const LOST: usize = 24;
    /// How many bytes the file has.
    pub const SIZE: usize = 32;
}

/// Numbers of every record, by where they are in it.
pub mod record {
    /// [`TABLE`](super::TABLE) or [`OBJECT`](super::OBJECT), 32 bits; written last.
    pub const KIND: usize = 0;
    /// The process, 32 bits.
    pub const PID: usize = 4;
    /// The bytes of the record.
    pub const SIZE: usize = 8;
    /// How often libraries had been unloaded before; the same addresses may be of other code then.
    pub const GENERATION: usize = 16;
    /// Of a table: the thread that counts in it, 32 bits.
    pub const TID: usize = 24;
}

/// A record of calls: a hash table of [`entry`]s.
pub const TABLE: u32 = 1;

/// A record of a file that code was mapped from.
pub const OBJECT: u32 = 2;

/// A table, by where its parts are.
pub mod table {
    /// The greatest offset of an entry behind [`ENTRIES`]: their number less one, times their size.
    pub const MASK: usize = 32;
    /// How many entries are in use.
    pub const USED: usize = 40;
    /// The first entry.
    pub const ENTRIES: usize = 64;
}

/// An entry of a table, by where its parts are: one caller and callee.
pub mod entry {
    /// How many bytes an entry has.
    pub const SIZE: usize = 32;
    /// The return address in the caller; 0 in an entry that is not used.
    pub const FROM: usize = 0;
    /// The address in the function that was called, behind the call by which it reports itself.
    pub const CALLEE: usize = 8;
    /// How often.
    pub const CALLS: usize = 16;
}

/// An object, by where its parts are.
pub mod object {
    /// Where it is mapped.
    pub const START: usize = 32;
    /// The address behind it.
    pub const END: usize = 40;
    /// Where in the file the mapping begins.
    pub const OFFSET: usize = 48;
    /// How many bytes the path has.
    pub const LENGTH: usize = 56;
    /// The path.
    pub const PATH: usize = 64;
}
