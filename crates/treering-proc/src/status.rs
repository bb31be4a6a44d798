//! Facts about a process or thread from `/proc/PID/status`: `proc_pid_status(5)`.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The contents of a file in `/proc`. The kernel does not report their length, so this does not ask for it, as
/// `read_to_end` would.
pub(crate) fn contents(path: &str) -> io::Result<Vec<u8>> {
    const USUAL: usize = 8 << 10;
    let mut file = File::open(path)?;
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

/// The text behind a line's name in `/proc/PID/status`; nothing if there is no such line, or the thread has
/// ended.
///
/// It is read from the thread's own file, which has the same contents: the translator watches the other one.
pub fn line(tid: impl Display, name: &str) -> Option<String> {
    let text = contents(&format!("/proc/{tid}/task/{tid}/status")).ok()?;
    let lines = text.split(|&byte| byte == b'\n');
    let found = lines.into_iter().find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"))?;
    Some(String::from_utf8_lossy(found).trim().to_owned())
}

/// The number in a line.
pub fn number(tid: impl Display, name: &str) -> Option<i32> {
    line(tid, name)?.parse().ok()
}

/// The signals in a line, each as the bit of its number less one.
pub fn signals(tid: impl Display, name: &str) -> u64 {
    line(tid, name).and_then(|mask| u64::from_str_radix(&mask, 16).ok()).unwrap_or(0)
}

/// Whether a line of signals contains a signal.
pub fn has_signal(tid: impl Display, name: &str, signal: i32) -> bool {
    signals(tid, name) >> (signal - 1) & 1 == 1
}

/// The process that a thread belongs to.
pub fn process_of(tid: i32) -> i32 {
    number(tid, "Tgid").unwrap_or(tid)
}

/// The number of a process in its own namespace, under which it names its files (`NSpid`); of a thread, its own number
/// there.
pub fn inner_pid(tid: impl Display) -> Option<u32> {
    last_number(tid, "NSpid")
}

/// The number of a thread's process in its own namespace (`NStgid`).
pub fn inner_process(tid: impl Display) -> Option<u32> {
    last_number(tid, "NStgid")
}

/// The effective user of a process (`Uid`).
pub fn user(pid: impl Display) -> Option<u32> {
    line(pid, "Uid")?.split_whitespace().nth(1)?.parse().ok()
}

/// The most memory that a process had at once, in bytes (`VmHWM` of `proc_pid_status(5)`).
pub fn peak_memory(pid: impl Display) -> Option<u64> {
    let kib: u64 = line(pid, "VmHWM")?.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn last_number(tid: impl Display, name: &str) -> Option<u32> {
    line(tid, name)?.split_whitespace().last()?.parse().ok()
}

/// Whether a thread has the same names for files and processes as this process.
pub fn shares_names(tid: impl Display) -> bool {
    /// The namespaces of this process, which do not change.
    static OURS: OnceLock<[Option<PathBuf>; 2]> = OnceLock::new();
    let of = |process: &str| {
        ["mnt", "pid"].map(|kind| std::fs::read_link(format!("/proc/{process}/ns/{kind}")).ok())
    };
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
        assert!(!has_signal(own, "SigCgt", 9));
        assert!(shares_names(own) && !shares_names(0));
        assert_eq!((inner_process(own), inner_pid(own)), (inner_pid(own), Some(std::process::id())));
    }
}
