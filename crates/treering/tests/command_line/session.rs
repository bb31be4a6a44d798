//! A directory of its own for each test, and `treering` run in it.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::profile::Flat;

/// A directory of its own, removed at the end of a test that passed.
pub(crate) struct Session {
    directory: PathBuf,
}

/// The outcome of a run of `treering`.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Programs and arguments as words of a command line.
pub(crate) type Words = Vec<OsString>;

/// Makes words of strings and paths.
pub(crate) fn words<S: AsRef<OsStr>>(parts: &[S]) -> Words {
    parts.iter().map(|part| part.as_ref().to_owned()).collect()
}

/// A path as one word for a shell.
pub(crate) fn quoted(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().to_str().expect("its path is text");
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// The words of a program with its arguments.
pub(crate) fn program(path: &Path, arguments: &[&str]) -> Words {
    let mut all = words(&[path]);
    all.extend(words(arguments));
    all
}

/// The `treering` that is tested: the one that cargo has built with the tests, unless the environment names a copy of
/// it, in a folder of another name.
pub(crate) fn treering() -> PathBuf {
    std::env::var_os("CARGO_BIN_EXE_treering")
        .map_or_else(|| env!("CARGO_BIN_EXE_treering").into(), PathBuf::from)
}

/// The command `treering`, with signals as a shell at a keyboard hands them on: a test that runs in the background may have
/// inherited that some are ignored.
pub(crate) fn treering_command() -> Command {
    let mut command = Command::new("/usr/bin/env");
    command.arg("--default-signal").arg(treering());
    command
}

/// Where tests write, beside the tested program.
pub(crate) fn scratch() -> PathBuf {
    std::env::var_os("CARGO_TARGET_TMPDIR").map_or_else(|| env!("CARGO_TARGET_TMPDIR").into(), PathBuf::from)
}

impl Session {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("session-{}-{number}", std::process::id());
        let directory = scratch().join(name);
        std::fs::create_dir_all(&directory).expect("the target directory can be written");
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// `treering`, to be run in this directory without a terminal.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = treering_command();
        command.args(arguments).current_dir(&self.directory).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    /// Runs `treering` to its end, whatever that is.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Outcome {
        Outcome::of(self.command(arguments).output().expect("treering runs"))
    }

    /// Runs `treering`, which must succeed, and returns what it printed.
    pub(crate) fn output<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        let outcome = self.run(arguments);
        assert!(outcome.status.success(), "{outcome:#?}");
        outcome.stdout
    }

    /// Records a program that exits with 0 into `treering.trg`, and returns the flat profile.
    pub(crate) fn record(&self, options: &[&str], program: &[OsString]) -> Flat {
        let outcome = self.record_any(options, program);
        assert!(outcome.status.success(), "{outcome:#?}");
        self.flat(&[])
    }

    /// Records a program, however it ends.
    pub(crate) fn record_any(&self, options: &[&str], program: &[OsString]) -> Outcome {
        let mut all = words(&["record"]);
        all.extend(words(options));
        all.push("--".into());
        all.extend(program.iter().cloned());
        self.run(&all)
    }

    /// The flat profile of `treering.trg`.
    pub(crate) fn flat(&self, options: &[&str]) -> Flat {
        Flat(self.json("--flat", options))
    }

    /// A view of `treering.trg` as JSON.
    pub(crate) fn json(&self, view: &str, options: &[&str]) -> Value {
        let mut all = vec!["report", view, "--json"];
        all.extend(options);
        let text = self.output(&all);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON: {error}\n{text}"))
    }
}

impl Outcome {
    pub(crate) fn of(output: std::process::Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("treering writes UTF-8");
        Self { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The exit status as a shell would tell it: 128 and the signal for a death by signal.
    pub(crate) fn shell_status(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    /// Checks that it failed with an error and without a panic, and returns what it said.
    pub(crate) fn error(&self) -> &str {
        assert!(!self.status.success(), "{self:#?}");
        assert!(self.stderr.contains("error: "), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        &self.stderr
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}
