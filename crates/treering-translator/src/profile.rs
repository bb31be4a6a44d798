//! Counts as a profile of addresses, with nothing named or recovered yet.

use std::collections::HashMap;

use treering_profile::{
    BranchCount, PartialCount, Process, ProcessId, Profile, RecursionRule, Run, RunId, ThreadId,
    TranslatedBlock, Uncounted,
};

use crate::counts::{NotCounted, ProgramCounts, ThreadCounts};
use crate::places::{Places, ProgramPlaces};
use crate::run::Counts;
use crate::salvage::Salvaged;

impl Counts {
    /// The counts as a profile: translated blocks and branches of every thread, stated by module.
    ///
    /// The addresses are to be named, and the blocks to be recovered, by others.
    pub fn profile(&self) -> Profile {
        profile(&self.programs, &self.not_counted)
    }
}

impl Salvaged {
    /// As [`Counts::profile`], with what can be missing among what was not counted.
    pub fn profile(&self) -> Profile {
        profile(&self.programs, &self.not_counted)
    }
}

fn profile(programs: &[ProgramCounts], not_counted: &[NotCounted]) -> Profile {
    let mut profile = Profile::new(RecursionRule::Full);
    profile.metadata.collector = "treering count".to_owned();
    profile.add_run(Run::default());
    let mut places = Places::default();
    let mut processes = HashMap::new();
    for program in programs {
        let known = places.program(&mut profile, program);
        for thread in &program.threads {
            let process = add_process(&mut profile, program, thread.pid);
            processes.insert(thread.pid, process);
            let tid = thread.tid.cast_unsigned();
            let id = profile.add_thread(process, tid, thread.name.clone());
            add_thread(&mut profile, program, thread, &known, id);
        }
    }
    for note in not_counted {
        let detail = profile.strings.intern(&note.detail);
        let process = processes.get(&note.pid).copied();
        profile.code.uncounted.push(Uncounted {
            reason: note.reason,
            process,
            thread: None,
            at: None,
            detail,
        });
    }
    profile.code.bytes = places.into_bytes();
    profile
}

/// The process of a program; one that became several programs is there once for each.
fn add_process(profile: &mut Profile, program: &ProgramCounts, pid: i32) -> ProcessId {
    let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let process = Process { run: RunId::new(0), pid: pid.cast_unsigned(), name };
    match profile.processes.iter().position(|known| *known == process) {
        Some(known) => ProcessId::from_usize(known),
        None => profile.add_process(process),
    }
}

fn add_thread(
    profile: &mut Profile,
    program: &ProgramCounts,
    thread: &ThreadCounts,
    places: &ProgramPlaces,
    id: ThreadId,
) {
    let blocks = &program.blocks;
    for &(number, executions) in &thread.executions {
        let block = &blocks[number as usize];
        profile.code.translated.push(TranslatedBlock {
            thread: id,
            start: places.in_block(blocks, number, block.address),
            length: block.length,
            instructions: block.instructions,
            executions,
        });
    }
    for partial in &thread.partials {
        profile.code.partials.push(PartialCount {
            thread: id,
            start: places.in_block(blocks, partial.block, partial.address),
            length: partial.length,
            instructions: partial.instructions,
            executions: partial.executions,
        });
    }
    for branch in &thread.branches {
        let site = branch.site.map(|site| match branch.block {
            Some(block) => places.in_block(blocks, block, site),
            None => places.find(profile, blocks, site),
        });
        let target = branch.target.map(|target| places.find(profile, blocks, target));
        let (kind, count) = (branch.kind, branch.count);
        profile.code.branches.push(BranchCount { thread: id, kind, site, target, count });
    }
}
