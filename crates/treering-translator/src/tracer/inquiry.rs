//! The answers to instructions that ask for the processor or the time, where these are held; see `emit/inquiry.rs`.

use treering_x86::processor::Inquiry;

use crate::address_space::AddressSpace;
use crate::sys::layout::{ASKED_FIRST, ASKED_SECOND, SAVED_RAX, SAVED_RCX};

impl AddressSpace {
    /// Puts the answer where the thread's registers are loaded from.
    pub(crate) fn answer(&mut self, inquiry: Inquiry, area: usize) {
        let low = |value: u64| value & u64::from(u32::MAX);
        let [rax, rcx] = [SAVED_RAX, SAVED_RCX].map(|slot| self.areas.slot(area, slot));
        let level = self.surroundings.level;
        match (inquiry, level) {
            (Inquiry::Cpuid, Some(level)) => {
                let answer = level.cpuid(low(rax) as u32, low(rcx) as u32);
                let slots = [SAVED_RAX, ASKED_FIRST, SAVED_RCX, ASKED_SECOND];
                for (slot, value) in slots.into_iter().zip(answer) {
                    self.areas.set_slot(area, slot, value.into());
                }
            }
            (Inquiry::Xgetbv, Some(level)) => {
                self.areas.set_slot(area, SAVED_RAX, level.kept_state().into());
                self.areas.set_slot(area, ASKED_SECOND, 0);
            }
            (Inquiry::Save, Some(level)) => {
                self.areas.set_slot(area, SAVED_RAX, rax & u64::from(level.kept_state()));
            }
            (Inquiry::Clock | Inquiry::ClockAndProcessor, _) => {
                let now = self.surroundings.held.as_mut().map_or(0, |held| held.clock.read());
                self.areas.set_slot(area, SAVED_RAX, low(now));
                self.areas.set_slot(area, ASKED_SECOND, now >> 32);
                if inquiry == Inquiry::ClockAndProcessor {
                    self.areas.set_slot(area, SAVED_RCX, 0);
                }
            }
            (Inquiry::Processor(_), _) => self.areas.set_slot(area, ASKED_FIRST, 0),
            // Without a level, these are not asked for.
            (Inquiry::Cpuid | Inquiry::Xgetbv | Inquiry::Save, None) => {}
        }
    }
}
