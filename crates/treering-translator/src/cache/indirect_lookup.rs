//! Indirect transfers to targets that others went to before.
//!
//! A site that does not know a target asks the tracer, once for every pair of the two. In an interpreter
//! these are thousands, while the targets are few. So who asks looks first into a table of all targets that
//! any site went to: if it is there, the thread goes on without a stop, and leaves behind who went where, in
//! a log in its area. The tracer takes that in when the thread asks it for something else, when the log is
//! full, or when the thread ends: it makes the arc, counts it, and tells the site of the target.

use std::io;

use treering_x86::{Assembler, Register};

use crate::address_map::AddressSet;
use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::cache::link::{ExitStub, chain_of, table_entry, write_choice};
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::sys::layout::{
    LOG, LOG_EMPTY, LOG_ENTRY, LOG_FULL, LOG_POSITION, REQUEST, RESUME, SAVED_R11, SAVED_RCX, SITE_ENTRIES,
    TARGET,
};

/// The number of the table.
const TABLE: u32 = 0;

/// Targets that need not be asked for.
#[derive(Debug)]
pub(crate) struct IndirectTargets {
    targets: AddressSet,
    /// For each entry of the table, where the jump of the last target stands; 0 without one.
    tails: [u64; SITE_ENTRIES],
}

impl Default for IndirectTargets {
    fn default() -> Self {
        Self { targets: AddressSet::default(), tails: [0; SITE_ENTRIES] }
    }
}

/// What a unit has for them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LookupRoutines {
    /// Looks a site's target up; entered as [`request_target`](crate::cache::unit::Routines::request_target) is, where
    /// it goes for others.
    pub(crate) look_up: u64,
    /// Adds the transfer to the log, and goes where `RESUME` says.
    log: u64,
}

impl LookupRoutines {
    /// Writes them; `otherwise` asks the tracer.
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
        // Who reads the log of a program that was killed finds whole entries.
        code.add(Register::RCX, LOG_ENTRY as i32);
        code.store_gs(LOG_POSITION, Register::RCX);
        code.store_gs_value(REQUEST, 0);
        code.load_gs(Register::R11, SAVED_R11);
        code.load_gs(Register::RCX, SAVED_RCX);
        code.jump_gs(RESUME);
        Self { look_up, log }
    }
}

/// An entry of a log: a block whose last instruction went to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logged {
    pub(crate) block: u32,
    pub(crate) target: u64,
}

/// What stands in the log of an area, of which words are read by their offsets.
///
/// # Errors
/// A word cannot be read.
pub(crate) fn log_entries(mut word: impl FnMut(u32) -> io::Result<u64>) -> io::Result<Vec<Logged>> {
    let position = word(LOG_POSITION)?.min(LOG_FULL.into()) as u32;
    let entries = (LOG_EMPTY..position).step_by(LOG_ENTRY as usize);
    entries.map(|at| Ok(Logged { target: word(at * 8)?, block: (word(at * 8 + 8)? >> 32) as u32 })).collect()
}

const _: () = assert!(LOG_FULL.is_multiple_of(LOG_ENTRY) && LOG_EMPTY < LOG_FULL && LOG_EMPTY * 8 == LOG);

impl AddressSpace {
    /// Has the table ask for everything.
    pub(crate) fn prepare_lookup(&mut self) {
        let ask = self.units[0].routines.request_target;
        (0..SITE_ENTRIES).for_each(|entry| self.tables.store(table_entry(TABLE, entry), ask));
    }

    /// Whether a site looks its targets up. What a jump is in a tree depends on where it comes from as well,
    /// and who arrives where something is watched must ask.
    pub(crate) fn looks_up(&self, calls: bool) -> bool {
        !self.regions.are_watched() && (calls || !self.has_contexts())
    }

    /// Has all targets asked for again.
    pub(crate) fn forget_targets(&mut self) {
        self.prepare_lookup();
        self.indirect_targets = IndirectTargets::default();
    }

    /// Whether nobody needs to ask for a target.
    pub(crate) fn is_known(&self, target: u64) -> bool {
        self.indirect_targets.targets.contains(&target)
    }

    /// A site goes to a target: others need not ask for it any more.
    pub(crate) fn add_known_target(&mut self, site: u32, target: u64, entry: u64) {
        let calls = self.blocks.get(self.sites[site as usize].block).end == End::IndirectCall;
        let unit = self.unit_of(entry).filter(|&unit| self.units[unit].has_some_room());
        let Some(unit) = unit.filter(|_| self.looks_up(calls)) else { return };
        if !self.indirect_targets.targets.insert(target) {
            return;
        }
        let go = self.indirect_entry(site, target, entry);
        let routines = self.units[unit].routines;
        let code = &mut self.scratch.code;
        let start = self.units[unit].here();
        code.restart(start);
        let check = TargetCheck {
            address: target,
            location: TargetLocation::Slot,
            otherwise: routines.request_target,
        };
        let jump = check.write(code);
        code.store_gs_value(RESUME, go as u32);
        code.store_gs_value(RESUME + 4, (go >> 32) as u32);
        code.jump(routines.lookup.log);
        self.units[unit].append(code.bytes());
        let chain = chain_of(target);
        let tail = std::mem::replace(&mut self.indirect_targets.tails[chain], jump);
        match self.unit_of(tail).filter(|_| tail != 0) {
            Some(before) => self.units[before].patch(tail, start),
            None => self.tables.store(table_entry(TABLE, chain), start),
        }
    }

    /// Makes an area's log one without entries.
    pub(crate) fn empty_log(&self, area: usize) {
        self.set_slot(area, LOG_POSITION, LOG_EMPTY.into());
    }

    /// Takes in what a thread has left in its log.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn take_log(&mut self, area: usize) -> io::Result<()> {
        let mut done = Vec::new();
        loop {
            let position = self.slot(area, LOG_POSITION) as u32;
            if position <= LOG_EMPTY {
                return Ok(());
            }
            let entry = position - LOG_ENTRY;
            let (target, who) = (self.slot(area, entry * 8), self.slot(area, entry * 8 + 8));
            self.set_slot(area, LOG_POSITION, entry.into());
            let Some(&ExitStub::Site(site)) = self.exits.list.get(who as u32 as usize) else { continue };
            let block = self.sites[site as usize].block;
            match self.find_arc(block, target).filter(|_| done.contains(&(site, target))) {
                Some(arc) => self.count_arc(arc, area),
                None => {
                    let linked = self.entry_of(target);
                    self.went(site, target, linked, area)?;
                }
            }
            done.push((site, target));
        }
    }
}
