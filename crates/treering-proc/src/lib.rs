//! Facts about running processes from `/proc`, where the loader maps their files, and which file a command runs.
//!
//! Samplers, symbolisers, the translator and the command line need the same: which files a process has mapped and
//! where ([`mappings`]), the names of its threads ([`threads`], [`thread_name`]), its state ([`status`]), when it started
//! ([`started_unix_ns`]), the kernel's own code in it ([`vdso_image`]), and where the segments of an ELF file lie
//! ([`segments`], [`build_id`]). Which file a name stands for on `PATH` is here as well ([`find_program`]). Each of these
//! is read here, once, and the system's errors are worded here ([`reason`]).
//!
//! Programs are started with the signals and the limit of open files that this process was started with ([`Inherited`]),
//! which are noted before `main`. Besides that it holds no state, changes nothing but ignored signals, and reads no
//! symbols. A process may end at any moment, so a file that cannot be read is nothing and not an error. Linux only.
//!
//! ```
//! let me = std::process::id();
//! let mappings = treering_proc::mappings(me).expect("a process may read its own");
//! assert!(mappings.iter().any(|mapping| mapping.is_executable && mapping.path.is_absolute()));
//! assert!(treering_proc::threads(me).contains(&me));
//! ```
#![deny(unsafe_code)]

mod elf;
#[expect(unsafe_code, reason = "signals before `main`, and what commands do before they run")]
mod inherited;
mod mapping;
mod memory;
mod process;
mod reason;
mod search;
pub mod status;

pub use elf::{Layout, build_id, segments};
pub use inherited::{Inherited, ignore, is_ignored, keep_ended_children, stack_limit};
pub use mapping::{Mapping, executable_mappings, is_memory, is_writable, mappings, may_be_read};
pub use memory::{read_memory, vdso_image};
pub use process::{
    command_line, has_ended, is_of_kernel, processor_time, start_ticks, started_unix_ns, thread_name, threads,
};
pub use reason::reason;
pub use search::{find_program, programs_on_path};
pub use status::{inner_pid, peak_memory, user};
