//! Restores the program's own state of a thread that stopped anywhere in translated code.

use std::io;

use treering_x86::Register;
use treering_x86::interpret::{self, Machine, Place, Stepped};

use crate::address_space::AddressSpace;
use crate::areas::tree_frame::with_flags;
use crate::areas::tree_layout::SLOTS;
use crate::cache::block::{End, Position};
use crate::counting::slow_path::PartialExecution;
use crate::sys::layout::{LOOP_REGISTER, RESUME, SAVED_R11, SAVED_RAX, SAVED_RCX, TARGET, counter_slot};
use crate::sys::syscall_page::{BEHIND_CALL, in_block};
use crate::sys::{self, Registers};
use crate::tracer::thread_stop::ThreadStop;

/// More added instructions than this never follow each other, except where frames are left.
const MOST_STEPS: usize = 2000;

impl ThreadStop<'_, '_> {
    /// Changes the registers of a stopped thread to those that the program would have, with the address of
    /// its next instruction. A partial execution of a block is noted.
    ///
    /// Instructions that the translator added are executed here up to the program's next instruction. If they
    /// enclose an instruction of the program that has not been executed, they are undone. Returns whether the
    /// thread was in translated code.
    pub(crate) fn restore_program_state(&mut self, registers: &mut Registers) -> io::Result<bool> {
        let mut steps = 0;
        while steps < MOST_STEPS {
            steps += usize::from(!self.space.cache.is_unwinding(registers.0.rip));
            if self.space.areas.has_trees() && self.finish_search(registers)? {
                continue;
            }
            let rip = in_block(registers.0.rip, self.space.areas.call_next(self.thread.area));
            registers.0.rip = rip;
            let Some(unit) = self.space.cache.unit_of(rip) else { return Ok(true) };
            let position = self.space.cache.blocks.position(&self.space.cache.units[unit], rip);
            if let Some(position) = position.filter(|position| position.exact) {
                self.settle(position, registers);
                return Ok(true);
            }
            let mut bytes = [0; 16];
            self.space.cache.units[unit].read(rip, &mut bytes);
            let mut machine =
                Here { space: self.space, area: self.thread.area, registers, tid: self.stopped.tid };
            match (interpret::step(&bytes, rip, &mut machine), position) {
                (Stepped::To(next), _) => registers.0.rip = next,
                // An exiting thread needs no answer.
                (Stepped::SystemCall, _) if self.stopped.gone => {
                    self.drop_request();
                    return Ok(false);
                }
                (Stepped::SystemCall, _) => {
                    self.finish_request(registers)?;
                }
                (Stepped::Foreign, Some(position)) => {
                    self.take_back(position, registers);
                    self.settle(position, registers);
                    return Ok(true);
                }
                (Stepped::Foreign, None) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Has a thread, whose registers are the program's now, continue in translated code.
    pub(crate) fn continue_translated(&mut self, registers: &mut Registers) -> io::Result<()> {
        let at = registers.0.rip;
        registers.0.rip = self.enter(at)?.unwrap_or(at);
        sys::set_registers(self.stopped.tid, registers)
    }

    /// Answers at once a request that the thread is about to make.
    fn finish_request(&mut self, registers: &mut Registers) -> io::Result<()> {
        self.dispatch()?;
        registers.set(Register::RAX, self.slot(SAVED_RAX));
        registers.set(Register::RCX, self.slot(SAVED_RCX));
        registers.set(Register::R11, self.slot(SAVED_R11));
        registers.0.rip = self.slot(RESUME);
        registers.0.orig_rax = u64::MAX;
        Ok(())
    }

    /// Restores the registers that were saved since the current instruction's translation began.
    fn take_back(&mut self, position: Position, registers: &mut Registers) {
        let Some(unit) = self.space.cache.unit_of(position.start) else { return };
        let (mut at, end) = (position.start, registers.0.rip);
        let own = u64::from(counter_slot(self.space.cache.blocks.get(position.block).counter));
        while at < end {
            let mut bytes = [0; 16];
            self.space.cache.units[unit].read(at, &mut bytes);
            let (length, saved) = interpret::saved_register(&bytes, at);
            if let Some((slot, register)) =
                saved.filter(|&(slot, _)| slot != own && slot != u64::from(TARGET))
            {
                registers.set(register, self.slot(slot as u32));
            }
            at += length.max(1) as u64;
        }
    }

    /// The value that a block's system call leaves in rcx, also where the kernel steps back to restart the call.
    fn left_by_call(&self, block: u32) -> u64 {
        if self.space.cache.calls_at_page {
            BEHIND_CALL
        } else {
            self.space.cache.blocks.behind_last_instruction(block)
        }
    }

    /// Sets the registers to those at one of the program's instructions.
    fn settle(&mut self, position: Position, registers: &mut Registers) {
        let block = self.space.cache.blocks.get(position.block);
        let is_inside = registers.0.rip != block.entry && position.offset < block.length;
        if let (Some(register), true) = (block.loop_register, is_inside) {
            self.set_slot(counter_slot(block.counter), registers.get(register));
            registers.set(register, self.slot(LOOP_REGISTER));
        }
        let (rip, at) = (registers.0.rip, block.address + u64::from(position.offset));
        registers.0.rip = at;
        if block.holds {
            registers.set(Register::RCX, self.slot(SAVED_RCX));
            registers.set(Register::R11, self.slot(SAVED_R11));
        }
        if block.end == End::System {
            let left = self.left_by_call(position.block);
            let next = block.address + u64::from(block.length);
            if registers.get(Register::RCX) == left {
                registers.set(Register::RCX, next);
            }
        }
        if let Some(model) = &mut self.space.model {
            model.replay_up_to(
                position,
                rip.wrapping_sub(block.entry),
                at,
                self.thread.area,
                &self.space.areas,
            );
        }
        let Position { block: id, offset, done, counted, .. } = position;
        let is_whole = if counted { done == block.instructions } else { done == 0 };
        let is_added = block.in_batch || block.added_from != 0 && position.added;
        let rest = i64::from(block.instructions) + i64::from(block.ahead) - i64::from(done);
        if is_added && rest != 0 {
            self.space.areas.correct_running_count(self.thread.area, -rest);
        }
        if !is_whole {
            self.thread.slow_path.note_partial(PartialExecution { block: id, offset, done, counted });
        }
    }

    /// Finishes a search for a child node in which a thread was stopped.
    fn finish_search(&mut self, registers: &mut Registers) -> io::Result<bool> {
        let rip = registers.0.rip;
        let found = self.space.cache.unit_of(rip).and_then(|unit| self.space.cache.units[unit].context);
        let Some(routines) = found.filter(|routines| (routines.find..routines.find_end).contains(&rip))
        else {
            return Ok(false);
        };
        // The routine's first instruction saves rax, and its second one changes it.
        if rip > routines.find {
            registers.set(Register::RAX, self.slot(SLOTS.rax));
        }
        if rip >= routines.find_uses {
            registers.set(Register::new(2), self.slot(SLOTS.rdx));
            registers.0.eflags = with_flags(registers.0.eflags, self.slot(SLOTS.flags));
        }
        let (parent, callee) = (self.slot(SLOTS.parent), self.slot(SLOTS.callee));
        let child = self.space.areas.child(self.thread.area, parent as u32, callee as u32, self.stopped)?;
        registers.set(Register::R11, child.into());
        registers.0.rip = self.slot(SLOTS.go_on);
        Ok(true)
    }
}

/// A stopped thread, as the machine that the interpreter works on.
struct Here<'a> {
    space: &'a AddressSpace,
    area: usize,
    registers: &'a mut Registers,
    tid: i32,
}

impl Machine for Here<'_> {
    fn register(&self, register: Register) -> u64 {
        self.registers.get(register)
    }

    fn set_register(&mut self, register: Register, value: u64) {
        self.registers.set(register, value);
    }

    fn load(&mut self, place: Place) -> Option<u64> {
        match place {
            Place::Slot(slot) if slot < self.space.areas.stride() => {
                Some(self.space.areas.slot(self.area, slot as u32))
            }
            Place::Slot(_) => None,
            Place::Address(address) => {
                let mut bytes = [0; 8];
                let got = sys::read_memory(self.tid, address, &mut bytes);
                (got == 8).then(|| u64::from_le_bytes(bytes))
            }
        }
    }

    fn store(&mut self, place: Place, value: u64) -> Option<()> {
        match place {
            Place::Slot(slot) if slot < self.space.areas.stride() => {
                self.space.areas.set_slot(self.area, slot as u32, value);
                Some(())
            }
            Place::Slot(_) => None,
            Place::Address(address) => {
                sys::write_memory(self.tid, address, &value.to_le_bytes()).then_some(())
            }
        }
    }

    fn vector(&mut self) -> Option<[u64; 2]> {
        sys::vector(self.tid).ok().filter(|_| self.space.areas.has_trees())
    }

    fn set_vector(&mut self, value: [u64; 2]) -> Option<()> {
        sys::set_vector(self.tid, value).ok().filter(|()| self.space.areas.has_trees())
    }
}
