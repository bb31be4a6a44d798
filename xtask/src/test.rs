//! `cargo xtask test`: every check and every test, and one line that says how they went.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::test_output::{Count, RESULT, Reader};
use crate::{check_dependencies, engines, odd_folder, package, workspace};

/// Runs everything, also after a failure, and ends with the line `N passed, N failed, N skipped`.
pub(crate) fn run() -> ExitCode {
    let still_missing = package::install_missing();
    let missing_engines = engines::install(&engines::FOR_TESTS);
    let mut run = Run::default();
    run.check(STEPS);
    run.tests("tests", lanes());
    run.tests(
        "examples of the documentation, and tests in a folder of another name",
        odd_folder::tests().map(|tests| vec![lane(&["--doc".to_owned()]), tests]),
    );
    run.skipped
        .extend(still_missing.iter().map(|package| format!("the package {} is missing", package.name)));
    run.leave_out(missing_engines.iter().map(|name| format!("skipped: the package {name} is missing")));
    run.conclude()
}

/// The tests of the command line, which take as long as all others, and all others beside them: one long test at the end of
/// a program of tests leaves a processor without work.
fn lanes() -> Result<Vec<Command>, String> {
    let metadata = workspace::metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let (long, others): (Vec<&str>, Vec<&str>) =
        tests.filter_map(|target| target["name"].as_str()).partition(|name| *name == LONGEST);
    if long.is_empty() {
        return Err(format!("no tests are called {LONGEST}"));
    }
    let selected = |names: &[&str]| {
        names.iter().flat_map(|name| ["--test", name]).map(str::to_owned).collect::<Vec<_>>()
    };
    Ok(vec![
        lane(&selected(&long)),
        lane(&[vec!["--lib".to_owned(), "--bins".to_owned()], selected(&others)].concat()),
    ])
}

/// The command that runs some targets' tests. The build is the same whichever they are.
fn lane(targets: &[String]) -> Command {
    let mut test = workspace::cargo();
    test.args(["test", "--workspace", "--no-fail-fast"]).args(targets).args(["--", "--show-output"]);
    // Many tests wait for a program or for the disk, so two lanes with as many as there are processors are not too many.
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    test.env("RUST_TEST_THREADS", processors.to_string());
    test
}

/// The tests of the command line.
const LONGEST: &str = "command_line";

/// Checks and tests that are run one after another, also after a failure.
#[derive(Default)]
pub(crate) struct Run {
    count: Count,
    /// Lines about parts that were left out.
    skipped: Vec<String>,
}

impl Run {
    /// Runs checks.
    pub(crate) fn check(&mut self, steps: &[Step]) {
        for (name, step) in steps {
            println!("== {name}");
            let start = Instant::now();
            let passed = step();
            println!("== {name}: {} in {:.0?}", passed.word(), start.elapsed());
            match passed {
                Passed::Yes => self.count.passed += 1,
                Passed::No => self.count.failed += 1,
                Passed::Skipped(why) => {
                    self.count.skipped += 1;
                    self.skipped.push(format!("skipped: {why}"));
                }
            }
        }
    }

    /// Runs commands that run tests, side by side.
    pub(crate) fn tests(&mut self, name: &str, lanes: Result<Vec<Command>, String>) {
        println!("== {name}");
        let start = Instant::now();
        let read = match lanes {
            Ok(lanes) => {
                let lanes = lanes.into_iter().map(|lane| std::thread::spawn(|| read_tests(lane)));
                let running: Vec<_> = lanes.collect();
                let ended = running.into_iter().map(std::thread::JoinHandle::join);
                ended.map(|lane| lane.unwrap_or_else(|_| Err("the reader panicked".to_owned()))).collect()
            }
            Err(error) => vec![Err(error)],
        };
        println!("== {name}: ended in {:.0?}", start.elapsed());
        read.into_iter().for_each(|lane| self.add(lane));
    }

    fn add(&mut self, read: Result<(Count, bool, Vec<String>), String>) {
        match read {
            Ok((tests, succeeded, skipped)) => {
                self.count.passed += tests.passed;
                self.count.skipped += tests.skipped;
                // A test program that did not build or died prints no result, but cargo fails.
                self.count.failed += tests.failed.max(u64::from(!succeeded));
                self.skipped.extend(skipped);
            }
            Err(error) => {
                eprintln!("{error}");
                self.count.failed += 1;
            }
        }
    }

    /// Notes parts that were left out.
    pub(crate) fn leave_out(&mut self, lines: impl IntoIterator<Item = String>) {
        self.skipped.extend(lines);
    }

