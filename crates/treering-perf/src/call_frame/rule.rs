//! The unwind rule for one instruction, in a form that is quick to follow.

use std::ops::Range;
use std::rc::Rc;

use gimli::{CfaRule, Encoding, RegisterRule, UnwindExpression, UnwindTableRow};

use super::expression::evaluate;
use crate::binary::Bytes;
use crate::registers::{MOST_SAVED, Registers, Width};
use crate::stack_copy::StackCopy;
use crate::step::Step;

/// The unwind rule for one instruction.
#[derive(Clone, Debug)]
pub(crate) enum FrameRule {
    /// Nothing.
    Uncovered,
    /// Something that makes no sense.
    Unusable,
    /// The frame has no caller.
    First,
    /// The form of nearly all frames.
    Plain(Plain),
    /// Anything else.
    Rare(Rc<Rare>),
}

/// The frame's end is a register plus an offset, and the return address lies right below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    base: u8,
    offset: i32,
    /// How many words from the frame's end each of [`saved`](crate::registers::Numbering::saved) is;
    /// 0 where it was not changed.
    saved: [i16; MOST_SAVED],
}

/// A rule with expressions, or with registers that functions do not usually save.
///
/// A register of which nothing is said is as it was, also one that a function may change: code that
/// aligns the stack anew, hand-written code and the frames of signals rely on it.
#[derive(Clone, Debug)]
pub(crate) struct Rare {
    section: Bytes,
    encoding: Encoding,
    end: FrameEnd,
    places: Vec<(usize, Place)>,
    signal: bool,
}

#[derive(Clone, Debug)]
enum FrameEnd {
    Register(usize, i64),
    Expression(Range<usize>),
}

/// Where a register of the caller is: in memory at, or the value of.
#[derive(Clone, Debug)]
enum Place {
    At(i64),
    Offset(i64),
    Register(usize),
    AtExpression(Range<usize>),
    Expression(Range<usize>),
}

impl FrameRule {
    pub(super) fn read(
        row: &UnwindTableRow<usize>,
        width: Width,
        signal: bool,
        encoding: Encoding,
        section: &Bytes,
    ) -> Self {
        let instruction = gimli::Register(width.numbering().instruction as u16);
        if row.register(instruction) == Some(RegisterRule::Undefined) {
            return Self::First;
        }
        let plain = (!signal).then(|| Plain::read(row, width)).flatten();
        let rare = || Rare::read(row, width, signal, encoding, section).map(Rc::new);
        plain.map(Self::Plain).or_else(|| rare().map(Self::Rare)).unwrap_or(Self::Unusable)
    }
}

impl Plain {
    fn read(row: &UnwindTableRow<usize>, width: Width) -> Option<Self> {
        let numbering = width.numbering();
        let word = i64::from(numbering.word);
        let &CfaRule::RegisterAndOffset { register, offset } = row.cfa() else { return None };
        let back = row.register(gimli::Register(numbering.instruction as u16));
        if back != Some(RegisterRule::Offset(-word)) || usize::from(register.0) >= numbering.instruction {
            return None;
        }
        let mut saved = [0; MOST_SAVED];
        for (register, rule) in row.registers() {
            let number = usize::from(register.0);
            match rule {
                RegisterRule::SameValue | RegisterRule::Undefined => {}
                // Vector registers and the like are of no use here.
                _ if number >= numbering.instruction => {}
                RegisterRule::Offset(offset) if offset % word == 0 && *offset != 0 => {
                    let slot = numbering.saved.iter().position(|&other| other == number)?;
                    saved[slot] = i16::try_from(offset / word).ok()?;
                }
                _ => return None,
            }
        }
        Some(Self { base: register.0 as u8, offset: i32::try_from(offset).ok()?, saved })
    }

    /// Whether the frame is a link in a chain of frame pointers: the base pointer leads to the
    /// caller's, and the return address lies above it.
    pub(crate) fn is_frame_pointer_link(&self, width: Width) -> bool {
        let numbering = width.numbering();
        let base = numbering.saved.iter().position(|&saved| saved == numbering.base);
        usize::from(self.base) == numbering.base
            && self.offset == 2 * i32::from(numbering.word)
            && base.is_some_and(|slot| self.saved[slot] == -2)
    }

