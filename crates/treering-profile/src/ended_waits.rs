//! The wakers that ended waits.

use crate::{NodeId, Profile};

/// The kind of context that made a waiting thread ready to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakerKind {
    /// A thread of the program, itself.
    Thread,
    /// A soft interrupt while a thread of the program ran: of that thread's own doing, as when it sends to a socket of
    /// this machine, or of an interrupt's. The stack tells, by [`Profile::waker_kind`].
    SoftInterrupt,
    /// An interrupt, such as a timer's or a disk's, whatever ran at the time.
    Interrupt,
    /// A thread of the kernel.
    KernelThread,
    /// A thread of another program.
    Program,
}

impl WakerKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Thread, Self::SoftInterrupt, Self::Interrupt, Self::KernelThread, Self::Program];

    /// The function that stands for the end of a thread, which wakes those that wait for it, below the root of its tree.
    pub const END_OF_THREAD: &str = "[end of the thread]";

    /// How the name of the function begins that stands for the end of a thread without a tree, below the root of the thread
    /// that waited.
    pub const END_OF_OTHER: &str = "[end of a thread of ";

    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::SoftInterrupt => "soft_interrupt",
            Self::Interrupt => "interrupt",
            Self::KernelThread => "kernel_thread",
            Self::Program => "program",
        }
    }
}

/// The end of one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waking {
    /// When the thread was made ready, in nanoseconds since the start of the run; it runs again when a processor is free.
    pub woken_ns: u64,
    /// The kind of waker.
    pub kind: WakerKind,
    /// The stack of the waker; see [`EndedWaits::waker`].
    pub waker: Option<NodeId>,
}

/// The waits of one place that were ended in one place.
///
/// The waits and times of a waiting node add up to at most its costs; the waker of the rest is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndedWaits {
    /// Where threads waited.
    pub waiting: NodeId,
    /// The kind of waker.
    pub kind: WakerKind,
    /// The stack of the waker, a node of its own thread. Of a waker that is no thread of the program, or one without a tree, a
    /// node of the waiting thread, directly below whose root a function says in its name what that is. Nothing where a selection has left the
    /// stack out.
    pub waker: Option<NodeId>,
    /// How many waits.
    pub waits: u64,
    /// How long they were together, in nanoseconds.
    pub time_ns: u64,
}

impl Profile {
    /// Adds the ends of waits of `from` to the nodes that its nodes stand for here; those of nodes that stand for none are
    /// left out.
    pub fn add_ended_waits_of(&mut self, from: &Profile, nodes: &[Option<NodeId>]) {
        let moved = from.ended_waits.iter().filter_map(|row| {
            let waker = row.waker.and_then(|waker| nodes[waker.index()]);
            Some(EndedWaits { waiting: nodes[row.waiting.index()]?, waker, ..*row })
        });
        self.ended_waits.extend(moved);
        self.compact_ended_waits();
    }

    /// Joins rows that agree in all but their costs, and sorts them.
    pub fn compact_ended_waits(&mut self) {
        let key = |row: &EndedWaits| (row.waiting, row.kind, row.waker);
        self.ended_waits.sort_unstable_by_key(key);
        self.ended_waits.dedup_by(|next, kept| {
            let same = key(next) == key(kept);
            if same {
                kept.waits = kept.waits.saturating_add(next.waits);
                kept.time_ns = kept.time_ns.saturating_add(next.time_ns);
            }
            same
        });
    }

    /// By node: whether the kernel was entered by an interrupt (`true`) or by a call (`false`) last, if its stack tells.
    pub fn kernel_entries(&self) -> Vec<Option<bool>> {
        let of_function: Vec<_> =
            self.functions.entries().iter().map(|function| entry(&self.strings[function.name])).collect();
        let mut entries: Vec<Option<bool>> = Vec::with_capacity(self.tree.len());
        for node in self.tree.nodes() {
            let above = self.tree.parent(node).and_then(|parent: NodeId| entries[parent.index()]);
            entries.push(of_function[self.tree.function(node).index()].or(above));
        }
        entries
    }

    /// The kind of a waker, with soft interrupts told apart by [`kernel_entries`](Self::kernel_entries), as far as their stacks
    /// tell: one that a call of the kernel ended with is of the thread that made the call.
    pub fn waker_kind(kind: WakerKind, waker: Option<NodeId>, entries: &[Option<bool>]) -> WakerKind {
        let entry =
            waker.filter(|_| kind == WakerKind::SoftInterrupt).and_then(|waker| entries[waker.index()]);
        match entry {
            Some(true) => WakerKind::Interrupt,
            Some(false) => WakerKind::Thread,
            None => kind,
        }
    }
}

/// Whether a function of the kernel is where an interrupt enters it (`true`) or where a call does (`false`).
fn entry(name: &str) -> Option<bool> {
    let interrupts = ["asm_sysvec_", "asm_common_interrupt", "sysvec_", "common_interrupt", "irq_exit"];
    if interrupts.iter().any(|known| name.trim_start_matches('_').starts_with(known)) {
        Some(true)
    } else {
        (name.starts_with("entry_SYSCALL") || name == "do_syscall_64").then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frame, Function, RecursionRule};

    #[test]
    fn a_soft_interrupt_is_of_the_thread_unless_an_interrupt_brought_it() {
        let mut profile = Profile::new(RecursionRule::Full);
        let thread = profile.add_single_thread("main");
        let mut node = |names: &[&str]| {
            let frames: Vec<Frame> = names
                .iter()
                .map(|name| {
                    let name = profile.strings.intern(name);
                    Frame::new(profile.functions.intern(Function::named(name)))
                })
                .collect();
            profile.add_stack(thread, &frames, None, &[])
        };
        let sent = node(&["main", "send", "do_syscall_64", "tcp_sendmsg", "handle_softirqs", "tcp_rcv"]);
        let came =
            node(&["main", "send", "do_syscall_64", "asm_common_interrupt", "__irq_exit_rcu", "tcp_rcv"]);
        let own = node(&["main", "spin", "asm_sysvec_apic_timer_interrupt", "handle_softirqs"]);
        let unknown = node(&["main"]);
        let entries = profile.kernel_entries();
        let kind = |node| Profile::waker_kind(WakerKind::SoftInterrupt, Some(node), &entries);
        assert_eq!(
            [sent, came, own, unknown].map(kind),
            [WakerKind::Thread, WakerKind::Interrupt, WakerKind::Interrupt, WakerKind::SoftInterrupt]
        );
    }
}
