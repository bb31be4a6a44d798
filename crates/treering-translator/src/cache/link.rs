//! Ways from one translated block to another: direct, by the address returned to, and by the
//! target of an indirect call.

use std::io;

use treering_x86::{Assembler, Refusal, Register};

use crate::address_map::{AddressMap, AddressSet};
use crate::address_space::{AddressSpace, IndirectArc};
use crate::cache::target_check::{TargetCheck, TargetLocation};
use crate::chunked_vec::Pile;
use crate::context::{ContextRequest, SLOTS as CONTEXT_SLOTS};
use crate::counting::propagated_counts::EntryKind;
use crate::sys::layout::{
    MOST_SITE_TABLES, REQUEST, RETURN_ENTRIES, SAVED_R11, SITE_ENTRIES, SITE_TABLES, TABLES,
};

/// A place where translated code asks the tracer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExitStub {
    /// Nobody: number 0 says that there is no request.
    None,
    /// For a target without a return check.
    Miss,
    /// For code that was not translated yet.
    Code {
        /// The address.
        target: u64,
        /// The stub that asks.
        stub: u64,
        /// The first of the jumps that lead there, plus one.
        jumps: u32,
        /// The unit of the stub.
        unit: u8,
        /// How they come there.
        entry_kind: EntryKind,
        /// The exit for the same address in another unit; 0 if there is none.
        next: u32,
    },
    /// For a new target of an indirect transfer.
    Site(u32),
    /// For what has to do with calling contexts.
    Context(ContextRequest),
    /// Because the code that a block was translated from has changed.
    Changed(u32),
    /// Because the instruction at the address cannot be run.
    Refused(u64, Refusal),
    /// Because there is no room for what the block is about to tell the model.
    Full(u32),
}

/// All exits, by number.
#[derive(Debug)]
pub(crate) struct ExitStubs {
    pub(crate) list: Pile<ExitStub>,
    /// The newest exit for code at an address, with bits for how control comes there: see [`waiting_for`].
    of_code: AddressMap<u32>,
    /// Where the four bytes of a jump stand, and the next jump to the same exit.
    jumps: Pile<(u64, u32)>,
}

/// Bits that no address has for which a jump waits.
const CREDITS: u64 = 1 << 63;
const CALLS: u64 = 1 << 62;
const HOLDS: u64 = 1 << 61;

impl Default for ExitStubs {
    fn default() -> Self {
        let mut list = Pile::default();
        [ExitStub::None, ExitStub::Miss].into_iter().for_each(|exit| list.push(exit));
        Self { list, of_code: AddressMap::default(), jumps: Pile::default() }
    }
}

impl ExitStubs {
    /// Adds an exit and returns its number.
    pub(crate) fn add(&mut self, exit: ExitStub) -> u32 {
        self.list.push(exit);
        self.list.len() as u32 - 1
    }
}

/// What lies behind the return table. Addresses with equal lower halves form a chain: each
/// checks whether it is meant, and jumps to the next if not.
#[derive(Debug)]
pub(crate) struct ReturnTable {
    /// Addresses that have one.
    pub(crate) known: AddressSet,
    /// For each entry, by parts, where the jump of the last one in the chain stands; 0 if there is none. Short programs
    /// use few parts.
    tails: Vec<Option<Box<[u64; TAILS]>>>,
}

/// How many entries a part of the [tails](ReturnTable::tails) is for.
const TAILS: usize = 64;

impl Default for ReturnTable {
    fn default() -> Self {
        Self {
            known: AddressSet::default(),
            tails: std::iter::repeat_n(None, RETURN_ENTRIES / TAILS).collect(),
        }
    }
}

impl ReturnTable {
    /// Whether no return check has the table's entry for the address.
    pub(crate) fn is_free(&self, address: u64) -> bool {
        self.tail(address) == 0
    }

