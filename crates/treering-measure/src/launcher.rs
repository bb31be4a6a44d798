//! The small process between this one and the program that is measured; see `launcher.s`.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};

use nix::sys::memfd::{MFdFlags, memfd_create};
use treering_temporary::Folder;

/// The machine code of `launcher.s`.
#[rustfmt::skip]
const CODE: [u8; 244] = [
    0x48, 0x89, 0xe3, 0x48, 0x8b, 0x03, 0x4c, 0x8d, 0x64, 0xc3, 0x10, 0x48, 0x81, 0xec, 0xc0, 0x00,
    0x00, 0x00, 0x49, 0x89, 0xe5, 0x31, 0xc0, 0x4c, 0x89, 0xef, 0xb9, 0x18, 0x00, 0x00, 0x00, 0xf3,
    0x48, 0xab, 0xb8, 0x70, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xb8, 0x9d, 0x00, 0x00, 0x00, 0xbf, 0x01,
    0x00, 0x00, 0x00, 0xbe, 0x09, 0x00, 0x00, 0x00, 0x0f, 0x05, 0xb8, 0xe4, 0x00, 0x00, 0x00, 0xbf,
    0x01, 0x00, 0x00, 0x00, 0x49, 0x8d, 0x75, 0x10, 0x0f, 0x05, 0xb8, 0x3a, 0x00, 0x00, 0x00, 0x0f,
    0x05, 0x48, 0x85, 0xc0, 0x74, 0x4d, 0x78, 0x42, 0x49, 0x89, 0xc6, 0xb8, 0x3d, 0x00, 0x00, 0x00,
    0x4c, 0x89, 0xf7, 0x49, 0x8d, 0x75, 0x08, 0x31, 0xd2, 0x4d, 0x8d, 0x55, 0x30, 0x0f, 0x05, 0x48,
    0x83, 0xf8, 0xfc, 0x74, 0xe6, 0xb8, 0xe4, 0x00, 0x00, 0x00, 0xbf, 0x01, 0x00, 0x00, 0x00, 0x49,
    0x8d, 0x75, 0x20, 0x0f, 0x05, 0xb8, 0x01, 0x00, 0x00, 0x00, 0x31, 0xff, 0x4c, 0x89, 0xee, 0xba,
    0xc0, 0x00, 0x00, 0x00, 0x0f, 0x05, 0x31, 0xff, 0xeb, 0x53, 0x48, 0xf7, 0xd8, 0x49, 0x89, 0x45,
    0x00, 0xeb, 0xe2, 0xb8, 0x9d, 0x00, 0x00, 0x00, 0xbf, 0x01, 0x00, 0x00, 0x00, 0xbe, 0x09, 0x00,
    0x00, 0x00, 0x0f, 0x05, 0xb8, 0x03, 0x00, 0x00, 0x00, 0x31, 0xff, 0x0f, 0x05, 0xb8, 0x02, 0x00,
    0x00, 0x00, 0x48, 0x8b, 0x7b, 0x10, 0x31, 0xf6, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x78, 0x12, 0xb8,
    0x3b, 0x00, 0x00, 0x00, 0x48, 0x8b, 0x7b, 0x18, 0x48, 0x8d, 0x73, 0x20, 0x4c, 0x89, 0xe2, 0x0f,
    0x05, 0x48, 0xf7, 0xd8, 0x49, 0x89, 0x45, 0x00, 0xbf, 0x7f, 0x00, 0x00, 0x00, 0xb8, 0x3c, 0x00,
    0x00, 0x00, 0x0f, 0x05,
];

/// The launcher as a file that can be executed: in memory or, where that is refused, in a private folder.
pub(crate) struct Launcher {
    path: PathBuf,
    _file: Option<OwnedFd>,
    _folder: Option<Folder>,
}

impl Launcher {
    /// Makes the file.
    pub(crate) fn create() -> io::Result<Self> {
        Self::in_memory().or_else(|_| Self::in_folder())
    }

    fn in_memory() -> io::Result<Self> {
        let name = CString::new("treering-launcher")?;
        // MFD_EXEC. Older kernels do not know it and do not need it.
        let executable = MFdFlags::from_bits_retain(0x10);
        let flags = MFdFlags::MFD_CLOEXEC;
        let file = memfd_create(name.as_c_str(), flags | executable)
            .or_else(|_| memfd_create(name.as_c_str(), flags))?;
        let mut file = File::from(file);
        file.write_all(&elf_file())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let launcher = Self { path, _file: Some(file.into()), _folder: None };
        launcher.works().then_some(launcher).ok_or_else(|| io::Error::from(io::ErrorKind::PermissionDenied))
    }

