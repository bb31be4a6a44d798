//! Processes that become other programs (`execve`).

use std::io;

use treering_profile::{BranchKind, UncountedReason};

use crate::address_space::Provision;
use crate::areas::tree_frame::Inherited;
use crate::surroundings::Surroundings;
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::{self};
use crate::tracer::beginning::hold_beginning;
use crate::tracer::inject::{give_area, prepare_program};
use crate::tracer::state::Tracer;
use crate::tracer::thread::Thread;

impl Tracer {
    /// A process has become another program, and is stopped at the end of `execve`.
    pub(crate) fn became_program(&mut self, tid: i32) -> io::Result<()> {
        let former = sys::event_message(tid, libc::PTRACE_EVENT_EXEC)? as i32;
        self.affinity.pair(tid);
        // Its other threads have ended, and the calling thread has the first one's number now.
        let mut former_threads = Vec::new();
        let surroundings = self.counted(former).map(|(_, program)| program.space.surroundings.next_program());
        let own_rules = self.threads.get(&former).map(|thread| thread.own_rules).unwrap_or_default();
        self.lower_limit(former)?;
        for gone in [former, tid] {
            self.end_role(gone);
            self.end_counting(gone, true);
            former_threads.extend(self.forget_thread(gone));
        }
        self.fault_actions.remove(&tid);
        let mut thread = Thread::new(tid, tid, None, 0);
        thread.own_rules = own_rules;
        let prepared = self.prepare(&mut thread, surroundings);
        if thread.space.is_none() {
            // It is not counted, and makes no requests.
            self.affinity.part();
        }
        self.threads.insert(tid, thread);
        former_threads.into_iter().for_each(|gone| self.pass_signals_on(gone));
        prepared.and_then(|()| self.select(tid))?;
        self.keep(tid);
        self.resume(tid)
    }

    /// Prepares a process that has become a program. Its surroundings are those of the first program, or follow from those
    /// of the program that it was before.
    fn prepare(&mut self, thread: &mut Thread, surroundings: Option<Surroundings>) -> io::Result<()> {
        let tid = thread.tid;
        let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
        stopped.reach_border()?;
        let path = std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_default();
        const CODE_OF_64_BITS: u64 = 0x33;
        if sys::registers(tid)?.0.cs != CODE_OF_64_BITS {
            self.note(UncountedReason::OtherMode, tid, path.display().to_string());
            if !self.filtered {
                // The program could not be counted, so it is ended before its first instruction.
                sys::kill(tid);
            }
            return Ok(());
        }
        if self.filtered && !treering_proc::may_be_read(tid) {
            // The kernel does not name the file either.
            let name = treering_proc::thread_name(tid);
            let detail = "its file may be executed but not read, so the kernel does not let it be traced";
            self.note(UncountedReason::Privileged, tid, format!("{name}: {detail}"));
            return Ok(());
        }
        if let Some(why) = loses_privileges(&path) {
            self.note(UncountedReason::Privileged, tid, format!("{}: {why}", path.display()));
        }
        self.note_most_addresses(tid)?;
        let files = self.next_files(tid);
        let watcher = self.watcher.clone();
        let mut surroundings = surroundings.unwrap_or_else(|| self.options.surroundings.clone());
        hold_beginning(tid, sys::registers(tid)?.0.rsp, &mut surroundings)?;
        let provision = Provision { surroundings, ..self.provision(thread.pid, files, &path) };
        let mut space = prepare_program(&mut stopped, &self.syscall_page, self.filtered, provision, watcher)?;
        self.filtered = true;
        thread.area = give_area(&mut space, &mut stopped, 0)?;
        self.begin_selecting(thread, &space, None);
        let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
        let mut registers = sys::registers(tid)?;
        let start = registers.0.rip;
        space.areas.begin_tree(thread.area, &mut stopped, &space.program, start, Inherited::default())?;
        if let Some(entry) = space.enter(start, &mut stopped)? {
            registers.0.rip = entry;
            sys::set_registers(tid, &registers)?;
        }
        thread.slow_path.note_transfer(BranchKind::Start, None, Some(start));
        self.add_program(thread, space, path);
        Ok(())
    }
}

/// The privileges that the program would have had if it had not been traced.
fn loses_privileges(path: &std::path::Path) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let file = std::fs::metadata(path).ok()?;
    let own = std::fs::metadata("/proc/self").ok()?;
    let user = file.mode() & SET_USER != 0 && file.uid() != own.uid();
    let group = file.mode() & SET_GROUP == SET_GROUP && file.gid() != own.gid();
    if user || group {
        return Some("it ran without the privileges that its file grants (setuid or setgid)");
    }
    const ROOT: u32 = 0;
    let capabilities = own.uid() != ROOT && sys::has_capabilities(path);
    capabilities.then_some("it ran without the privileges that its file grants (capabilities)")
}
