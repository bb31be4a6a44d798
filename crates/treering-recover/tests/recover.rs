//! Basic blocks recovered from real programs, executed in single steps.
//!
//! Steps are counted as blocks of one instruction, which is the truth, and as blocks that overlap in many ways; the
//! recovered blocks of both must be equal to the last execution.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use treering_profile::{
    BasicBlock, BranchKind, CodeAddress, CodeCounts, ModuleKind, OfThread as _, PartialCount, Profile,
    ThreadId, TranslatedBlock,
};
use treering_recover::{KnownInstructions, Recovered, recover};
use treering_testing::SharedRuns;
use treering_testing::programs::{CONTROL_FLOW, FREESTANDING, LEAF_THREADS, OBJECTS, REWRITTEN, SIGNALS};
use treering_testing::single_step::{Observer, Step, StepCounts, Stepped, SteppedProcess, code_files};
use treering_x86::disassembly::{Flow, outline};

/// The same steps, counted as blocks of different lengths.
struct Both {
    single: StepCounts,
    others: Vec<StepCounts>,
}

impl Observer for Both {
    fn step(&mut self, process: &mut SteppedProcess, tid: u32, step: Step) {
        self.single.step(process, tid, step);
        self.others.iter_mut().for_each(|counts| counts.step(process, tid, step));
    }
}

/// The true counts, and those in blocks of at most 2, 5 and 1000 instructions.
fn step(program: &Path, arguments: &[&str]) -> Arc<(Profile, Vec<Profile>)> {
    static RUNS: SharedRuns<Arc<(Profile, Vec<Profile>)>> = SharedRuns::new();
    RUNS.get(program, arguments, || {
        let others = [2, 5, 1000].map(StepCounts::new).into();
        let mut both = Both { single: StepCounts::new(1), others };
        let ended = Stepped::new(program).arguments(arguments).run(&mut both).unwrap();
        assert!(ended.exit_status.is_some());
        Arc::new((both.single.finish(), both.others.into_iter().map(StepCounts::finish).collect()))
    })
}

fn recovered(profile: &Profile, forget: impl Fn(BranchKind) -> bool) -> (CodeCounts, Recovered) {
    let mut code = profile.code.clone();
    code.branches.retain(|row| !forget(row.kind));
    let mut read = code_files(profile);
    let recovered = recover(&mut code, KnownInstructions::default(), &mut read);
    (code, recovered)
}

/// Executions by thread and instruction, as the blocks of one instruction say.
fn truth(profile: &Profile) -> BTreeMap<(ThreadId, CodeAddress), u64> {
    let mut truth = BTreeMap::new();
    for row in &profile.code.translated {
        assert_eq!(row.instructions, 1);
        *truth.entry((row.thread, row.start)).or_default() += row.executions;
    }
    truth
}

fn by_instruction(code: &CodeCounts) -> BTreeMap<(ThreadId, CodeAddress), u64> {
    let mut counts = BTreeMap::new();
    for row in &code.executions {
        for (at, _) in code.blocks[row.block.index()].places() {
            let counted = counts.insert((row.thread, at), row.executions);
            assert_eq!(counted, None, "{at:?} is in two blocks");
        }
    }
    counts
}

/// How often each conditional branch was taken, by thread and site.
fn taken(code: &CodeCounts) -> BTreeMap<(ThreadId, CodeAddress), u64> {
    let rows = code.branches.iter().filter(|row| row.kind == BranchKind::Conditional);
    rows.map(|row| ((row.thread, row.site.unwrap()), row.count)).collect()
}

fn programs() -> Vec<(PathBuf, Vec<&'static str>)> {
    let static_pie = OBJECTS.variant("static", &["-static-pie"]).build().unwrap();
    vec![
        (FREESTANDING.build().unwrap(), vec![]),
        (CONTROL_FLOW.build().unwrap(), vec![]),
        (static_pie, vec![]),
        (SIGNALS.build().unwrap(), vec!["4"]),
        (LEAF_THREADS.build().unwrap(), vec!["3", "40"]),
        (REWRITTEN.build().unwrap(), vec![]),
    ]
}

