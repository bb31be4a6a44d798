//! How an indirect transfer finds out whether it has come to its target.
//!
//! On the way from the transfer to its target, the program's rcx lies in its slot, the target's address
//! in another one, and all other registers are the program's. So a check may be entered whatever came
//! before it, and those of several targets may follow each other in any order.

use treering_x86::{Assembler, Register};

use crate::layout::{SAVED_RCX, TARGET, counter_slot};

/// A check of whether an address is the target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// The address, in the program.
    pub(crate) address: u64,
    /// Whether flags may be changed: no flag is live at the address.
    pub(crate) frees_flags: bool,
    /// Where to go if it is another one.
    pub(crate) otherwise: u64,
}

impl Check {
    /// Writes the check. Returns where the bytes of the jump to `otherwise` stand.
    ///
    /// A comparison takes the fewest instructions. Where flags are live, the address is subtracted by
    /// additions that change none.
    pub(crate) fn write(&self, code: &mut Assembler) -> u64 {
        if self.frees_flags {
            match u32::try_from(self.address) {
                Ok(short) => code.set_low(Register::RCX, short),
                Err(_) => code.set(Register::RCX, self.address),
            }
            code.compare_gs_with_rcx(TARGET);
            return code.branch(NOT_EQUAL, self.otherwise);
        }
        code.load_gs(Register::RCX, TARGET);
        code.subtract_key(self.address);
        code.jump_unless_key(self.otherwise)
    }

    /// Writes what follows where it is the target: the way there is counted, if it has a counter, and
    /// rcx is the program's again.
    pub(crate) fn write_arrival(&self, counter: Option<u32>, code: &mut Assembler) {
        match counter.map(counter_slot) {
            Some(slot) if self.frees_flags => code.inc_gs(slot),
            Some(slot) => code.count_by(Register::RCX, slot),
            None => {}
        }
        code.load_gs(Register::RCX, SAVED_RCX);
    }
}

/// The condition that two values differ, as it stands in opcodes.
const NOT_EQUAL: u8 = 5;
