//! Executed and idle code of a counted program: counts from the profile, lines and idle code from the binaries.

use std::collections::BTreeSet;

use treering_analysis::{Coverage, CoveredModule, block_ends, idle_code};
use treering_profile::{
    CodeAddress, CodeSpaceId, IdleBlock, ModuleId, ModuleKind, Profile, StatedAddress, StatedCode,
};
use treering_recover::{idle_blocks, is_conditional};
use treering_symbols::{CodeReader, Options, Problem, stated_code};

/// Coverage, and its gaps.
pub struct Covered {
    /// The executed code.
    pub coverage: Coverage,
    /// The modules that were executed and that state no lines, and why.
    pub without_lines: Vec<String>,
    /// The modules whose counts are not all known, as they changed while they ran.
    pub changed: Vec<String>,
}

/// The coverage of the executed modules, or only of one, from files that have not changed since. Separate
/// debug information is read for a single module only: that of all is mostly of the system's libraries.
pub fn covered(profile: &Profile, only: Option<ModuleId>) -> Covered {
    let options = Options::default();
    let mut reader = CodeReader::new(profile, &options);
    let (mut modules, mut without_lines, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for module in
        executed_modules(profile).into_iter().filter(|module| only.is_none_or(|only| only == *module))
    {
        let path = &profile.strings[profile.modules[module].path];
        match stated_code(profile, module, only.is_some(), &options) {
            Ok(stated) => modules.push(covered_module(profile, stated, &mut reader)),
            Err(Problem::NoDebugInformation) => {
                without_lines.push(format!("{path}: it has no debug information in itself"));
            }
            Err(problem) => without_lines.push(format!("{path}: {problem}")),
        }
        if spaces(profile, module).count() > 1 {
            changed.push(path.to_owned());
        }
    }
    Covered { coverage: Coverage::of(profile, &modules), without_lines, changed }
}

/// The files of which code was executed.
fn executed_modules(profile: &Profile) -> BTreeSet<ModuleId> {
    let code = &profile.code;
    let executed = code.executions.distinct().filter(|(row, _)| row.executions > 0);
    let modules =
        executed.filter_map(|(row, _)| code.spaces[code.blocks[row.block.index()].start.space].module);
    modules.filter(|&module| profile.modules[module].kind == ModuleKind::Elf).collect()
}

fn spaces(profile: &Profile, module: ModuleId) -> impl Iterator<Item = CodeSpaceId> + '_ {
    let spaces = profile.code.spaces.entries().iter().enumerate();
    let own = spaces.filter(move |(_, space)| space.module == Some(module));
    own.map(|(at, _)| CodeSpaceId::from_usize(at))
}

fn covered_module(profile: &Profile, stated: StatedCode, reader: &mut CodeReader<'_>) -> CoveredModule {
    let module = stated.module;
    let mut idle = Vec::new();
    if let Some(space) = spaces(profile, module).next() {
        for range in idle_code(profile, &stated) {
            let start = CodeAddress { space, address: StatedAddress(range.start) };
            match whole(reader, start, range.end - range.start) {
                Some(bytes) => idle.extend(idle_blocks(&bytes, range.start)),
                None => idle.push(IdleBlock { code: range, branch: None }),
            }
        }
    }
    let counted: BTreeSet<CodeAddress> = profile
        .code
        .branches
        .distinct()
        .filter(|(branch, _)| branch.kind == treering_profile::BranchKind::Conditional)
        .filter_map(|(branch, _)| branch.site)
        .collect();
    let uncounted = block_ends(profile, module).into_iter().filter(|(at, _)| !counted.contains(at));
    let unknown = uncounted.filter(|&(at, length)| {
        reader.read(at, length.into()).is_some_and(|bytes| is_conditional(&bytes, at.address.0))
    });
    CoveredModule { stated, idle, unknown_branches: unknown.map(|(at, _)| at.address.0).collect() }
}

/// All bytes of a range, which are read by pieces.
fn whole(reader: &mut CodeReader<'_>, start: CodeAddress, length: u64) -> Option<Vec<u8>> {
    let length = usize::try_from(length).ok()?;
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let piece = reader.read(start.offset(bytes.len() as u64), length - bytes.len())?;
        bytes.extend_from_slice(&piece);
    }
    Some(bytes)
}