    fn in_folder() -> io::Result<Self> {
        let folder = Folder::create("measure")?;
        let path = folder.path().join("launcher");
        std::fs::write(&path, elf_file())?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))?;
        Ok(Self { path, _file: None, _folder: Some(folder) })
    }

    /// Whether the system lets it run.
    fn works(&self) -> bool {
        let nothing = OsStr::new("/dev/null");
        let started = self.command().args([nothing, nothing]).stdin(std::process::Stdio::null()).spawn();
        started.and_then(|mut child| child.wait()).is_ok_and(|status| status.success())
    }

    /// A command that starts it, to which its words are to be added.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.arg0("treering-launcher");
        command
    }
}

/// The kernel's report of a program that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Report {
    /// Why the program did not run; 0 if it did.
    pub(crate) errno: i32,
    /// The status of `wait4`.
    pub(crate) status: i32,
    /// Nanoseconds from its start to its end.
    pub(crate) wall_ns: u64,
    /// Microseconds in its own code, and in the kernel for it, with those of children that it waited for.
    pub(crate) user_us: u64,
    /// See `user_us`.
    pub(crate) system_us: u64,
    /// The most memory that it or a child had at once, in KiB.
    pub(crate) peak_kib: u64,
}

impl Report {
    /// How many bytes a report has.
    pub(crate) const SIZE: usize = 192;

    /// Reads a report.
    pub(crate) fn read(bytes: &[u8; Self::SIZE]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let time = |at: usize, per_second: u64| word(at) * per_second + word(at + 8);
        Self {
            errno: word(0) as i32,
            status: word(8) as i32,
            wall_ns: time(32, 1_000_000_000).saturating_sub(time(16, 1_000_000_000)),
            user_us: time(48, 1_000_000),
            system_us: time(64, 1_000_000),
            peak_kib: word(80),
        }
    }
}

/// Kills the launcher, and the session that it began with everything in it.
pub(crate) fn kill_session(launcher: &Child) {
    use nix::sys::signal::{Signal, kill, killpg};
    let pid = nix::unistd::Pid::from_raw(launcher.id() as i32);
    // It may not have begun its session yet. Then the program does not run, either.
    let _ = killpg(pid, Signal::SIGKILL);
    let _ = kill(pid, Signal::SIGKILL);
}

/// An ELF file with the code as its only segment, and a stack without code.
fn elf_file() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 2 * 56;
    let size = HEADERS + CODE.len() as u64;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let halves = |file: &mut Vec<u8>, values: &[u16]| {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    let words = |file: &mut Vec<u8>, values: &[u64]| {
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    };
    // Executable, x86-64, version 1.
    halves(&mut file, &[2, 62, 1, 0]);
    // The entry, program headers, no section headers.
    words(&mut file, &[BASE + HEADERS, 64, 0]);
    // No flags; the sizes of headers, and how many there are.
    halves(&mut file, &[0, 0, 64, 56, 2, 0, 0, 0]);
    let mut header = |kind: u32, flags: u32, values: &[u64]| {
        file.extend(kind.to_le_bytes());
        file.extend(flags.to_le_bytes());
        words(&mut file, values);
    };
    const LOAD: u32 = 1;
    const GNU_STACK: u32 = 0x6474_e551;
    header(LOAD, 5, &[0, BASE, BASE, size, size, 0x1000]);
    header(GNU_STACK, 6, &[0, 0, 0, 0, 0, 16]);
    file.extend(CODE);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_source() {
        let folder = Folder::create("measure-test").unwrap();
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/launcher.s");
        let path = |name: &str| folder.path().join(name);
        let made = Command::new("as").arg("-o").arg(path("o")).arg(source).status();
        let mut copy = Command::new("objcopy");
        let copied = copy.args(["-O", "binary", "-j", ".text"]).arg(path("o")).arg(path("bin")).status();
        if !made.is_ok_and(|made| made.success()) || !copied.is_ok_and(|copied| copied.success()) {
            return eprintln!("skipped: as and objcopy are not installed");
        }
        assert_eq!(std::fs::read(path("bin")).unwrap(), CODE);
    }

    #[test]
    fn it_also_runs_from_a_folder() {
        assert!(Launcher::in_folder().unwrap().works());
        assert!(Launcher::create().unwrap().works());
    }
}
