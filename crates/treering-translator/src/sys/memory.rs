//! The memory of other processes.

/// Reads a process's memory, as far as there is any. Returns the number of bytes.
pub(crate) fn read_memory(pid: i32, address: u64, bytes: &mut [u8]) -> usize {
    // SAFETY: `bytes` has room for as many.
    unsafe { read_to(pid, address, bytes.as_mut_ptr(), bytes.len()) }
}

/// The same into a new vector of at most `length` bytes.
pub(crate) fn copy_memory(pid: i32, address: u64, length: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::with_capacity(length);
    // SAFETY: there is room for `length` bytes, and the length is set to the bytes that were read.
    unsafe {
        let got = read_to(pid, address, bytes.as_mut_ptr(), length);
        bytes.set_len(got);
    }
    bytes
}

/// Reads up to `length` bytes to `bytes`, and returns their number.
///
/// # Safety
/// There must be room for `length` bytes.
unsafe fn read_to(pid: i32, address: u64, bytes: *mut u8, length: usize) -> usize {
    let here = libc::iovec { iov_base: bytes.cast(), iov_len: length };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: the kernel writes at most `length` bytes, for which there is room.
    let got = unsafe { libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(got).unwrap_or(0)
}

/// Writes to a process's memory where the process itself may write. Returns whether all was written.
pub(crate) fn write_memory(pid: i32, address: u64, bytes: &[u8]) -> bool {
    let here = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the kernel only reads from `bytes`.
    let got = unsafe { libc::process_vm_writev(pid, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(got) == Ok(bytes.len())
}
