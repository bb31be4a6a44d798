//! One run of a command.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sha2::{Digest as _, Sha256};
use treering_proc::{Inherited, programs_on_path, reason};

use crate::launcher::{Launcher, Report, kill_session};

/// A command, and how to run it.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program and its arguments. A name without a slash is looked up in `PATH`.
    pub words: Vec<OsString>,
    /// Its whole environment; nothing for that of this process.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Where it runs; nothing for the directory of this process.
    pub directory: Option<PathBuf>,
    /// The file that it reads as its standard input; nothing for an empty one.
    pub input: Option<PathBuf>,
    /// How long it may run. Then it is killed with all that it started.
    pub timeout: Option<Duration>,
    /// Set by somebody else, a handler of signals perhaps, to have it killed.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Launch {
    /// A command that runs as this process does, for as long as it likes.
    pub fn new(words: Vec<OsString>) -> Self {
        Self { words, ..Self::default() }
    }

    /// The program's file, searched in the command's `PATH` where its name has no slash.
    ///
    /// # Errors
    /// The command has no words, or there is no such program.
    pub fn program(&self) -> Result<PathBuf, LaunchError> {
        let program = self.words.first().ok_or(LaunchError::NoCommand)?;
        let path = match &self.environment {
            Some(all) => all.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone()),
            None => std::env::var_os("PATH"),
        };
        let found = if program.as_bytes().contains(&b'/') {
            Some(PathBuf::from(program))
        } else {
            programs_on_path(program, path.as_deref()).find(|file| file.is_absolute())
        };
        found.ok_or_else(|| LaunchError::NotFound(program.to_owned()))
    }

    /// The input and the reason why it cannot be opened, if that is so. Opening a pipe might never end, so that is not tried.
    fn unreadable_input(&self) -> Option<(PathBuf, io::Error)> {
        let input = self.input.clone()?;
        let path = self.directory.as_ref().map_or_else(|| input.clone(), |folder| folder.join(&input));
        let opened = path.metadata().and_then(|found| match found.is_file() {
            true => File::open(&path).map(drop),
            false => Ok(()),
        });
        opened.err().map(|error| (input, error))
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Ended {
    /// Whether it ended with status 0.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }

    fn of_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Exited((status >> 8) & 0xff),
            signal => Self::Killed(signal),
        }
    }
}

/// The standard output of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// How much.
    pub bytes: u64,
    /// The SHA-256 of it.
    pub digest: [u8; 32],
}

/// The measurements of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// From the start of the program to its end.
    pub wall: Duration,
    /// In its code, with that of all children that were waited for.
    pub user: Duration,
    /// In the kernel for it and these children.
    pub system: Duration,
    /// The most memory that it or one of these children had at once.
    pub peak_bytes: u64,
    /// How it ended.
    pub ended: Ended,
    /// Its standard output.
    pub output: Output,
    /// The last line that it wrote to its standard error.
    pub last_error: Option<String>,
}

impl Sample {
    /// The processor time of the program and its children.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// Why there is no sample.
#[derive(Debug)]
pub enum LaunchError {
    /// The command has no words.
    NoCommand,
    /// No such program is in `PATH`.
    NotFound(OsString),
    /// The system refused to run the program.
    CannotStart(OsString, io::Error),
    /// The file that it was to read cannot be opened.
    CannotRead(PathBuf, io::Error),
    /// It ran for as long as it may, and was killed.
    TimedOut(Duration),
    /// Somebody asked to stop.
    Stopped,
    /// Something else went wrong while doing this.
    System(&'static str, io::Error),
}

impl std::fmt::Display for LaunchError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCommand => f.write_str("there is no command to run"),
            Self::NotFound(program) => write!(f, "cannot run {}: it is not in PATH", program.display()),
            Self::CannotStart(program, error) => {
                write!(f, "cannot run {}: {}", program.display(), reason(error))
            }
            Self::CannotRead(file, error) => write!(f, "cannot read {}: {}", file.display(), reason(error)),
            Self::TimedOut(limit) => write!(f, "not done after {} s, and killed", limit.as_secs_f64()),
            Self::Stopped => f.write_str("interrupted"),
            Self::System(doing, error) => write!(f, "cannot {doing}: {error}"),
        }
    }
}

impl std::error::Error for LaunchError {}