    /// Prints what was skipped, and the last line.
    pub(crate) fn conclude(self) -> ExitCode {
        self.skipped.iter().for_each(|what| println!("{what}"));
        let Count { passed, failed, skipped } = self.count;
        println!("{passed} passed, {failed} failed, {skipped} skipped");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// A check with its name; it prints what is wrong.
pub(crate) type Step = (&'static str, fn() -> Passed);

/// How a check went.
pub(crate) enum Passed {
    /// All is well.
    Yes,
    /// Something is wrong.
    No,
    /// It was left out, for this reason.
    Skipped(String),
}

impl From<bool> for Passed {
    fn from(passed: bool) -> Self {
        if passed { Self::Yes } else { Self::No }
    }
}

impl Passed {
    fn word(&self) -> &'static str {
        match self {
            Self::Yes => "passed",
            Self::No => "FAILED",
            Self::Skipped(_) => "skipped",
        }
    }
}

/// The checks before the tests.
const STEPS: &[Step] = &[
    ("formatting", formatting),
    ("lints", || {
        succeeds(workspace::cargo().args(["clippy", "--workspace", "--all-targets", "--quiet"]).args(LINTED))
    }),
    ("formats alone", crate::feature::formats_alone),
    ("dependencies", || (check_dependencies() == ExitCode::SUCCESS && cargo_deny()).into()),
    ("spelling", crate::spelling::check),
    ("documentation", documentation),
    ("page", crate::page::check),
    // Before the tests, whose time is watched: how long compiling takes depends on the machine.
    ("building the tests", || {
        succeeds(workspace::cargo().args(["test", "--workspace", "--no-run", "--quiet"]))
    }),
    ("fuzz targets", || {
        // A workspace of its own, whose dependencies are the same and built already. Not linked with the fuzzer.
        let check = ["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--no-default-features"];
        succeeds(workspace::cargo().args(check).arg("--target-dir").arg(workspace::target_directory()))
    }),
];

/// The words behind a command of clippy.
pub(crate) const LINTED: [&str; 3] = ["--", "-D", "warnings"];

/// Checks the format of all sources.
pub(crate) fn formatting() -> Passed {
    match succeeds(workspace::cargo().args(["fmt", "--all", "--check"])) {
        // It is a workspace of its own.
        Passed::Yes => {
            succeeds(workspace::cargo().args(["fmt", "--check", "--manifest-path", "query/Cargo.toml"]))
        }
        other => other,
    }
}

/// Makes the documentation, and refuses warnings.
///
/// Rustdoc reads a file of each crate that the compiler has checked. The lints have just left these files, with clippy
/// as the compiler and with development dependencies, so the same is asked for here. It saves time only: where cargo
/// takes the files for others, it makes them anew.
fn documentation() -> Passed {
    let mut document = workspace::cargo();
    document.args([
        "doc",
        "--workspace",
        "--no-deps",
        "--quiet",
        "--lib",
        "--bins",
        "--examples",
        "--exclude",
        "treering-pg-static",
    ]);
    document.env("RUSTDOCFLAGS", "-D warnings");
    if let Some(driver) = clippy_driver() {
        // As `cargo clippy -- -D warnings` sets them.
        document.env("RUSTC_WORKSPACE_WRAPPER", driver);
        document.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    }
    succeeds(&mut document)
}

/// The compiler that `cargo clippy` runs.
fn clippy_driver() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let driver = Path::new(std::str::from_utf8(&output.stdout).ok()?.trim()).join("bin/clippy-driver");
    driver.is_file().then_some(driver)
}

/// Runs a command to its end.
pub(crate) fn succeeds(command: &mut Command) -> Passed {
    match command.stdin(Stdio::null()).status() {
        Ok(status) => status.success().into(),
        Err(error) => {
            eprintln!("cannot run {command:?}: {error}");
            Passed::No
        }
    }
}

/// Runs `cargo deny` where it is installed: it knows more than [`crate::licence`] does. Without advisories, which it
/// fetches from elsewhere: a test must not fail because of what was found out about a dependency since.
fn cargo_deny() -> bool {
    let is_installed = Command::new("cargo-deny").arg("--version").stdout(Stdio::null()).status().is_ok();
    let mut check = workspace::cargo();
    check.args(["deny", "--log-level", "error", "check", "bans", "licenses", "sources"]);
    !is_installed || matches!(succeeds(&mut check), Passed::Yes)
}

/// How long no test may end before one is taken to hang. The slowest takes two minutes; a loaded machine may make ten
/// times that of it.
const SILENCE: Duration = Duration::from_secs(20 * 60);

/// Runs tests, and prints what is worth reading of each program of tests at its end, as others may run beside it.
fn read_tests(mut test: Command) -> Result<(Count, bool, Vec<String>), String> {
    count_tests(&mut test).map_err(|error| format!("cannot run {test:?}: {error}"))
}

fn count_tests(test: &mut Command) -> std::io::Result<(Count, bool, Vec<String>)> {
    let mut child = test.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let (progress, watched) = mpsc::channel();
    let process = child.id();
    let watch = std::thread::spawn(move || {
        if is_silent(&watched, SILENCE) {
            eprintln!("no test has ended for {SILENCE:.0?}: the last line tells which one hangs");
            kill_all(process);
        }
    });
    let mut reader = Reader::default();
    let mut shown = String::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            let _ = progress.send(());
            if reader.read(&line) {
                shown.extend([&*line, "\n"]);
            }
            if line.starts_with(RESULT) {
                print!("{}", std::mem::take(&mut shown));
            }
        }
    }
    print!("{shown}");
    let succeeded = child.wait()?.success();
    drop(progress);
    let _ = watch.join();
    let (count, skipped) = reader.finish();
    Ok((count, succeeded, skipped))
}

/// Waits until `progress` has an end; true if there was none of it for as long as `limit` before that.
fn is_silent(progress: &mpsc::Receiver<()>, limit: Duration) -> bool {
    loop {
        match progress.recv_timeout(limit) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => return true,
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// Kills a process and all that it has started.
fn kill_all(process: u32) {
    let started = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let started = started.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let started: Vec<u32> =
        started.flat_map(|text| text.split_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect();
    let _ = Command::new("kill").args(["-KILL", &process.to_string()]).status();
    started.into_iter().for_each(kill_all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_ended_when_none_has_ended_for_long_and_not_because_there_are_many() {
        let (progress, watched) = mpsc::channel();
        (0..1000).for_each(|_| progress.send(()).expect("the watch listens"));
        assert!(is_silent(&watched, Duration::from_millis(1)));
        drop(progress);
        assert!(!is_silent(&watched, Duration::from_secs(3600)));
    }
}