    /// Returns from a frame. `innermost` is one that no other called.
    pub(crate) fn leave(&self, innermost: bool, registers: &mut Registers, copy: &StackCopy) -> Step {
        let numbering = registers.width.numbering();
        let stack = registers.stack();
        let base = registers.get(self.base.into()).unwrap_or(0);
        let end = base.wrapping_add_signed(self.offset.into());
        if end <= stack {
            return Step::Lost;
        }
        let Some(back) = copy.read(end - u64::from(numbering.word)) else { return Step::BeyondCopy };
        for (&register, words) in numbering.saved.iter().zip(self.saved) {
            if words == 0 {
                continue;
            }
            let at = end.wrapping_add_signed(i64::from(words) * i64::from(numbering.word));
            match copy.read(at) {
                Some(value) => registers.set(register, value),
                // It was popped already.
                None if innermost && at < stack => {}
                None => return Step::BeyondCopy,
            }
        }
        registers.return_to(back, end);
        Step::Caller
    }
}

impl Rare {
    fn read(
        row: &UnwindTableRow<usize>,
        width: Width,
        signal: bool,
        encoding: Encoding,
        section: &Bytes,
    ) -> Option<Self> {
        let range =
            |expression: &UnwindExpression<usize>| expression.offset..expression.offset + expression.length;
        let last = width.numbering().instruction;
        let end = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } if usize::from(register.0) <= last => {
                FrameEnd::Register(register.0.into(), *offset)
            }
            CfaRule::Expression(expression) => FrameEnd::Expression(range(expression)),
            CfaRule::RegisterAndOffset { .. } => return None,
        };
        let mut places = Vec::new();
        for (register, rule) in row.registers() {
            let number = usize::from(register.0);
            if number > last {
                continue;
            }
            let place = match rule {
                RegisterRule::Offset(offset) => Place::At(*offset),
                RegisterRule::ValOffset(offset) => Place::Offset(*offset),
                RegisterRule::Register(other) if usize::from(other.0) <= last => {
                    Place::Register(other.0.into())
                }
                RegisterRule::Expression(expression) => Place::AtExpression(range(expression)),
                RegisterRule::ValExpression(expression) => Place::Expression(range(expression)),
                _ => continue,
            };
            places.push((number, place));
        }
        let leads_on = places.iter().any(|(number, _)| *number == last);
        leads_on.then(|| Self { section: section.clone(), encoding, end, places, signal })
    }

    /// Returns from a frame, or from a signal's frame to the interrupted code.
    pub(crate) fn leave(&self, registers: &mut Registers, copy: &StackCopy) -> Step {
        match self.caller(registers, copy) {
            Ok(caller) => {
                let moved =
                    caller.stack() != registers.stack() || caller.instruction() != registers.instruction();
                *registers = caller;
                match (self.signal, moved) {
                    (true, _) => Step::Interrupted,
                    (false, true) => Step::Caller,
                    (false, false) => Step::Lost,
                }
            }
            Err(step) => step,
        }
    }

    fn caller(&self, old: &Registers, copy: &StackCopy) -> Result<Registers, Step> {
        let evaluate = |range: &Range<usize>, initial: Option<u64>| {
            let expression = self.section.get(range.clone()).ok_or(Step::Lost)?;
            evaluate(expression, self.encoding, initial, old, copy)
        };
        let at = |address: u64| copy.read(address).ok_or(Step::BeyondCopy);
        let register = |number: usize| old.get(number).ok_or(Step::Lost);
        let end = match &self.end {
            FrameEnd::Register(number, offset) => register(*number)?.wrapping_add_signed(*offset),
            FrameEnd::Expression(range) => evaluate(range, None)?,
        };
        let mut caller = *old;
        caller.set(old.width.numbering().stack, end);
        for (number, place) in &self.places {
            let value = match place {
                Place::At(offset) => at(end.wrapping_add_signed(*offset))?,
                Place::Offset(offset) => end.wrapping_add_signed(*offset),
                Place::Register(other) => register(*other)?,
                Place::AtExpression(range) => at(evaluate(range, Some(end))?)?,
                Place::Expression(range) => evaluate(range, Some(end))?,
            };
            caller.set(*number, value);
        }
        Ok(caller)
    }
}
