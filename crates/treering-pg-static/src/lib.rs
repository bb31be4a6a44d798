//! A library to link, which counts the calls of statically linked programs that were compiled with `-pg`.
//!
//! ```text
//! cc -pg -static -o solve solve.c -L/usr/local/lib -ltreering_pg
//! treering gprof -- ./solve
//! ```
//!
//! Nothing can be loaded before such a program, so it has the library in it. The code is that of `treering-pg`, but for
//! `dlclose`: programs without a loader unload nothing. The functions behind `-pg` are found here before those of the C
//! library are looked for, whose timer does not start then, and which write no `gmon.out`.
//!
//! `src/pg` is a link to the code of `treering-pg`; in the package that cargo makes it is a copy.

#[path = "pg/count.rs"]
mod count;
#[path = "pg/entry.rs"]
mod entry;
#[path = "pg/file.rs"]
mod file;
#[path = "pg/object.rs"]
mod object;
#[path = "pg/start.rs"]
mod start;
mod started;
#[path = "pg/sys.rs"]
mod sys;
