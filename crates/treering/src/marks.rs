//! The marks of programs that a recording has started.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

use nix::fcntl::posix_fallocate;
use treering_events::mark_file::{self, Marks, VARIABLE};
use treering_events::pluralize;
use treering_profile::{Mark, MarkKind, Profile, ThreadId};
use treering_temporary::Folder;

/// The file that programs leave their marks in. It is removed when this is dropped.
pub struct MarkFile {
    path: PathBuf,
    _folder: Folder,
}

impl MarkFile {
    /// Makes an empty file.
    pub fn create() -> std::io::Result<Self> {
        let folder = Folder::create("marks")?;
        let path = folder.path().join("marks");
        let mut file = File::create_new(&path)?;
        // All of it is reserved, so that a full disk is met here and not by the program.
        posix_fallocate(&file, 0, 8 * mark_file::WORDS as libc::off_t)?;
        file.write_all(&mark_file::header())?;
        Ok(Self { path, _folder: folder })
    }

    /// The variable of the environment by which programs find it.
    pub fn variable(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.path.clone().into())
    }

    /// The part of the file that programs have filled.
    fn read(&self) -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&self.path)?;
        let mut header = [0; mark_file::HEADER_BYTES];
        file.read_exact(&mut header)?;
        let mut bytes = header.to_vec();
        file.take((mark_file::filled(&header) - header.len()) as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Adds the marks to a profile whose times are since `start_ns`.
    pub fn add_to(&self, profile: &mut Profile, start_ns: u64) {
        match self.read().ok().and_then(|bytes| mark_file::read(&bytes)) {
            Some(marks) => add(&marks, profile, start_ns),
            None => profile.metadata.note("the marks of the program cannot be read".to_owned()),
        }
    }
}

fn add(found: &Marks, profile: &mut Profile, start_ns: u64) {
    let mut nowhere = 0_u64;
    for mark in &found.marks {
        let Some(thread) = thread(profile, mark.pid, mark.tid) else {
            nowhere += 1;
            continue;
        };
        let name = profile.strings.intern(&mark.name);
        let time_ns = mark.time_ns.saturating_sub(start_ns);
        if let Some(timeline) = &mut profile.timeline {
            timeline.extend_to(time_ns.saturating_add(1));
            timeline.marks.push(Mark { time_ns, end_ns: None, thread, kind: MarkKind::Mark, name });
        }
    }
    if let Some(timeline) = &mut profile.timeline {
        timeline.marks.sort_unstable();
    }
    if found.dropped > 0 {
        let dropped = pluralize(found.dropped, "mark was", "marks were");
        let most = mark_file::MOST;
        profile.metadata.note(format!("{dropped} dropped: a recording has room for {most}"));
    }
    if nowhere > 0 {
        let left_out = pluralize(nowhere, "mark is", "marks are");
        profile.metadata.note(format!("{left_out} left out, of processes without a sample"));
    }
}

/// The thread with these numbers that began last; else another one of the process.
fn thread(profile: &Profile, pid: u32, tid: u32) -> Option<ThreadId> {
    let is_of = |thread: &treering_profile::Thread| profile.processes[thread.process.index()].pid == pid;
    let at = profile.threads.iter().rposition(|thread| is_of(thread) && thread.tid == tid);
    at.or_else(|| profile.threads.iter().position(is_of)).map(ThreadId::from_usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_processes_without_samples_and_dropped_ones_are_told() {
        let mut profile = treering_testing::stacks("main;work 3");
        profile.timeline = Some(treering_profile::Timeline::new());
        let pid = profile.processes[0].pid;
        let mark =
            |time_ns, pid, name: &str| mark_file::Mark { time_ns, pid, tid: 999, name: name.to_owned() };
        let marks = vec![mark(5_000, pid, "sort"), mark(3_000, pid, "load"), mark(6_000, pid + 1, "other")];
        add(&Marks { marks, dropped: 2 }, &mut profile, 1_000);
        let timeline = profile.timeline.as_ref().expect("it was made");
        let found: Vec<_> =
            timeline.marks.iter().map(|mark| (mark.time_ns, &profile.strings[mark.name])).collect();
        assert_eq!(found, [(2_000, "load"), (4_000, "sort")]);
        let notes: Vec<&str> = profile.metadata.notes.iter().map(|note| &*note.0).collect();
        assert_eq!(
            notes,
            [
                "2 marks were dropped: a recording has room for 16384",
                "1 mark is left out, of processes without a sample"
            ]
        );
    }
}
