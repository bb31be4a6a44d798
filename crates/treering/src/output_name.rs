//! Names of files to be written: marks in them, and runs at the same time that were given the same one.

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

use clap::builder::{OsStringValueParser, TypedValueParser as _, ValueParser};
use treering_events::output_name;
use treering_profile::Profile;

use crate::failure::Failure;
use crate::stream::is_stream;

/// Reads the name of a file to be written: `%p` stands for the number of this process, `%h` for the name of the machine,
/// `%r` for the rank in a parallel program (0 if there is none), and `%%` for `%`.
pub fn parser() -> ValueParser {
    ValueParser::new(OsStringValueParser::new().map(|name| filled(&name)))
}

fn filled(name: &OsString) -> PathBuf {
    let host = std::fs::read(output_name::HOST_NAME).unwrap_or_default();
    let variable = |name: &str| std::env::var_os(name).map(OsString::into_vec);
    let filled = output_name::filled(name.as_bytes(), std::process::id(), &host, variable);
    PathBuf::from(OsString::from_vec(filled))
}

/// Notes in a profile which machine it was made on, and this process's rank if it is one of a parallel program.
pub fn note_place(profile: &mut Profile) {
    let host = std::fs::read_to_string(output_name::HOST_NAME).unwrap_or_default().trim().to_owned();
    let variables = output_name::RANK_VARIABLES.iter().filter_map(std::env::var_os);
    let rank = variables.map(OsString::into_vec).find(|value| output_name::rank(value).is_some());
    let rank = rank.and_then(|rank| String::from_utf8(rank).ok());
    let facts = [("host", (!host.is_empty()).then_some(host)), ("rank", rank)];
    let known = facts.into_iter().filter_map(|(name, fact)| Some((name.to_owned(), fact?)));
    profile.metadata.machine.extend(known);
}

/// The name as an argument of our commands: each `%` is doubled, so that none is a mark.
pub fn without_marks(name: &Path) -> OsString {
    let bytes = name.as_os_str().as_bytes().iter();
    OsString::from_vec(
        bytes.flat_map(|&byte| if byte == b'%' { vec![b'%'; 2] } else { vec![byte] }).collect(),
    )
}

/// A name that is this run's until it ends.
#[derive(Debug)]
pub struct Claim {
    /// A socket without a file, whose name the kernel gives to one process at a time, and frees whatever ends that process.
    ///
    /// Another user can take the name as well. This run then writes under another one, which it says, or is refused; nothing of
    /// that user is read or written to.
    _socket: Option<UnixListener>,
}

/// When this process began.
static BEGUN: OnceLock<SystemTime> = OnceLock::new();

/// Notes when this process began. A file written later than that is of another run at the same time.
pub fn note_begin() {
    let _ = BEGUN.set(SystemTime::now());
}

/// How many names are tried.
const TRIES: u32 = 100;

impl Claim {
    /// Makes `output` the name of a file that no other run writes or has written since this one began: with the process's
    /// number in front of its last dot if need be, which is said.
    pub fn take(output: &mut PathBuf) -> Result<Self, Failure> {
        let is_file = |path: &Path| path.metadata().map_or(true, |found| found.is_file());
        if output == Path::new("-") || !is_file(output) || is_stream(output) {
            return Ok(Self { _socket: None });
        }
        for attempt in 0..TRIES {
            let name = numbered(output, attempt);
            let Some(claim) = Self::of(&name) else { continue };
            if if attempt == 0 { was_just_written(&name) } else { name.symlink_metadata().is_ok() } {
                continue;
            }
            if attempt > 0 {
                let (other, name) = (output.display(), name.display());
                tell!("treering: another run writes {other} at the same time; this one writes {name}");
            }
            *output = name;
            return Ok(claim);
        }
        Err(Failure::new(format_args!("other runs write {} and all names like it", output.display()))
            .hint("%p in the name of the file stands for the number of the process: -o run-%p.trg"))
    }

    /// The claim to a name; nothing if another run has it. Where there are no such sockets, only the time of the file counts.
    fn of(path: &Path) -> Option<Self> {
        let Some(address) = address(path) else { return Some(Self { _socket: None }) };
        match UnixListener::bind_addr(&address) {
            Ok(socket) => Some(Self { _socket: Some(socket) }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => None,
            Err(_) => Some(Self { _socket: None }),
        }
    }
}

/// The same for every process that means this file, by whatever way.
fn address(path: &Path) -> Option<SocketAddr> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.metadata().ok()?;
    let mut hasher = DefaultHasher::new();
    path.file_name()?.hash(&mut hasher);
    let name = format!("treering-output-{:x}-{:x}-{:016x}", folder.dev(), folder.ino(), hasher.finish());
    SocketAddr::from_abstract_name(name).ok()
}

fn was_just_written(path: &Path) -> bool {
    let written = path.symlink_metadata().and_then(|found| found.modified()).ok();
    written.zip(BEGUN.get()).is_some_and(|(written, begun)| written > *begun)
}

/// `treering.trg`, then `treering.PID.trg`, then `treering.PID-2.trg` ...
fn numbered(path: &Path, attempt: u32) -> PathBuf {
    let process = std::process::id();
    let suffix = match attempt {
        0 => return path.to_owned(),
        1 => format!(".{process}"),
        more => format!(".{process}-{more}"),
    };
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(suffix);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_runs_until_it_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let wanted = folder.path().join("a b.trg");
        let (mut one, mut other, mut third) = (wanted.clone(), wanted.clone(), wanted.clone());
        let held = Claim::take(&mut one).expect("it is free");
        let of_other = Claim::take(&mut other).expect("there are others");
        assert_eq!(one, wanted);
        assert_eq!(other, folder.path().join(format!("a b.{}.trg", std::process::id())));
        drop((held, of_other));
        let _held = Claim::take(&mut third).expect("it is free again");
        assert_eq!(third, wanted);
    }

    #[test]
    fn files_that_another_run_has_written_meanwhile_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let earlier = folder.path().join("earlier.trg");
        std::fs::write(&earlier, "x").expect("it can be written");
        let long_ago = SystemTime::now() - std::time::Duration::from_secs(100);
        std::fs::File::open(&earlier)
            .and_then(|file| file.set_modified(long_ago))
            .expect("its time can be set");
        let _ = BEGUN.set(SystemTime::now() - std::time::Duration::from_secs(50));
        let mut output = earlier.clone();
        let claim = Claim::take(&mut output).expect("a name");
        assert_eq!(output, earlier);
        drop(claim);
        std::fs::write(&earlier, "y").expect("it can be written");
        let _claim = Claim::take(&mut output).expect("a name");
        assert_ne!(output, earlier);
    }
}
