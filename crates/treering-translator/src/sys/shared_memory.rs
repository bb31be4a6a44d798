//! Memory that the tracer and a program share.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys;

/// A file, mostly one in memory only, mapped here for reading and writing.
///
/// The program may write to it at any time, so it is only read and written by whole values, through pointers.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    file: OwnedFd,
    start: NonNull<u8>,
    size: usize,
    /// Whether it is a file with a name, rather than one in memory.
    on_disk: bool,
}

/// A file of `size` zero bytes in memory; only written pages take room.
pub(crate) fn memory_file(name: &str, size: u64) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: the name is a string that ends with 0.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let file: File = unsafe { OwnedFd::from_raw_fd(descriptor) }.into();
    file.set_len(size)?;
    Ok(file)
}

// SAFETY: the mapping belongs to this value alone in this process; all access goes through `&self`
// by volatile or atomic operations on plain bytes, or through `&mut self`.
unsafe impl Send for SharedMemory {}

impl SharedMemory {
    /// Memory of `size` zero bytes; only written pages take room.
    pub(crate) fn new(name: &str, size: u64) -> io::Result<Self> {
        Self::map(memory_file(name, size)?.into(), size as usize, false)
    }

    /// The same in a new file, which other processes can read even if this process is killed.
    ///
    /// Touching memory of a full disk ends the process: bytes must be [reserved](Self::reserve) before they are used.
    pub(crate) fn in_file(path: &Path, size: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        file.set_len(size)?;
        Self::map(file.into(), size as usize, true)
    }

