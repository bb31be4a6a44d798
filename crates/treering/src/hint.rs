//! What helps against errors of libraries, which say only what they found.

use std::io;

use treering_perf::{Denial, RecordError};

/// What to do where a program could not be sampled.
pub fn against_no_recording(error: &RecordError) -> Option<String> {
    Some(match error {
        RecordError::NotPermitted(denial) => against_denial(denial).to_owned(),
        RecordError::UnknownEvent(unknown) => unknown.hint.clone(),
        RecordError::NotSupported { .. } => {
            "virtual machines often have no hardware counters; without -e, treering takes what there is"
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

/// What to do where a program cannot be started.
fn against_no_start(program: &str, error: &io::Error) -> Option<String> {
    match error.raw_os_error() {
        Some(libc::ENOENT) if program.contains('/') => {
            Some("check the path; for a script, check the interpreter in its first line".to_owned())
        }
        Some(libc::ENOENT) => Some(format!("it is not in PATH; for a file here, write ./{program}")),
        Some(libc::EACCES) => Some(format!("if it is a program: chmod +x {program}")),
        Some(libc::ENOEXEC) => Some("it is made for another kind of machine, or is not a program".to_owned()),
        _ => None,
    }
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
    fn a_denial_names_the_setting_that_denies() {
        let denial = |paranoid, root| {
            let source = io::Error::from_raw_os_error(libc::EPERM);
            let denial = Denial { target: "solve".to_owned(), tried: Vec::new(), paranoid, root, source };
            against_no_recording(&RecordError::NotPermitted(denial)).unwrap_or_default()
        };
        assert_eq!(denial(Some(3), false), "sudo sysctl kernel.perf_event_paranoid=2");
        assert!(denial(Some(2), false).contains("another user"));
        assert!(denial(Some(3), true).contains("--cap-add PERFMON"));
    }
}
