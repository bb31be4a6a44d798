//! The folders that `treering octave` and `treering prolog` keep while their interpreters run.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

/// A run that waits, with an open umask.
struct Waiting {
    treering: Child,
    interpreter: Pid,
}

impl Waiting {
    /// `arguments` run a program that prints the number of its process.
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "umask 000; exec \"$@\"", "sh", TREERING]).args(arguments);
        command.current_dir(folder).env("TMPDIR", folder.join("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut treering = command.spawn().expect("treering runs");
        let mut printed = BufReader::new(treering.stdout.take().expect("a pipe"));
        let mut line = String::new();
        printed.read_line(&mut line).expect("it prints");
        let interpreter = Pid::from_raw(line.trim().parse().expect("the number of the process"));
        Self { treering, interpreter }
    }

    fn kill_both(mut self) {
        self.treering.kill().expect("it runs");
        self.treering.wait().expect("it ends");
        kill(self.interpreter, Signal::SIGKILL).expect("it runs");
    }
}

/// The folders there are, each with its rights.
fn left(folder: &Path) -> Vec<(PathBuf, u32)> {
    let entries = std::fs::read_dir(folder.join("tmp")).expect("a folder").flatten();
    entries.map(|entry| (entry.path(), entry.metadata().expect("it is there").mode() & 0o7777)).collect()
}

fn is_private_and_does_not_stay(folder: &Path, waits: &[&str], ends: &[&str]) {
    std::fs::create_dir_all(folder.join("tmp")).expect("a folder can be made");
    let waiting = Waiting::start(folder, waits);
    let during = left(folder);
    assert!(during.len() == 1 && during[0].1 == 0o700, "{during:?}");
    let interpreter = waiting.interpreter;
    waiting.kill_both();
    assert_eq!(left(folder), during, "nobody could remove it");
    while Path::new(&format!("/proc/{interpreter}/maps")).metadata().is_ok_and(|_| is_running(interpreter)) {
        std::thread::yield_now();
    }
    let mut next = Command::new(TREERING);
    next.args(ends).current_dir(folder).env("TMPDIR", folder.join("tmp")).stdin(Stdio::null());
    assert!(next.output().expect("treering runs").status.success());
    assert_eq!(left(folder), []);
}

/// Whether a process has not ended; one that was killed may be listed until its parent asks for it.
fn is_running(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn of_prolog_is_private_and_does_not_stay() {
    let Some(prolog) = crate::prolog::Prolog::new("temporary") else { return };
    let program = "main :- current_prolog_flag(pid, Pid), writeln(Pid), flush_output, sleep(100).\nshort.\n";
    std::fs::write(prolog.folder.join("wait.pl"), program).expect("the program can be written");
    let ends = ["prolog", "-q", "wait.pl", "-g", "short"];
    is_private_and_does_not_stay(&prolog.folder, &["prolog", "-q", "wait.pl"], &ends);
}

#[test]
fn of_octave_is_private_and_does_not_stay() {
    let Some(folder) = crate::octave::octave("temporary") else { return };
    crate::octave::library();
    let waits = ["octave", "-q", "--eval", "disp (getpid ()); fflush (stdout); pause (100)"];
    is_private_and_does_not_stay(&folder, &waits, &["octave", "-q", "--eval", "1;"]);
}

/// Without a file of its own a profile lies in such a folder as well, with those of forked processes.
#[test]
fn a_profile_in_octave_leaves_nothing_when_octave_ends() {
    let Some(folder) = crate::octave::octave("temporary_profile") else { return };
    std::fs::create_dir_all(folder.join("tmp")).expect("a folder can be made");
    let code = "__treering__ ('on', 'graph'); s = __treering__ ('status'); disp (s.File); pid = fork (); sin (1); \
                if (pid), waitpid (pid); end";
    let mut command = Command::new("octave-cli");
    command.args(["--norc", "--eval", code]).current_dir(&folder).env("TMPDIR", folder.join("tmp"));
    let output = command.stdin(Stdio::null()).output().expect("octave-cli runs");
    let file = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned();
    assert!(Path::new(&file).starts_with(folder.join("tmp")), "{output:?}");
    assert_eq!(left(&folder), []);
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for arguments in [
        &["compare", "--exact", "true", "--", "true"][..],
        &["compare", "--time", "true", "--", "true"],
        &["stat", "--exact", "--", "true"],
        &["octave", "--eval", "1;"],
        &["bench", "run", "--archive", "kept", "--", "true"],
    ] {
        let mut command = Command::new(TREERING);
        command.args(arguments).current_dir(folder.path()).env("TMPDIR", "/no/such/folder");
        let output = command.stdin(Stdio::null()).output().expect("treering runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            errors.contains("/no/such/folder, the directory for temporary files"),
            "{arguments:?}: {errors}"
        );
    }
}
