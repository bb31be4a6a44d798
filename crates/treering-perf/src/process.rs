//! The processes and threads that were seen, and where their code lies.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use treering_profile::{
    Life, Mark, MarkKind, Module, ModuleId, ModuleKind, Process, ProcessId, Profile, RunId, ThreadId,
};

use crate::address_space::AddressSpace;
use crate::binary::{Binaries, Binary, Found};
use crate::record::Mapped;

/// The processes and threads that were seen.
#[derive(Default)]
pub(crate) struct Processes {
    running: HashMap<u32, Running>,
    binaries: Binaries,
    /// Binaries that were kept open, by the names of their modules.
    kept_files: HashMap<PathBuf, Rc<Binary>>,
    /// Processes with code that belongs to no file.
    pub(crate) with_jit: HashMap<u32, JitFiles>,
}

impl Processes {
    /// The note on files that could not be opened.
    pub(crate) fn note_of_unopened(&self) -> Option<String> {
        self.binaries.note_of_unopened()
    }
}

/// Where the names of a process's generated code may be found.
#[derive(Debug)]
pub(crate) struct JitFiles {
    /// The process's `/tmp`, held open since it may be of another namespace.
    pub(crate) folder: Option<File>,
    /// The number that the process knows itself by.
    pub(crate) inner_pid: u32,
    /// The users that it ran as when it made code.
    pub(crate) owners: Vec<u32>,
    /// When it started, in nanoseconds since 1970.
    pub(crate) started_unix_ns: Option<u64>,
    /// Dump files that the process mapped, as `perf` asks of JIT compilers.
    pub(crate) dumps: Vec<PathBuf>,
}

/// A process that runs, as far as we know.
#[derive(Clone, Default)]
struct Running {
    id: Option<ProcessId>,
    space: AddressSpace,
    threads: HashMap<u32, RunningThread>,
    name: String,
}

#[derive(Clone, Debug, Default)]
struct RunningThread {
    id: Option<ThreadId>,
    name: String,
    /// When it was made, if that was seen.
    started: Option<u64>,
    /// When it began to run a program, if its entry in the profile does not tell yet.
    exec: Option<u64>,
}

impl Processes {
    /// The files to which the names of their modules do not lead from here, by these; nothing for those without
    /// a build-id that were written to since.
    pub(crate) fn take_hidden_files(&mut self) -> HashMap<PathBuf, Option<File>> {
        let kept = std::mem::take(&mut self.kept_files).into_iter();
        let hidden = kept.filter(|(name, binary)| !binary.is_at(name));
        let hidden = hidden.map(|(name, binary)| (name, binary.kept_file(), binary.build_id.is_empty()));
        hidden
            .filter(|(_, file, nameless)| file.is_some() || *nameless)
            .map(|(name, file, _)| (name, file))
            .collect()
    }

    /// Notes the mappings and threads of a process that runs already.
    pub(crate) fn adopt(&mut self, profile: &mut Profile, pid: u32) {
        for line in treering_proc::executable_mappings(pid) {
            let mapped = Mapped {
                pid,
                start: line.start,
                length: line.end - line.start,
                file_offset: line.file_offset,
                inode: line.inode,
                executable: true,
                path: line.path.as_os_str().as_bytes(),
            };
            self.map(profile, &mapped);
        }
        for tid in treering_proc::threads(pid) {
            self.name(pid, tid, treering_proc::thread_name(tid));
            if treering_proc::has_ended(pid, tid) {
                // The first thread, which stays listed until the last has ended.
                self.running.entry(pid).or_default().threads.remove(&tid);
            }
        }
    }

    /// Notes a mapping.
    pub(crate) fn map(&mut self, profile: &mut Profile, mapped: &Mapped) {
        let path = String::from_utf8_lossy(mapped.path).into_owned();
        if is_jit_dump(&path) {
            self.note_jit(mapped.pid).dumps.push(PathBuf::from(&path));
        }
        if !mapped.executable {
            return;
        }
        let end = mapped.start.saturating_add(mapped.length);
        let (binary, is_other) =
            match self.binaries.open(mapped.pid, Path::new(&path), mapped.start..end, mapped.inode) {
                Found::Binary(binary) => (Some(binary), false),
                Found::Other => (None, true),
                Found::Nothing => (None, false),
            };
        let build_id = binary.as_ref().map_or(&[][..], |binary| &binary.build_id);
        let is_made = || is_made_file(mapped, &path);
        let kind = match module_kind(&path, binary.is_some()) {
            ModuleKind::Elf if binary.is_none() && is_made() => ModuleKind::Jit,
            kind => kind,
        };
        let name = match kind {
            ModuleKind::Jit => format!("[jit {}]", mapped.pid),
            // No file is to be taken for it when its functions are named.
            _ if is_other => format!("{path} (replaced)"),
            _ => match binary.as_ref().map_or(1, |binary| binary.version) {
                0 | 1 => path.clone(),
                version => format!("{path} ({version})"),
            },
        };
        if kind == ModuleKind::Jit {
            self.note_jit(mapped.pid);
        }
        let module = Module { path: profile.strings.intern(&name), build_id: build_id.into(), kind };
        let module = profile.modules.intern(module);
        if let Some(binary) = &binary
            && binary.kept.is_some()
        {
            self.kept_files.entry(PathBuf::from(name)).or_insert_with(|| binary.clone());
        }
        let space = &mut self.running.entry(mapped.pid).or_default().space;
        space.map(mapped.start, mapped.length, mapped.file_offset, Some(module), binary.as_ref());
    }

