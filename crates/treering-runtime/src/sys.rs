//! The operating system and the processor, as the runtime uses them.

mod clock;
mod file;
mod lock;
mod mapping;
mod modules;
mod thread;

pub(crate) use clock::{
    CpuTime, LocalTime, Whose, both_clocks, choose_clock, clock_ns, cpu_time, local_time, ticks, timer_tick_ns, tsc,
    uses_tsc,
};
pub(crate) use file::{
    FileIdentity, complain, extend_file, file_identity, free_room, has_rights_of_others, lock_file, shorten_file,
    user_may_write, write_to_stream,
};
pub(crate) use lock::{Held, Lock};
pub(crate) use mapping::{Mapped, SharedWords, Words, bytes, c_text, copy_of, has_memory, map_into, map_numbers, map_private, map_words, memory_size, reserve, unmap};
pub(crate) use modules::{
    Code, code_ranges, find_code, finds_ours, library_mark, modules_calling, own_path, sees_unloading, stay_loaded, symbol_name,
};
pub(crate) use thread::{
    at_fork, busy_thread, create_thread_key, current, current_pointer, is_busy, recorded_thread, set_current,
    signal_stack, stack_bounds, stack_pointer, stray_allocations, thread_id, thread_name, thread_word_offset,
    watch_thread,
};
