//! The hooks in the interpreter.
//!
//! | room | holds |
//! |---|---|
//! | `install` | the choice of the functions to hook, its checks, and the hooking |
//! | `call` | calls of functions, scripts, builtins and compiled files |
//! | `operator` | operators |
//! | `statement` | lines |
//! | `lifetime` | functions that are made and destroyed, and where anonymous ones were made |
//! | `object` | the names and files of Octave's objects |
//! | `deferred_start` | recordings that begin with a script or other code |
//! | `ending` | the end of Octave, and the code of its option `--eval` |
//! | `recorded` | the kinds of events that are recorded |
//! | `interpreter` | the state of the interpreter, by the address of its objects |
//!
//! Only the interpreter's thread comes here, so its state is that thread's own and needs no lock. No borrow of it is
//! held while Octave's own code runs.

mod call;
mod deferred_start;
mod ending;
mod install;
mod interpreter;
mod lifetime;
mod object;
mod operator;
mod recorded;
mod statement;

use core::ffi::c_void;

pub(crate) use deferred_start::{Start, wait_for};
#[cfg(not(test))]
pub(crate) use ending::set_octaves_folder;
pub(crate) use install::{finish_at_exit, install};
pub(crate) use interpreter::start;
#[cfg(not(test))]
pub(crate) use operator::silence_native;
pub(crate) use recorded::{go_on, pause, recorded, resume, stop, wanted, what};

/// Something of Octave.
type Pointer = *mut c_void;
