//! Memory: mappings, how much there is, and bytes at addresses.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::io;

/// Memory of zeros that is not from the allocator of the program, which may be our caller.
/// Null when there is none.
pub(crate) fn map_private(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
    let mapped = unsafe { libc::mmap(core::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { core::ptr::null_mut() } else { mapped.cast() }
}

/// Whether there is so much memory at this moment.
pub(crate) fn has_memory(bytes: usize) -> bool {
    let start = map_private(bytes);
    if !start.is_null() {
        unmap(start, bytes);
    }
    !start.is_null()
}

/// Gives back what [`map_private`] or [`reserve`] returned.
pub(crate) fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: callers own the whole range and use it no more.
    unsafe { libc::munmap(start.cast(), bytes) };
}

/// Reserves a range of addresses without memory. Null when there is none of that size.
pub(crate) fn reserve(bytes: usize) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
    let mapped = unsafe { libc::mmap(core::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if mapped == libc::MAP_FAILED { core::ptr::null_mut() } else { mapped.cast() }
}

/// Puts a part of a file, or memory where there is no file, into a reserved range. The children
/// of the process do not get it.
///
/// # Safety
/// `start` and `bytes` lie in a range of [`reserve`] and hold nothing yet.
pub(crate) unsafe fn map_into(start: *mut u8, bytes: usize, file: Option<(c_int, u64)>) -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (flags, fd, offset) = match file {
        Some((fd, offset)) => (libc::MAP_SHARED, fd, offset),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
    };
    // SAFETY: by this function's own requirement.
    let mapped = unsafe {
        libc::mmap(start.cast(), bytes, protection, flags | libc::MAP_FIXED, fd, offset as libc::off_t)
    };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Words of a file, as all processes that map it see them. They stay mapped until the process ends.
pub(crate) fn map_words(file: c_int, words: usize) -> Option<&'static [AtomicU64]> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at a place of the kernel's choice touches nothing that exists.
    let mapped = unsafe {
        libc::mmap(core::ptr::null_mut(), words * size_of::<AtomicU64>(), protection, libc::MAP_SHARED, file, 0)
    };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: pages are aligned, the file has that many words by what callers know, and nothing unmaps them. Other
    // processes change them too, which atomics are for.
    Some(unsafe { core::slice::from_raw_parts(mapped.cast(), words) })
}

/// The virtual and the resident size of the process in bytes, read without the allocator. Memory that is
/// only [reserved](reserve) is in the first.
pub(crate) fn memory_size() -> (u64, u64) {
    let mut text = [0_u8; 128];
    // SAFETY: reads at most as many bytes as there is room for, from a descriptor of its own.
    let length = unsafe {
        let fd = libc::open(c"/proc/self/statm".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return (0, 0);
        }
        let length = libc::read(fd, text.as_mut_ptr().cast(), text.len());
        libc::close(fd);
        length.max(0) as usize
    };
    let mut pages = text[..length].split(|byte| *byte == b' ').map(number);
    let size = page_size();
    let mut next = || pages.next().unwrap_or(0) * size;
    (next(), next())
}

fn number(digits: &[u8]) -> u64 {
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

fn page_size() -> u64 {
    static SIZE: AtomicU64 = AtomicU64::new(0);
    if SIZE.load(Ordering::Relaxed) == 0 {
        // SAFETY: has no effect but its answer.
        SIZE.store(unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64, Ordering::Relaxed);
    }
    SIZE.load(Ordering::Relaxed)
}

/// The bytes of a C text of at most `longest` bytes; none for null.
///
/// # Safety
/// `text` is null or leads to bytes with a zero among them, which live as long as `'a`.
pub(crate) unsafe fn c_text<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: by this function's own requirement.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}

/// The `length` bytes at `start`; none for null.
///
/// # Safety
/// `start` is null or leads to that many bytes, which live as long as `'a`.
pub(crate) unsafe fn bytes<'a>(start: *const c_char, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: by this function's own requirement.
    unsafe { core::slice::from_raw_parts(start.cast(), length) }
}

/// A copy of memory that other threads may be changing.
///
/// # Safety
/// `length` bytes from `start` on can be read.
pub(crate) unsafe fn copy_of(start: *const u8, length: usize) -> Vec<u8> {
    let mut copy = Vec::with_capacity(length);
    // SAFETY: the source is readable by this function's own requirement, the target has the room.
    unsafe {
        core::ptr::copy_nonoverlapping(start, copy.as_mut_ptr(), length);
        copy.set_len(length);
    }
    copy
}

/// Numbers that are 0, in memory that is not from the allocator of the program and is never given back.
pub(crate) fn map_numbers(count: usize) -> Option<&'static [AtomicU32]> {
    let start = map_private(count * size_of::<AtomicU32>()).cast::<AtomicU32>();
    // SAFETY: the mapping is that large, starts at a page, holds zeros, and has no other owner.
    (!start.is_null()).then(|| unsafe { core::slice::from_raw_parts(start, count) })
}