#[test]
fn overlapping_blocks_give_the_counts_of_single_instructions() {
    for (program, arguments) in programs() {
        let runs = step(&program, &arguments);
        let (single, others) = &*runs;
        let truth = truth(single);
        let statics: Vec<_> = others
            .iter()
            .map(|profile| {
                assert_eq!(profile.code.translated_instructions(), truth.values().sum::<u64>());
                let (code, recovered) = recovered(profile, |_| false);
                assert_eq!((recovered.unreadable_blocks, recovered.negative_counts), (0, 0));
                assert_eq!(code.block_instructions(), truth.values().sum::<u64>());
                assert!(by_instruction(&code) == truth, "{}", program.display());
                conserves_flow(&code, profile);
                code.blocks
            })
            .collect();
        // However execution was cut into blocks, static control flow is the same.
        assert!(statics.windows(2).all(|pair| pair[0] == pair[1]), "{}", program.display());
        assert!(statics[0].len() > 15, "{}: {}", program.display(), statics[0].len());
    }
}

/// Arrivals − signals = executions = departures, at every instruction of every thread.
fn conserves_flow(code: &CodeCounts, profile: &Profile) {
    let executions = by_instruction(code);
    let (mut arrivals, mut out) = (BTreeMap::new(), BTreeMap::new());
    let mut signals: BTreeMap<_, u64> = BTreeMap::new();
    for row in &code.branches {
        if let Some(target) = row.target {
            *arrivals.entry((row.thread, target)).or_insert(0) += row.count;
        }
        match (row.kind, row.site) {
            (BranchKind::Signal, Some(site)) => *signals.entry((row.thread, site)).or_default() += row.count,
            (_, Some(site)) => *out.entry((row.thread, site)).or_insert(0) += row.count,
            _ => {}
        }
    }
    for row in &code.executions {
        for (at, length) in code.blocks[row.block.index()].places() {
            let left = row.executions.checked_sub(out.get(&(row.thread, at)).copied().unwrap_or(0));
            let falls = left.unwrap_or_else(|| panic!("more leaves {at:?} than is executed"));
            *arrivals.entry((row.thread, at.offset(length.into()))).or_insert(0) += falls;
        }
    }
    arrivals.retain(|_, count| *count > 0);
    for (key, arrived) in arrivals {
        let executed = executions.get(&key).copied().unwrap_or(0);
        let stopped = signals.get(&key).copied().unwrap_or(0);
        let module = profile.code.spaces[key.1.space].module.map(|module| profile.modules[module].path);
        let module = module.map(|path| &profile.strings[path]);
        assert_eq!(arrived, executed + stopped, "{key:?} {module:?}");
    }
}

#[test]
fn branches_that_were_not_counted_are_worked_out_or_said_to_be_unknown() {
    for (program, arguments) in programs() {
        let runs = step(&program, &arguments);
        let (single, others) = &*runs;
        let direct = |kind| matches!(kind, BranchKind::Conditional | BranchKind::Jump | BranchKind::Call);
        let (stated, none_unknown) = recovered(single, |_| false);
        for forget_returns in [false, true] {
            let forget = |kind| direct(kind) || (forget_returns && kind == BranchKind::Return);
            let (code, recovered) = recovered(&others[2], forget);
            let truth = taken(&stated);
            let found = taken(&code);
            for (key, count) in &found {
                assert_eq!(*count, truth.get(key).copied().unwrap_or(0), "{}: {key:?}", program.display());
            }
            let all = conditional_sites(&code, &others[2]);
            let share = found.len() as f64 / all as f64;
            assert!(share > 0.5, "{}: {share}", program.display());
            assert!(recovered.unknown_branches >= none_unknown.unknown_branches);
            assert!(found.len() + recovered.unknown_branches * code.threads() >= all);
        }
        for kind in [BranchKind::Jump, BranchKind::Call] {
            let count = |code: &CodeCounts| -> u64 {
                code.branches.iter().filter(|row| row.kind == kind).map(|row| row.count).sum()
            };
            assert_eq!(count(&recovered(&others[0], direct).0), count(&stated));
        }
    }
}

trait Threads {
    fn threads(&self) -> usize;
}

impl Threads for CodeCounts {
    fn threads(&self) -> usize {
        let mut threads: Vec<_> = self.executions.iter().map(|row| row.thread).collect();
        threads.dedup();
        threads.len()
    }
}

/// How many conditional branches were executed, each counted for each thread.
fn conditional_sites(code: &CodeCounts, profile: &Profile) -> usize {
    let mut read = code_files(profile);
    let mut bytes = |at: CodeAddress, length: u8| {
        let kept = code.bytes.iter().find_map(|row| {
            let into =
                at.address.0.checked_sub(row.start.address.0).filter(|_| row.start.space == at.space)?;
            row.bytes.get(into as usize..).filter(|rest| !rest.is_empty()).map(<[u8]>::to_vec)
        });
        kept.or_else(|| read(at, length.into())).unwrap()
    };
    let mut is_conditional = |block: &BasicBlock| {
        let (last, length) = block.places().last().unwrap();
        let found = outline(&bytes(last, length), last.address.0).unwrap();
        matches!(found.flow, Flow::Conditional(_))
    };
    let blocks: Vec<bool> = code.blocks.iter().map(&mut is_conditional).collect();
    code.executions.iter().filter(|row| blocks[row.block.index()]).count()
}

