//! A library to preload, which shows the memory of a program to the runtime that is linked into it.
//!
//! ```text
//! LD_PRELOAD=libtreering_malloc.so ./program
//! ```
//!
//! It stands in front of the functions that give and take memory, hands every call on to the next
//! library that has them, which is the system's or another allocator, and tells the runtime of each
//! block. The runtime attributes it to the task or function that runs; `treering_runtime::Allocator`
//! does the same for Rust programs without preloading.
//!
//! Where there is no runtime in the program, or it brings an allocator of its own, calls are handed
//! on as they are. It starts no thread, takes no lock once the next functions are known, and
//! reads no environment.
//!
//! A block is 16 bytes larger than was asked for while a runtime is there: see `block`.

mod block;
mod early;
mod interpose;
mod next;
mod runtime;
