//! Unwinding of one stack: from frame to frame until the thread's first function, or until nothing
//! tells how to go on.

use crate::address_space::{AddressSpace, Cut, End, Uncertainty};
use crate::record::Sample;
use crate::registers::Registers;
use crate::rule::{Left, Place, Rule};
use crate::stack_copy::StackCopy;
use crate::step::Step;
use crate::way_out::Exits;

/// Stacks deeper than this are cut; 64 KiB can hold no more frames.
const MOST_FRAMES: usize = 8192;

/// How many bytes of a stack are read from the process at most, behind the room that the kernel copied to.
const READ_LATER: usize = 64 << 10;

/// The kernel's walk along frame pointers stops after this many frames by default
/// (`kernel.perf_event_max_stack`).
pub(crate) const LONGEST_CHAIN: usize = 127;

/// How much of the stack is read behind a frame that may be the C library's start of a thread.
const ENDING_BYTES: usize = 4096;

/// A stack that is being unwound.
pub(crate) struct Walk<'a, 'b> {
    pub(crate) space: &'a mut AddressSpace,
    pub(crate) pid: u32,
    pub(crate) copy: StackCopy<'b>,
    /// The registers that the thread was sampled with.
    sampled: Registers,
    /// The registers of the frame that was reached.
    pub(crate) registers: Registers,
    /// Where that frame is left.
    pub(crate) place: Place,
    /// Whether it was reached along a frame pointer that no table vouches for.
    linked: bool,
    /// Why its frames may not be the right ones, if that is so.
    pub(crate) uncertainty: Option<Uncertainty>,
    /// An address within the instruction that each frame is at, innermost first.
    pub(crate) stack: &'a mut Vec<u64>,
}

impl<'a, 'b> Walk<'a, 'b> {
    /// A walk through the copy of a stack from a place in the code on, appended to `stack`.
    fn new(
        space: &'a mut AddressSpace,
        pid: u32,
        registers: Registers,
        left: Left,
        copy: &'b [u8],
        stack: &'a mut Vec<u64>,
    ) -> Self {
        let copy = StackCopy::new(registers.stack(), copy, registers.width);
        let place = Place { instruction: registers.instruction(), left };
        stack.push(place.lookup());
        Self {
            space,
            pid,
            copy,
            sampled: registers,
            registers,
            place,
            linked: false,
            uncertainty: None,
            stack,
        }
    }

    /// A walk through the stack of a sample.
    pub(crate) fn of_sample(
        space: &'a mut AddressSpace,
        sample: &Sample,
        registers: Registers,
        copy: &'b [u8],
        stack: &'a mut Vec<u64>,
    ) -> Self {
        let in_kernel = sample.chain.kernel().next().is_some();
        let left = match in_kernel && registers.is_in_system_call() {
            true => Left::SystemCall,
            false => Left::Interrupted,
        };
        Self::new(space, sample.pid, registers, left, copy, stack)
    }

    /// Unwinds by tables and code through the copy, then along the frame pointers that the kernel
    /// followed through the whole stack, as far as each of its frames is known to keep one. The rest behind the copy is
    /// read from the process.
    pub(crate) fn run(mut self, sample: &Sample) -> End {
        let mut end = self.follow();
        if end == End::Cut(Cut::BeyondCopy) {
            let missing = sample.stack_room.saturating_sub(self.copy.len());
            match self.read_rest(missing + READ_LATER) {
                true => end = self.follow(),
                false if missing > 0 => end = End::Cut(Cut::Hole),
                false => {}
            }
        }
        if let End::Cut(Cut::Goroutine(switch)) = end {
            end = self.follow_goroutine(switch, sample);
        }
        if let End::Cut(cut @ (Cut::BeyondCopy | Cut::OtherStack | Cut::Hole)) = end {
            end = self.follow_chain(sample, cut);
        }
        match (end, self.uncertainty) {
            (End::Complete, Some(uncertainty)) => End::Uncertain(uncertainty),
            (end, _) => end,
        }
    }