#[test]
fn code_that_cannot_be_read_keeps_its_executions() {
    let runs = step(&FREESTANDING.build().unwrap(), &[]);
    let (single, others) = &*runs;
    let mut code = others[2].code.clone();
    let found = recover(&mut code, KnownInstructions::default(), &mut |_, _| None);
    assert!(found.unreadable_blocks > 10);
    assert_eq!(code.block_instructions(), truth(single).values().sum::<u64>());
    let mut other_bytes = others[2].code.clone();
    let found =
        recover(&mut other_bytes, KnownInstructions::default(), &mut |_, length| Some(vec![0x90; length]));
    assert!(found.unreadable_blocks > 5);
    assert_eq!(other_bytes.block_instructions(), code.block_instructions());
    let mut profile = others[2].clone();
    profile.code = code;
    assert_eq!(profile.validate(), Ok(()));
}

#[test]
fn bytes_that_are_no_instruction_are_not_missed() {
    let mut profile = step(&FREESTANDING.build().unwrap(), &[]).0.clone();
    let first = profile.code.translated.iter().next().unwrap();
    profile.code.translated = [TranslatedBlock { length: 0, instructions: 0, ..first }].into();
    let found = recover(&mut profile.code, KnownInstructions::default(), &mut |_, _| None);
    assert_eq!(found.unreadable_blocks, 0);
    assert!(profile.code.blocks.is_empty());
}

#[test]
fn threads_that_did_the_same_have_each_what_one_alone_has() {
    let others = &step(&SIGNALS.build().unwrap(), &[]).1;
    let one = &others[1];
    let (alone, _) = recovered(one, |_| false);
    let stopped = one.code.partials.iter().map(|row| row.thread).next().unwrap();
    let mut code = one.code.clone();
    let last = one.threads.len() as u32;
    let more = [last, last + 1, last + 2].map(ThreadId::new);
    for thread in more {
        code.translated.extend(one.code.translated.of(stopped).map(|row| row.with_thread(thread)));
        code.branches.extend(one.code.branches.of(stopped).map(|row| row.with_thread(thread)));
        // The last one was not stopped within a block.
        let parts = one.code.partials.iter().filter(|row| row.thread == stopped && thread != more[2]);
        code.partials.extend(parts.map(|row| PartialCount { thread, ..*row }));
    }
    let mut profile = one.clone();
    profile.code = code;
    let (all, _) = recovered(&profile, |_| false);
    let of = |code: &CodeCounts, thread| -> BTreeMap<CodeAddress, u64> {
        by_instruction(code)
            .into_iter()
            .filter(|((of, _), _)| *of == thread)
            .map(|((_, at), n)| (at, n))
            .collect()
    };
    for thread in [stopped, more[0], more[1]] {
        assert_eq!(of(&all, thread), of(&alone, stopped));
        let branches = |code: &CodeCounts, of| -> Vec<_> {
            code.branches.of(of).map(|row| row.with_thread(stopped)).filter(|row| row.count > 0).collect()
        };
        assert_eq!(branches(&all, thread), branches(&alone, stopped));
    }
    assert_ne!(of(&all, more[2]), of(&alone, stopped));
    assert_eq!(all.executions.list(more[0]), all.executions.list(more[1]));
}

#[test]
fn both_contents_of_rewritten_code_are_counted_apart() {
    let others = &step(&REWRITTEN.build().unwrap(), &[]).1;
    let (code, _) = recovered(&others[2], |_| false);
    let generated = |at: CodeAddress| {
        let module = others[2].code.spaces[at.space].module.unwrap();
        others[2].modules[module].kind == ModuleKind::Jit
    };
    let rows = code.executions.iter().filter(|row| generated(code.blocks[row.block.index()].start));
    let mut counts: Vec<_> =
        rows.map(|row| (row.executions, code.blocks[row.block.index()].instructions())).collect();
    counts.sort_unstable();
    // The `ret` of the first is at an address at which the second has other bytes.
    let executed: u64 = counts.iter().map(|(executions, length)| executions * *length as u64).sum();
    assert_eq!(executed, 5 * 2 + 7 * 3, "{counts:?}");
}