/// Runs a command once and waits for its end.
///
/// It runs in a session of its own, without a terminal. Its output goes to files that have no name, so that both of two
/// versions have the same kind of output and none waits for a reader.
///
/// # Errors
/// When it cannot be run or measured, or has not ended in time. A program that fails is no error.
pub fn run(launch: &Launch) -> Result<Sample, LaunchError> {
    let program = launch.words.first().ok_or(LaunchError::NoCommand)?;
    let file = launch.program()?;
    let (mut output, mut errors) = (capture()?, capture()?);
    let (mut report, to_report) = io::pipe().map_err(|error| LaunchError::System("make a pipe", error))?;
    let input = launch.input.as_deref().unwrap_or(Path::new("/dev/null"));
    let mut command = launcher()?.command();
    command.arg(input).arg(file).args(&launch.words);
    command.stdin(to_report).stdout(share(&output)?).stderr(share(&errors)?);
    if let Some(environment) = &launch.environment {
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    }
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    let child = Inherited::get()
        .to_wait_with()
        .give_to(&mut command)
        .spawn()
        .map_err(|error| LaunchError::CannotStart(program.clone(), error))?;
    // Its end of the pipe is the only one.
    drop(command);
    let reported = wait(launch, child, &report)?;
    if !reported {
        return Err(LaunchError::System("wait for the program", io::ErrorKind::UnexpectedEof.into()));
    }
    let mut bytes = [0; Report::SIZE];
    report.read_exact(&mut bytes).map_err(|error| LaunchError::System("wait for the program", error))?;
    let report = Report::read(&bytes);
    if report.errno != 0 {
        if let Some((input, error)) = launch.unreadable_input() {
            return Err(LaunchError::CannotRead(input, error));
        }
        return Err(LaunchError::CannotStart(program.clone(), io::Error::from_raw_os_error(report.errno)));
    }
    Ok(Sample {
        wall: Duration::from_nanos(report.wall_ns),
        user: Duration::from_micros(report.user_us),
        system: Duration::from_micros(report.system_us),
        peak_bytes: report.peak_kib * 1024,
        ended: Ended::of_status(report.status),
        output: digest(&mut output).map_err(|error| LaunchError::System("read the output", error))?,
        last_error: last_line(&mut errors),
    })
}

/// The launcher of this process.
fn launcher() -> Result<&'static Launcher, LaunchError> {
    static LAUNCHER: OnceLock<Result<Launcher, i32>> = OnceLock::new();
    let made = LAUNCHER.get_or_init(|| Launcher::create().map_err(|error| error.raw_os_error().unwrap_or(0)));
    made.as_ref()
        .map_err(|errno| LaunchError::System("make the launcher", io::Error::from_raw_os_error(*errno)))
}

/// A file without a name.
fn capture() -> Result<File, LaunchError> {
    let directory = treering_temporary::directory();
    let made = tempfile::tempfile_in(directory).map_err(treering_temporary::located);
    made.map_err(|error| LaunchError::System("make a file for the output", error))
}

fn share(file: &File) -> Result<Stdio, LaunchError> {
    file.try_clone().map(Stdio::from).map_err(|error| LaunchError::System("share a file", error))
}

/// Waits for the launcher's report, and then for the launcher. Says whether there is a report.
fn wait(launch: &Launch, mut child: Child, report: &io::PipeReader) -> Result<bool, LaunchError> {
    /// How long nobody looks whether to stop.
    const PATIENCE: Duration = Duration::from_millis(50);
    let begin = Instant::now();
    let ended = loop {
        if launch.is_stopped() {
            break Err(LaunchError::Stopped);
        }
        let left = launch.timeout.map(|limit| limit.saturating_sub(begin.elapsed()));
        if let (Some(Duration::ZERO), Some(limit)) = (left, launch.timeout) {
            break Err(LaunchError::TimedOut(limit));
        }
        let patience = left.unwrap_or(PATIENCE).clamp(Duration::from_millis(1), PATIENCE);
        let mut waited_for = [PollFd::new(report.as_fd(), PollFlags::POLLIN)];
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
        match poll(&mut waited_for, patience) {
            Ok(0) | Err(nix::Error::EINTR) => {}
            Ok(_) => {
                break Ok(waited_for[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN)));
            }
            Err(error) => break Err(LaunchError::System("wait for the program", error.into())),
        }
    };
    if !matches!(ended, Ok(true)) {
        kill_session(&child);
    }
    let _ = child.wait();
    ended
}

fn digest(file: &mut File) -> io::Result<Output> {
    file.rewind()?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        hash.update(&buffer[..read]);
    }
    Ok(Output { bytes, digest: hash.finalize().into() })
}

