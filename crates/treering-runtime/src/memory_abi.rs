//! How a preloaded allocator is told of this runtime.
//!
//! `libtreering_malloc.so`, of the crate `treering-malloc`, exports `treering_malloc_attach`. When
//! the runtime is loaded, be it in the program or in a library, it looks for that function and
//! tells it where its records are, so a program without a runtime pays nothing and one that loads it late is
//! recorded from then on. Nothing is looked up later, when locks may be held.

use core::ffi::c_void;

use treering_events::Thread;
use treering_memory::Hooks;

use crate::process::STATE;
use crate::{memory, store, sys};

extern "C" fn thread() -> *mut Thread {
    sys::current()
}

extern "C" fn outside(bytes: u64) {
    memory::allocated_outside(bytes);
}

fn hooks() -> Hooks {
    let (base, generation) = (store::base_word(), store::generation());
    Hooks {
        version: Hooks::VERSION,
        thread_word: sys::thread_word_offset(),
        thread,
        state: &STATE,
        base,
        generation,
        outside,
    }
}

/// Called when the program or library that holds the runtime is loaded.
extern "C" fn at_load() {
    type Attach = unsafe extern "C" fn(*const Hooks) -> bool;
    // SAFETY: looks a name up among what is loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"treering_malloc_attach".as_ptr()) };
    if found.is_null() {
        return;
    }
    // SAFETY: the name is ours, and every version of the library has this type for it. It copies
    // the hooks, and keeps loaded what they lead to.
    let attached = unsafe { core::mem::transmute::<*mut c_void, Attach>(found)(&hooks()) };
    if attached {
        memory::set_preloaded();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;
