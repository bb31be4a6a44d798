//! The check by which an indirect transfer recognises its target.
//!
//! Between the transfer and its target, the program's rcx is in its slot, the target's address in memory
//! ([`TargetLocation`]), and all other registers are the program's. So a check may be entered from anywhere, and
//! checks of several targets may follow each other in any order.

use treering_x86::{Assembler, Register};

use crate::sys::layout::{RETURN_ENTRIES, SAVED_RCX, TARGET, counter_slot};

/// Where a transfer has left its target address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetLocation {
    /// In its slot.
    Slot,
    /// In its slot and in rcx: directly behind the transfer.
    Rcx,
    /// Below the stack pointer, where a return has just popped it. The lower 16 bits chose the table entry,
    /// so only the bits above are still to be compared. Nothing overwrites it meanwhile: a signal's handler
    /// runs only after the check, and leaves 128 bytes below the stack alone.
    Popped,
}

/// The number of low address bits that choose a return's table entry.
const LOOKED_UP: u8 = RETURN_ENTRIES.ilog2() as u8;

/// A check whether the target is a given address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetCheck {
    /// The address, in the program.
    pub(crate) address: u64,
    /// Where the target is.
    pub(crate) location: TargetLocation,
    /// Where the check goes for another target.
    pub(crate) otherwise: u64,
}

impl TargetCheck {
    /// Writes the check. Returns where the displacement of its jump to `otherwise` is.
    ///
    /// The address is subtracted by additions that change no flag: flags set before the transfer may be live
    /// at a target that is not known yet, even where none is live at this one.
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

    /// Whether a return's address is compared without the low bits: that takes one addition instead of two or
    /// three and a byte swap.
    fn is_shifted(&self) -> bool {
        let one_addition = 0..1 << 31;
        !one_addition.contains(&self.address)
            && one_addition.contains(&(self.address >> LOOKED_UP))
            && std::arch::is_x86_feature_detected!("bmi2")
    }

    /// Writes the code for a match: it counts the transfer, if that has a counter, and restores the program's rcx.
    pub(crate) fn write_hit(counter: Option<u32>, code: &mut Assembler) {
        if let Some(counter) = counter {
            code.count_by(Register::RCX, counter_slot(counter));
        }
        code.load_gs(Register::RCX, SAVED_RCX);
    }
}
