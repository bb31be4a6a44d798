//! The use that no sample stands for, and stacks and processes that were not seen to their end.

use super::{Reason, Recorder};
use crate::attribute::Pace;
use crate::event::Nature;
use crate::session::Purpose;
use crate::sys::process_exists;
use crate::thread_sampling::Unsampled;

impl Recorder {
    /// Scales the costs of threads to their use, and notes the use that no sample stands for, in the first event.
    pub(super) fn scale_costs(&mut self) {
        let effect = self.bursts.design_effect(self.profile.metadata.losses.samples);
        for (index, threads) in std::mem::take(&mut self.threads).into_iter().enumerate() {
            let Some(threads) = threads else { continue };
            let own = self.session.own_counts(index);
            let metric = self.metrics[index].0;
            let unsampled =
                threads.finish(&mut self.profile, self.run, metric, &self.processes, own.as_ref(), effect);
            if index == 0 {
                self.note_unsampled(unsampled);
            }
        }
    }

    /// Says how much is missing of events of which each occurrence is noted. Costs of others are scaled to the count.
    pub(super) fn note_missing(&mut self) {
        for (index, sampled) in self.session.events.iter().enumerate() {
            let is_noted = sampled.purpose == Purpose::Costs && sampled.pace == Pace::Period(1);
            let Some(own) = self.session.own_counts(index).filter(|_| is_noted) else { continue };
            let noted = self.profile.run_cost(self.metrics[index].0);
            let missing = missing(&sampled.event.name, own.by_thread.values().sum(), noted);
            missing.into_iter().for_each(|note| self.profile.metadata.note(note));
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

/// The remark that an event occurred more often than it was noted, if it did.
fn missing(event: &str, counted: u64, noted: u64) -> Option<String> {
    let missing = counted.checked_sub(noted).filter(|&missing| missing > 0)?;
    let share = 100.0 * missing as f64 / counted as f64;
    Some(format!(
        "{missing} of {counted} {event} ({share:.1} %) are in no cost, as their samples were lost: totals are too low, and \
         shares may be wrong"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_the_kernel_counted_and_nobody_saw_are_noted() {
        let note = missing("page-faults", 20_000, 5_000).expect("most are missing");
        assert!(note.starts_with("15000 of 20000 page-faults (75.0 %) are in no cost"), "{note}");
        assert_eq!(missing("page-faults", 20_000, 20_000), None);
        assert_eq!(missing("page-faults", 0, 1), None, "a sample after the count was read");
    }
}
