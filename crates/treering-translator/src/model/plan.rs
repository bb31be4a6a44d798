//! The words that a block records for the model, and the facts that are known in advance.
//!
//! A block records its number and the register values from which its operands' addresses are computed later.
//! A register is not recorded again if it has not changed since, or only by constants in the code (`push`,
//! `sub rsp, 24`).

use treering_x86::memory::{Access, Change, MemoryUse, Operand, Segment};
use treering_x86::{Decoded, Register};

/// An access to the caches; the events are in the order of the block's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: AccessKind,
    /// The number of the instruction, from 0.
    pub(crate) instruction: u8,
    pub(crate) segment: Option<Segment>,
    /// The word that holds the base of the address, if there is one.
    pub(crate) word: Option<u8>,
    /// The size of the access in bytes.
    pub(crate) size: u16,
    /// The number to add to the word, or the whole address.
    pub(crate) value: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessKind {
    /// Instructions are fetched.
    Fetch,
    Read,
    Write,
    /// Reads of a repeated instruction: as many as the register in this event's word moves by, up to its
    /// value in the other word.
    ReadUpTo(u8),
    WriteUpTo(u8),
}

/// A value that the code records in a word.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    Register(Register),
    Address(Operand),
}

/// A value, and whether it is taken before the instruction or after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Telling {
    pub(crate) instruction: u8,
    pub(crate) after: bool,
    pub(crate) word: u8,
    pub(crate) value: Value,
}

/// Plans blocks; keeps its buffers between them.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    uses: MemoryUse,
    operands: Vec<Operand>,
    changes: Vec<Change>,
    /// The words of the last planned block.
    pub(crate) tellings: Vec<Telling>,
    /// The number of these words, without the block's number.
    pub(crate) words: u8,
    /// Whether an address of the block is not exact.
    pub(crate) inexact: bool,
    /// The word in which each register was recorded, and the constant added to the register since.
    told: [Option<(u8, i64)>; 16],
}

impl Planner {
    /// Plans a block and adds its events; `line_of` gives the cache line of an instruction's address.
    pub(crate) fn plan(
        &mut self,
        decoded: &[Decoded],
        line_of: impl Fn(u64) -> u64,
        events: &mut Vec<Event>,
    ) {
        self.clear();
        let mut last_line = None;
        for (at, one) in decoded.iter().enumerate() {
            let instruction = at as u8;
            let last = line_of(one.next().wrapping_sub(1));
            if last_line != Some(last) {
                let size = one.len() as u16;
                let value = one.address();
                events.push(Event {
                    kind: AccessKind::Fetch,
                    instruction,
                    segment: None,
                    word: None,
                    size,
                    value,
                });
            }
            last_line = Some(last);
            self.operands.clear();
            self.uses.operands(one, &mut self.operands);
            for operand in std::mem::take(&mut self.operands) {
                self.operand(instruction, &operand, events);
            }
            self.change(one);
        }
    }

    /// Forgets the last planned block.
    pub(crate) fn clear(&mut self) {
        self.tellings.clear();
        (self.words, self.inexact, self.told) = (0, false, [None; 16]);
    }

    fn operand(&mut self, instruction: u8, operand: &Operand, events: &mut Vec<Event>) {
        self.inexact |= !operand.exact || (operand.repeated && operand.base_only().is_none());
        let (word, value) = match operand.constant() {
            Some(address) => (None, address),
            None => self.tell(instruction, operand),
        };
        let reads = operand.access != Access::Write;
        let kind = match (operand.repeated, operand.base_only(), reads) {
            (true, Some(register), reads) => {
                let after = self.word(instruction, true, Value::Register(register));
                if reads { AccessKind::ReadUpTo(after) } else { AccessKind::WriteUpTo(after) }
            }
            (_, _, true) => AccessKind::Read,
            (_, _, false) => AccessKind::Write,
        };
        let (segment, size) = (operand.segment, operand.size);
        events.push(Event { kind, instruction, segment, word, size, value });
    }

