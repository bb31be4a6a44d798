//! Where a function without unwind tables returns to, from the instructions that it has yet to run.
//!
//! Any function has to find its return address and its caller's registers again before it returns. So the
//! instructions from a place on are followed to a return, and each register is expressed by the registers
//! at the start: branches both fall through and are taken, calls give the stack back as they found it.
//!
//! Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.

mod state;

use std::collections::VecDeque;
use std::ops::Range;

use hashbrown::{HashMap, HashSet};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};

use crate::registers::{Registers, Width};
use crate::stack_copy::StackCopy;
use state::State;

/// Reads code as the processor would: copies the bytes at an address, and returns their number.
pub(crate) type ReadCode<'a> = &'a dyn Fn(u64, &mut [u8]) -> usize;

/// A value in terms of the registers at the start: a register plus an offset, or the word of the stack at
/// that address plus another offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    register: usize,
    offset: i64,
    /// If it was read from the stack: the offset that was added afterwards.
    loaded: Option<i64>,
}

/// How to return from a place in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WayOut {
    /// Where the return address is.
    back: Value,
    /// How many bytes of arguments the return takes off the stack.
    popped: u16,
    /// Registers that the caller gets back, by their number in unwind tables.
    restored: Vec<(usize, Value)>,
}

/// The effect of the code from some place on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exits {
    /// Ways to return, the likeliest first.
    pub(crate) ways_out: Vec<WayOut>,
    /// All ways lead to `hlt`, which no program may execute.
    pub(crate) halts: bool,
    /// All ways end the thread or its process, or lead to `hlt`.
    pub(crate) ends_thread: bool,
    /// It uses the base pointer as one does a frame pointer.
    pub(crate) keeps_frame: bool,
}

/// How many instructions are followed.
const MOST_INSTRUCTIONS: usize = 1000;

/// How many different ways to return are of interest.
const MOST_WAYS: usize = 3;

/// How far from the start instructions are followed.
const REACH: u64 = 1 << 16;

/// The effect of the code from `address` on, within `function` if that is known.
pub(crate) fn exits(read: ReadCode<'_>, width: Width, address: u64, function: Option<Range<u64>>) -> Exits {
    let mut search = Search {
        code: Code { read, width, pages: HashMap::new() },
        function,
        address,
        seen: HashSet::new(),
        pending: VecDeque::from([State::new(width, address)]),
        info: InstructionInfoFactory::new(),
        exits: Exits::default(),
        halted: false,
        ended: false,
        astray: false,
    };
    search.run();
    let Search { mut exits, halted, ended, astray, .. } = search;
    let never_returns = exits.ways_out.is_empty() && !astray;
    exits.halts = never_returns && halted && !ended;
    exits.ends_thread = never_returns && (halted || ended);
    exits
}

struct Search<'a> {
    code: Code<'a>,
    function: Option<Range<u64>>,
    address: u64,
    seen: HashSet<u64>,
    /// Ways yet to be followed. Those that go on behind a call come last: it may not return, and the code
    /// behind it may be another function.
    pending: VecDeque<State>,
    info: InstructionInfoFactory,
    exits: Exits,
    /// Some way leads to `hlt`.
    halted: bool,
    /// Some way ends the thread.
    ended: bool,
    /// Some way could not be followed.
    astray: bool,
}

impl Search<'_> {
    fn run(&mut self) {
        while let Some(state) = self.pending.pop_front() {
            self.follow(state);
            if self.exits.ways_out.len() >= MOST_WAYS {
                return;
            }
        }
    }

    /// Follows one way to its end, and notes the others that branch off.
    fn follow(&mut self, mut state: State) {
        while self.seen.insert(state.next) {
            let instruction = self.code.instruction(state.next);
            let near = state.next.abs_diff(self.address) < REACH;
            let Some(instruction) = instruction.filter(|_| near && self.seen.len() < MOST_INSTRUCTIONS)
            else {
                self.astray = true;
                return;
            };
            if state.within && !self.is_within(state.next) {
                // Behind a call that does not return.
                self.astray = true;
                return;
            }
            self.exits.keeps_frame |= state.uses_frame_pointer(&instruction);
            state.next = instruction.next_ip();
            match instruction.flow_control() {
                FlowControl::Return => return self.found(&state, &instruction),
                FlowControl::UnconditionalBranch => state = self.branch(&state, &instruction),
                FlowControl::ConditionalBranch => {
                    let taken = self.branch(&state, &instruction);
                    self.pending.push_front(taken);
                }
                FlowControl::Call | FlowControl::IndirectCall if is_system_call(&instruction) => {
                    if state.ends_thread() {
                        self.ended = true;
                        return;
                    }
                    state.after_system_call();
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    state.after_call();
                    return self.pending.push_back(state);
                }
                FlowControl::IndirectBranch if is_through_memory(&instruction) => {
                    return self.found(&state, &instruction);
                }
                FlowControl::Next if instruction.mnemonic() == Mnemonic::Hlt => {
                    self.halted = true;
                    return;
                }
                FlowControl::Next => state.run(&instruction, &mut self.info),
                _ => {
                    self.astray = true;
                    return;
                }
            }
        }
    }

    fn branch(&self, state: &State, instruction: &Instruction) -> State {
        let next = instruction.near_branch_target();
        let mut taken = state.at(next);
        taken.within &= self.is_within(next);
        taken
    }

    fn is_within(&self, address: u64) -> bool {
        self.function.as_ref().is_none_or(|function| function.contains(&address))
    }

    fn found(&mut self, state: &State, instruction: &Instruction) {
        let immediate = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Immediate16;
        let popped = if immediate { instruction.immediate16() } else { 0 };
        let way_out = state.back().map(|back| WayOut { back, popped, restored: state.restored() });
        match way_out {
            Some(way_out) if self.exits.ways_out.contains(&way_out) => {}
            Some(way_out) => self.exits.ways_out.push(way_out),
            None => self.astray = true,
        }
    }
}