    /// Adds to the copy what lies behind it in the process now; tells whether that belongs to the sampled stack.
    ///
    /// The kernel's copy stops where its room ends, or at the first page that is not in memory, most often in a large local
    /// array that was never touched. Reading puts the page there, so that later copies reach further. The stack is taken as
    /// unchanged if the part of the frame that was copied is, with the return address into it.
    fn read_rest(&mut self, length: usize) -> bool {
        let (end, word) = (self.copy.end(), u64::from(self.registers.width.numbering().word));
        let back = self.registers.stack().wrapping_sub(word);
        let known = self.copy.from(back).to_vec();
        let wanted = known.len() + length;
        let start = end - known.len() as u64;
        let now = self.space.read_memory(self.pid, start, wanted);
        let is_same = |now: &[u8]| self.stack.len() > 1 && !known.is_empty() && now.starts_with(&known);
        if now.len() <= known.len() || !is_same(&now) {
            return false;
        }
        let afterwards = self.space.read_memory(self.pid, start, known.len());
        if !is_same(&afterwards) {
            return false;
        }
        self.copy.extend(&now[known.len()..]);
        self.uncertainty = Some(Uncertainty::ReadLater);
        true
    }

    fn follow(&mut self) -> End {
        while self.stack.len() < MOST_FRAMES {
            let linked = self.linked;
            match self.step() {
                Step::First => return End::Complete,
                Step::Caller => self.place = Place::behind_call(self.registers.instruction()),
                Step::Interrupted => self.place = Place::interrupted(self.registers.instruction()),
                Step::BeyondCopy => {
                    self.linked = linked;
                    return End::Cut(self.beyond());
                }
                Step::Switched(switch) => return End::Cut(Cut::Goroutine(switch)),
                Step::Lost if self.space.is_entry(self.place.lookup()) => return End::Complete,
                Step::Lost => return End::Cut(Cut::Lost(self.place.lookup())),
            }
            let called = self.place.left == Left::Call;
            match self.place.instruction {
                // By convention the caller of a thread's or coroutine's first function.
                0 if called => return End::Complete,
                address if called && !self.space.is_mapped(address) => return self.strayed(),
                _ => self.stack.push(self.place.lookup()),
            }
        }
        End::Cut(Cut::TooDeep)
    }

    /// The end of a walk whose next return address is invalid.
    fn strayed(&self) -> End {
        let last = self.stack.last().copied().unwrap_or_default();
        if self.space.is_entry(last) { End::Complete } else { End::Cut(Cut::Lost(last)) }
    }

    /// Why the walk cannot go on where something lies outside of the copy.
    fn beyond(&self) -> Cut {
        let is_on_copy = self.registers.stack() >= self.sampled.stack()
            && self.copy.read_bytes(self.registers.stack(), 1).is_some();
        if is_on_copy || self.registers.stack() == self.copy.end() {
            Cut::BeyondCopy
        } else {
            Cut::OtherStack
        }
    }

    /// Returns from the frame that was reached.
    fn step(&mut self) -> Step {
        let was_linked = std::mem::take(&mut self.linked);
        let Some(rule) = self.space.rule(self.pid, self.registers.width, self.place) else {
            return self.leave_unmapped();
        };
        let innermost = self.stack.len() == 1;
        match rule {
            Rule::First => Step::First,
            Rule::Switch(switch) => Step::Switched(switch),
            Rule::Plain(plain) => plain.leave(innermost, &mut self.registers, &self.copy),
            Rule::Rare(rare) => rare.leave(&mut self.registers, &self.copy),
            Rule::Landing => {
                self.show_written_by_hand();
                Step::First
            }
            Rule::SignalReturn => {
                self.show_written_by_hand();
                self.leave_signal()
            }
            Rule::Unusable => Step::Lost,
            Rule::Code(exits) => self.leave_by_code(&exits, was_linked),
            Rule::Unreadable => self.leave_by_frame_pointer(was_linked, false),
        }
    }

    /// Corrects the address by which the frame is named: it is behind no call, and may be the first
    /// of its function.
    pub(crate) fn show_written_by_hand(&mut self) {
        if let Some(last) = self.stack.last_mut() {
            *last = self.place.instruction;
        }
    }

