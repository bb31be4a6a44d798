//! The check by which an indirect transfer recognises its target.
//!
//! Between the transfer and its target, the program's rcx is in its slot, the target's address in memory
//! ([`TargetLocation`]), and all other registers are the program's. So a check may be entered from anywhere, and
//! checks of several targets may follow each other in any order.

use treering_x86::{Assembler, Register};

use crate::sys::layout::{RETURN_ENTRIES, SAVED_RCX, TARGET, counter_slot};

/// Where a transfer has left the address that it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetLocation {
    /// In its slot.
    Slot,
    /// There and in rcx: right behind the transfer.
    Rcx,
    /// Where a return has just taken it from the stack, to look its lower 16 bits up: what remains to be seen are those
    /// above. Nothing is written there meanwhile: a signal's handler does not run before the way is done, and leaves
    /// 128 bytes below the stack alone.
    Popped,
}

/// The bits by which a return looks its address up, its lowest.
const LOOKED_UP: u8 = RETURN_ENTRIES.ilog2() as u8;

/// A check of whether an address is the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetCheck {
    /// The address, in the program.
    pub(crate) address: u64,
    /// Where the target is.
    pub(crate) location: TargetLocation,
    /// Where to go if it is another one.
    pub(crate) otherwise: u64,
}

impl TargetCheck {
    /// Writes the check. Returns where the bytes of the jump to `otherwise` stand.
    ///
    /// The address is subtracted by additions, which change no flag: those that the transfer leaves may
    /// be live at some target of it that is not known yet, even where none is live at this one.
    pub(crate) fn write(&self, code: &mut Assembler) -> u64 {
        let mut key = self.address;
        match self.location {
            TargetLocation::Slot => code.load_gs(Register::RCX, TARGET),
            TargetLocation::Rcx => {}
            TargetLocation::Popped if self.is_shifted() => {
                code.shift_popped_into_rcx(LOOKED_UP);
                key >>= LOOKED_UP;
            }
            TargetLocation::Popped => code.load_popped_into_rcx(),
        }
        code.subtract_key(key);
        code.jump_unless_key(self.otherwise)
    }

    /// Whether a return's address is compared without the bits that were looked up: where that takes one addition
    /// instead of two or three and a swap of bytes.
    fn is_shifted(&self) -> bool {
        let one_addition = 0..1 << 31;
        !one_addition.contains(&self.address)
            && one_addition.contains(&(self.address >> LOOKED_UP))
            && std::arch::is_x86_feature_detected!("bmi2")
    }

    /// Writes what follows where it is the target: the way there is counted, if it has a counter, and
    /// rcx is the program's again.
    pub(crate) fn write_hit(counter: Option<u32>, code: &mut Assembler) {
        if let Some(counter) = counter {
            code.count_by(Register::RCX, counter_slot(counter));
        }
        code.load_gs(Register::RCX, SAVED_RCX);
    }
}
