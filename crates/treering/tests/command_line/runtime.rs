//! Programs that profile themselves, compiled for the tests.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use treering_testing::programs::installed;

use crate::session::Session;
use crate::skip;

/// A program that profiles itself, and what it is compiled with.
#[derive(Clone, Copy)]
pub(crate) enum Program {
    /// `programs/calls.c`, whose compiler adds the reports of calls.
    Calls,
    /// `programs/names.c`, which names its tasks itself.
    Names,
    /// `programs/marked.c`, which marks its phases.
    Marked,
    /// `examples/profilers/demo.cc`, which has the tasks and the memory plot of CBS.
    Tasks,
    /// `programs/states.cc`, a benchmark of CBS with results.
    States,
}

impl Program {
    fn source(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::Calls => ("programs/calls.c", &["-finstrument-functions"]),
            Self::Names => ("programs/names.c", &[]),
            Self::Marked => ("programs/marked.c", &[]),
            Self::Tasks => ("../../../../examples/profilers/demo.cc", &["-std=c++17"]),
            Self::States => ("programs/states.cc", &["-std=c++17"]),
        }
    }

    /// Compiles it into the directory of a test; nothing, and a word about it, where there is no
    /// compiler.
    pub(crate) fn compile(self, session: &Session) -> Option<PathBuf> {
        let (source, flags) = self.source();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let program =
            session.path(Path::new(source).file_stem().and_then(|name| name.to_str()).expect("it is a file"));
        let mut command = compiler(source, flags)?;
        command.arg("-I").arg(root.join("hooks/c/include")).arg("-o").arg(&program);
        run(command.arg(crate::libraries::runtime()).args(["-lpthread", "-ldl", "-lm"]));
        Some(program)
    }
}

/// Compiles `programs/calls.c` for gprof; nothing, and a word about it, where gprof is missing.
pub(crate) fn compile_for_gprof(session: &Session) -> Option<PathBuf> {
    if installed("gprof").is_none() {
        skip("gprof is not installed");
        return None;
    }
    let program = session.path("counted");
    run(compiler("programs/calls.c", &["-pg"])?.arg("-o").arg(&program));
    Some(program)
}

fn compiler(source: &str, flags: &[&str]) -> Option<Command> {
    let name = if source.ends_with(".c") { "gcc" } else { "g++" };
    let Some(compiler) = installed(name) else {
        skip(&format!("{name} is not installed"));
        return None;
    };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line");
    let mut command = Command::new(compiler);
    command.args(["-g", "-O1", "-fno-optimize-sibling-calls"]).args(flags).arg(sources.join(source));
    Some(command)
}

fn run(command: &mut Command) {
    let output = command.output().expect("it can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A program that runs until it is killed, at the latest at the end of the test.
pub(crate) struct Running(Child);

impl Running {
    /// Starts a program in the directory of a test, and waits until it says that it is done with
    /// its rounds.
    pub(crate) fn start(session: &Session, program: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(session.path("")).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it was just compiled");
        let mut said = String::new();
        let output = child.stdout.take().expect("it is a pipe");
        BufReader::new(output).read_line(&mut said).expect("it writes text");
        assert_eq!(said, "done\n");
        Self(child)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Ends it as nothing can be ended more suddenly.
    pub(crate) fn kill(&mut self) {
        self.0.kill().expect("it is our child");
        self.0.wait().expect("it is our child");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Runs a program to its end in the directory of a test.
pub(crate) fn run_in(session: &Session, program: &Path, arguments: &[&str]) {
    let mut command = Command::new(program);
    run(command.args(arguments).current_dir(session.path("")));
}