    fn leave_signal(&mut self) -> Step {
        match self.registers.interrupted(|at| self.copy.read(at)) {
            Some(interrupted) => {
                self.registers = interrupted;
                Step::Interrupted
            }
            None => Step::BeyondCopy,
        }
    }

    /// A call that led to where no code is has its return address on top of the stack.
    fn leave_unmapped(&mut self) -> Step {
        let back = self.registers.stack();
        match self.copy.read(back) {
            Some(next) if self.place.left == Left::Interrupted && self.is_return_address(next) => {
                let word = u64::from(self.registers.width.numbering().word);
                self.registers.return_to(next, back + word);
                Step::Caller
            }
            _ => Step::Lost,
        }
    }

    fn leave_by_code(&mut self, exits: &Exits, was_linked: bool) -> Step {
        let mut beyond = false;
        for way in &exits.ways_out {
            let Some(back) = way.back(&self.registers, &self.copy) else { continue };
            match self.copy.read(back) {
                None => beyond = true,
                Some(next) if self.is_return_address(next) || self.is_link(back, next) => {
                    self.linked = way.is_frame_pointer_link(self.registers.width);
                    self.registers = way.caller(&self.registers, &self.copy, back, next);
                    return Step::Caller;
                }
                Some(_) => {}
            }
        }
        if was_linked && self.registers.base() == 0 {
            // The end of a chain of frame pointers, by the ABI.
            return Step::First;
        }
        if exits.keeps_frame || self.space.is_generated(self.place.lookup()) {
            return self.leave_by_frame_pointer(was_linked, exits.keeps_frame);
        }
        if beyond { Step::BeyondCopy } else { Step::Lost }
    }

    /// Returns to where the base pointer leads. Of a function that is not `known` to keep one, the
    /// caller may be passed by.
    fn leave_by_frame_pointer(&mut self, was_linked: bool, known: bool) -> Step {
        let word = u64::from(self.registers.width.numbering().word);
        let base = self.registers.base();
        if base == 0 && was_linked {
            return Step::First;
        }
        if base < self.registers.stack() || !base.is_multiple_of(word) {
            return Step::Lost;
        }
        let (Some(next_base), Some(next)) = (self.copy.read(base), self.copy.read(base.wrapping_add(word)))
        else {
            return Step::BeyondCopy;
        };
        let is_link = next_base == 0 || next_base > base;
        let is_caller = self.is_return_address(next) || self.is_link(base + word, next);
        if !is_caller || !known && !is_link {
            return Step::Lost;
        }
        if !known {
            self.uncertainty = self.uncertainty.or(Some(Uncertainty::FramePointers));
        }
        self.linked = true;
        self.registers.set(self.registers.width.numbering().base, next_base);
        self.registers.return_to(next, base + 2 * word);
        Step::Caller
    }

    /// Whether the return address `next` at `back` belongs to a chain of frame pointers in generated
    /// code: interpreters such as Java's write addresses onto the stack by hand, behind no call.
    fn is_link(&self, back: u64, next: u64) -> bool {
        let (word, base) = (u64::from(self.registers.width.numbering().word), self.registers.base());
        base.checked_add(word) == Some(back)
            && base >= self.registers.stack()
            && self.copy.read(base).is_some_and(|outer| outer == 0 || outer > base)
            && self.space.is_generated(next)
    }

    /// Whether a frame may return to an address: it is behind a call or in code that cannot be read,
    /// or known as one that is written onto the stack by hand.
    pub(crate) fn is_return_address(&mut self, address: u64) -> bool {
        let place = Place::behind_call(address);
        self.space.is_behind_call(self.pid, address)
            || self
                .space
                .rule(self.pid, self.registers.width, place)
                .is_some_and(|rule| matches!(rule, Rule::Landing | Rule::SignalReturn))
    }

