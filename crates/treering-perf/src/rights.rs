//! Programs that run with other rights than the user's own, which the kernel does not let the user watch: it ends all
//! events of a process that executes one (`begin_new_exec`).

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use treering_proc::find_program;
use treering_profile::Profile;

/// Programs whose sampling the kernel ended.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    programs: BTreeSet<String>,
    /// Processes that have executed a program which was not seen to be mapped: that comes after the
    /// events have ended.
    silent: HashMap<u32, String>,
}

impl Rights {
    /// Notes that a process has executed a program, called `name`.
    pub(crate) fn executed(&mut self, pid: u32, name: &str) {
        self.silent.insert(pid, name.to_owned());
    }

    /// Notes that a process has mapped something.
    pub(crate) fn mapped(&mut self, pid: u32) {
        if !self.silent.is_empty() {
            self.silent.remove(&pid);
        }
    }

    /// Notes that a program was launched of which no sample came.
    pub(crate) fn note_unseen(&mut self, program: &OsStr) {
        self.programs.extend(hidden_program(program));
    }

    /// Whether there are programs that were not sampled, or not to their end.
    pub(crate) fn hide_any(&self) -> bool {
        !self.programs.is_empty() || !self.silent.is_empty()
    }

    /// Says in the profile which programs were not sampled.
    pub(crate) fn note(&mut self, profile: &mut Profile) {
        // The mapping may be in a lost record.
        if profile.metadata.losses.lost_samples == 0 {
            self.programs.extend(self.silent.drain().map(|(_, program)| program));
        }
        for program in &self.programs {
            profile.metadata.note(format!(
                "{program} was not sampled: it is setuid, has capabilities or must not be read, and the kernel \
                 does not let such programs be sampled; to sample it, run treering as the user whose rights it \
                 takes, such as root"
            ));
        }
    }
}

/// The name of a program that the kernel may keep from being watched, by its file.
pub(crate) fn hidden_program(program: &OsStr) -> Option<String> {
    let path = find_program(program, std::env::var_os("PATH").as_deref())?;
    let takes_rights = path.metadata().ok()?.mode() & (libc::S_ISUID | libc::S_ISGID) != 0;
    let is_secret =
        std::fs::File::open(&path).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    let name = path.file_name().unwrap_or(program);
    (takes_rights || is_secret).then(|| name.to_string_lossy().into_owned())
}

/// Processor time of programs in which the kernel counted nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// The program that was launched, if it is such a one by its file. Else the time is of programs that it executed.
    pub program: Option<String>,
    /// The time.
    pub time: Duration,
    /// All processor time.
    pub of: Duration,
}

impl Uncounted {
    /// The time beyond `counted` of all that a launched program used, if it is too much to be that before the program was
    /// executed, and that in which the kernel made and ended processes.
    pub(crate) fn new(program: &OsStr, of: Duration, counted: Duration) -> Option<Self> {
        let time = of.saturating_sub(counted);
        let program = hidden_program(program).filter(|_| 4 * time > 3 * of);
        (program.is_some() || time > of / 5 + PROCESSES).then_some(Self { program, time, of })
    }
}

/// So much processor time passes outside of events in a program that makes some processes.
const PROCESSES: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use treering_profile::RecursionRule;

    use super::*;

    #[test]
    fn a_plain_program_can_be_watched() {
        let mut rights = Rights::default();
        rights.executed(7, "plain");
        rights.mapped(7);
        rights.note_unseen(OsStr::new("true"));
        rights.note_unseen(OsStr::new("/no/such/program"));
        let mut profile = Profile::new(RecursionRule::Full);
        rights.note(&mut profile);
        assert!(profile.metadata.notes.is_empty());
    }

    #[test]
    fn a_program_that_was_executed_and_never_mapped_is_named() {
        let mut rights = Rights::default();
        rights.executed(7, "ping");
        let mut profile = Profile::new(RecursionRule::Full);
        rights.note(&mut profile);
        assert!(profile.metadata.notes[0].0.starts_with("ping was not sampled"));
    }

    #[test]
    fn a_program_that_takes_rights_is_named() {
        let mut rights = Rights::default();
        let path = std::env::temp_dir().join(format!("treering-setuid-{}", std::process::id()));
        std::fs::write(&path, b"").expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
        std::fs::set_permissions(&path, mode).expect("it is ours");
        rights.note_unseen(path.as_os_str());
        std::fs::remove_file(&path).expect("it is ours");
        let mut profile = Profile::new(RecursionRule::Full);
        rights.note(&mut profile);
        let note = &profile.metadata.notes[0].0;
        assert!(note.starts_with("treering-setuid-") && note.contains("was not sampled"), "{note}");
    }
}
