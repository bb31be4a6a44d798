//! The mappings of a process: `proc_pid_maps(5)`.

use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::status::contents;
use crate::threads;

/// One mapping: a line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
    /// Whether the process may read it.
    pub is_readable: bool,
    /// Whether the process may write to it.
    pub is_writable: bool,
    /// Whether the process may execute it.
    pub is_executable: bool,
    /// Whether writes are seen by all processes that map the file.
    pub is_shared: bool,
    /// Where in the file it begins.
    pub file_offset: u64,
    /// The number of the file in its file system; 0 for none.
    pub inode: u64,
    /// A path, with ` (deleted)` behind it where it leads to the file no more; a name in brackets, such as `[vdso]`; or
    /// empty for anonymous memory.
    pub path: PathBuf,
}

impl Mapping {
    /// Reads a line; nothing if it is malformed.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |&byte| byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let (start, end) = text()?.split_once('-')?;
        let permissions = text()?;
        let offset = text()?;
        let (_device, inode) = (text()?, text()?.parse().ok()?);
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some(Self {
            start: hex(start)?,
            end: hex(end)?,
            is_readable: permissions.starts_with('r'),
            is_writable: permissions.contains('w'),
            is_executable: permissions.contains('x'),
            is_shared: permissions.ends_with('s'),
            file_offset: hex(offset)?,
            inode,
            path: OsStr::from_bytes(&with_line_feeds(path)).into(),
        })
    }

    /// The file's path, without the suffix that the kernel appends when the path no longer leads to the file.
    pub fn plain_path(&self) -> &Path {
        let bytes = self.path.as_os_str().as_bytes();
        Path::new(OsStr::from_bytes(bytes.strip_suffix(b" (deleted)").unwrap_or(bytes)))
    }

    /// Whether another mapping, which lies behind it, maps the same memory.
    pub fn continues_in(&self, next: &Self) -> bool {
        let of_file = self.file_offset.wrapping_add(self.end - self.start) == next.file_offset;
        self.end == next.start
            && self.path == next.path
            && self.is_shared == next.is_shared
            && (of_file || !self.path.is_absolute())
    }
}

/// A path as it is: the kernel writes a line feed in one as `\012`, and everything else unchanged.
fn with_line_feeds(path: &[u8]) -> Vec<u8> {
    const ESCAPED: &[u8] = b"\\012";
    let (mut found, mut rest) = (Vec::with_capacity(path.len()), path);
    while let Some((&first, behind)) = rest.split_first() {
        let feed = rest.strip_prefix(ESCAPED);
        found.push(if feed.is_some() { b'\n' } else { first });
        rest = feed.unwrap_or(behind);
    }
    found
}

/// Whether the path of a mapping is a name that the kernel gives to memory without a file that programs could open: as
/// such it is shared with children or other processes, or mapped twice. Code in it was made while the program ran.
pub fn is_memory(path: &str) -> bool {
    const NAMES: [&str; 5] = ["", "//anon", "[heap]", "/dev/zero", "/anon_hugepage"];
    const BEGINNINGS: [&str; 6] = ["/memfd:", "/dev/shm/", "/SYSV", "/dev/hugepages/", "[anon", "[stack"];
    let plain = path.strip_suffix(" (deleted)").unwrap_or(path);
    NAMES.contains(&plain) || BEGINNINGS.iter().any(|beginning| plain.starts_with(beginning))
}

/// The mappings of a process, by address. An error if it is not there or may not be seen.
pub fn mappings(pid: impl Display) -> io::Result<Vec<Mapping>> {
    read(&format!("/proc/{pid}/maps"))
}

/// Whether a process may write to an address now.
pub fn is_writable(pid: impl Display, address: u64) -> io::Result<bool> {
    let holds = |mapping: &Mapping| (mapping.start..mapping.end).contains(&address);
    Ok(mappings(pid)?.iter().any(|mapping| holds(mapping) && mapping.is_writable))
}

