//! The counts that a counting collector would state of a stepped program.

use std::collections::HashMap;

use treering_profile::{
    BranchCount, BranchKind, CodeAddress, PartialCount, Process, ProcessId, Profile, RecursionRule, Run,
    RunId, ThreadId, TranslatedBlock,
};

use super::places::Places;
use super::{Observer, Step, SteppedProcess};

/// Makes a profile of translated blocks and branches out of steps: the same tables that a
/// translator fills, from an independent source.
///
/// Blocks begin where execution arrives and end at whatever may lead elsewhere, at system calls, and
/// after a number of instructions that may be set: a small one makes blocks that overlap a lot. Of
/// blocks that a signal leaves halfway, every other one counts as a whole with the rest taken
/// away again, and the others as the part that ran.
#[derive(Debug)]
pub struct StepCounts {
    profile: Profile,
    longest: u32,
    places: Places,
    images: HashMap<u32, ProcessId>,
    threads: HashMap<(u32, u32), ThreadId>,
    open: HashMap<ThreadId, Open>,
    blocks: HashMap<(ThreadId, CodeAddress, u32, u32), u64>,
    branches: HashMap<(ThreadId, BranchKind, Option<CodeAddress>, Option<CodeAddress>), u64>,
    partials: Vec<PartialCount>,
}

/// The block that a thread is in.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: CodeAddress,
    length: u32,
    instructions: u32,
}

impl Open {
    fn at(start: CodeAddress) -> Self {
        Self { start, length: 0, instructions: 0 }
    }

    fn grow(&mut self, length: u8) {
        self.length += u32::from(length);
        self.instructions += 1;
    }
}

impl StepCounts {
    /// Makes blocks of at most that many instructions.
    ///
    /// # Panics
    /// When that is 0.
    pub fn new(longest: u32) -> Self {
        assert!(longest > 0, "a block has an instruction at least");
        let mut profile = Profile::new(RecursionRule::Full);
        profile.metadata.collector = "single steps".to_owned();
        profile.add_run(Run::default());
        Self {
            profile,
            longest,
            places: Places::default(),
            images: HashMap::new(),
            threads: HashMap::new(),
            open: HashMap::new(),
            blocks: HashMap::new(),
            branches: HashMap::new(),
            partials: Vec::new(),
        }
    }

    /// The profile, with nothing resolved or recovered.
    pub fn finish(self) -> Profile {
        let mut profile = self.profile;
        let block = |((thread, start, length, instructions), executions)| TranslatedBlock {
            thread,
            start,
            length,
            instructions,
            executions,
        };
        profile.code.translated = self.blocks.into_iter().map(block).collect();
        let branch =
            |((thread, kind, site, target), count)| BranchCount { thread, kind, site, target, count };
        profile.code.branches = self.branches.into_iter().map(branch).collect();
        profile.code.partials = self.partials;
        profile.code.bytes = self.places.into_bytes();
        profile.code.compact();
        profile
    }

    fn thread(&mut self, process: &SteppedProcess, tid: u32) -> ThreadId {
        let profile = &mut self.profile;
        *self.threads.entry((process.image(), tid)).or_insert_with(|| {
            let of = *self.images.entry(process.image()).or_insert_with(|| {
                let name = process.name();
                profile.add_process(Process { run: RunId::new(0), pid: process.pid(), name })
            });
            profile.add_thread(of, tid, process.name())
        })
    }

    fn place(&mut self, process: &mut SteppedProcess, at: u64) -> CodeAddress {
        self.places.place(&mut self.profile, process, at)
    }

    fn branch(
        &mut self,
        thread: ThreadId,
        kind: BranchKind,
        site: Option<CodeAddress>,
        target: Option<CodeAddress>,
    ) {
        *self.branches.entry((thread, kind, site, target)).or_default() += 1;
    }

    fn executed(&mut self, process: &mut SteppedProcess, thread: ThreadId, at: u64, next: Option<u64>) {
        let instruction = process.instruction(at);
        let site = self.place(process, at);
        let target = next.map(|next| self.place(process, next));
        let open = self.open.entry(thread).or_insert(Open::at(site));
        open.grow(instruction.length);
        let falls_through = next == Some(at.wrapping_add(instruction.length.into()));
        let ends = instruction.branch.is_some() || instruction.is_system_call || !falls_through;
        if ends || open.instructions >= self.longest {
            let done = *open;
            let key = (thread, done.start, done.length, done.instructions);
            *self.blocks.entry(key).or_default() += 1;
            match target {
                Some(target) => self.open.insert(thread, Open::at(target)),
                None => self.open.remove(&thread),
            };
        }
        let conditional = matches!(instruction.branch, None | Some(BranchKind::Conditional));
        if falls_through && conditional {
            return;
        }
        let kind = match (target, instruction.branch) {
            (None, _) => BranchKind::End,
            (_, Some(kind)) => kind,
            (_, None) if instruction.is_system_call => BranchKind::SignalReturn,
            (_, None) => BranchKind::Other,
        };
        self.branch(thread, kind, Some(site), target);
    }

    fn signal(&mut self, process: &mut SteppedProcess, thread: ThreadId, at: u64, handler: Option<u64>) {
        let site = self.place(process, at);
        let target = handler.map(|handler| self.place(process, handler));
        self.branch(thread, BranchKind::Signal, Some(site), target);
        let done = self.open.remove(&thread);
        if let Some(done) = done.filter(|done| done.instructions > 0) {
            if self.partials.len().is_multiple_of(2) {
                self.partials.push(part(thread, &done, 1));
            } else {
                self.take_back(process, thread, done, at);
            }
        }
        if let Some(target) = target {
            self.open.insert(thread, Open::at(target));
        }
    }

    /// Counts a block as if it had run to its end, and takes back what did not run of it.
    fn take_back(&mut self, process: &mut SteppedProcess, thread: ThreadId, done: Open, from: u64) {
        let (mut block, mut rest, mut at) = (done, Open::at(done.start.offset(done.length.into())), from);
        loop {
            let instruction = process.instruction(at);
            block.grow(instruction.length);
            rest.grow(instruction.length);
            at = at.wrapping_add(instruction.length.into());
            let ends = instruction.branch.is_some() || instruction.is_system_call;
            if ends || block.instructions >= self.longest {
                break;
            }
        }
        *self.blocks.entry((thread, block.start, block.length, block.instructions)).or_default() += 1;
        self.partials.push(part(thread, &rest, -1));
    }
}

fn part(thread: ThreadId, part: &Open, executions: i64) -> PartialCount {
    let Open { start, length, instructions } = *part;
    PartialCount { thread, start, length, instructions, executions }
}

impl Observer for StepCounts {
    fn step(&mut self, process: &mut SteppedProcess, tid: u32, step: Step) {
        let thread = self.thread(process, tid);
        match step {
            Step::Start { at } => {
                let target = self.place(process, at);
                self.branch(thread, BranchKind::Start, None, Some(target));
                self.open.insert(thread, Open::at(target));
            }
            Step::Executed { at, next } => self.executed(process, thread, at, next),
            Step::Signal { at, handler } => self.signal(process, thread, at, handler),
        }
    }
}
