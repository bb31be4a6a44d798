//! The operating system: tracing, the memory of other processes and the memory shared with them, and
//! remote system calls. It knows nothing of code and counts.

#[expect(unsafe_code, reason = "system calls")]
mod files;
pub(crate) mod filter;
#[expect(unsafe_code, reason = "the C library's own heap")]
pub(crate) mod heap;
pub(crate) mod layout;
mod mapping_thread;
mod memory;
#[expect(unsafe_code, reason = "system calls")]
mod passing;
#[expect(unsafe_code, reason = "system calls")]
mod ptrace;
pub(crate) mod remote_syscall;
#[expect(unsafe_code, reason = "memory shared with a running program")]
pub(crate) mod shared_memory;
pub(crate) mod syscall_page;
#[expect(unsafe_code, reason = "system calls")]
mod ticks;
#[expect(unsafe_code, reason = "system calls")]
pub(crate) mod wait;

pub(crate) use files::{
    ADDRESSES, DESCRIPTORS, NO_LIMIT, OpenWatch, STACK_SIZE, allow_memory, allow_open_files, free_room,
    has_capabilities, is_open_for_writing, is_stream, limit, lock, move_limit, seek, send_descriptor,
    set_limit, socket_time, tells_holes,
};
pub(crate) use memory::{copy_memory, read_memory, write_memory};
pub use passing::{Senders, end_by, pass_on, pass_on_to, stop_after_children, stop_with_program};
pub(crate) use passing::{
    end_request_to_stop, is_asked_to_stop, is_in_our_group, program_stands, stop_by, took_terminal,
};
pub(crate) use ptrace::{
    FLOATING_POINT, GENERAL, Origin, Registers, SignalInfo, detach, event_message, exchange_code, interrupt,
    is_dying, keep, kill, listen, own_thread, register_set, registers, restartable, resume,
    resume_into_handler, resume_to_call, seize, seize_running, send_again, send_signal, send_signal_as,
    set_registers, set_signal_info, set_signal_mask, set_vector, set_whole_vector, signal_info, signal_mask,
    vector, whole_vector,
};
pub(crate) use shared_memory::memory_file;
pub(crate) use ticks::Ticks;
pub(crate) use wait::{Stop, expect_no_stop_signals, stop_of, tell_again, wait};
