//! The threads of a process, their names, and when it started.

use std::fmt::Display;

use crate::status::contents;

/// The threads of a process; none if it is not there.
pub fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a thread that is listed still has ended (`state` of `proc_pid_stat(5)`).
pub fn has_ended(pid: u32, tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

/// The name of a thread (`proc_pid_comm(5)`); empty if it is not there.
pub fn thread_name(tid: impl Display) -> String {
    let name = contents(&format!("/proc/{tid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii_end()).into_owned()
}

/// Whether a thread is one of the kernel (`PF_KTHREAD` in the `flags` of `proc_pid_stat(5)`); nothing if it is not there.
pub fn is_of_kernel(tid: u32) -> Option<bool> {
    let flags: u32 = stat_fields(tid)?.get(6)?.parse().ok()?;
    Some(flags & 0x0020_0000 != 0)
}

/// The words of a process's command line (`proc_pid_cmdline(5)`); none if it is not there.
pub fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = bytes.split(|&byte| byte == 0).filter(|argument| !argument.is_empty());
    arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// When a process started, in nanoseconds since 1970 and rounded down to a second: `starttime` of
/// `proc_pid_stat(5)`, which counts hundredths of seconds from when the machine started.
pub fn started_unix_ns(pid: u32) -> Option<u64> {
    let ticks = stat_fields(pid)?.get(19)?.parse::<u64>().ok()?;
    let boot = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    (boot + ticks / 100).checked_mul(1_000_000_000)
}

/// The processor time that a thread used so far, in nanoseconds (`schedstat` in `proc(5)`).
pub fn processor_time(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// When a process started, in the clock ticks of `/proc` (`starttime` of `proc_pid_stat(5)`); nothing for one that
/// has ended, even if its parent has not waited for it yet.
pub fn start_ticks(pid: u32) -> Option<u64> {
    let fields = stat_fields(pid)?;
    let has_ended = fields.first().is_none_or(|state| matches!(state.as_str(), "Z" | "X"));
    if has_ended { None } else { fields.get(19)?.parse().ok() }
}

/// The fields of `proc_pid_stat(5)` behind the name, which may hold anything; the first is the state.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let (_, behind_name) = text.rsplit_once(')')?;
    Some(behind_name.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{inner_pid, user};

    #[test]
    fn this_process_has_threads_and_a_name() {
        let us = std::process::id();
        assert!(threads(us).contains(&us) && !has_ended(us, us));
        assert!(!thread_name(us).is_empty() && !command_line(us).is_empty());
        assert_eq!(is_of_kernel(us), Some(false));
        assert!(inner_pid(us).is_some() && user(us).is_some() && start_ticks(us).is_some());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        assert!(u128::from(started_unix_ns(us).expect("a time")) <= now.as_nanos());
    }

    #[test]
    fn of_a_process_that_is_not_there_nothing_is_known() {
        assert!(threads(0).is_empty() && command_line(0).is_empty() && thread_name(0).is_empty());
        let unknown =
            [inner_pid(0).map(u64::from), user(0).map(u64::from), start_ticks(0), started_unix_ns(0)];
        assert_eq!(unknown, [None; 4]);
    }

    #[test]
    fn a_process_that_has_ended_has_not_started() {
        let mut child = std::process::Command::new("true").spawn().expect("a program");
        let pid = child.id();
        // It stays listed until it is waited for.
        while !has_ended(pid, pid) {
            std::thread::yield_now();
        }
        assert_eq!(start_ticks(pid), None);
        assert!(child.wait().is_ok());
    }
}
