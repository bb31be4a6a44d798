//! The cost of sampling for the program itself: processor time of short runs, with and without a sampler attached to
//! the process that starts them.
//!
//! Windows with and without a sampler follow each other within a second or two, because the speed of a virtual machine
//! drifts by more than the measured effect. Within a window, other work of the machine can only add to some runs.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use treering_testing::programs::Workload;

use crate::frame::interleaved;
use crate::launch::{Run, now};
use crate::sampler::Sampler;
use crate::statistics::Spread;

/// How long a sampler is given to begin.
const START: Duration = Duration::from_millis(400);
/// How long runs are looked at.
const WINDOW: Duration = Duration::from_millis(900);
/// How long a sampler is given to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The ratios of a workload's cost under each sampler to that under none, one for each round.
pub(super) fn measure(
    samplers: &[Sampler],
    workload: &Workload,
    rounds: usize,
    directory: &Path,
) -> Result<Vec<Vec<f64>>, String> {
    let repeater = Repeater::start(workload, directory)?;
    let mut costs =
        interleaved(samplers.len() + 1, rounds, |way| repeater.window(samplers.get(way), directory))?;
    let alone = costs.pop().unwrap_or_default();
    let ratios = |costs: Vec<f64>| costs.iter().zip(&alone).map(|(cost, alone)| cost / alone).collect();
    Ok(costs.into_iter().map(ratios).collect())
}

/// A program that is run again and again, for as long as this lives.
struct Repeater {
    child: Child,
    runs: PathBuf,
}

impl Repeater {
    fn start(workload: &Workload, directory: &Path) -> Result<Self, String> {
        let runs = directory.join("runs.txt");
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command.arg("repeat").arg(&runs).arg(&workload.program).args(&workload.arguments);
        let child = command.stdin(Stdio::null()).spawn().map_err(|error| error.to_string())?;
        Ok(Self { child, runs })
    }

    /// The cost of a run while the sampler is attached, or while none is: the lower quartile.
    fn window(&self, sampler: Option<&Sampler>, directory: &Path) -> Result<f64, String> {
        let name = sampler.map_or("no sampler", |sampler| sampler.kind.name);
        let attached = match sampler {
            Some(sampler) => {
                let mut command = sampler.attach(&sampler.file(directory), self.child.id());
                let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                Some(quiet.spawn().map_err(|error| format!("cannot attach {name}: {error}"))?)
            }
            None => None,
        };
        std::thread::sleep(START);
        let begin = now();
        std::thread::sleep(WINDOW);
        let end = now();
        attached.map_or(Ok(()), finish)?;
        let text = std::fs::read_to_string(&self.runs).map_err(|error| error.to_string())?;
        let runs = Run::all(&text);
        let inside = runs.iter().filter(|run| begin <= run.time.0 && run.time.1 <= end);
        let costs: Vec<f64> = inside.map(|run| run.cost).collect();
        Spread::of(&costs).map(|costs| costs.low).ok_or_else(|| format!("no run was whole beside {name}"))
    }
}

impl Drop for Repeater {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a sampler as Ctrl-C does.
fn finish(mut sampler: Child) -> Result<(), String> {
    let gone = |error: std::io::Error| format!("a sampler is gone: {error}");
    if sampler.try_wait().map_err(gone)?.is_some() {
        return Err("a sampler has ended by itself".to_owned());
    }
    kill(Pid::from_raw(sampler.id().cast_signed()), Signal::SIGINT).map_err(|error| error.to_string())?;
    let begun = Instant::now();
    while sampler.try_wait().map_err(gone)?.is_none() {
        if begun.elapsed() > PATIENCE {
            sampler.kill().map_err(gone)?;
            sampler.wait().map_err(gone)?;
            return Err("a sampler does not end".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
