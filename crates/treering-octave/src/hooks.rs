//! The hooks in the interpreter.
//!
//! | room | holds |
//! |---|---|
//! | `install` | which functions are hooked, and how that is checked and done |
//! | `call` | calls of functions, scripts, builtins and compiled files |
//! | `operator` | operators |
//! | `statement` | lines |
//! | `lifetime` | functions that are made and destroyed, and where anonymous ones were made |
//! | `object` | what Octave's objects tell of themselves |
//! | `awaited` | what recording begins with |
//! | `ending` | the end of Octave, and the code of its option `--eval` |
//! | `recorded` | what is recorded |
//! | `interpreter` | what is known of the interpreter, by the address of its objects |
//!
//! Only the interpreter's thread comes here, so its state is that thread's own and needs no lock. No borrow of it is
//! held while Octave's own code runs.

mod awaited;
mod call;
mod ending;
mod install;
mod interpreter;
mod lifetime;
mod object;
mod operator;
mod recorded;
mod statement;

use core::ffi::c_void;

pub(crate) use awaited::{Start, wait_for};
#[cfg(not(test))]
pub(crate) use ending::set_octaves_folder;
pub(crate) use install::{finish_at_exit, install};
pub(crate) use interpreter::start;
#[cfg(not(test))]
pub(crate) use operator::silence_native;
pub(crate) use recorded::{go_on, pause, recorded, resume, stop, wanted, what};

/// Something of Octave.
type Pointer = *mut c_void;