/// The last line of a file that is neither blank nor a hint, which follows the error that it is for.
fn last_line(file: &mut File) -> Option<String> {
    const ENOUGH: u64 = 4096;
    let length = file.metadata().ok()?.len();
    file.seek(io::SeekFrom::Start(length.saturating_sub(ENOUGH))).ok()?;
    let mut end = Vec::new();
    file.take(ENOUGH).read_to_end(&mut end).ok()?;
    let end = String::from_utf8_lossy(&end);
    end.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("hint: "))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Launch {
        Launch::new(["sh", "-c", script].map(OsString::from).to_vec())
    }

    #[test]
    fn a_run_has_its_status_and_its_output() {
        let sample = run(&shell("echo one; printf 'two\nhint: three\n\n' >&2; exit 3")).unwrap();
        assert_eq!((sample.ended, sample.output.bytes), (Ended::Exited(3), 4));
        assert_eq!(sample.last_error.as_deref(), Some("two"));
        // printf 'one\n' | sha256sum
        let digest: String = sample.output.digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806");
        assert_eq!(run(&shell("kill -9 $$")).unwrap().ended, Ended::Killed(9));
    }

    /// The kernel begins a new program's peak with that of its parent, which has more memory here.
    #[test]
    fn memory_is_the_programs_own() {
        let large = vec![1_u8; 64 << 20];
        let sample = run(&shell("exit 0")).unwrap();
        assert!((1..32 << 20).contains(&sample.peak_bytes), "{}", sample.peak_bytes);
        assert_eq!(large.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 64 << 20);
    }

    #[test]
    fn time_is_that_of_the_program_and_its_children() {
        let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let one = run(&shell(busy)).unwrap();
        let children = run(&shell(&format!("({busy}); ({busy}); ({busy}); ({busy})"))).unwrap();
        assert!(children.cpu() > one.cpu(), "{children:?} {one:?}");
        assert!(one.wall >= one.cpu() / 2, "{one:?}");
    }

    #[test]
    fn a_program_that_does_not_end_is_killed_with_its_children() {
        let folder = treering_temporary::Folder::create("measure-test").unwrap();
        let pid = folder.path().join("pid");
        let mut launch = shell(&format!("sleep 1000 & echo $! > {}; wait", pid.display()));
        launch.timeout = Some(Duration::from_millis(500));
        let begin = Instant::now();
        assert!(matches!(run(&launch), Err(LaunchError::TimedOut(_))));
        assert!(begin.elapsed() < Duration::from_secs(100));
        let Ok(pid) = std::fs::read_to_string(pid) else { return };
        let status = format!("/proc/{}/stat", pid.trim());
        while std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_run_is_stopped_from_elsewhere() {
        let stop = Arc::new(AtomicBool::new(false));
        let launch = Launch { stop: Some(Arc::clone(&stop)), ..shell("sleep 1000") };
        let running = std::thread::spawn(move || run(&launch));
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(running.join().unwrap(), Err(LaunchError::Stopped)));
    }

    #[test]
    fn programs_that_cannot_run_are_errors() {
        let error = |words: &[&str]| {
            run(&Launch::new(words.iter().map(OsString::from).collect())).unwrap_err().to_string()
        };
        assert_eq!(error(&[]), "there is no command to run");
        assert_eq!(error(&["no-such-program"]), "cannot run no-such-program: it is not in PATH");
        assert_eq!(error(&["/"]), "cannot run /: permission denied");
        assert!(error(&["./none"]).contains("no such file"));
    }

    #[test]
    fn an_input_that_cannot_be_read_is_named_instead_of_the_program() {
        let launch = Launch { input: Some("none".into()), ..shell("exit 0") };
        assert_eq!(run(&launch).unwrap_err().to_string(), "cannot read none: no such file or directory");
    }

    #[test]
    fn input_directory_and_environment_are_given() {
        let folder = treering_temporary::Folder::create("measure-test").unwrap();
        std::fs::write(folder.path().join("in"), "words").unwrap();
        let script = r#"cat; pwd; echo "$GIVEN""#;
        let launch = Launch {
            environment: Some(vec![("GIVEN".into(), "this".into()), ("PATH".into(), "/usr/bin:/bin".into())]),
            directory: Some(folder.path().to_owned()),
            input: Some("in".into()),
            ..shell(script)
        };
        let expected = format!("words{}\nthis\n", folder.path().canonicalize().unwrap().display());
        let sample = run(&launch).unwrap();
        assert_eq!(sample.output.bytes, expected.len() as u64, "{sample:?}");
        let digest: [u8; 32] = Sha256::digest(expected.as_bytes()).into();
        assert_eq!(sample.output.digest, digest);
    }
}