    fn note_jit(&mut self, pid: u32) -> &mut JitFiles {
        let files = self.with_jit.entry(pid).or_insert_with(|| JitFiles {
            folder: File::open(format!("/proc/{pid}/root/tmp")).or_else(|_| File::open("/tmp")).ok(),
            inner_pid: treering_proc::inner_pid(pid).unwrap_or(pid),
            owners: Vec::new(),
            started_unix_ns: treering_proc::started_unix_ns(pid),
            dumps: Vec::new(),
        });
        if let Some(user) = treering_proc::user(pid).filter(|user| !files.owners.contains(user)) {
            files.owners.push(user);
        }
        files
    }

    /// Notes that a thread or process was made: a process starts as a copy of its parent.
    pub(crate) fn fork(&mut self, pid: u32, parent_pid: u32, tid: u32, time: u64) {
        if pid != parent_pid {
            let parent = self.running.get(&parent_pid);
            let space = parent.map(|parent| parent.space.clone()).unwrap_or_default();
            let name = parent.map(|parent| parent.name.clone()).unwrap_or_default();
            self.running.insert(pid, Running { space, name, ..Running::default() });
        }
        let process = self.running.entry(pid).or_default();
        let name = process.name.clone();
        process.threads.insert(tid, RunningThread { name, started: Some(time), ..RunningThread::default() });
    }

    /// Notes that a thread took a name.
    pub(crate) fn name(&mut self, pid: u32, tid: u32, name: String) {
        let process = self.running.entry(pid).or_default();
        if pid == tid {
            process.name.clone_from(&name);
        }
        process.threads.entry(tid).or_default().name = name;
    }

    /// Notes that a process runs another program, by its first thread: its mappings are gone.
    pub(crate) fn exec(&mut self, pid: u32, time: u64) {
        let process = self.running.entry(pid).or_default();
        process.space = AddressSpace::default();
        process.threads.entry(pid).or_default().exec = Some(time);
    }

    /// Notes that a thread has ended; with its last thread, a process has.
    pub(crate) fn exit(&mut self, profile: &mut Profile, pid: u32, tid: u32, time: u64) {
        let Some(process) = self.running.get_mut(&pid) else { return };
        if let Some(thread) = process.threads.remove(&tid) {
            thread.write_name(profile);
            thread.write_life(profile, Some(time));
        }
        if process.threads.is_empty()
            && let Some(process) = self.running.remove(&pid)
        {
            process.write_name(profile);
        }
    }

    /// The mappings of a process.
    pub(crate) fn space(&mut self, pid: u32) -> &mut AddressSpace {
        &mut self.running.entry(pid).or_default().space
    }

    /// The thread's entry in the profile, made at its first sample.
    pub(crate) fn thread(&mut self, profile: &mut Profile, run: RunId, pid: u32, tid: u32) -> ThreadId {
        let process = self.running.entry(pid).or_default();
        let id = *process
            .id
            .get_or_insert_with(|| profile.add_process(Process { run, pid, name: process.name.clone() }));
        let thread = process.threads.entry(tid).or_default();
        if let Some(id) = thread.id {
            return id;
        }
        let id = profile.add_thread(id, tid, thread.name.clone());
        thread.id = Some(id);
        thread.mark_exec(profile);
        id
    }

    /// Marks in the timeline that a process runs another program, under its name.
    pub(crate) fn mark_exec(&mut self, profile: &mut Profile, pid: u32) {
        if let Some(thread) = self.running.get_mut(&pid).and_then(|process| process.threads.get_mut(&pid)) {
            thread.mark_exec(profile);
        }
    }

    /// States the lives of the threads that have not ended.
    pub(crate) fn write_lives(&self, profile: &mut Profile) {
        for thread in self.running.values().flat_map(|process| process.threads.values()) {
            thread.write_life(profile, None);
        }
    }

    /// The entry of a thread in the profile, if it has one.
    pub(crate) fn known_thread(&self, pid: u32, tid: u32) -> Option<ThreadId> {
        self.running.get(&pid)?.threads.get(&tid)?.id
    }

    /// Whether a thread of the program lives, as far as we know.
    pub(crate) fn has(&self, pid: u32, tid: u32) -> bool {
        self.running.get(&pid).is_some_and(|process| process.threads.contains_key(&tid))
    }

