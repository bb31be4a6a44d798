//! The tracer: it follows every thread of a program and of its children, and answers the requests of translated code.

pub(crate) mod address_limit;
pub(crate) mod affinity;
pub(crate) mod attach;
pub(crate) mod beginning;
pub(crate) mod clone;
pub(crate) mod dispatch;
pub(crate) mod end;
pub(crate) mod event_loop;
pub(crate) mod exec;
pub(crate) mod held_call;
pub(crate) mod init_fault;
pub(crate) mod inject;
pub(crate) mod inquiry;
#[expect(unsafe_code, reason = "the start of processes")]
pub(crate) mod launch;
pub(crate) mod memory_conflict;
pub(crate) mod opened_code;
pub(crate) mod own_tracer;
pub(crate) mod partial_vector;
pub(crate) mod repeated_call;
pub(crate) mod restore_state;
pub(crate) mod rseq;
pub(crate) mod selection;
pub(crate) mod signal;
pub(crate) mod signal_throttle;
mod starved_thread;
pub(crate) mod state;
pub(crate) mod status_watch;
pub(crate) mod syscall;
pub(crate) mod thread;
mod thread_stop;
pub(crate) mod waiting_call;
