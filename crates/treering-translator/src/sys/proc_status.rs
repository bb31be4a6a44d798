//! Facts in `/proc` about a process or thread.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The contents of a file of `/proc/PID`. The kernel does not report their length, so this does not ask for
/// it, as `read_to_end` would.
pub(crate) fn contents(tid: i32, name: &str) -> io::Result<Vec<u8>> {
    const USUAL: usize = 8 << 10;
    let mut file = File::open(format!("/proc/{tid}/{name}"))?;
    let (mut bytes, mut got) = (vec![0; USUAL], 0);
    loop {
        match file.read(&mut bytes[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if got == bytes.len() {
            bytes.resize(2 * got, 0);
        }
    }
    bytes.truncate(got);
    Ok(bytes)
}

/// The name that a thread has set for itself.
pub(crate) fn name_of(tid: i32) -> String {
    String::from_utf8_lossy(contents(tid, "comm").unwrap_or_default().trim_ascii_end()).into_owned()
}

/// The text behind a line's name in `/proc/PID/status`; nothing if there is no such line, or the thread has
/// ended.
pub(crate) fn line(tid: i32, name: &str) -> Option<String> {
    let text = contents(tid, "status").ok()?;
    let lines = text.split(|&byte| byte == b'\n');
    let found = lines.into_iter().find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"))?;
    Some(String::from_utf8_lossy(found).trim().to_owned())
}

/// The number in a line.
pub(crate) fn number(tid: i32, name: &str) -> Option<i32> {
    line(tid, name)?.parse().ok()
}

/// Whether a line of signals contains a signal.
pub(crate) fn has_signal(tid: i32, name: &str, signal: i32) -> bool {
    let mask = line(tid, name).and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// The process that a thread belongs to.
pub(crate) fn process_of(tid: i32) -> i32 {
    number(tid, "Tgid").unwrap_or(tid)
}

/// A thread's number in its own namespace.
pub(crate) fn number_inside(tid: i32) -> Option<i32> {
    line(tid, "NSpid")?.split_ascii_whitespace().next_back()?.parse().ok()
}

/// Whether a thread has the same names for files and processes as this process.
pub(crate) fn shares_names(tid: i32) -> bool {
    /// The namespaces of this process, which do not change.
    static OURS: OnceLock<[Option<PathBuf>; 2]> = OnceLock::new();
    let of = |who: &str| ["mnt", "pid"].map(|kind| std::fs::read_link(format!("/proc/{who}/ns/{kind}")).ok());
    let (ours, theirs) = (OURS.get_or_init(|| of("self")), of(&tid.to_string()));
    theirs.iter().all(Option::is_some) && theirs == *ours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_their_names() {
        let own = std::process::id().cast_signed();
        assert_eq!(number(own, "Pid"), Some(own));
        assert_eq!((number(own, "Pi"), number(own, "Name")), (None, None));
        assert_eq!(process_of(own), own);
        assert!(!has_signal(own, "SigCgt", libc::SIGKILL));
        assert!(shares_names(own) && !shares_names(0));
    }
}
