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
//! | `awaited` | the script with which recording begins |
//! | `recorded` | what is recorded |
//! | `interpreter` | what is known of the interpreter, by the address of its objects |
//!
//! Only the interpreter's thread comes here, so its state needs no lock. No borrow of it is held
//! while Octave's own code runs.

mod awaited;
mod call;
mod install;
mod interpreter;
mod lifetime;
mod object;
mod operator;
mod recorded;
mod statement;

use core::ffi::c_void;

pub(crate) use awaited::wait_for_script;
pub(crate) use install::{finish_at_exit, install};
pub(crate) use interpreter::start;
pub(crate) use recorded::{go_on, pause, recorded, resume, stop, wanted, what};

/// Something of Octave.
type Pointer = *mut c_void;