/// Words that are 0, in memory that is not from the allocator of the program and is never given back. The word before the
/// first one is their number.
#[derive(Debug)]
pub(crate) struct Words(&'static [AtomicU64]);

impl Words {
    /// So many words; nothing without memory.
    pub(crate) fn new(count: usize) -> Option<Self> {
        let start = map_private((count + 1) * size_of::<AtomicU64>()).cast::<AtomicU64>();
        if start.is_null() {
            return None;
        }
        // SAFETY: the mapping is that large, starts at a page, holds zeros, and has no other owner.
        let all = unsafe { core::slice::from_raw_parts(start, count + 1) };
        all[0].store(count as u64, Ordering::Relaxed);
        Some(Self(all))
    }

    pub(crate) fn get(&self) -> &'static [AtomicU64] {
        &self.0[1..]
    }
}

/// Words that threads read without a lock, also while others take their place. Those that were replaced stay, since a
/// reader may be using them.
#[derive(Debug)]
pub(crate) struct SharedWords(AtomicPtr<AtomicU64>);

impl SharedWords {
    pub(crate) const fn none() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// The words in use.
    #[inline]
    pub(crate) fn get(&self) -> &'static [AtomicU64] {
        let start = self.0.load(Ordering::Acquire);
        if start.is_null() {
            return &[];
        }
        // SAFETY: the pointer is that of `Words`, whose number stands first and which are never given back.
        unsafe {
            let count = (*start).load(Ordering::Relaxed) as usize;
            core::slice::from_raw_parts(start.add(1), count)
        }
    }

    /// Replaces the words in use: readers see what was written to the new ones before.
    pub(crate) fn set(&self, words: Option<Words>) {
        let start = words.map_or(core::ptr::null_mut(), |words| words.0.as_ptr().cast_mut());
        self.0.store(start, Ordering::Release);
    }
}

/// A list in memory that is not from the allocator of the program.
#[derive(Debug)]
pub(crate) struct Mapped<T> {
    start: *mut T,
    length: usize,
}

// SAFETY: the list owns its memory and its items.
unsafe impl<T: Send> Send for Mapped<T> {}

impl<T: Copy> Mapped<T> {
    /// A list of these items; nothing without memory.
    pub(crate) fn of(items: impl ExactSizeIterator<Item = T>) -> Option<Self> {
        let mut list = Self { start: core::ptr::dangling_mut(), length: 0 };
        let count = items.len();
        if count == 0 {
            return Some(list);
        }
        // A mapping starts at a page, which is aligned for every item.
        let start: *mut T = map_private(count * size_of::<T>()).cast();
        if start.is_null() {
            return None;
        }
        list.start = start;
        for item in items.take(count) {
            // SAFETY: there is room for as many items as the iterator said at first, and no more are taken.
            unsafe { start.add(list.length).write(item) };
            list.length += 1;
        }
        Some(list)
    }
}

impl<T> core::ops::Deref for Mapped<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: that many items were written, or there are none and the pointer is aligned.
        unsafe { core::slice::from_raw_parts(self.start, self.length) }
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        if self.length > 0 {
            unmap(self.start.cast(), self.length * size_of::<T>());
        }
    }
}
