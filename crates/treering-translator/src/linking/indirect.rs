//! Links of indirect transfers to their targets, by site and in the table of all targets.

use std::io;

use treering_x86::Register;

use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::cache::indirect::{IndirectArc, LONGEST_CHAIN, chain_of, table_entry, write_choice};
use crate::cache::indirect_lookup::TABLE;
use crate::cache::link::ExitStub;
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::sys::layout::{
    LOG_EMPTY, LOG_ENTRY, LOG_POSITION, MOST_SITE_TABLES, RESUME, SITE_ENTRIES, TARGET, counter_slot,
};

impl AddressSpace {
    /// Adds a target to a site that went there for the first time. Returns the arc.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn add_target(&mut self, site: u32, target: u64, entry: Option<u64>) -> io::Result<u32> {
        let number = site as usize;
        let block = self.cache.sites[number].block;
        let first = self.cache.blocks.get(block).arcs == 0;
        let counter = if first { None } else { Some(self.areas.new_counter()?) };
        let arc = self.cache.add_arc(block, target, counter, self.program.region_at(target));
        if let Some(entry) = entry {
            let targets = self.cache.sites[number].targets;
            if targets >= LONGEST_CHAIN && self.cache.sites[number].table.is_none() {
                self.make_table(number);
            }
            self.link_target(number, arc, entry);
        }
        Ok(arc)
    }

    /// A thread went from a site to a target that the site's routines did not know. The target is added to
    /// them, if its translation may be `linked`.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn went(
        &mut self,
        site: u32,
        target: u64,
        linked: Option<u64>,
        area: usize,
    ) -> io::Result<()> {
        let block = self.cache.sites[site as usize].block;
        let arc = match self.cache.find_arc(block, target) {
            Some(arc) => {
                // Another thread may have asked at the same time, or made its log entry before.
                if let Some(entry) = linked.filter(|_| !self.cache.arcs.get(arc).is_checked) {
                    self.link_target(site as usize, arc, entry);
                }
                arc
            }
            None => self.add_target(site, target, linked)?,
        };
        self.count_arc(arc, area);
        Ok(())
    }

    /// Adds one to an arc's counter, if it has one.
    pub(crate) fn count_arc(&self, arc: u32, area: usize) {
        if let Some(counter) = self.cache.arcs.get(arc).counter {
            let slot = counter_slot(counter);
            self.areas.set_slot(area, slot, self.areas.slot(area, slot) + 1);
        }
    }

    fn link_target(&mut self, site: usize, arc: u32, entry: u64) {
        let IndirectArc { target, counter, .. } = *self.cache.arcs.get(arc);
        let entry = self.indirect_entry(site as u32, target, entry);
        let (jump, miss, table) = {
            let site = &self.cache.sites[site];
            (site.jump, site.miss, site.table)
        };
        let Some(unit) = self.cache.unit_of(jump).and_then(|unit| self.cache.unit_for_stub(unit)) else {
            return;
        };
        let chain = if table.is_some() { chain_of(target) } else { 0 };
        let tail = self.cache.sites[site].tails.get(chain).copied().unwrap_or(0);
        let check = TargetCheck { address: target, location: TargetLocation::Slot, otherwise: miss };
        let (start, last) = self.cache.write_target(unit, check, counter, entry);
        match (tail, table) {
            (0, None) => self.cache.patch(jump, start),
            (0, Some(table)) => self.cache.tables.store(table_entry(table, chain), start),
            _ => self.cache.patch(tail, start),
        }
        self.cache.arcs.set_checked(arc, true);
        let site = &mut self.cache.sites[site];
        if site.tails.len() <= chain {
            site.tails.resize(chain + 1, 0);
        }
        site.tails[chain] = last;
        site.targets += 1;
    }

    /// Gives a site with many targets a table, by bits of their addresses.
    fn make_table(&mut self, site: usize) {
        // The first table is the shared one.
        let tables = 1 + self.cache.sites.iter().filter(|site| site.table.is_some()).count();
        if tables >= MOST_SITE_TABLES {
            return;
        }
        let (jump, miss, block) = {
            let site = &self.cache.sites[site];
            (site.jump, site.miss, site.block)
        };
        let Some(unit) = self.cache.unit_of(jump).and_then(|unit| self.cache.unit_for_stub(unit)) else {
            return;
        };
        let table = tables as u32;
        (0..SITE_ENTRIES).for_each(|entry| self.cache.tables.store(table_entry(table, entry), miss));
        self.cache.sites[site].table = Some(table);
        self.cache.sites[site].tails = vec![0; SITE_ENTRIES];
        self.cache.sites[site].targets = 0;
        self.cache.forget_checks(block);
        let mut next = self.cache.blocks.get(block).arcs;
        // The newest arc has no linked translation yet.
        next = self.cache.arcs.get(next - 1).next;
        while next != 0 {
            let (number, arc) = (next - 1, *self.cache.arcs.get(next - 1));
            let wanted = !arc.is_over && !arc.is_checked;
            if let Some(entry) = self.entry_of(arc.target).filter(|_| wanted) {
                self.link_target(site, number, entry);
            }
            next = arc.next;
        }
        let place = self.cache.units[unit].here();
        let code = &mut self.cache.code;
        code.restart(place);
        if self.cache.blocks.get(block).target != 0 {
            // The inline check before it has subtracted its key from rcx.
            code.load_gs(Register::RCX, TARGET);
        }
        write_choice(table, code);
        self.cache.units[unit].append(code.bytes());
        self.cache.patch(jump, place);
    }

    /// Whether a site looks its targets up in the shared table. In a tree, the kind of a jump depends on its
    /// origin too, and threads that arrive at a watched address must ask.
    pub(crate) fn looks_up(&self, calls: bool) -> bool {
        !self.program.regions.are_watched() && (calls || !self.areas.has_trees())
    }

    /// Adds a site's target to the shared table, so that other sites find it there.
    pub(crate) fn add_known_target(&mut self, site: u32, target: u64, entry: u64) {
        let calls = self.cache.blocks.get(self.cache.sites[site as usize].block).end == End::IndirectCall;
        let unit = self.cache.unit_of(entry).and_then(|unit| self.cache.unit_for_stub(unit));
        let Some(unit) = unit.filter(|_| self.looks_up(calls)) else { return };
        if !self.cache.indirect_targets.targets.insert(target) {
            return;
        }
        let go = self.indirect_entry(site, target, entry);
        let routines = self.cache.units[unit].routines;
        let code = &mut self.cache.code;
        let start = self.cache.units[unit].here();
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
        self.cache.units[unit].append(code.bytes());
        let chain = chain_of(target);
        let tail = std::mem::replace(&mut self.cache.indirect_targets.tails[chain], jump);
        match tail {
            0 => self.cache.tables.store(table_entry(TABLE, chain), start),
            _ => self.cache.patch(tail, start),
        }
    }

    /// Reads a thread's log, and counts its transfers.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn take_log(&mut self, area: usize) -> io::Result<()> {
        let mut done = Vec::new();
        loop {
            let position = self.areas.slot(area, LOG_POSITION) as u32;
            if position <= LOG_EMPTY {
                return Ok(());
            }
            let entry = position - LOG_ENTRY;
            let (target, who) = (self.areas.slot(area, entry * 8), self.areas.slot(area, entry * 8 + 8));
            self.areas.set_slot(area, LOG_POSITION, entry.into());
            let Some(&ExitStub::Site(site)) = self.cache.exits.list.get(who as u32 as usize) else {
                continue;
            };
            let block = self.cache.sites[site as usize].block;
            match self.cache.find_arc(block, target).filter(|_| done.contains(&(site, target))) {
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