    /// The name of the program that a process runs.
    pub(crate) fn name_of(&self, pid: u32) -> Option<&str> {
        self.running.get(&pid).map(|process| process.name.as_str())
    }

    /// Brings the names in the profile up to date.
    pub(crate) fn write_names(&self, profile: &mut Profile) {
        for process in self.running.values() {
            process.write_name(profile);
            for thread in process.threads.values() {
                thread.write_name(profile);
            }
        }
    }

    /// The threads among these that have not ended, with their processes.
    pub(crate) fn threads_among(&self, tids: &[u32]) -> Vec<(u32, u32)> {
        let of = |(&pid, process): (&u32, &Running)| {
            let known = tids.iter().filter(|tid| process.threads.contains_key(tid));
            known.map(|&tid| (pid, tid)).collect::<Vec<_>>()
        };
        self.running.iter().flat_map(of).collect()
    }

    /// The processes that have not ended, as far as we know.
    pub(crate) fn running(&self) -> impl Iterator<Item = u32> + '_ {
        self.running.keys().copied()
    }
}

impl Running {
    fn write_name(&self, profile: &mut Profile) {
        if let Some(id) = self.id {
            profile.processes[id.index()].name.clone_from(&self.name);
        }
    }
}

impl RunningThread {
    fn write_name(&self, profile: &mut Profile) {
        if let Some(id) = self.id {
            profile.threads[id.index()].name.clone_from(&self.name);
        }
    }

    /// States when it lived, if it is in the profile.
    fn write_life(&self, profile: &mut Profile, end_ns: Option<u64>) {
        if let (Some(thread), Some(timeline)) = (self.id, &mut profile.timeline) {
            timeline.lives.push(Life { thread, start_ns: self.started, end_ns });
        }
    }

    /// Marks when it began to run a program, once it is in the profile.
    fn mark_exec(&mut self, profile: &mut Profile) {
        let Some(thread) = self.id else { return };
        if let (Some(time_ns), Some(timeline)) = (self.exec.take(), &mut profile.timeline) {
            let name = profile.strings.intern(&self.name);
            timeline.marks.push(Mark { time_ns, end_ns: None, thread, kind: MarkKind::Exec, name });
        }
    }
}

/// The kind of a mapping's module: a file that is no binary, or no file at all, holds code that was made while the
/// program ran.
fn module_kind(path: &str, is_binary: bool) -> ModuleKind {
    match path {
        "[vdso]" => ModuleKind::Vdso,
        _ if is_binary => ModuleKind::Elf,
        _ if treering_proc::is_memory(path) => ModuleKind::Jit,
        _ if path.starts_with('/') => ModuleKind::Elf,
        _ => ModuleKind::Other,
    }
}

/// Whether a mapped file was removed and is no binary, as its beginning in the process's memory shows: some compilers write
/// code to such files that they map twice.
fn is_made_file(mapped: &Mapped, path: &str) -> bool {
    const MAGIC: &[u8] = b"\x7fELF";
    let begins = mapped.file_offset == 0 && path.starts_with('/') && path.ends_with(" (deleted)");
    let beginning =
        || treering_proc::read_memory(mapped.pid, mapped.start, mapped.start + MAGIC.len() as u64);
    begins && beginning().is_some_and(|bytes| bytes != MAGIC)
}

/// Whether a mapped file is a dump of generated code by `perf`'s convention, `jit-PID.dump`.
fn is_jit_dump(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let number = name.strip_prefix("jit-").and_then(|name| name.strip_suffix(".dump"));
    number.is_some_and(|number| number.parse::<u32>().is_ok())
}

/// The module that a name stands for in a profile, made if new.
pub(crate) fn named_module(profile: &mut Profile, name: &str, kind: ModuleKind) -> ModuleId {
    let path = profile.strings.intern(name);
    profile.modules.intern(Module { path, build_id: Box::default(), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_of_generated_code_are_known_by_their_name() {
        assert!(is_jit_dump("/tmp/jit-123.dump"));
        assert!(!is_jit_dump("/tmp/jit-x.dump"));
        assert!(!is_jit_dump("/tmp/jit-123.dump.old"));
    }

    #[test]
    fn memory_without_a_binary_is_generated_code() {
        assert_eq!(module_kind("//anon", false), ModuleKind::Jit);
        for made in ["/memfd:doublemapper (deleted)", "/dev/zero (deleted)", "/SYSV00000000 (deleted)"] {
            assert_eq!(module_kind(made, false), ModuleKind::Jit);
        }
        assert_eq!(module_kind("/dev/shm/solve", true), ModuleKind::Elf);
        assert_eq!(module_kind("/usr/lib/libc.so.6", true), ModuleKind::Elf);
        assert_eq!(module_kind("[vsyscall]", false), ModuleKind::Other);
    }
}
