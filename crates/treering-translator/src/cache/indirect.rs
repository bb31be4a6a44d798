//! Indirect jumps and calls: each site has an inline cache of targets, and a table when there are many.

use std::collections::{BTreeMap, BTreeSet};

use treering_x86::{Assembler, Register};

use crate::cache::code_cache::CodeCache;
use crate::cache::link::ExitStub;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::sys::layout::{REQUEST, SAVED_R11, SITE_ENTRIES, SITE_TABLES, TABLES};

/// An indirect jump or call of one translated block: a chain of target checks, or a table of chains.
#[derive(Debug)]
pub(crate) struct IndirectSite {
    pub(crate) block: u32,
    /// Where the jump to the chain is.
    pub(crate) jump: u64,
    /// Where the jump of the last check is, in each chain.
    pub(crate) tails: Vec<u64>,
    /// The table's number.
    pub(crate) table: Option<u32>,
    /// The number of targets.
    pub(crate) targets: u32,
    /// The stub that asks the tracer for a target.
    pub(crate) miss: u64,
    /// The number of regions when its targets of former runs were added; 0 if they were not.
    pub(crate) targets_known_of: u32,
}

/// A site with more targets than this gets a table.
pub(crate) const LONGEST_CHAIN: u32 = 3;

impl IndirectSite {
    /// Removes its targets, so that it asks for all of them again. Returns the number of its table, if it has one.
    pub(crate) fn unlink(&mut self) -> Option<u32> {
        self.targets = 0;
        self.tails.fill(0);
        self.table
    }

    /// Whether it has a chain only.
    pub(crate) fn has_no_table(&self) -> bool {
        self.table.is_none()
    }
}

/// A transfer from an indirect jump or call to one of its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndirectArc {
    /// The block that it leaves.
    pub(crate) block: u32,
    pub(crate) target: u64,
    /// Its counter. The first target of a translated block has none: its count is the block's count less
    /// those of the others.
    pub(crate) counter: Option<u32>,
    /// The next arc of the block, plus one.
    pub(crate) next: u32,
    /// The region of the target.
    pub(crate) region: u32,
    /// Whether the region is gone: later transfers to the address have other targets.
    pub(crate) is_over: bool,
    /// Whether its block's site has a check for the target.
    pub(crate) is_checked: bool,
}

/// All arcs of an address space, by number.
#[derive(Debug, Default)]
pub(crate) struct IndirectArcs {
    all: Vec<IndirectArc>,
    /// The arcs that are not over, by target and block.
    current: BTreeMap<(u64, u32), u32>,
}

impl IndirectArcs {
    /// The number of arcs.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, arc: u32) -> &IndirectArc {
        &self.all[arc as usize]
    }

    /// The arcs from a number on.
    pub(crate) fn from(&self, first: usize) -> &[IndirectArc] {
        self.all.get(first..).unwrap_or_default()
    }

    /// Adds an arc. Returns its number.
    fn add(&mut self, arc: IndirectArc) -> u32 {
        let number = self.all.len() as u32;
        self.current.insert((arc.target, arc.block), number);
        self.all.push(arc);
        number
    }

    /// Notes whether the block's site has a check for the arc's target.
    pub(crate) fn set_checked(&mut self, arc: u32, is_checked: bool) {
        self.all[arc as usize].is_checked = is_checked;
    }

    /// Ends the arcs to targets between two addresses. Returns the blocks that they leave.
    pub(crate) fn end_between(&mut self, start: u64, end: u64) -> BTreeSet<u32> {
        let over: Vec<_> = self.current.range((start, 0)..(end, 0)).map(|(&key, &arc)| (key, arc)).collect();
        let mut blocks = BTreeSet::new();
        for ((target, block), arc) in over {
            self.current.remove(&(target, block));
            self.all[arc as usize].is_over = true;
            blocks.insert(block);
        }
        blocks
    }
}

