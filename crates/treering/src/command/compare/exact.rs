//! Both commands counted exactly, the base twice.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use treering_compare::{Difference, FunctionChange, Options, Sides, compare_beyond_chance};
use treering_measure::{Launch, Output};
use treering_profile::{FunctionId, Profile};

use crate::command::count::environment::PADDING;
use crate::command::diff::code;
use crate::failure::{Context as _, Failure};
use crate::open::open_profile;

use super::compilers;
use super::interrupt::Interrupt;
use super::progress::Progress;
use super::timed::{differ, succeed};

/// The difference of the counts.
pub(super) struct Exact {
    pub(super) difference: Difference,
    /// How often the base was counted.
    pub(super) runs: usize,
    /// Whether the base writes something else in each run.
    pub(super) output_varies: bool,
    /// Whether the programs' paths have different lengths, at which programs and libraries look.
    pub(super) paths_differ: bool,
    /// Surroundings of the programs that were not held, and random numbers that were.
    pub(super) held: Vec<String>,
    /// Code of either side that could not be counted exactly.
    pub(super) not_counted: Vec<String>,
    /// The compilers of both, where they differ and that forbids a verdict.
    pub(super) compilers: Option<Sides<String>>,
    /// Functions that cost much and have equal code at another place within a line of the cache, which may change their
    /// time.
    pub(super) moved: Vec<String>,
}

/// How often base is counted again if two runs of it differ.
const RUNS_OF_CHANCE: usize = 5;

/// Counts both.
pub(super) fn count(
    commands: &Sides<Launch>,
    ignore_output: bool,
    cpu: Option<&str>,
    any_compiler: bool,
    interrupt: &Interrupt,
) -> Result<Exact, Failure> {
    let progress = Progress::begin();
    let folder = treering_temporary::Folder::create("compare").context("cannot make a folder for counts")?;
    let longest = longest(commands);
    let counted = |launch: &Launch, name: &str, doing: &str| -> Result<(Profile, Output), Failure> {
        progress.doing(doing);
        let file = folder.path().join("counts.trg");
        let _ = std::fs::remove_file(&file);
        let launch = counting(launch, &file, longest, cpu)?;
        let sample = succeed(&launch, name, "its exact run", interrupt)?;
        Ok((open_profile(&file)?.profile, sample.output))
    };
    let (base, written) = counted(&commands.base, "base", "counting base")?;
    let recount = || counted(&commands.base, "base", "counting base again");
    let (again, written_again) = recount()?;
    let (head, written_by_head) = counted(&commands.head, "head", "counting head")?;
    let output_varies = written != written_again;
    let path = |launch: &Launch| launch.words.first().map_or(0, |word| word.as_bytes().len());
    let paths_differ = path(&commands.base) != path(&commands.head);
    let profiles = Sides { base: &base, head: &head };
    let (not_counted, held) = (not_counted(&profiles), held(&profiles));
    if !ignore_output && !output_varies && written != written_by_head {
        return Err(differ("", written, written_by_head));
    }
    progress.doing("comparing");
    let options = Options { metric: Some("instructions".to_owned()) };
    let compared = |head: &Profile, again: &[Difference]| {
        let code = code::read(Sides { base: &base, head });
        compare_beyond_chance(&base, head, &options, &code, again).map_err(Failure::new)
    };
    let mut others = vec![compared(&again, &[])?];
    if others[0].functions.iter().any(|row| row.self_cost.change() != 0) {
        for _ in 2..=RUNS_OF_CHANCE {
            others.push(compared(&recount()?.0, &[])?);
        }
    }
    let difference = compared(&head, &others)?;
    let compilers = if any_compiler { None } else { compilers::other(&difference) };
    let (runs, moved) = (others.len() + 1, moved(&difference, &profiles));
    Ok(Exact { moved, difference, runs, output_varies, paths_differ, held, not_counted, compilers })
}

