//! The program without the libraries beside it, as `cargo install` leaves it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::session::Session;
use crate::skip;

/// The program in a folder of its own, whose path has a space, and in an environment without a cache.
struct Alone {
    session: Session,
    program: PathBuf,
}

impl Alone {
    /// Nothing where the program was built without the libraries.
    fn new() -> Option<Self> {
        if option_env!("TREERING_EMBED") != Some("1") {
            skip("the program has no libraries inside; TREERING_EMBED=1 builds one");
            return None;
        }
        let session = Session::new();
        let folder = session.path("a folder: ü");
        std::fs::create_dir(&folder).expect("a folder");
        let program = folder.join("treering");
        std::fs::hard_link(env!("CARGO_BIN_EXE_treering"), &program).expect("a second name of the program");
        Some(Self { session, program })
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.session.path("")).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", self.session.path("the cache"));
        let output = command.output().expect("treering can be run");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        told
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.session.path(name), text).expect("written");
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn the_program_alone_counts_calls_of_programs_compiled_with_pg() {
    let Some(alone) = Alone::new() else { return };
    alone.write(
        "calls.c",
        "int called(int n) { return n; } int main(void) { for (int i = 0; i < 1000; i++) called(i); }",
    );
    let source = alone.session.path("calls.c");
    let built =
        Command::new("cc").args(["-pg", "-O0", "-o"]).arg(alone.session.path("calls")).arg(source).status();
    assert!(built.expect("a compiler").success());
    // `LD_PRELOAD` divides paths at spaces: the library goes where no space is.
    let told = alone.run(&["gprof", "--", "./calls"]);
    assert!(told.contains("counted 1,001 calls"), "{told}");
}

#[test]
fn the_program_alone_profiles_octave() {
    if !is_installed("octave-cli") {
        return skip("octave is not installed");
    }
    let Some(alone) = Alone::new() else { return };
    alone.write("script.m", "total = 0; for i = 1:100 total = total + sin(i); end\n");
    let told = alone.run(&["octave", "script.m"]);
    assert!(told.contains("sin (builtin)"), "{told}");
    let kept = alone.session.path("the cache/treering/libraries");
    assert_eq!(std::fs::read_dir(kept).expect("libraries were unpacked").count(), 1);
}

#[test]
fn the_program_alone_counts_ports_of_prolog() {
    if !is_installed("swipl") {
        return skip("swipl is not installed");
    }
    let Some(alone) = Alone::new() else { return };
    alone.write(
        "goal.pl",
        "main :- between(1, 100, X), twice(X, _), X >= 100, !.\ntwice(X, Y) :- Y is 2 * X.\n",
    );
    let told = alone.run(&["prolog", "--ports", "goal.pl"]);
    assert!(told.contains("twice/2"), "{told}");
}