/// `syscall`, `sysenter` or `int 0x80`, which come back to the next instruction.
fn is_system_call(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Syscall | Mnemonic::Sysenter => true,
        Mnemonic::Int => instruction.immediate8() == 0x80,
        _ => false,
    }
}

/// Whether a jump goes where a fixed place in memory says: from a stub into another library, to
/// return from there to where the stub was called.
fn is_through_memory(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Memory
        && instruction.memory_index() == Register::None
        && matches!(instruction.memory_base(), Register::RIP | Register::EIP | Register::None)
}

/// Code, page by page.
struct Code<'a> {
    read: ReadCode<'a>,
    width: Width,
    pages: HashMap<u64, Vec<u8>>,
}

const PAGE: u64 = 4096;

/// The longest instruction has fewer bytes.
const LONGEST: usize = 16;

impl Code<'_> {
    fn instruction(&mut self, address: u64) -> Option<Instruction> {
        let mut bytes = [0; LONGEST];
        let length = self.copy(address, &mut bytes);
        let bits = u32::from(self.width.numbering().word) * 8;
        let mut decoder = Decoder::with_ip(bits, &bytes[..length], address, DecoderOptions::NONE);
        let instruction = decoder.decode();
        (!instruction.is_invalid()).then_some(instruction)
    }

    fn copy(&mut self, address: u64, bytes: &mut [u8; LONGEST]) -> usize {
        let mut length = 0;
        while length < LONGEST {
            let Some(at) = address.checked_add(length as u64) else { break };
            let (page, offset) = (at / PAGE, (at % PAGE) as usize);
            let held = self.pages.entry(page).or_insert_with(|| {
                let mut held = vec![0; PAGE as usize];
                let read = (self.read)(page * PAGE, &mut held);
                held.truncate(read);
                held
            });
            let Some(rest) = held.get(offset..).filter(|rest| !rest.is_empty()) else { break };
            let taken = rest.len().min(LONGEST - length);
            bytes[length..length + taken].copy_from_slice(&rest[..taken]);
            length += taken;
        }
        length
    }
}

impl Value {
    /// The value, if the copied stack has the word that it needs.
    fn of(&self, registers: &Registers, copy: &StackCopy) -> Option<u64> {
        let at = registers.get(self.register)?.wrapping_add_signed(self.offset);
        match self.loaded {
            None => Some(at),
            Some(offset) => Some(copy.read(at)?.wrapping_add_signed(offset)),
        }
    }
}

impl WayOut {
    /// Where the return address is; nothing if that cannot be told, or it is not the frame's own.
    pub(crate) fn back(&self, registers: &Registers, copy: &StackCopy) -> Option<u64> {
        self.back.of(registers, copy).filter(|&back| back >= registers.stack())
    }

    /// The caller's registers, where its return address `next` is at `back`.
    pub(crate) fn caller(&self, registers: &Registers, copy: &StackCopy, back: u64, next: u64) -> Registers {
        let mut caller = *registers;
        for (number, value) in &self.restored {
            if let Some(value) = value.of(registers, copy) {
                caller.set(*number, value);
            }
        }
        let word = u64::from(registers.width.numbering().word);
        caller.return_to(next, back + word + u64::from(self.popped));
        caller
    }

    /// Whether it is the one of functions that keep frame pointers.
    pub(crate) fn is_frame_pointer_link(&self, width: Width) -> bool {
        let numbering = width.numbering();
        self.back == Value { register: numbering.base, offset: numbering.word.into(), loaded: None }
    }
}

#[cfg(test)]
mod tests;
