//! The counter code of a block, which leaves the program's registers and flags as they are.

use treering_x86::flags::{self, FlagSet};
use treering_x86::registers::{RegisterSet, Registers};
use treering_x86::{Decoded, Flow, Register};

use crate::cache::block::End;
use crate::cache::emitter::Emitter;
use crate::cache::link::MISS;
use crate::emit::trace_writer::TraceWriter;
use crate::program::program_code::ProgramCode;
use crate::sys::layout::{REQUEST, SAVED_RAX, SAVED_RCX, SLOTS, TABLES, TARGET, counter_slot, return_entry};
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::syscall_page::write_call;

/// Where and how a block counts. The numbers are those of the block's instructions, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CounterCode {
    /// It has no counter code.
    None,
    /// By `inc` before an instruction, where flags are dead.
    Inc(usize),
    /// In a register that is dead, before an instruction.
    Dead(usize, Register),
    /// In rcx, which its last instruction saves anyway.
    AtEnd,
    /// In rax, which is saved for it.
    Spilled,
}

impl CounterCode {
    /// Chooses how a block counts.
    pub(crate) fn choose(
        decoded: &[Decoded],
        program: &mut ProgramCode,
        registers: &mut Registers,
        thread: &mut StoppedThread<'_>,
    ) -> Self {
        if let Some(at) = flags::place_for_inc(decoded, FlagSet::ALL) {
            return Self::Inc(at);
        }
        let after = program.live_after(&decoded[decoded.len() - 1], thread);
        if after != FlagSet::ALL
            && let Some(at) = flags::place_for_inc(decoded, after)
        {
            return Self::Inc(at);
        }
        if let Some((at, register)) = registers.place_with_dead(decoded) {
            return Self::Dead(at, register);
        }
        let last = &decoded[decoded.len() - 1];
        let saves = matches!(last.flow(), Flow::Return(_) | Flow::IndirectJump | Flow::IndirectCall);
        if saves && !last.uses_gs() && !registers.used(last).has(Register::RCX) {
            return Self::AtEnd;
        }
        Self::Spilled
    }

    /// The instruction before which it counts, if there is one.
    pub(crate) fn place(self) -> Option<usize> {
        match self {
            Self::Inc(at) | Self::Dead(at, _) => Some(at),
            Self::Spilled => Some(0),
            Self::None | Self::AtEnd => None,
        }
    }
}

impl TraceWriter<'_, '_> {
    /// Writes the counter code.
    pub(crate) fn write_count(&mut self, block: u32, counting: CounterCode) {
        let slot = counter_slot(self.block(block).counter);
        let code = &mut self.emitter.code;
        let start = code.here();
        match counting {
            CounterCode::None => return,
            CounterCode::Inc(_) => code.inc_gs(slot),
            CounterCode::Dead(_, register) => code.count_by(register, slot),
            CounterCode::AtEnd => {
                code.store_gs(SAVED_RCX, Register::RCX);
                code.count_by(Register::RCX, slot);
            }
            CounterCode::Spilled => {
                code.store_gs(SLOTS.first, Register::RAX);
                code.count_by(Register::RAX, slot);
                code.load_gs(Register::RAX, SLOTS.first);
            }
        }
        let end = code.here();
        let kept = self.block_mut(block);
        kept.counted_from = (end - kept.entry) as u16;
        if counting != CounterCode::AtEnd {
            self.emitter.steps.push(0, end - start);
        }
    }

    /// Writes a system call. The kernel leaves the next instruction's address in rcx, which must be the program's.
    pub(crate) fn write_system_call(&mut self, last: &Decoded, block: u32) {
        self.emitter.write_step(last.len(), |code| match self.space.cache.calls_at_page {
            true => write_call(code),
            false => code.system_call(),
        });
        let next = last.next();
        self.emitter.write_step(0, |code| match u32::try_from(next) {
            Ok(short) => code.set_low(Register::RCX, short),
            Err(_) => code.set(Register::RCX, next),
        });
        self.block_mut(block).end = End::System;
    }

    /// Pushes the program's return address, as a call does. The return check is looked up only when the call returns:
    /// in programs with many calls, a thread would have to wait here for that cache line of the table.
    pub(crate) fn write_push(&mut self, address: u64) {
        self.emitter.code.prefetch(return_entry(address) as u32);
        match i32::try_from(address) {
            Ok(short) => self.emitter.code.push_value(short),
            Err(_) => {
                let constant = self.unit().constant(address);
                self.emitter.code.push_from(constant);
            }
        }
    }

    /// Writes a return: it goes through the return table, whose checks compare the popped address.
    ///
    /// A return that also removes arguments is rare, and finds its target as an indirect jump does.
    pub(crate) fn write_return(&mut self, block: u32, bytes: u16, counting: CounterCode) {
        if !self.block(block).holds {
            self.write_save(block, counting);
        }
        if self.space.areas.has_trees() {
            self.write_leave(block, bytes);
        }
        let code = &mut self.emitter.code;
        code.pop_rcx();
        if bytes != 0 {
            code.store_gs(TARGET, Register::RCX);
            code.drop_stack(bytes);
            return self.write_long_return(block);
        }
        code.low_half_of_rcx();
        code.jump_by_rcx(TABLES as u32);
    }

    fn write_long_return(&mut self, block: u32) {
        if self.space.program.regions.are_watched() {
            // Any return address may be watched later.
            self.emitter.code.store_gs_value(REQUEST, MISS);
            let request_target = self.unit().routines.request_target;
            self.emitter.code.jump(request_target);
            return;
        }
        let looks_up = self.space.looks_up(false);
        let (site, miss) = self.space.cache.new_site(self.emitter.unit, block, looks_up);
        self.space.cache.sites[site as usize].jump = self.emitter.code.jump(miss);
    }

    /// Saves rcx before an indirect transfer. A block without other counter code counts in rcx there.
    pub(crate) fn write_save(&mut self, block: u32, counting: CounterCode) {
        match counting {
            CounterCode::AtEnd => self.write_count(block, counting),
            _ => self.emitter.code.store_gs(SAVED_RCX, Register::RCX),
        }
    }
}

/// Only requests save rax in its own slot, and counter code makes none.
const _: () = assert!(SLOTS.first != SAVED_RAX);

impl Emitter {
    /// The register in which a block can count its repetitions, if it jumps to itself.
    pub(crate) fn loop_register(&mut self, decoded: &[Decoded]) -> Option<Register> {
        let first = decoded[0].address();
        let last = &decoded[decoded.len() - 1];
        if !matches!(last.flow(), Flow::Branch { target, .. } if target == first) {
            return None;
        }
        // Rewriting such an instruction might need registers of its own.
        if decoded.iter().any(Decoded::uses_gs) {
            return None;
        }
        let used: RegisterSet = self.registers.used_by_all(decoded).with(Register::RSP);
        const ORDER: [u8; 15] = [8, 9, 10, 11, 3, 5, 13, 14, 15, 12, 0, 1, 2, 6, 7];
        ORDER.map(Register::new).into_iter().find(|&register| !used.has(register))
    }
}
