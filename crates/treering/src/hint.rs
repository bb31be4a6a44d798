//! Hints for the errors of libraries, which say only what they found.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use treering_perf::{Denial, RecordError};
use treering_proc::{find_program, status};
use treering_profile::Profile;
use treering_translator::{CountError, Exhausted};

use crate::word::word;

/// The hint for a program that could not be sampled.
pub fn against_no_recording(error: &RecordError) -> Option<String> {
    Some(match error {
        RecordError::NotPermitted(denial) => against_denial(denial).to_owned(),
        RecordError::UnknownEvent(unknown) => unknown.hint.clone(),
        RecordError::NotSupported { .. } => {
            "virtual machines often have no hardware counters; without -e, treering samples by an event that exists"
                .to_owned()
        }
        RecordError::CannotRun { program, source } => return against_no_start(program, source),
        RecordError::NoProcess(_) | RecordError::HasEnded(_) => {
            "ps -e lists the processes that run".to_owned()
        }
        RecordError::NoRing(_) => {
            "sudo sysctl kernel.perf_event_mlock_kb=2048, or ulimit -l unlimited".to_owned()
        }
        RecordError::System { source, .. } if source.raw_os_error() == Some(libc::EMFILE) => {
            "each thread needs an event for each processor; to open more files: ulimit -Hn 65536 as root, or \
             LimitNOFILE= of the service"
                .to_owned()
        }
        _ => return None,
    })
}

/// Advice for a recorded program that mostly waited, and whose waits were not recorded.
pub fn against_waiting(profile: &Profile) -> Option<String> {
    /// Programs that end sooner wait for nothing but their own start.
    const SHORT_NS: u64 = 100_000_000;
    let wall: u64 = profile.runs.iter().map(|run| run.duration_ns).sum();
    let cpu: u64 = profile.runs.iter().map(|run| run.cpu_ns).sum::<Option<u64>>()?;
    let dominates = wall > SHORT_NS && cpu < wall / 2;
    (dominates && profile.find_metric("off-cpu").is_none()).then(|| {
        let share = 100.0 * (1.0 - cpu as f64 / wall as f64);
        format!(
            "it was on no processor for {share:.0} % of the time, because it waited or none was free: treering record \
             --off-cpu shows where it waits"
        )
    })
}

/// Advice where samples came faster than they could be read.
pub fn against_losses(profile: &Profile) -> Option<String> {
    let losses = &profile.metadata.losses;
    // Fewer are told among the losses only.
    (losses.lost_samples > losses.samples / 20).then(|| {
        "samples came faster than they could be read, so shares may be wrong: take fewer (a lower -F, or -c N), or copy less \
         of each stack (--stack 8k, or --fp)"
            .to_owned()
    })
}

fn against_denial(denial: &Denial) -> &'static str {
    match denial.paranoid {
        Some(level) if level > 2 && !denial.root => "sudo sysctl kernel.perf_event_paranoid=2",
        Some(_) if !denial.root => {
            "the process may belong to another user: try sudo; in a container, allow perf_event_open in the \
             seccomp profile (docker run --security-opt seccomp=unconfined, or --cap-add PERFMON)"
        }
        _ => {
            "in a container: docker run --cap-add PERFMON --security-opt seccomp=unconfined, or privileged; \
             elsewhere a kernel with CONFIG_PERF_EVENTS"
        }
    }
}

/// The hint for a program that cannot be started.
fn against_no_start(program: &str, error: &io::Error) -> Option<String> {
    match error.raw_os_error() {
        Some(libc::ENOENT) if program.contains('/') => {
            Some("check the path; for a script, check the interpreter in its first line".to_owned())
        }
        Some(libc::ENOENT) => {
            Some(format!("it is not in PATH; for a file here, write {}", word(&Path::new(".").join(program))))
        }
        Some(libc::EACCES) => {
            let file = find_program(OsStr::new(program), std::env::var_os("PATH").as_deref());
            let file = file.unwrap_or_else(|| program.into());
            Some(match file.is_dir() {
                true => "it is a directory".to_owned(),
                false => format!("if it is a program: chmod +x {}", word(&file)),
            })
        }
        Some(libc::ENOEXEC) => Some("it is made for another kind of machine, or is not a program".to_owned()),
        _ => None,
    }
}

