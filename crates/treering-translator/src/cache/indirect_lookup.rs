//! One lookup table of all indirect targets, which avoids stops.
//!
//! A site that meets a new target asks the tracer, once for each pair of site and target. An interpreter has
//! thousands of pairs, but few targets. So a site first looks into a table of all targets that any site has
//! reached. If the target is there, the thread continues without a stop, and writes the transfer into a log
//! in its area. The tracer reads the log when the thread stops for another reason, when the log is full, or
//! when the thread ends: it makes the arc, counts it, and adds the target to the site.

use std::io;

use treering_x86::{Assembler, Register};

use crate::address_map::AddressSet;
use crate::cache::code_cache::CodeCache;
use crate::cache::indirect::{table_entry, write_choice};
use crate::sys::layout::{
    LOG, LOG_EMPTY, LOG_ENTRY, LOG_FULL, LOG_POSITION, REQUEST, RESUME, SAVED_R11, SAVED_RCX, SITE_ENTRIES,
    TARGET,
};

/// The number of the table.
pub(crate) const TABLE: u32 = 0;

/// The targets in the shared table.
#[derive(Debug)]
pub(crate) struct IndirectTargets {
    pub(crate) targets: AddressSet,
    /// For each entry of the table, where the jump of its last check is; 0 if it has none.
    pub(crate) tails: [u64; SITE_ENTRIES],
}

impl Default for IndirectTargets {
    fn default() -> Self {
        Self { targets: AddressSet::default(), tails: [0; SITE_ENTRIES] }
    }
}

/// The lookup routines of a unit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookupRoutines {
    /// Looks a site's target up. It is entered like
    /// [`request_target`](crate::cache::unit::Routines::request_target), and goes there for unknown targets.
    pub(crate) look_up: u64,
    /// Adds the transfer to the log, and continues at the address in `RESUME`.
    pub(crate) log: u64,
}

impl LookupRoutines {
    /// Writes the routines; `otherwise` asks the tracer.
    pub(crate) fn write(otherwise: u64, code: &mut Assembler) -> Self {
        let look_up = code.here();
        code.load_gs_byte_into_rcx(LOG_POSITION + 1);
        code.jump_unless_key(otherwise);
        code.load_gs(Register::RCX, TARGET);
        write_choice(TABLE, code);
        let log = code.here();
        code.store_gs(SAVED_R11, Register::R11);
        code.load_gs(Register::RCX, LOG_POSITION);
        code.load_gs(Register::R11, TARGET);
        code.store_gs_at_rcx(0, Register::R11);
        code.load_gs(Register::R11, REQUEST);
        code.store_gs_at_rcx(8, Register::R11);
        // The log's end is advanced last, so that the log of a killed program has whole entries only.
        code.add(Register::RCX, LOG_ENTRY as i32);
        code.store_gs(LOG_POSITION, Register::RCX);
        code.store_gs_value(REQUEST, 0);
        code.load_gs(Register::R11, SAVED_R11);
        code.load_gs(Register::RCX, SAVED_RCX);
        code.jump_gs(RESUME);
        Self { look_up, log }
    }
}

/// A log entry: a block whose last instruction went to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) block: u32,
    pub(crate) target: u64,
}

/// The entries in an area's log; `word` reads a word by its offset.
///
/// # Errors
/// A word cannot be read.
pub(crate) fn log_entries(mut word: impl FnMut(u32) -> io::Result<u64>) -> io::Result<Vec<Logged>> {
    let position = word(LOG_POSITION)?.min(LOG_FULL.into()) as u32;
    let entries = (LOG_EMPTY..position).step_by(LOG_ENTRY as usize);
    entries.map(|at| Ok(Logged { target: word(at * 8)?, block: (word(at * 8 + 8)? >> 32) as u32 })).collect()
}

const _: () = assert!(LOG_FULL.is_multiple_of(LOG_ENTRY) && LOG_EMPTY < LOG_FULL && LOG_EMPTY * 8 == LOG);

impl CodeCache {
    /// Removes all targets from the table.
    pub(crate) fn forget_targets(&mut self) {
        self.prepare_lookup();
        self.indirect_targets = IndirectTargets::default();
    }

    /// Fills the table with jumps that ask the tracer.
    pub(crate) fn prepare_lookup(&mut self) {
        let ask = self.units[0].routines.request_target;
        (0..SITE_ENTRIES).for_each(|entry| self.tables.store(table_entry(TABLE, entry), ask));
    }

    /// Whether the table has a target.
    pub(crate) fn is_known(&self, target: u64) -> bool {
        self.indirect_targets.targets.contains(&target)
    }
}
