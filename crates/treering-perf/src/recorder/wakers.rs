//! The wakers of waiting threads.

use treering_profile::{Frame, NodeId, WakerKind, Waking};

use super::Recorder;
use crate::blocked::{Wanted, unknown_function};
use crate::record::Sample;
use crate::waking::{Ended, Woken};

impl Recorder {
    /// Notes the stack of a thread of the program that made another one ready.
    pub(super) fn add_waker(&mut self, sample: &Sample) {
        let woken = self.session.wakings.as_ref().ok().and_then(|layout| layout.read(sample));
        let Some(woken) = woken.filter(|woken| !woken.in_interrupt) else { return };
        let Some(wanted) = self.blocked.as_ref().map(|blocked| blocked.wants_waker(woken.tid)) else {
            return;
        };
        let by = (sample.pid, sample.tid);
        let is_wanted = match wanted {
            Wanted::Nothing => false,
            Wanted::All { .. } => true,
            Wanted::StackOf(known) => known == by,
        };
        if !is_wanted {
            return;
        }
        if !self.wakers.may_unwind(sample.time) {
            if self.wakers.paused_until_ns.is_none() && self.session.set_stacks(false) {
                self.wakers.paused_until_ns = Some(self.wakers.next_piece_ns());
            }
            return;
        }
        let kind = if woken.in_soft_interrupt { WakerKind::SoftInterrupt } else { WakerKind::Thread };
        let waker = self.add_stack(sample);
        let Some(blocked) = &mut self.blocked else { return };
        match wanted {
            Wanted::All { .. } => {
                let waking = Waking { woken_ns: sample.time, kind, waker: Some(waker) };
                blocked.woken(woken.tid, waking, None);
            }
            _ => blocked.woken_in(woken.tid, kind, waker),
        }
    }

    /// Notes who made a thread ready, without a stack.
    pub(super) fn add_waking(&mut self, sample: &Sample) {
        if self.wakers.gives_up(sample.time) {
            self.session.disable_machine();
        }
        let woken = self.session.wakings.as_ref().ok().and_then(|layout| layout.read(sample));
        let Some(woken) = woken else { return };
        let wanted = self.blocked.as_ref().map(|blocked| blocked.wants_waker(woken.tid));
        let Some(Wanted::All { pid }) = wanted else { return };
        let is_thread = !woken.in_interrupt && self.processes.has(sample.pid, sample.tid);
        let (kind, waker) = match is_thread {
            true => {
                let thread = self.processes.thread(&mut self.profile, self.run, sample.pid, sample.tid);
                (WakerKind::Thread, self.profile.threads[thread.index()].root)
            }
            false => self.other_waker(sample, &woken, pid),
        };
        let by = is_thread.then_some((sample.pid, sample.tid));
        if let Some(blocked) = &mut self.blocked {
            blocked.woken(woken.tid, Waking { woken_ns: sample.time, kind, waker: Some(waker) }, by);
        }
    }

    /// The kind and the stack of a waker that is no living thread of the program. The woken thread is of the process
    /// `woken_pid`.
    fn other_waker(&mut self, sample: &Sample, woken: &Woken, woken_pid: u32) -> (WakerKind, NodeId) {
        let ended = self.wakers.ended(sample.tid).filter(|_| !woken.in_interrupt).cloned();
        let (kind, name) = match &ended {
            Some(Ended { thread: Some(_), .. }) => (WakerKind::Thread, WakerKind::END_OF_THREAD.to_owned()),
            Some(Ended { name, .. }) => (WakerKind::Thread, format!("{}{name}]", WakerKind::END_OF_OTHER)),
            None => self.wakers.outside(sample.tid, woken),
        };
        let function = unknown_function(&mut self.profile, &name);
        self.frames.clear();
        self.frames.push(Frame::new(function));
        if matches!(kind, WakerKind::Interrupt | WakerKind::KernelThread) {
            self.add_kernel_frames(sample);
        }
        let thread = ended
            .and_then(|ended| ended.thread)
            .unwrap_or_else(|| self.processes.thread(&mut self.profile, self.run, woken_pid, woken.tid));
        (kind, self.profile.add_stack(thread, &self.frames, None, &[]))
    }

    /// Says how many wakers are not known, where these are not just the last waits, or have no stack.
    pub(super) fn note_wakers(&mut self) {
        let Some(blocked) = self.blocked.as_ref().filter(|_| self.session.wakings.is_ok()) else { return };
        let waits = self.profile.run_cost(blocked.count());
        let known: u64 = self.profile.ended_waits.iter().map(|row| row.waits).sum();
        let unknown = waits.saturating_sub(known);
        if unknown * 100 > waits {
            let mut note = format!("who ended {unknown} of {waits} waits is not known");
            if let Some(time) = self.wakers.gave_up_ns {
                let seconds = self.since_start(time) as f64 / 1e9;
                note += &format!(
                    ": from {seconds:.3} s on the machine had more than 200,000 wakings a second, and only those by the \
                     program's own threads were noted"
                );
            } else if self.wakers.lost > 0 {
                note += &format!(": {} wakings were lost, which were too many at once", self.wakers.lost);
            }
            self.profile.metadata.note(note);
        }
        if blocked.without_stack > 0 {
            self.profile.metadata.note(format!(
                "{} of the waits were ended by a thread of the program whose stack was not taken, to keep the cost of \
                 recording low",
                blocked.without_stack
            ));
        }
    }
}
