//! The runtime in the program, whose records say where blocks belong.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

use treering_events::Thread;
use treering_memory::{Hooks, Process};

use crate::interpose;
use crate::next::next;

/// The runtime that was attached.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Runtime(Hooks);

struct Slot(UnsafeCell<MaybeUninit<Runtime>>);

// SAFETY: written once, before `IS_THERE` says so.
unsafe impl Sync for Slot {}

static SLOT: Slot = Slot(UnsafeCell::new(MaybeUninit::uninit()));
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
static IS_THERE: AtomicBool = AtomicBool::new(false);
/// Whether the next functions are glibc's, too: the common case, which is quick.
static IS_ON_GLIBC: AtomicBool = AtomicBool::new(false);

/// The runtime, if there is one.
#[inline(always)]
pub(crate) fn runtime() -> Option<&'static Runtime> {
    // SAFETY: the slot was written before, and is not written to any more.
    IS_THERE.load(Ordering::Acquire).then(|| unsafe { (*SLOT.0.get()).assume_init_ref() })
}

/// The runtime, if there is one and the next functions are glibc's. Then they are known, too.
#[inline(always)]
pub(crate) fn runtime_on_glibc() -> Option<&'static Runtime> {
    // SAFETY: the slot was written before, and is not written to any more.
    IS_ON_GLIBC.load(Ordering::Acquire).then(|| unsafe { (*SLOT.0.get()).assume_init_ref() })
}

impl Runtime {
    /// A block of that many bytes was allocated where nothing runs.
    pub(crate) fn allocated_outside(&self, bytes: u64) {
        (self.0.outside)(bytes);
    }
}

// SAFETY: the runtime keeps to it.
unsafe impl Process for &'static Runtime {
    #[inline(always)]
    fn thread(self) -> *mut Thread {
        #[cfg(target_arch = "x86_64")]
        {
            let thread: *mut Thread;
            // SAFETY: reads a word of the thread's static block, where the runtime says it is.
            unsafe {
                core::arch::asm!(
                    "mov {thread}, qword ptr fs:[{offset}]",
                    thread = lateout(reg) thread,
                    offset = in(reg) self.0.thread_word,
                    options(nostack, readonly, preserves_flags, pure),
                );
            }
            thread
        }
        #[cfg(not(target_arch = "x86_64"))]
        (self.0.thread)()
    }

    #[inline(always)]
    fn state(self) -> u32 {
        self.0.state.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn base(self) -> *mut u8 {
        self.0.base.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn generation(self) -> u8 {
        self.0.generation.load(Ordering::Relaxed)
    }
}

/// Called by a runtime when it is loaded. Returns whether blocks are counted for it from now on: for
/// the first one they are, where the program's memory does come from here.
///
/// # Safety
/// `hooks` can be read, and what it leads to is there as long as the library or program is
/// loaded that its functions stand in.
#[unsafe(no_mangle)]
unsafe extern "C" fn treering_malloc_attach(hooks: *const Hooks) -> bool {
    // SAFETY: by this function's own requirement.
    let Some(hooks) = (unsafe { hooks.as_ref() }) else { return false };
    let Some(next) = next().filter(|_| hooks.version == Hooks::VERSION && is_in_front()) else {
        return false;
    };
    if IS_TAKEN.swap(true, Ordering::Relaxed) {
        return false;
    }
    // It must not go away while any thread may be using it, which is forever.
    keep_loaded(hooks.outside as *const c_void);
    // SAFETY: only one caller comes here, and no other thread reads it before it is published.
    unsafe { (*SLOT.0.get()).write(Runtime(*hooks)) };
    IS_THERE.store(true, Ordering::Release);
    IS_ON_GLIBC.store(next.has_headers, Ordering::Release);
    true
}

/// Whether the program uses the functions here, and not some of its own.
fn is_in_front() -> bool {
    let used = |name: &CStr| {
        // SAFETY: looks a name up among what is loaded.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
    };
    used(c"malloc") == interpose::malloc as *mut c_void
        && used(c"free") == interpose::free as *mut c_void
        && used(c"realloc") == interpose::realloc as *mut c_void
}

/// Keeps what holds an address from being unloaded. The program itself never is.
fn keep_loaded(address: *const c_void) {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: all zeros are a valid structure; the call fills it, with a C text for the name.
    unsafe {
        let mut info: libc::Dl_info = core::mem::zeroed();
        if libc::dladdr(address, &raw mut info) != 0 && !info.dli_fname.is_null() {
            libc::dlopen(info.dli_fname, flags);
        }
    }
}