    fn tail(&self, address: u64) -> u64 {
        let entry = address as usize % RETURN_ENTRIES;
        self.tails[entry / TAILS].as_ref().map_or(0, |part| part[entry % TAILS])
    }

    /// Notes where the chain of the address ends now.
    pub(crate) fn set_tail(&mut self, address: u64, jump: u64) {
        let entry = address as usize % RETURN_ENTRIES;
        self.tails[entry / TAILS].get_or_insert_with(|| Box::new([0; TAILS]))[entry % TAILS] = jump;
    }
}

/// An indirect jump or call of one translated block: a chain of known targets, or a table of chains.
#[derive(Debug)]
pub(crate) struct IndirectSite {
    pub(crate) block: u32,
    /// Where the jump to the chain stands.
    pub(crate) jump: u64,
    /// Where the jump of the last target stands, in each chain.
    tails: Vec<u64>,
    /// The table's number.
    table: Option<u32>,
    /// How many targets there are.
    targets: u32,
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

impl AddressSpace {
    /// Where a jump to an address of the program should go now: to its translation, or to the stub
    /// that asks for it. Says whether it is the latter.
    pub(crate) fn entry_or_stub(&mut self, unit: usize, target: u64) -> (u64, bool) {
        match self.entry_of(target) {
            Some(entry) => (entry, false),
            None => (self.stub(unit, target, EntryKind::default()).1, true),
        }
    }

    /// The translation of an address that may be entered without asking.
    pub(crate) fn entry_of(&mut self, target: u64) -> Option<u64> {
        let block = self.blocks.at(target).filter(|_| self.regions.watched(target).is_none())?;
        // Without room for a counter the tracer is asked, and says so.
        if self.compared.contains_key(&block) { None } else { self.counted_entry(block).ok() }
    }

    /// The exit of a unit for an address, and the stub that asks for it.
    fn stub(&mut self, unit: usize, target: u64, entry_kind: EntryKind) -> (u32, u64) {
        let newest = self.exits.of_code.entry(waiting_for(target, entry_kind)).or_insert(0);
        let mut number = *newest;
        while let ExitStub::Code { stub, unit: of, next, .. } = self.exits.list[number as usize] {
            if usize::from(of) == unit {
                return (number, stub);
            }
            number = next;
        }
        let number = self.exits.list.len() as u32;
        let next = std::mem::replace(newest, number);
        let request = self.units[unit].routines.request;
        let room = if entry_kind.holds { 48 } else { 24 };
        let stub = self.units[unit].append_cold(room, |code| {
            if entry_kind.holds {
                code.release(&CONTEXT_SLOTS);
            }
            code.store_gs_value(REQUEST, number);
            code.jump(request);
        });
        self.exits.add(ExitStub::Code { target, stub, jumps: 0, unit: unit as u8, entry_kind, next });
        (number, stub)
    }

    /// Remembers that the jump at `site` asks for `target`, so that it can be led there. Returns the
    /// stub that asks.
    pub(crate) fn add_unlinked(&mut self, unit: usize, target: u64, site: u64, entry_kind: EntryKind) -> u64 {
        let (number, stub) = self.stub(unit, target, entry_kind);
        if let ExitStub::Code { jumps, .. } = &mut self.exits.list[number as usize] {
            self.exits.jumps.push((site, *jumps));
            *jumps = self.exits.jumps.len() as u32;
        }
        stub
    }

    /// Leads all jumps that wait for a block to it.
    pub(crate) fn link_incoming(&mut self, block: u32) {
        let target = self.blocks.get(block).address;
        let has_contexts = self.has_contexts();
        for entry_kind in EntryKind::ALL.into_iter().filter(|entry_kind| has_contexts || !entry_kind.calls) {
            if let Some(&number) = self.exits.of_code.get(&waiting_for(target, entry_kind)) {
                self.link_incoming_of(number, target, entry_kind);
            }
        }
    }

