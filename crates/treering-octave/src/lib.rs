//! The shared library that GNU Octave loads to be profiled.
//!
//! ```text
//! $ treering octave simulate.m 100        from a shell
//! >> profile on graph                     in Octave, with the package that `cargo xtask octave-package` makes
//! >> simulate (100)
//! >> profile info
//! ```
//!
//! # What it does
//!
//! Octave loads it as the MEX file `__treering__.mex`. At the first `on` it places hooks into the
//! running, unmodified interpreter: into the slots through which liboctinterp calls its own
//! functions, and into the tables of virtual functions. From then on every call of a user
//! function, script, builtin or MEX file is a call event of `treering-runtime`, told by the address of the
//! function's object, so an event costs tens of nanoseconds where Octave's own profiler builds a
//! text and looks it up.
//!
//! Every slot is found and checked before any is written; when one is not as expected nothing is
//! written, and the error names it. Hooks stay for as long as the process lives and pass calls on
//! while nothing is recorded: taking them out in the middle of a call is the one real danger.
//! Errors of Octave are C++ exceptions that pass through the hooks, whose guards leave the
//! activations on the way.
//!
//! # What it does not do
//!
//! It needs no headers of Octave and no C++. It refuses other systems than Linux on x86-64,
//! another C++ library than libstdc++, and builds of Octave whose library calls itself directly.
//! It does not see what Octave does not call: indexing, ranges, `&&` and `||`, assignments; their time is
//! the caller's self cost.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]
// The tests leave out the code that links with Octave: they have no Octave to link with.
#![cfg_attr(test, allow(dead_code, reason = "used by the entry, which is left out"))]

mod block;
mod children;
mod command;
mod definition;
mod hooks;
mod listing;
mod memory;
#[cfg(not(test))]
mod mex;
mod naming;
mod numbers;
mod print;
mod refusal;
mod request;
mod slots;
mod statistics;
mod stopwatch;
mod tables;
mod temporary;
mod value;
