//! The program's own code: its regions, its files, and the ways in which it may be written to.

pub(crate) mod code_files;
pub(crate) mod container_file;
pub(crate) mod file_version;
pub(crate) mod kernel_writes;
pub(crate) mod page_snapshot;
pub(crate) mod program_code;
pub(crate) mod region;
pub(crate) mod watch;