/// The hint for a program that could not be counted, or not to its end.
pub fn against_no_counts(error: &CountError) -> Option<String> {
    Some(match error {
        CountError::NotFound(program) => {
            return against_no_start(&program.to_string_lossy(), &io::Error::from_raw_os_error(libc::ENOENT));
        }
        CountError::Start(program, source) => return against_no_counted_start(program, source),
        CountError::Trace(source) | CountError::Setup(_, source)
            if [libc::EMFILE, libc::ENFILE].contains(&number(source)) =>
        {
            "the hard limit of open files is too low: ulimit -Hn shows it".to_owned()
        }
        CountError::Trace(source) if [libc::EPERM, libc::ENOSYS].contains(&number(source)) => {
            against_no_trace()
        }
        CountError::NoProcess(_) | CountError::HasEnded(_) => "ps -e lists the processes that run".to_owned(),
        CountError::Attach(_, source) if number(source) == libc::EPERM => against_no_attachment(),
        CountError::CannotAttach(..) => "sample it: treering record -p".to_owned(),
        CountError::OtherMode(_) => "sample it: treering record".to_owned(),
        CountError::Setup(_, source) => against_no_setup(source)?.to_owned(),
        CountError::GivenUp(_, source) => against_giving_up(error.exhausted(), source).to_owned(),
        _ => return None,
    })
}

/// The errno of an error, or 0.
fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(0)
}

fn against_no_counted_start(program: &OsStr, error: &io::Error) -> Option<String> {
    match number(error) {
        libc::ENOEXEC => Some(
            "it must be a program for this machine, or a script whose first line names its interpreter \
             (#!/bin/sh)"
                .to_owned(),
        ),
        _ => against_no_start(&program.to_string_lossy(), error),
    }
}

/// The hint for a process that could not be prepared for counting.
fn against_no_setup(error: &io::Error) -> Option<&'static str> {
    match number(error) {
        libc::EPERM => Some(
            "a system call filter forbids what counting needs: in a container, docker run --cap-add SYS_PTRACE \
             --security-opt seccomp=unconfined",
        ),
        libc::EACCES => Some("you may execute its file but not read it: chmod +r, or use sudo"),
        libc::ENOENT => Some("/proc is not mounted: mount -t proc proc /proc"),
        libc::ENOMEM => Some("the address space limit is too low: ulimit -v unlimited"),
        libc::EFBIG => {
            Some("the file size limit, which holds for shared memory too, is too low: ulimit -f unlimited")
        }
        _ => None,
    }
}

/// How to measure a program instead that could not be counted to its end.
fn against_giving_up(exhausted: Option<Exhausted>, error: &io::Error) -> &'static str {
    match exhausted {
        Some(Exhausted::Contexts | Exhausted::Nesting) => "count it without --tree",
        _ if [libc::EMFILE, libc::ENFILE].contains(&number(error)) => {
            "the hard limit of open files is too low for this many processes: ulimit -Hn shows it"
        }
        _ if error.kind() == io::ErrorKind::StorageFull => {
            "the disk of the output is full: make room there, or name a file on another one after -o"
        }
        _ => "sample it: treering record",
    }
}

/// The setting that forbids tracing even children, or the tracer of this process.
fn against_no_trace() -> String {
    if let Some(tracer) = status::number(std::process::id(), "TracerPid").filter(|&tracer| tracer != 0) {
        let name = treering_proc::thread_name(tracer);
        return format!(
            "process {tracer} ({name}) traces this one and all that it starts: do not run treering under treering count, \
             a debugger or strace"
        );
    }
    match ptrace_scope().as_str() {
        scope @ ("2" | "3") => format!(
            "kernel.yama.ptrace_scope is {scope}: sudo sysctl kernel.yama.ptrace_scope=1 (3 lasts until the next \
             start of the machine)"
        ),
        _ => "in a container, allow it: docker run --cap-add SYS_PTRACE --security-opt seccomp=unconfined"
            .to_owned(),
    }
}

