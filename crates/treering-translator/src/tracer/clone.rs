//! New threads and processes, from the call that makes them (`clone`, `fork`, `vfork`) until they begin.
//!
//! A new thread stops before its first instruction, and its parent reports it, in any order. A parent that is killed
//! in the call reports nothing.

use std::io;

use treering_profile::{BranchKind, UncountedReason};

use crate::address_space::{AddressSpace, Provision};
use crate::areas::tree_frame::Inherited;
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::syscall_page::in_block;
use crate::sys::{self};
use crate::tracer::inject::give_area;
use crate::tracer::state::{Program, Tracer};
use crate::tracer::thread::{Call, PendingClone, State, Thread};
use treering_proc::status;

impl Tracer {
    /// A thread has made another thread or a process.
    pub(crate) fn made_clone(&mut self, tid: i32, event: i32) -> io::Result<()> {
        let child = sys::event_message(tid, event)? as i32;
        self.note_clone(tid, child)?;
        self.resume(tid)
    }

    /// The process that a thread has made and will never report, because it is being killed.
    pub(crate) fn untold_child(&self, tid: i32) -> Option<i32> {
        const CALLS: [i64; 4] = [libc::SYS_clone, libc::SYS_clone3, libc::SYS_fork, libc::SYS_vfork];
        let registers = sys::registers(tid).ok()?.0;
        if !CALLS.contains(&registers.orig_rax.cast_signed()) || registers.rax.cast_signed() <= 0 {
            return None;
        }
        let (pid, own) = (self.process_of(tid), std::process::id().cast_signed());
        let is_its = |child: &i32| {
            let is_known = self.threads.contains_key(child) || self.pending_clones.contains_key(child);
            let says = |line: &str, number: i32| status::number(*child, line) == Some(number);
            !is_known && says("Tgid", *child) && says("PPid", pid) && says("TracerPid", own)
        };
        // The call returns the number in the thread's own namespace, which may differ from ours.
        self.early.iter().copied().find(is_its).or_else(|| Some(registers.rax as i32).filter(is_its))
    }

    /// Ends processes that have not run and whose parents can no longer report them: they could not be counted.
    pub(crate) fn end_orphans(&mut self) {
        if self.threads.is_empty() && self.pending_clones.is_empty() {
            for child in self.early.clone() {
                let text =
                    "it was ended before it ran, because its parent was killed while creating it".to_owned();
                self.note(UncountedReason::CutShort, child, text);
                sys::kill(child);
            }
        }
    }

    pub(crate) fn note_clone(&mut self, tid: i32, child: i32) -> io::Result<()> {
        self.affinity.born(tid, child);
        let flags = clone_flags(tid)?;
        let argument = self.restore_argument(tid)?;
        let shares = flags & libc::CLONE_VM as u64 != 0;
        let is_thread = flags & libc::CLONE_THREAD as u64 != 0;
        let borrows = shares && !is_thread;
        let own_rules = self.threads.get(&tid).map(|thread| thread.own_rules).unwrap_or_default();
        let (space, pid, own_gs, call_next, context, regions, surroundings, entered, restartable) =
            match self.counted(tid) {
                Some((thread, program)) => {
                    let regions = (!shares).then(|| program.space.program.regions.copied());
                    let surroundings = (!shares).then(|| program.space.surroundings.next_program());
                    let own_gs = program.space.areas.slot(thread.area, crate::sys::layout::OWN_GS);
                    let call_next = program.space.areas.call_next(thread.area);
                    let context = program.space.areas.inheritance(thread.area, !is_thread);
                    // A copy of the process has the same stack; a thread has one of its own.
                    let entered = (!is_thread).then(|| thread.entered.clone());
                    let restartable = thread.restartable.filter(|_| !shares);
                    (
                        thread.space,
                        thread.pid,
                        own_gs,
                        call_next,
                        context,
                        regions,
                        surroundings,
                        entered,
                        restartable,
                    )
                }
                None => {
                    let pid = self.process_of(tid);
                    (None, pid, 0, 0, Inherited::default(), None, None, None, None)
                }
            };
        if let (false, Some(&action)) = (is_thread, self.fault_actions.get(&pid)) {
            self.fault_actions.insert(child, action);
        }
        if let (false, Some(&most)) = (is_thread, self.most_addresses.get(&pid)) {
            self.most_addresses.insert(child, most);
        }
        let pid = if is_thread { pid } else { child };
        if let Some(program) = space.and_then(|space| self.spaces[space].as_mut()) {
            // The address space must outlive its other threads until the new thread has begun, or has its copy.
            program.threads += 1;
        }
        let pending = PendingClone {
            pid,
            space,
            shares,
            own_gs,
            call_next,
            context,
            regions,
            surroundings,
            entered,
            borrows,
            restartable,
            own_rules,
            argument,
        };
        self.pending_clones.insert(child, pending);
        if let Some(at) = self.early.iter().position(|&early| early == child) {
            self.early.swap_remove(at);
            self.begin_thread(child);
        }
        Ok(())
    }

    /// Restores the first argument of a call if the tracer changed it, now that the kernel has read it.
    /// Returns that argument.
    fn restore_argument(&mut self, tid: i32) -> io::Result<Option<u64>> {
        let Some(thread) = self.threads.get_mut(&tid) else { return Ok(None) };
        let State::InCall(Call::Clone(argument)) = thread.state else { return Ok(None) };
        thread.state = State::Running;
        set_first_argument(tid, argument)?;
        Ok(Some(argument))
    }

