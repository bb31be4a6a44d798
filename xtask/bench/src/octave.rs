//! `cargo xtask bench octave`: what profiling of Octave costs, in the ways there are.
//!
//! Octave works for some minutes in slices of some hundredths of a second, with and without
//! profiling in turns; see `slice` for how they are compared. Where its memory happens to lie makes a
//! difference of a percent for the whole life of a process, so it is begun anew again and again.

mod line;
mod page;
mod slice;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{is_quick, workspace};
use line::Line;
use slice::Slices;

/// A way to profile: its name, and words for the script.
type Mode = (&'static str, &'static str);

/// The ways, the one without profiling first; those from the fifth on are measured less often.
const MODES: [Mode; 9] = [
    ("none", "none"),
    ("Octave's profile", "octave"),
    ("flat", "treering flat"),
    ("graph", "treering graph"),
    ("none, again", "none"),
    ("graph -args", "treering graph -args"),
    ("graph -lines", "treering graph -lines"),
    ("graph -memory", "treering graph -memory"),
    ("graph -operators", "treering graph -operators"),
];
const OCTAVE: usize = 1;
const FLAT: usize = 2;
const GRAPH: usize = 3;

/// For how long slices are taken in each process, and how many of those there are.
const SECONDS: u32 = 50;
const PROCESSES: u32 = 12;
const QUICK_SECONDS: u32 = 15;

/// Runs `bench octave`.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    measure(is_quick(words)?)
}

fn measure(quick: bool) -> Result<(), String> {
    let folder = workspace::target_directory().join("bench-octave");
    prepare(&folder)?;
    let (processes, seconds) = if quick { (1, QUICK_SECONDS) } else { (PROCESSES, SECONDS) };
    eprintln!("measuring for {} seconds", processes * seconds);
    let printed: String = (0..processes).map(|_| slices(&folder, seconds)).collect::<Result<_, _>>()?;
    let slices = Slices::read(&printed);
    check(&slices)?;
    let line = Line::of(&slices, GRAPH);
    let page = page::page(&slices, line.as_ref(), quick);
    print!("{page}");
    let data = format!("{:#}\n", page::data(&slices, line.as_ref()));
    let plot = line.map(|line| line.plot()).unwrap_or_default();
    for (name, text) in [("octave.md", &page), ("octave.svg", &plot), ("octave.json", &data)] {
        super::write(&folder, name, text)?;
    }
    Ok(())
}

/// Builds the library and puts it where Octave finds it.
fn prepare(folder: &Path) -> Result<(), String> {
    super::build("treering-octave")?;
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let library = workspace::target_directory().join("release/libtreering_octave.so");
    std::fs::copy(&library, folder.join("__treering__.mex"))
        .map(|_| ())
        .map_err(|error| format!("{}: {error}", library.display()))
}

fn script() -> PathBuf {
    workspace::root().join("fixtures/octave/bench.m")
}

/// What the script prints.
fn slices(folder: &Path, seconds: u32) -> Result<String, String> {
    let output = Command::new("octave-cli")
        .args(["--norc", "--path"])
        .arg(folder)
        .arg(script())
        .arg(seconds.to_string())
        .args(MODES.iter().map(|(_, words)| words))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run octave-cli: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Every mode that profiles must have counted the calls, and the others none.
fn check(slices: &Slices) -> Result<(), String> {
    if slices.rounds() == 0 {
        return Err("not one round was whole".to_owned());
    }
    for ((workload, mode), pairs) in slices.pairs() {
        let (name, words) = MODES.get(*mode).ok_or("the script knows other modes")?;
        let wrong = pairs.iter().find(|pair| (pair.calls > 0.0) != (*words != "none"));
        if let Some(pair) = wrong {
            return Err(format!("{name} has counted {} calls of {workload}", pair.calls));
        }
    }
    Ok(())
}