/// The setting that forbids tracing processes that are not children.
fn against_no_attachment() -> String {
    match ptrace_scope().as_str() {
        "1" => "only root may, as kernel.yama.ptrace_scope is 1: sudo treering count -p, or sudo sysctl \
                kernel.yama.ptrace_scope=0 for processes of your own"
            .to_owned(),
        "2" | "3" => against_no_trace(),
        _ => "it must be a process of yours; or use sudo".to_owned(),
    }
}

fn ptrace_scope() -> String {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    scope.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_looked_for_where_it_was_named() {
        let hint = |program: &str| against_no_start(program, &io::Error::from_raw_os_error(libc::ENOENT));
        assert_eq!(hint("solve").as_deref(), Some("it is not in PATH; for a file here, write ./solve"));
        assert!(hint("bin/solve").is_some_and(|hint| hint.starts_with("check the path")));
    }

    #[test]
    fn counting_says_what_limit_or_setting_is_in_the_way() {
        let of = |number| io::Error::from_raw_os_error(number);
        let hint = |error: CountError| against_no_counts(&error).unwrap_or_default();
        assert_eq!(
            hint(CountError::NotFound("solve".into())),
            "it is not in PATH; for a file here, write ./solve"
        );
        assert!(hint(CountError::Start("./solve".into(), of(libc::EACCES))).contains("chmod +x ./solve"));
        assert!(hint(CountError::Start("./solve".into(), of(libc::ENOENT))).starts_with("check the path"));
        assert!(hint(CountError::Setup("memory", of(libc::EFBIG))).contains("ulimit -f"));
        assert!(hint(CountError::GivenUp(1, of(libc::EMFILE))).contains("ulimit -Hn"));
        assert!(hint(CountError::Trace(of(libc::EMFILE))).contains("ulimit -Hn"));
        assert!(hint(CountError::Setup("its memory", of(libc::ENFILE))).contains("ulimit -Hn"));
        assert!(hint(CountError::GivenUp(1, io::Error::other("lost"))).contains("treering record"));
    }

    #[test]
    fn waits_that_were_not_recorded_are_worth_a_hint() {
        use treering_profile::{Metric, RecursionRule, Run, Unit};
        let of = |wall_ms: u64, cpu_ms: Option<u64>| {
            let mut profile = Profile::new(RecursionRule::Full);
            let (duration_ns, cpu_ns) = (wall_ms * 1_000_000, cpu_ms.map(|cpu| cpu * 1_000_000));
            profile.add_run(Run { duration_ns, cpu_ns, ..Run::default() });
            profile
        };
        let mut waits = of(1000, Some(80));
        assert!(against_waiting(&waits).is_some_and(|hint| hint.contains("92 % of the time")));
        assert!(
            [of(1000, Some(800)), of(50, Some(1)), of(1000, None)]
                .iter()
                .all(|of| against_waiting(of).is_none())
        );
        waits.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
        assert_eq!(against_waiting(&waits), None);
    }

    #[test]
    fn lost_samples_are_worth_a_hint() {
        let hint = |lost_samples| {
            let mut profile = treering_testing::stacks("main 100");
            profile.metadata.losses.samples = 100;
            profile.metadata.losses.lost_samples = lost_samples;
            against_losses(&profile)
        };
        assert_eq!(hint(5), None);
        assert!(hint(6).is_some_and(|hint| hint.contains("--stack")));
    }

    #[test]
    fn a_denial_names_the_setting_that_denies() {
        let denial = |paranoid, root| {
            let source = io::Error::from_raw_os_error(libc::EPERM);
            let (doing, target) = ("sample", "solve".to_owned());
            let denial = Denial { doing, target, tried: Vec::new(), paranoid, root, source };
            against_no_recording(&RecordError::NotPermitted(denial)).unwrap_or_default()
        };
        assert_eq!(denial(Some(3), false), "sudo sysctl kernel.perf_event_paranoid=2");
        assert!(denial(Some(2), false).contains("another user"));
        assert!(denial(Some(3), true).contains("--cap-add PERFMON"));
    }
}
