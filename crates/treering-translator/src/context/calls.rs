//! The addresses that are functions, and how jumps reach them, as far as a program's files and its calls tell.

use std::collections::BTreeSet;
use std::ops::Bound;

use treering_x86::context::raises_stack;
use treering_x86::{Decoded, Flow};

use super::{CallKind, Contexts, FunctionStarts};
use crate::program::program_code::ProgramCode;

/// The most bytes of a stub of a linkage table.
const STUB: u64 = 16;

impl Contexts {
    /// Notes a call and its target, as control may return behind it.
    pub(crate) fn note_call(&mut self, target: Option<u64>, next: u64) {
        self.returns.insert(next);
        self.called.extend(target);
    }

    /// Notes whether a block that ends in an indirect jump moves the stack pointer up, as code that leaves
    /// several functions at once does.
    pub(crate) fn note_raising(&mut self, block: u32, decoded: &[Decoded]) {
        let jumps = decoded.last().is_some_and(|last| last.flow() == Flow::IndirectJump);
        if jumps && decoded.iter().any(raises_stack) {
            self.raising.insert(block);
        }
    }

    /// Forgets the entries of functions between two addresses, which hold other code from now on.
    pub(crate) fn forget(&mut self, start: u64, end: u64) {
        let stays = |address: &u64| !(start..end).contains(address);
        self.stubs.retain(|(_, address, _), _| stays(address));
        self.in_line.retain(|(address, _), _| stays(address));
    }

    /// The kind of an indirect jump, if it is more than a jump within a function.
    pub(crate) fn kind_of_jump(
        &mut self,
        site: u32,
        block: u32,
        (from, target): (u64, u64),
        program: &ProgramCode,
    ) -> Option<CallKind> {
        let leaves_function = self.leaves_function(from, target, program);
        let is_function = self.is_function(target, program);
        // Before its function is bound, a stub jumps to its own second half.
        let leaves_stub = !(from..from.saturating_add(STUB)).contains(&target);
        let is_function = is_function || leaves_stub && self.linkage.contains(&site);
        let resumes = self.raising.contains(&block) || self.returns.contains(&target);
        match (is_function || leaves_function, resumes) {
            (true, true) => Some(CallKind::JumpOrResume),
            (true, false) => Some(CallKind::Jump),
            (false, true) => Some(CallKind::StayOrResume),
            (false, false) => None,
        }
    }

    /// Whether an indirect jump's target may be presumed before the jump is made. Only when all code is
    /// translated are the addresses known to which calls return.
    pub(crate) fn may_presume_jump(&mut self, from: u64, target: u64, program: &ProgramCode) -> bool {
        self.is_function(target, program) || !self.leaves_function(from, target, program)
    }

    /// Reads where functions begin from the file of a region; nothing if the file does not say it.
    pub(crate) fn starts_of(&mut self, region: usize, program: &ProgramCode) -> Option<&FunctionStarts> {
        let Self { starts, files, .. } = self;
        starts.entry(region).or_insert_with(|| files.of(&program.regions.log()[region])).as_deref()
    }

    /// Whether a function begins at an address: its file says so, or, without that, a call led there.
    pub(crate) fn is_function(&mut self, address: u64, program: &ProgramCode) -> bool {
        if let Some((region, Some(offset))) = program.place_of(address)
            && let Some(starts) = self.starts_of(region, program)
        {
            return starts.is_function(offset);
        }
        self.called.contains(&address)
    }

    /// Whether two addresses belong to different functions.
    fn leaves_function(&mut self, from: u64, to: u64, program: &ProgramCode) -> bool {
        let (one, other) = (program.place_of(from), program.place_of(to));
        if one.map(|(region, _)| region) != other.map(|(region, _)| region) {
            return true;
        }
        if let (Some((region, Some(one))), Some((_, Some(other)))) = (one, other)
            && let Some(starts) = self.starts_of(region, program)
        {
            return starts.divide(one, other);
        }
        begins_between(&self.called, from, to)
    }
}

/// Whether a called function begins behind the lower of two addresses, up to the other one.
fn begins_between(called: &BTreeSet<u64>, from: u64, to: u64) -> bool {
    let range = (Bound::Excluded(from.min(to)), Bound::Included(from.max(to)));
    called.range(range).next().is_some()
}
