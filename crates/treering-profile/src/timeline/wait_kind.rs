//! Kinds of waits, told by the names of the functions that waited.

use crate::{NodeId, Profile};

/// The kind of thing that a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// A lock that another thread holds.
    Lock,
    /// Files, pipes, sockets, pages.
    InputOutput,
    /// Nothing to do: sleeps, polls, empty queues, children that run.
    Idle,
    /// The stack does not tell.
    Other,
}

impl Profile {
    /// The kind of wait of every node, by the innermost function of its stack whose name tells it.
    pub fn wait_kinds(&self) -> Vec<WaitKind> {
        let of_function: Vec<_> =
            self.functions.entries().iter().map(|function| kind(&self.strings[function.name])).collect();
        let mut kinds: Vec<WaitKind> = Vec::with_capacity(self.tree.len());
        for node in self.tree.nodes() {
            let above =
                self.tree.parent(node).map_or(WaitKind::Other, |parent: NodeId| kinds[parent.index()]);
            kinds.push(of_function[self.tree.function(node).index()].unwrap_or(above));
        }
        kinds
    }
}

const LOCK: &[&str] = &["mutex", "lll", "rwlock", "spinlock", "rwsem", "lock", "critical"];
const IDLE: &[&str] = &[
    "cond",
    "condvar",
    "abstimed",
    "nanosleep",
    "sleep",
    "usleep",
    "poll",
    "ppoll",
    "epoll",
    "ep",
    "select",
    "pselect",
    "pselect6",
    "wait4",
    "waitpid",
    "waitid",
    "sigwait",
    "sigtimedwait",
    "sigsuspend",
    "pause",
    "join",
    "accept",
    "accept4",
    "sem",
    "park",
    "barrier",
];
const INPUT_OUTPUT: &[&str] = &[
    "pipe",
    "read",
    "pread",
    "pread64",
    "readv",
    "write",
    "pwrite",
    "pwrite64",
    "writev",
    "fsync",
    "fdatasync",
    "io",
    "folio",
    "page",
    "filemap",
    "fault",
    "vfork",
    "recv",
    "recvfrom",
    "recvmsg",
    "send",
    "sendto",
    "sendmsg",
    "sendfile",
    "connect",
    "open",
    "openat",
    "unix",
    "tcp",
    "skb",
];

/// The kind of wait that a function's name tells, if it does.
fn kind(name: &str) -> Option<WaitKind> {
    let path = name.split(['(', '<']).next().unwrap_or(name);
    // Of a path the last two segments count: `Condvar::wait`.
    let start = path.rmatch_indices("::").nth(1).map_or(0, |(at, _)| at);
    let word = path[start..].to_ascii_lowercase();
    let parts = word.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let any = |known: &[&str]| parts.clone().any(|part| known.contains(&part));
    if any(LOCK) {
        Some(WaitKind::Lock)
    } else if any(IDLE) {
        Some(WaitKind::Idle)
    } else {
        any(INPUT_OUTPUT).then_some(WaitKind::InputOutput)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libc_and_the_kernel_tell_waits() {
        for (name, expected) in [
            ("__lll_lock_wait", Some(WaitKind::Lock)),
            ("___pthread_mutex_lock", Some(WaitKind::Lock)),
            ("__futex_abstimed_wait_common", Some(WaitKind::Idle)),
            ("pthread_cond_wait@@GLIBC_2.3.2", Some(WaitKind::Idle)),
            ("std::sys::sync::condvar::futex::Condvar::wait", Some(WaitKind::Idle)),
            ("clock_nanosleep", Some(WaitKind::Idle)),
            ("ep_poll", Some(WaitKind::Idle)),
            ("wait4", Some(WaitKind::Idle)),
            ("__GI___libc_read", Some(WaitKind::InputOutput)),
            ("pipe_read", Some(WaitKind::InputOutput)),
            ("start_thread", None),
            ("futex_wait_queue", None),
            ("schedule", None),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
    }
}
