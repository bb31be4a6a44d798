//! Being built.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail by panicking"))]
mod demangle;
mod jit;
pub mod jitdump;
mod kallsyms;
pub mod perf_map;
pub use demangle::{Demangler, demangle};
pub use jit::{JitPlace, JitTable};
pub use kallsyms::KernelSymbols;
