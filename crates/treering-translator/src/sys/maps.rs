//! A process's mappings, as `/proc/PID/maps` lists them.

use std::io;
use std::path::PathBuf;

use crate::sys::proc_status;

/// One line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
    pub(crate) shared: bool,
    /// The offset of `start` in the file.
    pub(crate) offset: u64,
    /// The file's path, a name such as `[stack]`, or nothing.
    pub(crate) name: PathBuf,
}

impl Mapping {
    /// Whether another mapping, which lies behind it, maps the same memory.
    pub(crate) fn goes_on_with(&self, next: &Self) -> bool {
        let is_file = self.name.is_absolute();
        let of_file = self.offset.wrapping_add(self.end - self.start) == next.offset;
        self.end == next.start
            && self.name == next.name
            && self.shared == next.shared
            && (of_file || !is_file)
    }
}

/// The mappings of a process, by address.
pub(crate) fn mappings(pid: i32) -> io::Result<Vec<Mapping>> {
    let text = proc_status::contents(pid, "maps")?;
    Ok(text.split(|&byte| byte == b'\n').filter_map(parse).collect())
}

/// Whether this process may look into another: not if that executes a file that this user may not read.
pub(crate) fn may_be_read(pid: i32) -> bool {
    let opened = std::fs::File::open(format!("/proc/{pid}/maps"));
    !opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Whether a process may write to an address, as things are.
pub(crate) fn is_writable(pid: i32, address: u64) -> io::Result<bool> {
    let holds = |mapping: &Mapping| (mapping.start..mapping.end).contains(&address);
    Ok(mappings(pid)?.iter().any(|mapping| holds(mapping) && mapping.writable))
}

fn parse(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let mut field = || fields.next();
    let range = std::str::from_utf8(field()?).ok()?;
    let (start, end) = range.split_once('-')?;
    let access = field()?;
    let offset = std::str::from_utf8(field()?).ok()?;
    let (_, _, name) = (field()?, field()?, field().unwrap_or(b""));
    let name = name.trim_ascii_start();
    let name: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(name);
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        readable: access.first() == Some(&b'r'),
        writable: access.get(1) == Some(&b'w'),
        executable: access.get(2) == Some(&b'x'),
        shared: access.get(3) == Some(&b's'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        name: name.into(),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_name() {
        let line = b"7f00-8f00 r-xp 00001000 08:01 1234                       /lib/a file.so";
        let mapping = parse(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.offset), (0x7f00, 0x8f00, 0x1000));
        assert_eq!(mapping.name, PathBuf::from("/lib/a file.so"));
        assert!(mapping.executable && !mapping.writable && !mapping.shared);
        assert_eq!(parse(b"7f00-8f00 rw-p 00000000 00:00 0 ").unwrap().name, PathBuf::new());
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn our_own_mappings_are_found() {
        let mappings = mappings(std::process::id() as i32).unwrap();
        assert!(mappings.iter().any(|mapping| mapping.executable));
    }
}
