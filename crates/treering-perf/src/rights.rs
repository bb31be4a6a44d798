//! Programs that run with other rights than the user's own, which the kernel does not let the user watch: it ends all
//! events of a process that executes one (`begin_new_exec`).

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;

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
        let found = find_program(program, std::env::var_os("PATH").as_deref());
        let found = found.and_then(|path| Some((path.metadata().ok()?, path)));
        let Some((about, path)) = found else { return };
        let takes_rights = about.mode() & (libc::S_ISUID | libc::S_ISGID) != 0;
        let is_secret =
            std::fs::File::open(&path).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
        if takes_rights || is_secret {
            let name = path.file_name().unwrap_or(program);
            self.programs.insert(name.to_string_lossy().into_owned());
        }
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
