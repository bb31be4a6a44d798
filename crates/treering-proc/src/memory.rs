//! The memory of processes.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::mappings;

/// The bytes that a process has at `start..end`; nothing if not all of them can be read.
pub fn read_memory(pid: u32, start: u64, end: u64) -> Option<Vec<u8>> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    memory.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes)
}

/// The ELF image of the vDSO, read from our own memory: the kernel maps the same into every 64-bit process. Nothing where
/// it maps none.
pub fn vdso_image() -> Option<Vec<u8>> {
    let us = std::process::id();
    let vdso = mappings(us).ok()?.into_iter().find(|mapping| mapping.path.as_os_str() == "[vdso]")?;
    read_memory(us, vdso.start, vdso.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_is_an_object_file_where_the_kernel_maps_one() {
        let Some(image) = vdso_image() else { return };
        assert!(image.starts_with(b"\x7fELF"));
    }

    #[test]
    fn unmapped_memory_is_not_read() {
        assert_eq!(read_memory(std::process::id(), 0, 16), None);
        assert_eq!(read_memory(std::process::id(), 16, 0), None);
        assert_eq!(read_memory(0, 0, 16), None);
    }
}
