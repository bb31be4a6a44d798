//! What the kernel tells of a running process in `/proc`.

/// An executable mapping of a running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MapLine {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) file_offset: u64,
    /// A path, a name in brackets, or empty for anonymous memory.
    pub(crate) path: String,
}

/// The executable mappings of a process that runs already.
///
/// All threads have the same. Of a thread that has ended the kernel shows none, and the first one
/// may have ended before the others.
pub(crate) fn executable_mappings(pid: u32) -> Vec<MapLine> {
    let of_thread = |tid| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/maps")).unwrap_or_default();
        text.lines().filter_map(parse_line).collect()
    };
    let mut all = threads(pid).into_iter().map(of_thread);
    all.find(|lines: &Vec<MapLine>| !lines.is_empty()).unwrap_or_default()
}

/// One line of `/proc/PID/maps` (`proc_pid_maps(5)`), if it is executable.
fn parse_line(line: &str) -> Option<MapLine> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let path = fields.nth(2).unwrap_or_default().trim_start();
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let line =
        MapLine { start: hex(start)?, end: hex(end)?, file_offset: hex(offset)?, path: path.to_owned() };
    permissions.contains('x').then_some(line)
}

/// The threads of a process.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a thread that is listed still has ended (`state` of `proc_pid_stat(5)`).
pub(crate) fn has_ended(pid: u32, tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

/// The name that a thread gave itself.
pub(crate) fn thread_name(pid: u32, tid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}

/// The command line of a process.
pub(crate) fn command_line(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = bytes.split(|&byte| byte == 0).filter(|argument| !argument.is_empty());
    arguments.map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// The number that a process has in its own namespace, under which it names its files.
pub(crate) fn inner_pid(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The user that a process runs as.
pub(crate) fn user(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// When a process started, in nanoseconds since 1970 and rounded down to a second: `starttime` of
/// `proc_pid_stat(5)`, which counts hundredths of seconds from when the machine started.
pub(crate) fn started_unix_ns(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, behind_name) = stat.rsplit_once(')')?;
    let ticks: u64 = behind_name.split_whitespace().nth(19)?.parse().ok()?;
    let boot = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = boot.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    (boot + ticks / 100).checked_mul(1_000_000_000)
}

/// The processor time that a thread used so far, in nanoseconds (`schedstat` in `proc(5)`).
pub(crate) fn processor_time(pid: u32, tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// How many frames the kernel follows at most along frame pointers.
pub(crate) fn longest_chain() -> usize {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack").unwrap_or_default();
    text.trim().parse().unwrap_or(127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps_may_have_spaces_in_its_path_or_none() {
        let line = parse_line("7f00-7f80 r-xp 00001000 fe:00 1234    /a path/lib (deleted)").expect("code");
        assert_eq!((line.start, line.end, line.file_offset), (0x7f00, 0x7f80, 0x1000));
        assert_eq!(line.path, "/a path/lib (deleted)");
        assert_eq!(parse_line("7f00-7f80 rwxp 00000000 00:00 0 ").expect("code").path, "");
        assert_eq!(parse_line("7f00-7f80 rw-p 00000000 00:00 0 [heap]"), None);
    }

    #[test]
    fn we_have_mappings_and_threads_and_a_name() {
        let us = std::process::id();
        assert!(executable_mappings(us).iter().any(|line| line.path == "[vdso]"));
        assert!(threads(us).contains(&us) && !has_ended(us, us));
        assert!(!thread_name(us, us).is_empty());
        assert!(inner_pid(us).is_some() && user(us).is_some());
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        assert!(u128::from(started_unix_ns(us).expect("a time")) <= now.as_nanos());
    }
}