    /// Leads jumps to where they come in. Without room for a counter, and where the code is asked for each time, they
    /// go on asking.
    fn link_incoming_of(&mut self, mut number: u32, target: u64, entry_kind: EntryKind) {
        while let ExitStub::Code { jumps, unit, next, .. } = &mut self.exits.list[number as usize] {
            let (unit, following) = (usize::from(*unit), *next);
            let mut jump = *jumps;
            if jump != 0 {
                let Some(entry) = self.entry_for(target, entry_kind, unit) else { return };
                if let ExitStub::Code { jumps, .. } = &mut self.exits.list[number as usize] {
                    *jumps = 0;
                }
                while jump != 0 {
                    let (site, next) = self.exits.jumps[jump as usize - 1];
                    self.units[unit].patch(site, entry);
                    jump = next;
                }
            }
            number = following;
        }
    }

    /// Puts a return check that was written already into the table; `jump` is its jump for other
    /// addresses.
    pub(crate) fn open_return(&mut self, address: u64, return_check: u64, jump: u64) {
        self.return_table.known.insert(address);
        self.return_table.set_tail(address, jump);
        self.tables.store((address as usize % RETURN_ENTRIES * 8) as u64, return_check);
    }

    /// Makes an address reachable by returns, which know nothing else.
    pub(crate) fn ensure_return(&mut self, address: u64, entry: u64) {
        let tail = self.return_table.tail(address);
        let place = if tail == 0 { self.unit_of(entry) } else { self.unit_of(tail) };
        let unit = place.unwrap_or(0);
        // Without room the tracer is asked each time.
        if !self.units[unit].has_some_room() || !self.return_table.known.insert(address) {
            return;
        }
        let otherwise = self.units[unit].routines.miss;
        let check = TargetCheck { address, location: TargetLocation::Popped, otherwise };
        let (start, jump) = self.write_target(unit, check, None, entry);
        self.return_table.set_tail(address, jump);
        match tail {
            0 => self.tables.store((address as usize % RETURN_ENTRIES * 8) as u64, start),
            _ => self.units[unit].patch(tail, start),
        }
    }

