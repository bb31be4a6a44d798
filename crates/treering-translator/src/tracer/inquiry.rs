//! The answers to instructions that ask for the processor or the time, where these are held; see `emit/inquiry.rs`.

use treering_x86::processor::Inquiry;

use crate::sys::layout::{ASKED_FIRST, ASKED_SECOND, SAVED_RAX, SAVED_RCX};
use crate::tracer::thread_stop::ThreadStop;

impl ThreadStop<'_, '_> {
    /// Puts the answer where the thread's registers are loaded from.
    pub(crate) fn answer(&mut self, inquiry: Inquiry) {
        let low = |value: u64| value & u64::from(u32::MAX);
        let [rax, rcx] = [SAVED_RAX, SAVED_RCX].map(|slot| self.slot(slot));
        let level = self.space.surroundings.level;
        match (inquiry, level) {
            (Inquiry::Cpuid, Some(level)) => {
                let answer = level.cpuid(low(rax) as u32, low(rcx) as u32);
                let slots = [SAVED_RAX, ASKED_FIRST, SAVED_RCX, ASKED_SECOND];
                for (slot, value) in slots.into_iter().zip(answer) {
                    self.set_slot(slot, value.into());
                }
            }
            (Inquiry::Xgetbv, Some(level)) => {
                self.set_slot(SAVED_RAX, level.kept_state().into());
                self.set_slot(ASKED_SECOND, 0);
            }
            (Inquiry::Save, Some(level)) => {
                self.set_slot(SAVED_RAX, rax & u64::from(level.kept_state()));
            }
            (Inquiry::Clock | Inquiry::ClockAndProcessor, _) => {
                let now = self.space.surroundings.held.as_mut().map_or(0, |held| held.clock.read());
                self.set_slot(SAVED_RAX, low(now));
                self.set_slot(ASKED_SECOND, now >> 32);
                if inquiry == Inquiry::ClockAndProcessor {
                    self.set_slot(SAVED_RCX, 0);
                }
            }
            (Inquiry::Processor(_), _) => self.set_slot(ASKED_FIRST, 0),
            // Without a level, these are not asked for.
            (Inquiry::Cpuid | Inquiry::Xgetbv | Inquiry::Save, None) => {}
        }
    }
}