    /// Reserves room on the disk for bytes of a file.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        if !self.on_disk {
            return Ok(());
        }
        // SAFETY: the descriptor is open; contents stay as they are.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), offset as i64, length as i64) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Reserves room on the disk for bytes of a file that are 0 and not used yet, by writing them.
    ///
    /// Most file systems promise room for written bytes and choose blocks when they write them back, half a minute
    /// later. A file that is removed before never had blocks. Blocks that [`reserve`](Self::reserve) has chosen are freed
    /// with the file; with `discard`, `ext4` waits for the disk once for each range of them.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn reserve_unused(&self, offset: u64, length: u64) -> io::Result<()> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let mut at = offset;
        while self.on_disk && at < offset + length {
            let part = ZEROS.len().min((offset + length - at) as usize);
            // SAFETY: the descriptor is open, and there are so many zeros. No thread uses those bytes of the file.
            let done = unsafe { libc::pwrite(self.file.as_raw_fd(), ZEROS.as_ptr().cast(), part, at as i64) };
            match u64::try_from(done) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(done) => at += done,
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == io::ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        }
        Ok(())
    }

    /// The same as [`reserve`](Self::reserve), if the disk has `spare` bytes left beside them.
    pub(crate) fn reserve_beside(&self, spare: u64, offset: u64, length: u64) -> io::Result<()> {
        if self.on_disk && self.room()? < length + spare {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.reserve(offset, length)
    }

    /// The free bytes on the file's disk.
    pub(crate) fn room(&self) -> io::Result<u64> {
        sys::free_room(&self.file)
    }

    /// Fills whole pages that are unused so far with one value. Writing them as a file and mapping them at
    /// once takes two thirds of the time of touching them.
    pub(crate) fn fill(&self, offset: u64, length: u64, value: u64) {
        const PAGE: usize = 4096;
        const MOST_PARTS: usize = 512;
        let page = [value; PAGE / 8];
        let part = libc::iovec { iov_base: page.as_ptr().cast_mut().cast(), iov_len: PAGE };
        let parts = [part; MOST_PARTS];
        let start = self.at(offset, length as usize);
        let mut done = 0;
        while done < length {
            let count = ((length - done) as usize / PAGE).min(MOST_PARTS);
            // SAFETY: all parts point to the page, and are read. The descriptor is open, and the written part
            // of the file is unused.
            let written = unsafe {
                libc::pwritev(self.file.as_raw_fd(), parts.as_ptr(), count as i32, (offset + done) as i64)
            };
            if written <= 0 {
                break;
            }
            done += written as u64;
        }
        // An old kernel lacks this advice; then each page is mapped by its first fault.
        // SAFETY: the bytes lie in our own mapping, and do not change.
        unsafe { libc::madvise(start.cast(), length as usize, libc::MADV_POPULATE_WRITE) };
        (done / 8..length / 8).for_each(|word| self.store(offset + word * 8, value));
    }

    /// Fills whole pages that were used before with one value.
    pub(crate) fn refill(&self, offset: u64, length: u64, value: u64) {
        const PAGE: usize = 4096;
        let page: Vec<u8> = [value; PAGE / 8].into_iter().flat_map(u64::to_ne_bytes).collect();
        (offset..offset + length).step_by(PAGE).for_each(|at| self.write(at, &page));
    }

    /// Tells the kernel that accesses have no order. It would otherwise read ahead in a file, which for an
    /// empty one means clearing megabytes.
    pub(crate) fn expect_no_order(&self) {
        // SAFETY: the mapping is ours; the call changes no contents.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.size, libc::MADV_RANDOM) };
    }

    /// Whether it is a file with a name.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.on_disk
    }

    fn map(file: OwnedFd, size: usize, on_disk: bool) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { file, start, size, on_disk })
    }

    /// The descriptor, for the program to open through `/proc`.
    pub(crate) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// A pointer to `length` bytes at an offset.
    ///
    /// # Panics
    /// If they do not lie in the memory.
    fn at(&self, offset: u64, length: usize) -> *mut u8 {
        let offset = offset as usize;
        assert!(offset <= self.size && length <= self.size - offset, "shared memory ends before {offset:#x}");
        // SAFETY: the offset was just found to lie in the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Writes bytes that no thread executes or reads yet.
    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `to` has room for the bytes, and they lie in memory of our own.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Reads bytes that the tracer wrote.
    pub(crate) fn read(&self, offset: u64, bytes: &mut [u8]) {
        let from = self.at(offset, bytes.len());
        // SAFETY: `from` has that many bytes, and `bytes` lie in memory of our own.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Replaces four bytes at once, which may be part of an instruction that a thread is executing.
    ///
    /// The bytes need not be aligned: x86 stores them at once if they lie in one cache line, which
    /// `Assembler` ensures. Rust's atomics require alignment, hence the volatile store.
    pub(crate) fn replace(&self, offset: u64, value: u32) {
        let to = self.at(offset, 4).cast::<u32>();
        std::sync::atomic::fence(Ordering::SeqCst);
        // SAFETY: there are four bytes at `to`; an unaligned volatile store is one `mov` on x86.
        unsafe { std::arch::asm!("mov dword ptr [{}], {:e}", in(reg) to, in(reg) value, options(nostack)) };
    }

    /// Replaces eight bytes as [`replace`](Self::replace) does four.
    pub(crate) fn replace_long(&self, offset: u64, value: u64) {
        let to = self.at(offset, 8).cast::<u64>();
        std::sync::atomic::fence(Ordering::SeqCst);
        // SAFETY: there are eight bytes at `to`; one `mov` stores them.
        unsafe { std::arch::asm!("mov qword ptr [{}], {}", in(reg) to, in(reg) value, options(nostack)) };
    }

    /// Eight bytes at an offset, which must be a multiple of eight.
    pub(crate) fn load(&self, offset: u64) -> u64 {
        self.word(offset).load(Ordering::Acquire)
    }

    /// Stores eight bytes at an offset, which must be a multiple of eight.
    pub(crate) fn store(&self, offset: u64, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8), "eight bytes at {offset:#x} are not aligned");
        let place = self.at(offset, 8).cast::<u64>();
        // SAFETY: the place is aligned (the mapping is), lies in the mapping while `self` is borrowed, and is
        // only used atomically while the program runs.
        unsafe { AtomicU64::from_ptr(place) }
    }

    /// The parts of a range that may have been written, in order; all bytes outside of them are 0. `offset`
    /// and `length` are multiples of eight. Reading a page that was never written would take memory for it.
    pub(crate) fn written(&self, offset: u64, length: u64) -> Vec<Range<u64>> {
        let end = offset + length;
        let all = || std::iter::once(offset..end).filter(|all| !all.is_empty()).collect();
        if self.on_disk && !sys::tells_holes(&self.file) {
            return all();
        }
        let seek = |at: u64, whence| sys::seek(&self.file, at, whence);
        let mut parts = Vec::new();
        let mut at = offset;
        while at < end {
            let from = match seek(at, libc::SEEK_DATA) {
                Ok(Some(from)) if from < end => from.max(offset),
                Ok(_) => break,
                Err(_) => return all(),
            };
            let Ok(Some(to)) = seek(from, libc::SEEK_HOLE) else { return all() };
            parts.push(from..to.min(end));
            at = to;
        }
        parts
    }

    /// Sets bytes to 0 for reuse. A file on a disk keeps its room: freeing blocks makes some file systems
    /// wait for the disk (`discard`), which is most of the time for threads that end by the thousand.
    pub(crate) fn zero(&self, offset: u64, length: u64) {
        if !self.on_disk {
            return self.clear(offset, length);
        }
        for part in self.written(offset, length) {
            part.step_by(8).for_each(|at| self.store(at, 0));
        }
    }

    /// The number of bytes that take memory.
    pub(crate) fn taken(&self) -> u64 {
        self.written(0, self.size as u64).iter().map(|part| part.end - part.start).sum()
    }

    /// Sets all bytes to 0, unless so many were used that new memory would be faster. Returns whether it was done.
    pub(crate) fn zero_all(&self) -> bool {
        const MUCH: u64 = 1 << 20;
        let used = self.written(0, self.size as u64);
        let is_little = used.iter().map(|part| part.end - part.start).sum::<u64>() <= MUCH;
        if is_little {
            used.into_iter().flat_map(|part| part.step_by(8)).for_each(|at| self.store(at, 0));
        }
        is_little
    }

    /// Returns memory to the kernel: the bytes become 0.
    pub(crate) fn clear(&self, offset: u64, length: u64) {
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: the descriptor is open; the call changes the file's contents only.
        let done = unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset as i64, length as i64) } == 0;
        if !done {
            (0..length / 8).for_each(|word| self.store(offset + word * 8, 0));
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no pointer into it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;
    use crate::program::region::PAGE;

    #[test]
    fn values_are_kept_until_they_are_cleared() {
        let memory = SharedMemory::new("test", 1 << 20).unwrap();
        memory.store(8, 5);
        memory.replace(4098, 0x0403_0201);
        let mut bytes = [0; 4];
        memory.read(4098, &mut bytes);
        assert_eq!((memory.load(8), bytes), (5, [1, 2, 3, 4]));
        memory.clear(0, 8192);
        assert_eq!(memory.load(8), 0);
    }

    #[test]
    fn bytes_of_a_file_are_used_again_in_their_room() {
        let path = std::env::temp_dir().join(format!("treering-zero-{}", std::process::id()));
        let memory = SharedMemory::in_file(&path, 1 << 20).unwrap();
        let blocks = || std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&path).unwrap());
        memory.reserve(0, 1 << 16).unwrap();
        let reserved = blocks();
        let used = [8, 2 * PAGE, 3 * PAGE + 16, (1 << 16) - 8];
        used.iter().for_each(|&at| memory.store(at, at));
        memory.zero(8, (1 << 16) - 16);
        assert_eq!(used.map(|at| memory.load(at)), [0, 0, 0, (1 << 16) - 8]);
        assert_eq!(blocks(), reserved, "no blocks were given back");
        memory.clear(0, 1 << 16);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(memory.load((1 << 16) - 8), 0);
    }

    #[test]
    fn room_for_unused_bytes_leaves_the_others_as_they_are() {
        let path = std::env::temp_dir().join(format!("treering-unused-{}", std::process::id()));
        let memory = SharedMemory::in_file(&path, 1 << 20).unwrap();
        std::fs::remove_file(&path).unwrap();
        memory.store(3 * PAGE, 7);
        memory.store(99 * PAGE + 8, 9);
        memory.reserve_unused(3 * PAGE + 8, 96 * PAGE).unwrap();
        assert_eq!([3 * PAGE, 99 * PAGE + 8].map(|at| memory.load(at)), [7, 9]);
        let parts = memory.written(0, 1 << 20);
        assert!((4..99).all(|page| parts.iter().any(|part| part.contains(&(page * PAGE)))), "{parts:?}");
    }

    #[test]
    fn touched_memory_is_found() {
        let path = std::env::temp_dir().join(format!("treering-written-{}", std::process::id()));
        let in_file = SharedMemory::in_file(&path, 1 << 20).unwrap();
        std::fs::remove_file(&path).unwrap();
        in_file.reserve(0, 1 << 20).unwrap();
        for memory in [SharedMemory::new("test", 1 << 20).unwrap(), in_file] {
            assert!(memory.written(8, 0).is_empty());
            memory.store(8 * PAGE + 16, 1);
            memory.store(30 * PAGE, 1);
            let parts = memory.written(8, 40 * PAGE);
            let is_in = |at: u64| parts.iter().any(|part| part.contains(&at));
            assert!(is_in(8 * PAGE + 16) && is_in(30 * PAGE), "{parts:?}");
            assert!(parts.iter().all(|part| part.start >= 8 && part.end <= 8 + 40 * PAGE), "{parts:?}");
            assert!(memory.on_disk || !is_in(20 * PAGE), "{parts:?}");
            // From the middle of the written part.
            let within = 8 * PAGE + 8..8 * PAGE + 24;
            assert_eq!(memory.written(within.start, 16), Vec::from([within]));
        }
    }

    #[test]
    #[should_panic(expected = "shared memory ends before")]
    fn memory_behind_the_end_is_not_touched() {
        SharedMemory::new("test", 4096).unwrap().store(4096, 1);
    }
}
