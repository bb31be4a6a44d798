//! `cargo xtask bench octave`: the cost of profiling Octave, in the ways there are.
//!
//! Octave works for some minutes in slices of some hundredths of a second, with and without
//! profiling in turns; see `slice` for how they are compared. Where its memory happens to lie makes a
//! difference of a percent for the whole life of a process, so it is begun anew again and again.

mod page;
mod slice;

use crate::frame::{Bench, Report};
use crate::measure::text_of;
use crate::workspace;
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

pub(super) fn run(bench: &Bench) -> Result<Report, String> {
    let library = workspace::target_directory().join("release/libtreering_octave.so");
    std::fs::copy(&library, bench.directory.join("__treering__.mex"))
        .map_err(|error| format!("{}: {error}", library.display()))?;
    // Each round is a process of its own.
    let (processes, seconds) = (bench.rounds(12, 1), if bench.quick { 15 } else { 50 });
    eprintln!("measuring for {} seconds", processes * seconds);
    let printed: String = (0..processes).map(|_| slices(bench, seconds)).collect::<Result<_, _>>()?;
    let slices = Slices::read(&printed)?;
    check(&slices)?;
    Ok(Report { tables: page::tables(&slices), ..Report::default() })
}

/// The output of the script, which takes slices for so many seconds.
fn slices(bench: &Bench, seconds: usize) -> Result<String, String> {
    let mut octave = bench.command("octave-cli --norc --path .");
    octave.arg(workspace::root().join("fixtures/octave/bench.m")).arg(seconds.to_string());
    text_of(octave.args(MODES.iter().map(|(_, words)| words)))
}

/// Every mode that profiles must have counted the calls, and the others none.
fn check(slices: &Slices) -> Result<(), String> {
    for ((workload, mode), pairs) in &slices.0 {
        let (name, words) = MODES.get(*mode).ok_or("the script knows other modes")?;
        let wrong = pairs.iter().find(|pair| (pair.calls > 0.0) != (*words != "none"));
        if let Some(pair) = wrong {
            return Err(format!("{name} has counted {} calls of {workload}", pair.calls));
        }
    }
    Ok(())
}
