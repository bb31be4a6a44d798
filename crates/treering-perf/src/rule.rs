//! How to leave the frame at an instruction: by the unwind tables, else by the code itself.

use std::ops::Range;
use std::rc::Rc;

use crate::call_frame::{FrameRule, Plain, Rare};
use crate::landmark::{
    AHEAD, AHEAD_OF_START, BEHIND, Landmark, Switch, follows_call, follows_system_call, leaves_goroutine,
    recognise, returns_from_signal, starts_program, starts_thread,
};
use crate::registers::Width;
use crate::way_out::{Exits, ReadCode, exits};

/// How to leave the frame at an instruction.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    /// It has no caller.
    First,
    /// The same in code whose address was written onto the stack by hand.
    Landing,
    /// Written by hand as well: the kernel's frame of a signal is at the stack pointer.
    SignalReturn,
    /// It was called on another stack than its caller's.
    Switch(Switch),
    /// As nearly all tables say.
    Plain(Plain),
    /// As the tables say otherwise.
    Rare(Rc<Rare>),
    /// The tables say nothing that makes sense.
    Unusable,
    /// No table covers it, but its code can be read.
    Code(Rc<Exits>),
    /// No table covers it, and its code cannot be read.
    Unreadable,
}

/// The place in the code that a frame is left at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// The instruction that runs next.
    pub(crate) instruction: u64,
    /// The reason why the thread left.
    pub(crate) left: Left,
}

/// The reason why a thread left a place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Left {
    /// It was interrupted before the instruction.
    Interrupted,
    /// The instruction before is a call.
    Call,
    /// The instruction before is a system call.
    SystemCall,
}

impl Place {
    /// The place to which a call returns.
    pub(crate) fn behind_call(instruction: u64) -> Self {
        Self { instruction, left: Left::Call }
    }

    /// The place where a thread was interrupted.
    pub(crate) fn interrupted(instruction: u64) -> Self {
        Self { instruction, left: Left::Interrupted }
    }

    /// An address within the instruction that the frame is at: a call may be its function's last instruction, so that
    /// the next address belongs to another function.
    pub(crate) fn lookup(self) -> u64 {
        self.instruction.wrapping_sub(u64::from(self.left != Left::Interrupted))
    }

    /// The same place where addresses are smaller by `bias`.
    pub(crate) fn stated(self, bias: u64) -> Self {
        Self { instruction: self.instruction.wrapping_sub(bias), ..self }
    }
}

impl Rule {
    /// The rule from the tables; nothing if they do not cover the place.
    pub(crate) fn from_tables(rule: FrameRule) -> Option<Self> {
        Some(match rule {
            FrameRule::Uncovered => return None,
            FrameRule::Unusable => Self::Unusable,
            FrameRule::First => Self::First,
            FrameRule::Plain(plain) => Self::Plain(plain),
            FrameRule::Rare(rare) => Self::Rare(rare),
        })
    }

    /// The rule for code of Go's runtime that leaves a goroutine's stack.
    pub(crate) fn of_switch(read: ReadCode<'_>, place: Place) -> Option<Self> {
        let mut before = [0; BEHIND];
        leaves_goroutine(read_behind(read, place.instruction, &mut before)).map(Self::Switch)
    }

    /// The rule for hand-written code that is recognised by its instructions.
    pub(crate) fn from_landmark(read: ReadCode<'_>, width: Width, place: Place) -> Option<Self> {
        if width != Width::Bits64 {
            return None;
        }
        let (mut before, mut code) = ([0; BEHIND], [0; AHEAD]);
        let behind = read_behind(read, place.instruction, &mut before);
        let ahead = read(place.instruction, &mut code);
        if place.left == Left::SystemCall {
            return returns_from_signal(behind).then_some(Self::SignalReturn);
        }
        let mut start = [0; AHEAD_OF_START];
        let length = read(place.instruction, &mut start);
        let start = &start[..length];
        let is_first = starts_program(place.instruction, start) || starts_thread(behind, start);
        if place.left == Left::Call && is_first {
            return Some(Self::First);
        }
        recognise(behind, &code[..ahead]).map(|landmark| match landmark {
            Landmark::First => Self::Landing,
            Landmark::SignalReturn => Self::SignalReturn,
        })
    }

    /// The rule from the code itself, from that place on.
    pub(crate) fn from_code(
        read: ReadCode<'_>,
        width: Width,
        place: Place,
        function: Option<Range<u64>>,
    ) -> Self {
        if read(place.instruction, &mut [0]) == 0 {
            return Self::Unreadable;
        }
        let exits = exits(read, width, place.instruction, function);
        let mut before = [0; BEHIND];
        let mut starts_thread = || follows_system_call(read_behind(read, place.instruction, &mut before));
        if place.left == Left::Call && (exits.halts || exits.ends_thread && starts_thread()) {
            return Self::First;
        }
        Self::Code(Rc::new(exits))
    }

    /// The base pointer is known to be a frame pointer, if nothing else tells how to leave.
    pub(crate) fn keep_frame(&mut self) {
        if let Self::Code(exits) = self
            && exits.ways_out.is_empty()
        {
            *self = Self::Code(Rc::new(Exits { keeps_frame: true, ..Exits::clone(exits) }));
        }
    }

    /// Whether the frame is a link in a chain of frame pointers.
    pub(crate) fn is_frame_pointer_link(&self, width: Width) -> bool {
        match self {
            Self::Plain(plain) => plain.is_frame_pointer_link(width),
            Self::Code(exits) => exits.ways_out.first().is_some_and(|way| way.is_frame_pointer_link(width)),
            _ => false,
        }
    }
}

/// Whether the instruction before an address is a call; nothing where it cannot be read.
pub(crate) fn is_behind_call(read: ReadCode<'_>, address: u64) -> Option<bool> {
    let mut before = [0; 8];
    let before = read_behind(read, address, &mut before);
    (!before.is_empty()).then(|| follows_call(before))
}

/// The function that the instruction before an address calls by its address.
pub(crate) fn call_target(read: ReadCode<'_>, address: u64) -> Option<u64> {
    let mut before = [0; 5];
    match *read_behind(read, address, &mut before) {
        [0xe8, a, b, c, d] => Some(address.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into())),
        _ => None,
    }
}

/// The bytes before an address, as many as can be read of them.
fn read_behind<'b>(read: ReadCode<'_>, address: u64, bytes: &'b mut [u8]) -> &'b [u8] {
    let wanted = bytes.len();
    let length = read(address.saturating_sub(wanted as u64), bytes);
    if length == wanted { &bytes[..] } else { &[] }
}
