//! The shared library that SWI-Prolog loads to be profiled.
//!
//! # What it does
//!
//! `prolog/treering.pl` of the pack loads it, and wraps predicates with
//! `library(prolog_wrap)`. The wrapper calls three predicates of this library, whose own calls,
//! backtracking and pruning are the ports of the wrapped predicate: call, exit, redo, fail, exception,
//! and the cut of choices that an exit has left. Each is a call event of `treering-runtime`.
//!
//! An activation belongs to a Prolog engine: that of a thread, or one that a thread runs for a while.
//! When a thread turns from one engine to another, the open activations of the one are left, uncounted,
//! and those of the other are entered again.
//!
//! # What it does not do
//!
//! For exact times without wrappers, `kernel.rs` puts its own functions in the place of those by which the
//! kernel profiles, if their code is known.
//!
//! It needs no headers of SWI-Prolog and links with no library of it: the functions that it calls are
//! those of the process that loads it. It changes nothing in the running program besides the
//! wrappers and, while a goal is profiled in that way, those functions.

#![cfg(target_os = "linux")]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]
// The tests leave out the code that links with SWI-Prolog: they have no Prolog to link with.
#![cfg_attr(test, allow(dead_code, reason = "used by the entry, which is left out"))]

mod activation;
mod engine;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "used by the kernel's hooks"))]
mod exclusive;
#[cfg(not(test))]
mod foreign;
#[cfg(not(test))]
#[cfg_attr(not(target_arch = "x86_64"), path = "no_kernel.rs")]
mod kernel;
mod recording;
mod signature;
mod table;