impl CodeCache {
    /// Makes a site, whose routines ask for its first target. With `looks_up`, they look a target up in the
    /// shared table first. Returns the site's number and where the block jumps to.
    pub(crate) fn new_site(&mut self, unit: usize, block: u32, looks_up: bool) -> (u32, u64) {
        let site = self.sites.len() as u32;
        let exit = self.exits.add(ExitStub::Site(site));
        let routines = self.units[unit].routines;
        let otherwise = if looks_up { routines.lookup.look_up } else { routines.request_target };
        let miss = self.units[unit].append_cold(40, |code| {
            code.store_gs_value(REQUEST, exit);
            code.store_gs_value(REQUEST + 4, block);
            code.jump(otherwise);
        });
        let tails = Vec::new();
        self.sites.push(IndirectSite {
            block,
            jump: 0,
            tails,
            table: None,
            targets: 0,
            miss,
            targets_known_of: 0,
        });
        (site, miss)
    }

    /// Adds an arc to those of a block. Returns its number.
    pub(crate) fn add_arc(&mut self, block: u32, target: u64, counter: Option<u32>, region: u32) -> u32 {
        let next = self.blocks.get(block).arcs;
        let arc = IndirectArc { block, target, counter, next, region, is_over: false, is_checked: false };
        let arc = self.arcs.add(arc);
        self.blocks.get_mut(block).arcs = arc + 1;
        arc
    }

    /// Notes that a site has no check for any target, except the inline one.
    pub(crate) fn forget_checks(&mut self, block: u32) {
        let (in_line, mut next) = (self.blocks.get(block).target, self.blocks.get(block).arcs);
        while next != 0 {
            let arc = self.arcs.get(next - 1);
            // The arc of the inline check was the block's first one, which has no counter.
            let is_in_line = in_line != 0 && arc.target == in_line && arc.counter.is_none();
            let (number, is_checked) = (next - 1, is_in_line && !arc.is_over);
            next = arc.next;
            self.arcs.set_checked(number, is_checked);
        }
    }

    /// The arc of a block to a target, if there is one.
    pub(crate) fn find_arc(&self, block: u32, target: u64) -> Option<u32> {
        self.arcs.current.get(&(target, block)).copied()
    }

    /// Writes a stub that checks for the target, counts, and goes to `entry`. Returns where the stub begins
    /// and where its jump for other addresses is. Either may lead to another unit.
    pub(crate) fn write_target(
        &mut self,
        unit: usize,
        check: TargetCheck,
        counter: Option<u32>,
        entry: u64,
    ) -> (u64, u64) {
        let unit = &mut self.units[unit];
        let holds = check.location == TargetLocation::Popped && unit.context.is_some();
        let code = &mut self.code;
        let start = unit.here();
        code.restart(start);
        let jump = check.write(code);
        TargetCheck::write_hit(counter, code);
        if holds {
            code.load_gs(Register::R11, SAVED_R11);
        }
        let last = code.jump(entry);
        unit.append(code.bytes());
        unit.patch(last, entry);
        if !unit.contains(check.otherwise) {
            unit.patch(jump, check.otherwise);
        }
        (start, jump)
    }
}

/// Writes the jump through a table, by the target in rcx; a check subtracts its key from rcx.
pub(crate) fn write_choice(table: u32, code: &mut Assembler) {
    if std::arch::is_x86_feature_detected!("bmi2") {
        code.middle_bits_of_rcx();
    } else {
        // r11 is not saved here, so its slot is free.
        code.middle_bits_of_rcx_by(SAVED_R11);
    }
    code.jump_by_rcx((TABLES + table_entry(table, 0)) as u32);
}

/// The table entry of an address.
pub(crate) fn chain_of(target: u64) -> usize {
    (target >> 4) as usize % SITE_ENTRIES
}

pub(crate) fn table_entry(table: u32, entry: usize) -> u64 {
    SITE_TABLES + (table as usize * SITE_ENTRIES + entry) as u64 * 8
}
