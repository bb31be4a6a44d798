//! The use that no sample stands for, and stacks and processes that were not seen to their end.

use super::{Reason, Recorder};
use crate::event::Nature;
use crate::sys::process_exists;
use crate::thread_sampling::Unsampled;

impl Recorder {
    /// Scales the costs of threads to their use, and notes the use that no sample stands for, in the first event.
    pub(super) fn scale_costs(&mut self) {
        for (index, threads) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            let Some(threads) = threads else { continue };
            let own = self.session.own_counts(index);
            let metric = self.metrics[index].0;
            let unsampled =
                threads.finish(&mut self.profile, self.run, metric, &self.processes, own.as_ref());
            if index == 0 {
                self.note_unsampled(unsampled);
            }
        }
    }

    fn note_unsampled(&mut self, unsampled: Unsampled) {
        let losses = &mut self.profile.metadata.losses;
        losses.unsampled_threads = unsampled.tasks;
        losses.unsampled_cost = unsampled.cost;
        losses.unsampled_groups_cost = unsampled.without_group;
        losses.unknown_threads = unsampled.unknown;
        let is_time = self.session.events[0].event.nature() == Nature::Clock;
        let cpu = self.profile.runs[self.run.index()].cpu_ns;
        match (cpu.filter(|_| is_time), unsampled.used) {
            (Some(cpu), Some(used)) => losses.unseen_cpu_ns = cpu.saturating_sub(used),
            (Some(cpu), None) => self.note_unscaled(cpu),
            (None, _) => {}
        }
    }

    /// Says which part of the processor time the costs are, where they could not be scaled to it.
    fn note_unscaled(&mut self, cpu: u64) {
        let cost = self.profile.run_cost(self.metrics[0].0);
        let share = 100.0 * cost as f64 / cpu.max(1) as f64;
        let reason = match self.session.counts_what_it_samples(0) {
            true => "the kernel did not state the time of each thread, as it does when one ends",
            false if cost > cpu => {
                "each sample stands for the mean interval, and the intervals were shorter than that on average"
            }
            false => "only one of the processor's modes was sampled, while the CPU time is that of both",
        };
        self.profile.metadata.note(format!("costs add up to {share:.1} % of the CPU time: {reason}"));
    }

    /// Says how to get the stacks that were cut short where the kernel stops following them.
    pub(super) fn note_longest_chain(&mut self) {
        let (cut, longest) = (self.at_longest_chain, self.longest_chain);
        if cut == 0 {
            return;
        }
        let copy = match self.session.stack_bytes {
            0 => ", or leave --fp out",
            bytes if bytes < 64_000 && self.copy_helps => ", or --stack 64k",
            _ => "",
        };
        self.profile.metadata.note(format!(
            "{cut} of the stacks cut short have {longest} frames, the kernel's limit: \
             sudo sysctl kernel.perf_event_max_stack={}{copy}",
            longest.max(64) * 8
        ));
    }

    pub(super) fn note_survivors(&mut self, reason: Reason) {
        let running = self.processes.running().filter(|&pid| process_exists(pid)).count();
        if reason == Reason::ProgramEnded && running > 0 {
            let note = format!(
                "{running} of its processes still ran when the program ended, and {} no longer recorded",
                if running == 1 { "was" } else { "were" }
            );
            self.profile.metadata.note(note);
        }
    }
}
