use std::collections::BTreeSet;

use treering_profile::{
    BasicBlock, BlockExecutions, BlockId, BranchCount, BranchKind, CodeAddress, CodeSpace, Module,
    ModuleKind, RecursionRule, StatedAddress, StatedLine,
};

use super::*;

/// `for` on line 2 around line 3, run four times; line 4 is never reached.
///
/// 0x10 line 1, 2 (jump to 0x18); 0x14 line 3; 0x16 line 2; 0x18 line 2 (branch to 0x14); 0x1a line 5; 0x1c line 4
fn counted() -> (Profile, StatedCode) {
    let mut profile = Profile::new(RecursionRule::Full);
    let thread = profile.add_single_thread("demo");
    let path = profile.strings.intern("demo");
    let module = profile.modules.intern(Module { path, build_id: Box::default(), kind: ModuleKind::Elf });
    let space = profile.code.spaces.intern(CodeSpace { module: Some(module), generation: 0 });
    let at = |address| CodeAddress { space, address: StatedAddress(address) };
    let block =
        |start, lengths: &[u8]| BasicBlock { start: at(start), lengths: lengths.into(), function: None };
    profile.code.blocks =
        vec![block(0x10, &[2, 2]), block(0x14, &[2, 2]), block(0x18, &[2]), block(0x1a, &[2])];
    for (block, executions) in [1, 4, 5, 1].into_iter().enumerate() {
        let block = BlockId::from_usize(block);
        profile.code.executions.push(BlockExecutions { thread, block, executions });
    }
    let branch = |kind, site: u64, target: Option<u64>, count| BranchCount {
        thread,
        kind,
        site: Some(at(site)),
        target: target.map(at),
        count,
    };
    profile.code.branches = [
        branch(BranchKind::Jump, 0x12, Some(0x18), 1),
        branch(BranchKind::Conditional, 0x18, Some(0x14), 4),
        branch(BranchKind::Return, 0x1a, None, 1),
    ]
    .into();
    let line = |start, end, line| StatedLine { code: start..end, file: 0, line };
    let lines = vec![
        line(0x10, 0x12, 1),
        line(0x12, 0x14, 2),
        line(0x14, 0x16, 3),
        line(0x16, 0x1a, 2),
        line(0x1a, 0x1c, 5),
        line(0x1c, 0x20, 4),
    ];
    let function = StatedFunction {
        name: "f".into(),
        linkage_name: "f".into(),
        file: "f.c".into(),
        line: 1,
        column: 5,
        piece: Piece::default(),
        code: std::iter::once(0x10..0x20).collect(),
        inlined: Vec::new(),
    };
    (profile, StatedCode { module, files: vec!["f.c".into()], lines, functions: vec![function] })
}

#[test]
fn lines_count_arrivals_and_what_was_not_executed_is_there() {
    let (profile, stated) = counted();
    let idle = idle_code(&profile, &stated);
    assert_eq!(idle, std::iter::once(0x1c..0x20).collect::<Vec<_>>());
    let idle = vec![IdleBlock { code: 0x1c..0x20, branch: Some(0x1e) }];
    let module = CoveredModule { stated, idle, unknown_branches: BTreeSet::new() };
    let coverage = Coverage::of(&profile, &[module]);
    let [file] = &coverage.files[..] else { panic!("one file: {coverage:?}") };
    let lines: Vec<_> =
        file.lines.iter().map(|(line, row)| (*line, row.executions, row.has_idle_code)).collect();
    assert_eq!(lines, [(1, 1, false), (2, 5, false), (3, 4, false), (4, 0, true), (5, 1, false)]);
    let ways = Some(Ways { taken: 4, not_taken: 1 });
    assert_eq!(file.lines[&2].branches, [BranchCoverage { site: 0x18, ways }]);
    assert_eq!(file.lines[&4].branches, [BranchCoverage { site: 0x1e, ways: None }]);
    let function = &file.functions[0];
    assert_eq!((function.calls, function.blocks, function.executed_blocks, function.last_line), (1, 5, 4, 5));
    assert_eq!((coverage.lines(), coverage.functions()), ((5, 4), (1, 1)));
}