    /// Appends the kernel's frame-pointer chain from the last frame on, as long as all frames are known to keep a
    /// frame pointer: the chain skips the callers of others. Else the stack is cut short for the reason `cut`.
    fn follow_chain(&mut self, sample: &Sample, cut: Cut) -> End {
        let beyond = End::Cut(cut);
        let chain: Vec<u64> = sample.chain.user().collect();
        let Some(reached) = self.position_in_chain() else { return beyond };
        let followed = self.stack.len();
        for &return_address in chain.iter().skip(reached + 1) {
            if !self.is_frame_pointer_link() || !self.space.is_mapped(return_address) {
                break;
            }
            self.place = Place::behind_call(return_address);
            self.stack.push(self.place.lookup());
        }
        if let Some(Rule::First) = self.space.rule(self.pid, self.registers.width, self.place) {
            return End::Complete;
        }
        let followed = self.stack.len() - followed;
        let links = chain.get(reached + 1..).and_then(|links| links.get(..followed)).unwrap_or_default();
        let frame = self.place.lookup();
        if self.space.seek_ending(frame) {
            self.seek_ending(links);
        }
        let known = self.space.known_ending(frame);
        self.stack.extend(known.unwrap_or_default());
        if known.is_some() { End::Complete } else { beyond }
    }

    /// Reads from the process's memory what lies behind the last frame, in case that is the C
    /// library's start of a thread: this stays as it is while the thread lives. The chain's `links`
    /// must still be there as well.
    fn seek_ending(&mut self, links: &[u64]) -> Option<()> {
        let numbering = self.registers.width.numbering();
        let (mut registers, word) = (self.registers, u64::from(numbering.word));
        let mut inner = None;
        for &link in links {
            let base = registers.base();
            let frame = self.space.read_memory(self.pid, base, 2 * usize::from(numbering.word));
            let frame = StackCopy::new(base, &frame, registers.width);
            if frame.read(base.checked_add(word)?)? != link {
                return None;
            }
            inner = Some(registers.instruction());
            registers.set(numbering.base, frame.read(base)?);
            registers.return_to(link, base.checked_add(2 * word)?);
        }
        let mut stack = vec![Place::behind_call(inner?).lookup()];
        let memory = self.space.read_memory(self.pid, registers.stack(), ENDING_BYTES);
        let end = Walk::new(self.space, self.pid, registers, Left::Call, &memory, &mut stack).follow();
        if end == End::Complete {
            self.space.note_ending(&stack);
        }
        Some(())
    }

    fn is_frame_pointer_link(&mut self) -> bool {
        let width = self.registers.width;
        self.space.rule(self.pid, width, self.place).is_some_and(|rule| rule.is_frame_pointer_link(width))
    }

    /// At which entry of the kernel's chain the base pointer is that of the frame that was reached.
    pub(crate) fn position_in_chain(&self) -> Option<usize> {
        let mut base = self.sampled.base();
        for position in 0..LONGEST_CHAIN {
            if base == self.registers.base() {
                return Some(position);
            }
            base = self.copy.read(base)?;
        }
        None
    }
}

/// Takes the kernel's chain alone, which passes by the callers of functions without frame pointers.
pub(crate) fn follow_frame_pointers(space: &mut AddressSpace, sample: &Sample, stack: &mut Vec<u64>) -> End {
    let chain: Vec<u64> = sample.chain.user().collect();
    let mut sound = true;
    for (depth, &instruction) in chain.iter().enumerate() {
        let place = match depth {
            0 => Place::interrupted(instruction),
            _ => Place::behind_call(instruction),
        };
        let width = space.width(instruction);
        let Some(rule) = space.rule(sample.pid, width, place) else { break };
        let is_last = depth + 1 == chain.len();
        sound &= is_last || rule.is_frame_pointer_link(width);
        stack.push(place.lookup());
    }
    let whole = stack.len() == chain.len() && chain.len() > 1 && chain.len() < LONGEST_CHAIN;
    match (whole, sound) {
        (false, _) => End::Cut(Cut::FramePointers),
        (true, false) => End::Uncertain(Uncertainty::FramePointers),
        (true, true) => End::Complete,
    }
}