    /// The word from which the operand's address is computed, and the number to add to it.
    fn tell(&mut self, instruction: u8, operand: &Operand) -> (Option<u8>, u64) {
        let Some(register) = operand.base_only() else {
            return (Some(self.word(instruction, false, Value::Address(*operand))), 0);
        };
        let number = usize::from(register.number());
        let (word, moved) = match self.told[number] {
            Some(told) => told,
            None => (self.word(instruction, false, Value::Register(register)), 0),
        };
        self.told[number] = Some((word, moved));
        (Some(word), operand.displacement().wrapping_add(moved).cast_unsigned())
    }

    fn word(&mut self, instruction: u8, after: bool, value: Value) -> u8 {
        let word = self.words;
        self.words += 1;
        self.tellings.push(Telling { instruction, after, word, value });
        word
    }

    fn change(&mut self, one: &Decoded) {
        self.changes.clear();
        self.uses.changes(one, &mut self.changes);
        for &change in &self.changes {
            match change {
                Change::Lost(register) => self.told[usize::from(register.number())] = None,
                Change::Moved(register, bytes) => {
                    if let Some((_, moved)) = &mut self.told[usize::from(register.number())] {
                        *moved = moved.wrapping_add(bytes);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use treering_x86::decode;

    fn plan(bytes: &[u8]) -> (Planner, Vec<Event>) {
        let (mut block, mut events, mut planner) = (Vec::new(), Vec::new(), Planner::default());
        decode(bytes, 0x103a, 48, &mut block);
        planner.plan(&block, |address| address / 64, &mut events);
        (planner, events)
    }

    #[test]
    fn the_stack_is_told_once() {
        // push rbp; push rbx; sub rsp, 8; mov rax, [rsp+8]; pop rcx; ret
        let (planner, events) =
            plan(&[0x55, 0x53, 0x48, 0x83, 0xec, 8, 0x48, 0x8b, 0x44, 0x24, 8, 0x59, 0xc3]);
        assert_eq!((planner.words, planner.tellings.len()), (1, 1));
        let told: Vec<_> = events.iter().map(|event| (event.kind, event.value.cast_signed())).collect();
        assert_eq!(
            told,
            [
                (AccessKind::Fetch, 0x103a),
                (AccessKind::Write, -8),
                (AccessKind::Write, -16),
                (AccessKind::Fetch, 0x1040),
                (AccessKind::Read, -16),
                (AccessKind::Read, -24),
                (AccessKind::Read, -16),
            ]
        );
    }

    #[test]
    fn a_register_that_changed_is_told_again() {
        // mov rax, [rbx]; add rbx, 8; mov rax, [rbx]; mov rcx, [rbx+rax*2]
        let code = [0x48, 0x8b, 0x03, 0x48, 0x83, 0xc3, 8, 0x48, 0x8b, 0x03, 0x48, 0x8b, 0x0c, 0x43];
        let (planner, events) = plan(&code);
        assert_eq!(planner.words, 3);
        let words: Vec<_> =
            events.iter().filter(|event| event.kind == AccessKind::Read).map(|e| e.word).collect();
        assert_eq!(words, [Some(0), Some(1), Some(2)]);
        assert!(matches!(planner.tellings[2].value, Value::Address(_)));
    }

    #[test]
    fn repetitions_are_told_by_where_they_end() {
        // rep movsb
        let (planner, events) = plan(&[0xf3, 0xa4]);
        assert_eq!(planner.words, 4);
        assert_eq!(events.iter().filter(|event| matches!(event.kind, AccessKind::WriteUpTo(_))).count(), 1);
        assert_eq!(events.iter().filter(|event| matches!(event.kind, AccessKind::ReadUpTo(_))).count(), 1);
        assert_eq!(planner.tellings.iter().filter(|telling| telling.after).count(), 2);
    }
}
