//! Indirect jumps and calls: each site has an inline cache of targets, and a table when there are many.

use std::collections::{BTreeMap, BTreeSet};

use treering_x86::{Assembler, Register};

use crate::cache::code_cache::CodeCache;
use crate::cache::link::ExitStub;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::sys::layout::{REQUEST, SAVED_R11, SITE_ENTRIES, SITE_TABLES, TABLES};

/// An indirect jump or call of one translated block: a chain of known targets, or a table of chains.
#[derive(Debug)]
pub(crate) struct IndirectSite {
    pub(crate) block: u32,
    /// Where the jump to the chain stands.
    pub(crate) jump: u64,
    /// Where the jump of the last target stands, in each chain.
    pub(crate) tails: Vec<u64>,
    /// The table's number.
    pub(crate) table: Option<u32>,
    /// How many targets there are.
    pub(crate) targets: u32,
    /// The stub that asks for a target.
    pub(crate) miss: u64,
    /// How many regions there were when its targets of former runs were made known; 0 if they were not.
    pub(crate) targets_known_of: u32,
}

/// With more targets than this, a site gets a table.
pub(crate) const LONGEST_CHAIN: u32 = 3;

impl IndirectSite {
    /// Forgets its targets, which it has no table of or one that is to ask for all of them: the table's number.
    pub(crate) fn unlink(&mut self) -> Option<u32> {
        self.targets = 0;
        self.tails.fill(0);
        self.table
    }

    /// Whether it has few targets.
    pub(crate) fn has_no_table(&self) -> bool {
        self.table.is_none()
    }
}

/// A way from an indirect jump or call to one of its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndirectArc {
    /// The block that it leaves.
    pub(crate) block: u32,
    pub(crate) target: u64,
    /// Its counter; none for the first target of a translated block, whose count is what the others
    /// leave of the block's.
    pub(crate) counter: Option<u32>,
    /// The next arc of the block, plus one.
    pub(crate) next: u32,
    /// The region that the target lay in.
    pub(crate) region: u32,
    /// Whether that is gone: who goes to the target now goes to something else.
    pub(crate) is_over: bool,
}

/// All arcs of an address space, by number.
#[derive(Debug, Default)]
pub(crate) struct IndirectArcs {
    all: Vec<IndirectArc>,
    /// Those that are not over, by target and block.
    current: BTreeMap<(u64, u32), u32>,
}

impl IndirectArcs {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, arc: u32) -> &IndirectArc {
        &self.all[arc as usize]
    }

    /// Those from a number on.
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
    /// A new site, whose routines ask for its first target; `looks_up`: they look it up first. Returns its number and
    /// where the block is to jump.
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
        let arc = self.arcs.add(IndirectArc { block, target, counter, next, region, is_over: false });
        self.blocks.get_mut(block).arcs = arc + 1;
        arc
    }

    /// The arc of a block to a target, if it went there before.
    pub(crate) fn find_arc(&self, block: u32, target: u64) -> Option<u32> {
        self.arcs.current.get(&(target, block)).copied()
    }

    /// Writes a stub that checks whether it is the target, counts, and goes to `entry`. Returns where
    /// it begins and where its jump for other addresses stands.
    pub(crate) fn write_target(
        &mut self,
        unit: usize,
        check: TargetCheck,
        counter: Option<u32>,
        entry: u64,
    ) -> (u64, u64) {
        let holds = check.location == TargetLocation::Popped && self.tree_exits.is_some();
        let unit = &mut self.units[unit];
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
        (start, jump)
    }
}

/// Writes the way into a table by the target in rcx.
pub(crate) fn write_choice(table: u32, code: &mut Assembler) {
    if std::arch::is_x86_feature_detected!("bmi2") {
        code.middle_bits_of_rcx();
    } else {
        // r11 is not saved on this way, so that its slot is free.
        code.middle_bits_of_rcx_by(SAVED_R11);
    }
    code.jump_by_rcx((TABLES + table_entry(table, 0)) as u32);
}

/// Which entry of a table an address has.
pub(crate) fn chain_of(target: u64) -> usize {
    (target >> 4) as usize % SITE_ENTRIES
}

pub(crate) fn table_entry(table: u32, entry: usize) -> u64 {
    SITE_TABLES + (table as usize * SITE_ENTRIES + entry) as u64 * 8
}