    pub(crate) fn new_thread_stopped(&mut self, tid: i32) {
        if self.pending_clones.contains_key(&tid) {
            self.begin_thread(tid);
        } else {
            self.early.push(tid);
        }
    }

    /// A new thread has stopped before its first instruction.
    fn begin_thread(&mut self, tid: i32) {
        let Some(pending) = self.pending_clones.remove(&tid) else { return };
        let mut thread = Thread::new(tid, pending.pid, pending.space, 0);
        (thread.borrows, thread.restartable) = (pending.borrows, pending.restartable);
        thread.own_rules = pending.own_rules;
        if let Some(argument) = pending.argument {
            // A thread that has ended meanwhile needs no argument.
            let _ = set_first_argument(tid, argument);
        }
        let begun = match pending.space {
            None => Ok(()),
            Some(space) if pending.shares => self.join_space(&mut thread, space, pending),
            Some(space) => {
                let copied = self.copy_space(&mut thread, space, pending);
                self.leave_space(space, tid);
                copied
            }
        };
        self.threads.insert(tid, thread);
        let begun = begun.and_then(|()| self.select(tid));
        self.keep(tid);
        if let Err(error) = begun.and_then(|()| self.resume(tid)) {
            self.give_up(tid, error);
        }
        if self.leaving {
            self.ask_to_stop(tid);
        }
    }

    /// Gives a thread, or a child that shares its parent's memory, an area of its own.
    fn join_space(&mut self, thread: &mut Thread, space: usize, pending: PendingClone) -> io::Result<()> {
        // Taken out, as methods of the tracer are called meanwhile.
        let Some(mut program) = self.spaces[space].take() else { return Ok(()) };
        let joined = self.join_program(thread, &mut program, pending);
        self.spaces[space] = Some(program);
        joined
    }

    fn join_program(
        &mut self,
        thread: &mut Thread,
        program: &mut Program,
        pending: PendingClone,
    ) -> io::Result<()> {
        let mut stopped = StoppedThread::new(thread.tid, false, &mut thread.held);
        thread.area = give_area(&mut program.space, &mut stopped, pending.own_gs)?;
        self.begin_selecting(thread, &program.space, pending.entered);
        let mut stopped = StoppedThread::new(thread.tid, false, &mut thread.held);
        program.space.areas.set_call_next(thread.area, pending.call_next);
        let rip = in_block(sys::registers(thread.tid)?.0.rip, pending.call_next);
        let at = program.space.cache.address_of(rip);
        program.space.areas.begin_tree(
            thread.area,
            &mut stopped,
            &program.space.program,
            at.unwrap_or(rip),
            pending.context,
        )?;
        thread.slow_path.note_transfer(BranchKind::Start, None, at);
        Ok(())
    }

    /// Gives a child with a copy of the memory its own tables, counters and code cache before it runs: it may
    /// load other code at an address than its parent does.
    fn copy_space(&mut self, thread: &mut Thread, from: usize, pending: PendingClone) -> io::Result<()> {
        thread.space = None;
        self.affinity.pair(thread.tid);
        let files = self.next_files(pending.pid);
        let Some(path) = self.spaces[from].as_ref().map(|parent| parent.path.clone()) else { return Ok(()) };
        let surroundings = pending.surroundings.unwrap_or_default();
        let provision = Provision { surroundings, ..self.provision(pending.pid, files, &path) };
        let Some(parent) = &self.spaces[from] else { return Ok(()) };
        let mut registers = sys::registers(thread.tid)?;
        let at = parent.space.cache.address_of(in_block(registers.0.rip, pending.call_next));
        let at = at.ok_or_else(|| io::Error::other("a new process begins at an unknown place"))?;
        let mut stopped = StoppedThread::new(thread.tid, false, &mut thread.held);
        let regions = pending.regions.unwrap_or_default();
        let replace = Some(&parent.space);
        let mut space = match provision.calls_at_page {
            true => AddressSpace::new(regions, at, &mut stopped, replace, provision),
            // No system call is interrupted at the child's first instruction.
            false => {
                stopped.with_lists(|stopped| AddressSpace::new(regions, at, stopped, replace, provision))
            }
        }?;
        thread.area = give_area(&mut space, &mut stopped, pending.own_gs)?;
        self.begin_selecting(thread, &space, pending.entered);
        let mut stopped = StoppedThread::new(thread.tid, false, &mut thread.held);
        space.areas.begin_tree(thread.area, &mut stopped, &space.program, at, pending.context)?;
        registers.0.gs_base = space.areas.gs_base(thread.area);
        let entry = space.enter(at, &mut stopped)?;
        registers.0.rip = entry.unwrap_or(at);
        sys::set_registers(thread.tid, &registers)?;
        thread.slow_path.note_transfer(BranchKind::Start, None, Some(at));
        self.add_program(thread, space, path);
        Ok(())
    }
}

fn set_first_argument(tid: i32, argument: u64) -> io::Result<()> {
    let mut registers = sys::registers(tid)?;
    registers.0.rdi = argument;
    sys::set_registers(tid, &registers)
}

/// The flags of the call with which a thread makes its child.
fn clone_flags(tid: i32) -> io::Result<u64> {
    let r = sys::registers(tid)?.0;
    Ok(match r.orig_rax as i64 {
        libc::SYS_clone => r.rdi,
        libc::SYS_clone3 => {
            let mut flags = [0; 8];
            sys::read_memory(tid, r.rdi, &mut flags);
            u64::from_le_bytes(flags)
        }
        libc::SYS_vfork => (libc::CLONE_VM | libc::CLONE_VFORK) as u64,
        _ => 0,
    })
}
