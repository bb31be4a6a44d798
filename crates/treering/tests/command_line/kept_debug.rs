//! Debug information that `treering record` keeps decompressed from one run to the next: whatever lies in the cache, and
//! wherever it is, functions have their names.

use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::session::{Outcome, Session};
use crate::skip;

/// A program with more compressed debug information than is decompressed each time.
struct Case {
    session: Session,
    program: PathBuf,
}

impl Case {
    fn new() -> Option<Self> {
        let session = Session::new();
        let mut text = String::new();
        for at in 0..3000 {
            let _ = writeln!(
                text,
                "long filler_{at}(long one_{at}, char *two_{at}) {{ return one_{at} + *two_{at}; }}"
            );
        }
        text.push_str(
            "static __attribute__((noinline)) long spin(long n)\n\
             { long s = 0; for (long i = 0; i < n; i++) s = s * 31 + i; return s; }\n\
             int main(void) { return spin(100000000) == 1; }\n",
        );
        let (source, program) = (session.path("program.c"), session.path("program"));
        std::fs::write(&source, text).expect("written");
        let options = ["-O1", "-g", "-gz=zlib", "-Wl,--build-id,--compress-debug-sections=zlib", "-o"];
        let built = Command::new("gcc").args(options).arg(&program).arg(&source).status();
        if !built.is_ok_and(|built| built.success()) {
            skip("there is no gcc that compresses debug information");
            return None;
        }
        Some(Self { session, program })
    }

    /// A recording, whose environment `change` may change.
    fn command(&self, output: &str, change: impl FnOnce(&mut Command)) -> Command {
        let program = self.program.to_str().expect("our path is text");
        let mut command = self.session.command(&["record", "-q", "-o", output, "--", program]);
        change(&mut command);
        command
    }

    /// Records, and checks that the program's function has name and line.
    fn record(&self, change: impl FnOnce(&mut Command)) {
        let outcome = Outcome::of(self.command("a.trg", change).output().expect("it runs"));
        assert!(outcome.status.success() && outcome.stderr.is_empty(), "{outcome:#?}");
        self.check("a.trg");
    }

    fn check(&self, output: &str) {
        let lines = self.session.output(&["report", output, "--lines", "spin"]);
        assert!(lines.contains("program.c") && lines.contains("s = s * 31 + i"), "{lines}");
    }

    fn folder(&self) -> PathBuf {
        self.session.path("cache/treering/debug")
    }

    /// The files that are kept.
    fn kept(&self) -> Vec<PathBuf> {
        let Ok(files) = std::fs::read_dir(self.folder()) else { return Vec::new() };
        files.map(|file| file.expect("an entry").path()).collect()
    }

    /// The file that is kept of the program, by its size: that of its debug information.
    fn kept_of_program(&self) -> Option<PathBuf> {
        let holds = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(11).any(|window| window == b"filler_2999")
        };
        self.kept().into_iter().find(holds)
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own");
}

#[test]
fn decompressed_debug_information_is_kept_for_its_user_alone() {
    let Some(case) = Case::new() else { return };
    case.record(|_| {});
    let kept = case.kept_of_program().expect("it is kept");
    assert_eq!((mode(&case.folder()), mode(&kept)), (0o700, 0o600));
    let whole = std::fs::read(&kept).expect("it is there");
    case.record(|_| {});
    // A link is neither followed nor written through.
    let elsewhere = case.session.path("elsewhere");
    std::fs::write(&elsewhere, "not ours").expect("written");
    std::fs::remove_file(&kept).expect("our own");
    symlink(&elsewhere, &kept).expect("linked");
    case.record(|_| {});
    assert_eq!(std::fs::read(&elsewhere).expect("it is there"), b"not ours");
    assert!(!kept.is_symlink() && std::fs::read(&kept).expect("it is there") == whole);
    // Nor is a damaged file used, or one that others can change.
    let mut damaged = whole.clone();
    damaged.iter_mut().skip(whole.len() / 2).for_each(|byte| *byte = !*byte);
    std::fs::write(&kept, damaged).expect("our own");
    case.record(|_| {});
    set_mode(
        &{
            std::fs::write(&kept, "forged").expect("our own");
            kept.clone()
        },
        0o666,
    );
    case.record(|_| {});
    assert_eq!((std::fs::read(&kept).expect("it is there") == whole, mode(&kept)), (true, 0o600));
}

#[test]
fn a_cache_of_others_is_not_used() {
    let Some(case) = Case::new() else { return };
    std::fs::create_dir_all(case.folder()).expect("made");
    set_mode(&case.folder(), 0o777);
    case.record(|_| {});
    assert_eq!(case.kept(), <[PathBuf; 0]>::default());
    set_mode(&case.folder(), 0o700);
    if chown(case.folder(), Some(65534), None).is_err() {
        return skip("only root can give folders away");
    }
    case.record(|_| {});
    assert_eq!(case.kept(), <[PathBuf; 0]>::default());
}

#[test]
fn functions_have_names_where_nothing_can_be_kept() {
    let Some(case) = Case::new() else { return };
    case.record(|command| {
        command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    });
    case.record(|command| {
        command.env("HOME", "/proc").env("XDG_CACHE_HOME", "/proc");
    });
    case.record(|command| {
        command.env("HOME", "/no/such/folder").env("XDG_CACHE_HOME", "/dev/null");
    });
}

#[test]
fn recordings_at_the_same_time_share_a_cache() {
    let Some(case) = Case::new() else { return };
    let outputs: Vec<String> = (0..4).map(|at| format!("{at}.trg")).collect();
    let running: Vec<_> =
        outputs.iter().map(|output| case.command(output, |_| {}).spawn().expect("it runs")).collect();
    for (run, output) in running.into_iter().zip(&outputs) {
        let outcome = Outcome::of(run.wait_with_output().expect("it ends"));
        assert!(outcome.status.success(), "{outcome:#?}");
        case.check(output);
    }
    assert!(case.kept_of_program().is_some());
    case.record(|_| {});
}
