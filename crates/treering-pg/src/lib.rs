//! A library to preload, which counts the calls of programs that were compiled with `-pg`.
//!
//! ```text
//! TREERING_PG=/some/folder LD_PRELOAD=libtreering_pg.so ./program
//! ```
//!
//! Such programs call `mcount` or `__fentry__` at the start of each function. This library stands in front
//! of those of the C library, which lose calls that several threads make at once, know nothing of
//! shared libraries, and write a file only if the program ends by itself. Each thread has a table of its
//! own, in a file that the program has mapped: see `treering_events::arc_file`. So there are no locks, nothing is
//! lost, and what was counted is there whatever ends the program. `treering gprof` does all this.
//!
//! The fast path is a few instructions (`entry`). The first call along an arc takes the slow one, which
//! blocks signals, makes no call to any other library, and allocates nothing but in the file. It takes
//! no locks, so a process may fork at any time; what a child counts is in tables of its own, since
//! the memory that leads to its parent's is zero in the child.
//!
//! Where no folder is named, or no file can be made in it, nothing is counted. Only x86-64 Linux is
//! supported.

mod count;
mod entry;
mod file;
mod object;
mod start;
mod started;
mod sys;
mod unload;