/// Whether this process may look into another: not if that executes a file that this user may not read.
pub fn may_be_read(pid: impl Display) -> bool {
    let opened = std::fs::File::open(format!("/proc/{pid}/maps"));
    !opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// The executable mappings of a process; none if it is not there or may not be seen.
///
/// All threads have the same. Of a thread that has ended the kernel shows none, and the first one may have ended before the
/// others.
pub fn executable_mappings(pid: u32) -> Vec<Mapping> {
    let of_thread = |tid| {
        let all = read(&format!("/proc/{pid}/task/{tid}/maps")).unwrap_or_default();
        all.into_iter().filter(|mapping| mapping.is_executable).collect()
    };
    let mut all = threads(pid).into_iter().map(of_thread);
    all.find(|mappings: &Vec<Mapping>| !mappings.is_empty()).unwrap_or_default()
}

fn read(path: &str) -> io::Result<Vec<Mapping>> {
    Ok(contents(path)?.split(|&byte| byte == b'\n').filter_map(Mapping::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_spaces_or_not_be_there() {
        let line = b"7f00-7f80 r-xp 00001000 fe:00 1234    /a path/lib (deleted)";
        let code = Mapping::parse(line).expect("a mapping");
        assert_eq!((code.start, code.end, code.file_offset, code.inode), (0x7f00, 0x7f80, 0x1000, 1234));
        assert_eq!(
            (&*code.path, code.plain_path()),
            (Path::new("/a path/lib (deleted)"), Path::new("/a path/lib"))
        );
        assert!(code.is_readable && code.is_executable && !code.is_writable && !code.is_shared);
        assert_eq!(
            Mapping::parse(b"7f00-7f80 rwxp 00000000 00:00 0 ").expect("a mapping").path,
            Path::new("")
        );
        assert!(Mapping::parse(b"7f00-7f80 rw-s 00000000 00:01 5 /dev/zero").expect("a mapping").is_shared);
        for wrong in ["", "7f00", "7f00-7f80", "7f00-7f80 rw-p", "x-y rw-p 0 00:00 0 "] {
            assert_eq!(Mapping::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_path_may_have_line_feeds() {
        let code = Mapping::parse(b"7f00-7f80 r-xp 00001000 fe:00 1234    /a\\012b\\x").expect("a mapping");
        assert_eq!(code.path, Path::new("/a\nb\\x"));
    }

    #[test]
    fn memory_without_a_file_is_known_by_its_name() {
        for name in [
            "",
            "//anon",
            "[heap]",
            "[stack]",
            "[stack:77]",
            "[anon:dalvik-jit-code-cache]",
            "[anon_shmem:jit]",
            "/dev/zero",
            "/dev/zero (deleted)",
            "/anon_hugepage (deleted)",
            "/SYSV00000000 (deleted)",
            "/SYSV0000162e (deleted)",
            "/memfd:doublemapper (deleted)",
            "/dev/shm/jitAbCdEf (deleted)",
        ] {
            assert!(is_memory(name), "{name}");
        }
        for name in ["[vdso]", "[vsyscall]", "/usr/lib/libc.so.6", "/dev/zeros", "/tmp/SYSV", "/opt/memfd:x"]
        {
            assert!(!is_memory(name), "{name}");
        }
    }

    #[test]
    fn this_process_has_mappings() {
        let ours = executable_mappings(std::process::id());
        assert!(ours.iter().all(|mapping| mapping.is_executable && mapping.start < mapping.end));
        let program = std::env::current_exe().expect("our path");
        assert!(ours.iter().any(|mapping| program == mapping.path));
        assert!(executable_mappings(0).is_empty() && mappings(0).is_err());
        let local = [0_u8; 1];
        assert!(is_writable("self", local.as_ptr().addr() as u64).expect("ours") && may_be_read("self"));
        assert!(!is_writable("self", 0).expect("ours"));
    }

    #[test]
    fn mappings_continue_in_the_same_file_at_the_next_offset() {
        let mapping = |line: &str| Mapping::parse(line.as_bytes()).expect("a mapping");
        let first = mapping("1000-2000 r-xp 00000000 00:01 5 /lib/a");
        assert!(first.continues_in(&mapping("2000-3000 r--p 00001000 00:01 5 /lib/a")));
        for other in ["2000-3000 r-xp 00002000 00:01 5 /lib/a", "2000-3000 r-xp 00001000 00:01 6 /lib/b"] {
            assert!(!first.continues_in(&mapping(other)), "{other}");
        }
    }
}
