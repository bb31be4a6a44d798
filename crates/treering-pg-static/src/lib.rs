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

#[path = "../../treering-pg/src/count.rs"]
mod count;
#[path = "../../treering-pg/src/entry.rs"]
mod entry;
#[path = "../../treering-pg/src/file.rs"]
mod file;
#[path = "../../treering-pg/src/object.rs"]
mod object;
#[path = "../../treering-pg/src/start.rs"]
mod start;
mod started;
#[path = "../../treering-pg/src/sys.rs"]
mod sys;
