//! The functions of the next library, to which all calls are handed on.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

type Sized = unsafe extern "C" fn(usize) -> *mut c_void;
type TwoSized = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Resized = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Placed = unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int;

/// The functions of the next library. Those that not every system has may be missing.
pub(crate) struct Functions {
    pub(crate) malloc: Sized,
    pub(crate) calloc: TwoSized,
    pub(crate) realloc: Resized,
    pub(crate) free: unsafe extern "C" fn(*mut c_void),
    pub(crate) posix_memalign: Placed,
    pub(crate) aligned_alloc: TwoSized,
    pub(crate) memalign: TwoSized,
    pub(crate) valloc: Option<Sized>,
    pub(crate) pvalloc: Option<Sized>,
    usable_size: unsafe extern "C" fn(*mut c_void) -> usize,
    /// Whether the size of a block stands in front of it, as in glibc.
    pub(crate) has_headers: bool,
}

impl Functions {
    /// How many bytes of a block may be used.
    ///
    /// # Safety
    /// The block is one that these functions gave and that was not freed.
    #[inline(always)]
    pub(crate) unsafe fn usable_size(&self, block: *mut c_void) -> usize {
        // SAFETY: by this function's own requirement.
        unsafe { if self.has_headers { size_in_header(block) } else { (self.usable_size)(block) } }
    }

    /// Whether reading the size in front of a block gives what the library says, for blocks of
    /// several sorts. Only tried on glibc.
    fn find_headers(&self) -> bool {
        let sizes = [1, 24, 25, 100, 1000, 5000, 100_000, 1 << 20];
        let agrees = |size: &usize| {
            // SAFETY: each block is looked at and given back.
            unsafe {
                let (plain, aligned) = ((self.malloc)(*size), (self.memalign)(256, *size));
                let both = [plain, aligned]
                    .map(|block| !block.is_null() && size_in_header(block) == (self.usable_size)(block));
                (self.free)(plain);
                (self.free)(aligned);
                both == [true; 2]
            }
        };
        is_in_glibc(self.malloc as *const c_void) && sizes.iter().all(agrees)
    }
}

/// The usable size of a block of glibc: the word in front of it holds the size of its chunk, with
/// marks in the lowest three bits. The chunk begins 16 bytes in front of the block, and unless it
/// is a mapping of its own (mark 2), the block reaches 8 bytes into the next chunk.
#[inline(always)]
pub(crate) unsafe fn size_in_header(block: *mut c_void) -> usize {
    // SAFETY: the word belongs to the allocator, and is there for every block.
    let header = unsafe { block.cast::<usize>().sub(1).read() };
    (header & !7) - 8 - ((header & 2) << 2)
}

/// Whether code is part of glibc on a machine whose blocks look like that.
fn is_in_glibc(code: *const c_void) -> bool {
    if !cfg!(all(target_env = "gnu", target_arch = "x86_64")) {
        return false;
    }
    // SAFETY: all zeros are a valid structure; the call fills it, with a C text for the name.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        let is_known = libc::dladdr(code, &raw mut info) != 0 && !info.dli_fname.is_null();
        is_known && CStr::from_ptr(info.dli_fname).to_bytes().ends_with(b"/libc.so.6")
    }
}

struct Slot(UnsafeCell<MaybeUninit<Functions>>);

// SAFETY: written by one thread, before the stage says so, and never again.
unsafe impl Sync for Slot {}

static SLOT: Slot = Slot(UnsafeCell::new(MaybeUninit::uninit()));
static STAGE: AtomicU8 = AtomicU8::new(UNKNOWN);
/// The thread that looks for the functions, by the place of its error number.
static SEEKER: AtomicUsize = AtomicUsize::new(0);

const UNKNOWN: u8 = 0;
const SOUGHT: u8 = 1;
const KNOWN: u8 = 2;
const MISSING: u8 = 3;

/// The next functions; nothing while this thread is looking for them, or where there are none.
#[inline(always)]
pub(crate) fn next() -> Option<&'static Functions> {
    if_known().or_else(seek)
}

/// The next functions, if they were found already.
#[inline(always)]
pub(crate) fn if_known() -> Option<&'static Functions> {
    // SAFETY: they are known.
    (STAGE.load(Ordering::Acquire) == KNOWN).then(|| unsafe { known() })
}

/// The next functions.
///
/// # Safety
/// [`next`] has returned them before, to this thread or to one that has told it so.
#[inline(always)]
pub(crate) unsafe fn known() -> &'static Functions {
    // SAFETY: the slot was written, and is not written to any more.
    unsafe { (*SLOT.0.get()).assume_init_ref() }
}

#[cold]
#[inline(never)]
fn seek() -> Option<&'static Functions> {
    // SAFETY: has no effect but its answer.
    let me = unsafe { libc::__errno_location() } as usize;
    if STAGE.compare_exchange(UNKNOWN, SOUGHT, Ordering::Acquire, Ordering::Acquire).is_ok() {
        SEEKER.store(me, Ordering::Relaxed);
        let found = find();
        let stage = if found.is_some() { KNOWN } else { MISSING };
        // SAFETY: the stage lets no other thread in, and none reads before it is `KNOWN`.
        found.map(|found| unsafe { (*SLOT.0.get()).write(found) });
        STAGE.store(stage, Ordering::Release);
    }
    while STAGE.load(Ordering::Acquire) == SOUGHT {
        if SEEKER.load(Ordering::Relaxed) == me {
            return None;
        }
        // SAFETY: gives the processor away, and nothing else.
        unsafe { libc::sched_yield() };
    }
    if_known()
}

/// Looks all of them up. Nothing when one is missing that every system has.
fn find() -> Option<Functions> {
    // SAFETY: the names have these types, by C11 and POSIX or, in glibc's manual, by custom.
    unsafe {
        let mut found = Functions {
            malloc: symbol(c"malloc")?,
            calloc: symbol(c"calloc")?,
            realloc: symbol(c"realloc")?,
            free: symbol(c"free")?,
            posix_memalign: symbol(c"posix_memalign")?,
            aligned_alloc: symbol(c"aligned_alloc")?,
            memalign: symbol(c"memalign")?,
            valloc: symbol(c"valloc"),
            pvalloc: symbol(c"pvalloc"),
            usable_size: symbol(c"malloc_usable_size")?,
            has_headers: false,
        };
        found.has_headers = found.find_headers();
        Some(found)
    }
}

/// The next function of that name.
///
/// # Safety
/// `F` is the type of a pointer to it.
unsafe fn symbol<F>(name: &CStr) -> Option<F> {
    // SAFETY: looks a name up among what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    // SAFETY: by this function's own requirement, and pointers have one size.
    (!found.is_null()).then(|| unsafe { core::mem::transmute_copy(&found) })
}