/// The command that counts another, with everything held that moves counts, and all of the environment, as it is the same
/// for both. Variables are longer where its words or its program's name are shorter than the `longest`, so that the stacks
/// of both commands begin at the same address, and so do all other variables.
fn counting(launch: &Launch, file: &Path, longest: [usize; 2], cpu: Option<&str>) -> Result<Launch, Failure> {
    let own = std::env::current_exe().context("cannot find the program treering")?;
    let mut words: Vec<OsString> = vec![own.into_os_string()];
    words.extend(["count", "--tree", "--fixed=*", "--quiet", "--no-sources"].map(OsString::from));
    words.extend(cpu.into_iter().flat_map(|level| ["--cpu", level]).map(OsString::from));
    words.extend(["-o".into(), file.as_os_str().to_owned(), "--".into()]);
    words.extend(launch.words.iter().cloned());
    let mut environment = launch.environment.clone().unwrap_or_else(|| std::env::vars_os().collect());
    environment.retain(|(name, _)| PADDING.iter().all(|padding| name != padding));
    for ((name, longest), length) in PADDING.into_iter().zip(longest).zip(lengths(launch)) {
        environment.push((name.into(), "x".repeat(longest - length).into()));
    }
    Ok(Launch { words, environment: Some(environment), ..launch.clone() })
}

/// How many bytes the kernel puts onto the stack before the variables, for the words, and after them, for the program's
/// path. That of a program that is not found does not matter.
fn lengths(launch: &Launch) -> [usize; 2] {
    let of = |word: &OsStr| word.as_bytes().len() + 1;
    [launch.words.iter().map(|word| of(word)).sum(), launch.program().map_or(0, |path| of(path.as_os_str()))]
}

/// The greater of each length of both commands.
fn longest(commands: &Sides<Launch>) -> [usize; 2] {
    let [base, head] = [&commands.base, &commands.head].map(lengths);
    std::array::from_fn(|at| base[at].max(head[at]))
}

/// Code that the counts lack, with the reason.
fn not_counted(profiles: &Sides<&Profile>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (side, profile) in [("base", profiles.base), ("head", profiles.head)] {
        let lacking = profile.code.uncounted.iter();
        let text =
            lacking.map(|of| format!("{side}: {}: {}", of.reason.as_str(), &profile.strings[of.detail]));
        found.extend(text);
    }
    found.dedup();
    found
}

/// Functions of at least 2 % of the run with equal code at another place within 64 bytes, those that cost most first.
fn moved(difference: &Difference, profiles: &Sides<&Profile>) -> Vec<String> {
    const LINE: u64 = 64;
    let place = |profile: &Profile, functions: &[FunctionId]| {
        functions.iter().find_map(|&id| profile.functions[id].address).map(|address| address.0 % LINE)
    };
    let matters = |row: &&FunctionChange| row.self_cost.head.cost >= difference.run.head.cost / 50;
    let mut moved: Vec<&FunctionChange> = difference.functions.iter().filter(matters).collect();
    moved.retain(|row| {
        let functions = &difference.pairing.groups[row.group].functions;
        let places = (place(profiles.base, &functions.base), place(profiles.head, &functions.head));
        row.code_changed == Some(false) && places.0 != places.1
    });
    moved.sort_by_key(|row| std::cmp::Reverse(row.self_cost.head.cost));
    moved.iter().map(|row| row.name.clone()).collect()
}

/// The notes of `count` on surroundings, each once.
fn held(profiles: &Sides<&Profile>) -> Vec<String> {
    let notes = [profiles.base, profiles.head].into_iter().flat_map(|profile| &profile.metadata.notes);
    let notes = notes.map(|note| note.0.as_str());
    let told =
        notes.filter(|note| note.starts_with("not held: ") || note.contains("random numbers were held"));
    let once: std::collections::BTreeSet<&str> = told.collect();
    once.into_iter().map(str::to_owned).collect()
}
