//! Stacks of Go that go on in a goroutine, from code that runs on the thread's own stack.
//!
//! The kernel copies the stack that the thread is on, and so not the goroutine's. But Go's functions keep frame pointers,
//! and the runtime leaves the frame pointer as it is when it changes stacks (up to Go 1.22 at least). So the chain that
//! the kernel follows at the moment of the sample leads on. It passes by the function whose frame pointer was set at the
//! change, which is the one that the first return address of the chain has called; and `morestack`, by which a function
//! asks for more stack before it has a frame, by that function as well, which `newstack` has noted on the stack.
//!
//! Functions in C use the frame pointer's register for other things. The unwind tables tell what it was when Go called
//! the first of them, and the goroutine's frames are read from the process from there.

use crate::address_space::{Cut, End, Uncertainty};
use crate::landmark::Switch;
use crate::record::Sample;
use crate::rule::{Place, Rule};
use crate::stack_copy::StackCopy;
use crate::walk::{LONGEST_CHAIN, Walk};

/// How many frames of a goroutine are read at most.
const MOST_LINKS: usize = 512;

/// How far below the end of its frame `newstack` may keep its copy of `m.morebuf`, in words.
const NEWSTACK_WORDS: u64 = 64;

impl Walk<'_, '_> {
    /// Appends the frames of the goroutine that left its stack as `switch` says.
    pub(crate) fn follow_goroutine(&mut self, switch: Switch, sample: &Sample) -> End {
        if switch == Switch::Parked {
            return End::Complete;
        }
        let chain: Vec<u64> = sample.chain.user().collect();
        let reached = match switch {
            Switch::Foreign => self.position_in_chain(),
            _ => chain.iter().position(|&link| link == self.place.instruction),
        };
        let links = match reached {
            Some(reached) => chain.get(reached + 1..).unwrap_or_default().to_vec(),
            None if switch == Switch::Foreign => self.read_links().unwrap_or_default(),
            None => Vec::new(),
        };
        if links.is_empty() || !links.iter().all(|&link| self.is_return_address(link)) {
            return End::Cut(Cut::OtherStack);
        }
        self.push_caller(switch, links[0]);
        for link in links {
            self.place = Place::behind_call(link);
            self.stack.push(self.place.lookup());
        }
        match self.space.rule(self.pid, self.registers.width, self.place) {
            Some(Rule::First) => End::Complete,
            Some(Rule::Landing) => {
                self.show_written_by_hand();
                End::Complete
            }
            _ if chain.len() >= LONGEST_CHAIN => End::Cut(Cut::FramePointers),
            _ => End::Cut(Cut::OtherStack),
        }
    }

    /// Appends the function whose call returns to `link`, and that for which the stack was made larger.
    fn push_caller(&mut self, switch: Switch, link: u64) {
        let caller = self.space.call_target(link);
        let grown = caller.filter(|_| switch == Switch::Grown).and_then(|caller| self.grown(caller));
        if let Some((function, call)) = grown {
            self.stack.extend([function, call]);
            return;
        }
        // A goroutine's first function is called by nothing, and others by way of a pointer.
        if caller.is_none() || switch == Switch::Grown {
            self.uncertainty = self.uncertainty.or(Some(Uncertainty::Goroutine));
        }
        self.stack.extend(caller);
    }

    /// The return addresses along the frame pointers in the process now, from that of the frame that was reached up to the
    /// goroutine's end; nothing if they do not fit together.
    fn read_links(&mut self) -> Option<Vec<u64>> {
        let mut links: Vec<u64> = Vec::new();
        let mut base = self.registers.base();
        self.uncertainty = self.uncertainty.or(Some(Uncertainty::ReadLater));
        while links.len() < MOST_LINKS {
            let frame = self.space.read_memory(self.pid, base, 16);
            let frame = StackCopy::new(base, &frame, self.registers.width);
            let (outer, link) = (frame.read(base)?, frame.read(base.checked_add(8)?)?);
            let called = self.space.call_target(link);
            let inner = links.last().and_then(|inner| self.space.function_start(inner - 1));
            if called.zip(inner).is_some_and(|(called, inner)| called != inner) {
                return None;
            }
            links.push(link);
            if outer == 0 {
                return Some(links);
            }
            base = Some(outer).filter(|&outer| outer > base)?;
        }
        None
    }

    /// The function that asked for more stack, and where it was called in the function that begins at `caller`: from the
    /// pointers to stack and code in the copy of `m.morebuf`.
    fn grown(&self, caller: u64) -> Option<(u64, u64)> {
        let end = self.registers.stack();
        (1..=NEWSTACK_WORDS).find_map(|words| {
            let at = end.checked_sub(8 * words)?;
            let call = self.copy.read(at)?;
            let stack = self.copy.read(at.checked_sub(8)?)?;
            let is_in_caller = self.space.function_start(call.wrapping_sub(1)) == Some(caller);
            let function = self.space.call_target(call).filter(|_| is_in_caller)?;
            (stack != 0 && stack.is_multiple_of(8)).then_some((function, call.wrapping_sub(1)))
        })
    }
}
