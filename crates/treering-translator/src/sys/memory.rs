//! The memory of other processes.

use std::io::{IoSlice, IoSliceMut};

use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

/// Reads a process's memory, as far as there is any. Returns the number of bytes.
pub(crate) fn read_memory(pid: i32, address: u64, bytes: &mut [u8]) -> usize {
    let there = RemoteIoVec { base: address as usize, len: bytes.len() };
    process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(bytes)], &[there]).unwrap_or(0)
}

/// The same into a new vector of at most `length` bytes.
pub(crate) fn copy_memory(pid: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let got = read_memory(pid, address, &mut bytes);
    bytes.truncate(got);
    bytes
}

/// Writes to a process's memory where the process itself may write. Returns whether all was written.
pub(crate) fn write_memory(pid: i32, address: u64, bytes: &[u8]) -> bool {
    let there = RemoteIoVec { base: address as usize, len: bytes.len() };
    process_vm_writev(Pid::from_raw(pid), &[IoSlice::new(bytes)], &[there]) == Ok(bytes.len())
}