    /// Writes a stub that checks whether it is the target, counts, and goes to `entry`. Returns where
    /// it begins and where its jump for other addresses stands.
    fn write_target(
        &mut self,
        unit: usize,
        check: TargetCheck,
        counter: Option<u32>,
        entry: u64,
    ) -> (u64, u64) {
        let holds = check.location == TargetLocation::Popped && self.has_contexts();
        let unit = &mut self.units[unit];
        let code = &mut self.scratch.code;
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

    /// A new site, whose routines ask for its first target; `calls`: it is of a call. Returns its number and
    /// where the block is to jump.
    pub(crate) fn new_site(&mut self, unit: usize, block: u32, calls: bool) -> (u32, u64) {
        let site = self.sites.len() as u32;
        let exit = self.exits.add(ExitStub::Site(site));
        let routines = self.units[unit].routines;
        let otherwise = if self.looks_up(calls) { routines.lookup.look_up } else { routines.request_target };
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

    /// Adds a target to a site, which went there for the first time. Returns its arc.
    ///
    /// # Errors
    /// There is no counter left.
    pub(crate) fn add_target(&mut self, site: u32, target: u64, entry: Option<u64>) -> io::Result<u32> {
        let number = site as usize;
        let block = self.sites[number].block;
        let first = self.blocks.get(block).arcs == 0;
        let counter = if first { None } else { Some(self.new_counter()?) };
        let arc = self.add_arc(block, target, counter);
        if let Some(entry) = entry {
            let targets = self.sites[number].targets;
            if targets >= LONGEST_CHAIN && self.sites[number].table.is_none() {
                self.make_table(number);
            }
            self.link_target(number, target, counter, entry);
        }
        Ok(arc)
    }

    /// Adds an arc to those of a block. Returns its number.
    pub(crate) fn add_arc(&mut self, block: u32, target: u64, counter: Option<u32>) -> u32 {
        let next = self.blocks.get(block).arcs;
        let region = self.region_at(target);
        self.arcs.push(IndirectArc { block, target, counter, next, region, is_over: false });
        self.blocks.get_mut(block).arcs = self.arcs.len() as u32;
        self.arcs.len() as u32 - 1
    }

    /// Links a known target anew: another thread may have asked at the same time, or its code was
    /// replaced since.
    pub(crate) fn relink(&mut self, site: u32, arc: u32, entry: u64) {
        let IndirectArc { target, counter, .. } = self.arcs[arc as usize];
        self.link_target(site as usize, target, counter, entry);
    }

    /// The arc of a block to a target, if it went there before.
    pub(crate) fn find_arc(&self, block: u32, target: u64) -> Option<u32> {
        let mut next = self.blocks.get(block).arcs;
        while next != 0 {
            let arc = self.arcs[next as usize - 1];
            if arc.target == target && !arc.is_over {
                return Some(next - 1);
            }
            next = arc.next;
        }
        None
    }

    fn link_target(&mut self, site: usize, target: u64, counter: Option<u32>, entry: u64) {
        let entry = self.indirect_entry(site as u32, target, entry);
        let (jump, miss, table) = {
            let site = &self.sites[site];
            (site.jump, site.miss, site.table)
        };
        let Some(unit) = self.unit_of(jump).filter(|&unit| self.units[unit].has_some_room()) else {
            return;
        };
        let chain = if table.is_some() { chain_of(target) } else { 0 };
        let tail = self.sites[site].tails.get(chain).copied().unwrap_or(0);
        let check = TargetCheck { address: target, location: TargetLocation::Slot, otherwise: miss };
        let (start, last) = self.write_target(unit, check, counter, entry);
        match (tail, table) {
            (0, None) => self.units[unit].patch(jump, start),
            (0, Some(table)) => self.tables.store(table_entry(table, chain), start),
            _ => self.units[unit].patch(tail, start),
        }
        let site = &mut self.sites[site];
        if site.tails.len() <= chain {
            site.tails.resize(chain + 1, 0);
        }
        site.tails[chain] = last;
        site.targets += 1;
    }

    /// Gives a site with many targets a table, by bits of their addresses.
    fn make_table(&mut self, site: usize) {
        // The first is of known targets.
        let tables = 1 + self.sites.iter().filter(|site| site.table.is_some()).count();
        if tables >= MOST_SITE_TABLES {
            return;
        }
        let (jump, miss, block) = {
            let site = &self.sites[site];
            (site.jump, site.miss, site.block)
        };
        let Some(unit) = self.unit_of(jump) else { return };
        let table = tables as u32;
        (0..SITE_ENTRIES).for_each(|entry| self.tables.store(table_entry(table, entry), miss));
        self.sites[site].table = Some(table);
        self.sites[site].tails = vec![0; SITE_ENTRIES];
        self.sites[site].targets = 0;
        let mut next = self.blocks.get(block).arcs;
        // The newest has no translation linked yet.
        next = self.arcs[next as usize - 1].next;
        while next != 0 {
            let arc = self.arcs[next as usize - 1];
            if let Some(entry) = self.entry_of(arc.target).filter(|_| !arc.is_over) {
                self.link_target(site, arc.target, arc.counter, entry);
            }
            next = arc.next;
        }
        let place = self.units[unit].here();
        let code = &mut self.scratch.code;
        code.restart(place);
        write_choice(table, code);
        self.units[unit].append(code.bytes());
        self.units[unit].patch(jump, place);
    }
}

/// What is waited for by a jump to an address.
fn waiting_for(target: u64, entry_kind: EntryKind) -> u64 {
    let bit = |is_set, bit| if is_set { bit } else { 0 };
    target | bit(entry_kind.propagates, CREDITS) | bit(entry_kind.calls, CALLS) | bit(entry_kind.holds, HOLDS)
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
