//! How an indirect transfer finds out whether it has come to its target.
//!
//! On the way from the transfer to its target, the program's rcx lies in its slot, the target's address
//! in memory ([`Left`]), and all other registers are the program's. So a check may be entered whatever
//! came before it, and those of several targets may follow each other in any order.

use treering_x86::{Assembler, Register};

use crate::layout::{LANDINGS, SAVED_RCX, TARGET, counter_slot};

/// Where a transfer has left the address that it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// In its slot.
    Slot,
    /// There and in rcx: right behind the transfer.
    Rcx,
    /// Where a return has just taken it from the stack, to look its lower 16 bits up: what remains to be seen is
    /// bits 16 to 47, as code lies below [`END`]. Nothing is written there meanwhile: a signal's
    /// handler does not run before the way is done, and leaves 128 bytes below the stack alone.
    Popped,
}

/// Where addresses of programs end unless they ask for others (`Documentation/arch/x86/x86_64/5level-paging.rst` in
/// Linux). With no code above it, a return's address is known by 48 bits; the processor would fault for one in which
/// the others are not 0.
pub(crate) const END: u64 = 1 << 47;

/// A check of whether an address is the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// The address, in the program.
    pub(crate) address: u64,
    /// Where the target is.
    pub(crate) left: Left,
    /// Where to go if it is another one.
    pub(crate) otherwise: u64,
}

impl Check {
    /// Writes the check. Returns where the bytes of the jump to `otherwise` stand.
    ///
    /// The address is subtracted by additions, which change no flag: those that the transfer leaves may
    /// be live at some target of it that is not known yet, even where none is live at this one.
    pub(crate) fn write(&self, code: &mut Assembler) -> u64 {
        match self.left {
            Left::Slot => {
                code.load_gs(Register::RCX, TARGET);
                code.subtract_key(self.address);
            }
            Left::Rcx => code.subtract_key(self.address),
            Left::Popped => {
                code.load_middle_of_popped_into_rcx();
                code.subtract_short_key((self.address >> LANDINGS.ilog2()) as u32);
            }
        }
        code.jump_unless_key(self.otherwise)
    }

    /// Writes what follows where it is the target: the way there is counted, if it has a counter, and
    /// rcx is the program's again.
    pub(crate) fn write_arrival(counter: Option<u32>, code: &mut Assembler) {
        if let Some(counter) = counter {
            code.count_by(Register::RCX, counter_slot(counter));
        }
        code.load_gs(Register::RCX, SAVED_RCX);
    }
}
