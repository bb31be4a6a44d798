//! The mappings of a process: `proc_pid_maps(5)`.

use std::io;

use crate::threads;

/// One mapping: a line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address behind the last one.
    pub end: u64,
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
    pub path: String,
}

impl Mapping {
    /// Reads a line; nothing if it is malformed.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        let offset = fields.next()?;
        let inode = fields.nth(1)?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim_start();
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some(Self {
            start: hex(start)?,
            end: hex(end)?,
            is_executable: permissions.contains('x'),
            is_shared: permissions.ends_with('s'),
            file_offset: hex(offset)?,
            inode,
            path: path.to_owned(),
        })
    }

    /// The file's path, without the suffix that the kernel appends when the path no longer leads to the file.
    pub fn plain_path(&self) -> &str {
        self.path.strip_suffix(" (deleted)").unwrap_or(&self.path)
    }
}

/// The mappings of a process, by address. An error if it is not there or may not be seen.
pub fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    read(&format!("/proc/{pid}/maps"))
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
    // Paths may hold any bytes.
    let bytes = std::fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(Mapping::parse).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_spaces_or_not_be_there() {
        let line = "7f00-7f80 r-xp 00001000 fe:00 1234    /a path/lib (deleted)";
        let code = Mapping::parse(line).expect("a mapping");
        assert_eq!((code.start, code.end, code.file_offset, code.inode), (0x7f00, 0x7f80, 0x1000, 1234));
        assert_eq!((code.path.as_str(), code.plain_path()), ("/a path/lib (deleted)", "/a path/lib"));
        assert!(code.is_executable && !code.is_shared);
        assert_eq!(Mapping::parse("7f00-7f80 rwxp 00000000 00:00 0 ").expect("a mapping").path, "");
        assert!(Mapping::parse("7f00-7f80 rw-s 00000000 00:01 5 /dev/zero").expect("a mapping").is_shared);
        for wrong in ["", "7f00", "7f00-7f80", "7f00-7f80 rw-p", "x-y rw-p 0 00:00 0 "] {
            assert_eq!(Mapping::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_process_has_mappings() {
        let ours = executable_mappings(std::process::id());
        assert!(ours.iter().all(|mapping| mapping.is_executable && mapping.start < mapping.end));
        let program = std::env::current_exe().expect("our path");
        assert!(ours.iter().any(|mapping| program.as_os_str() == mapping.path.as_str()));
        assert!(executable_mappings(0).is_empty() && mappings(0).is_err());
    }
}
