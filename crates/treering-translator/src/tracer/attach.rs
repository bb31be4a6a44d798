//! Attaches to running processes, and detaches from them.
//!
//! All threads are stopped, wherever they are, and continue in translated code. On detaching, each continues
//! in its own code. [`check`] finds out whether a process can be attached to. [`Tracer::leave`] removes from
//! it everything of the tracer except the seccomp filter, which the kernel cannot remove; it has no effect
//! afterwards ([`crate::sys::syscall_page`]).

use std::io;
use std::time::{Duration, Instant};

use treering_profile::{BranchKind, UncountedReason};

use crate::address_space::AddressSpace;
use crate::cache::block::End;
use crate::error::CountError;
use crate::program::program_code::ProgramCode;
use crate::sys::layout::{COUNTERS, OWN_GS, ROOM_SIZE, SEGMENT_SIZE, SYSCALL_PAGE, SYSCALL_PAGE_SIZE};
use crate::sys::remote_syscall::{HeldSignal, RemoteSyscalls, StoppedThread};
use crate::sys::syscall_page::BEHIND_CALL;
use crate::sys::wait::EVENT_STOP;
use crate::sys::{self, Registers, Stop};
use crate::tracer::inject::{FILTERED, give_area, prepare_running};
use crate::tracer::memory_conflict::taken;
use crate::tracer::rseq::Restartable;
use crate::tracer::signal::is_caught;
use crate::tracer::state::Tracer;
use crate::tracer::thread::{Left, Parked, State, Thread};
use crate::tracer::thread_stop::ThreadStop;
use crate::tracer::waiting_call::go_on_after_stop;
use treering_proc::{Mapping, status};

/// How long a thread may take to stop.
const PATIENCE: Duration = Duration::from_secs(10);

impl Parked {
    /// A thread that is stopped in its own code.
    fn of(tid: i32) -> io::Result<Self> {
        Ok(Self { registers: sys::registers(tid)? })
    }
}

impl Tracer {
    /// Attaches to a process: its threads continue in translated code.
    ///
    /// # Errors
    /// The process cannot be attached to; it continues as before.
    pub(crate) fn attach(&mut self, pid: i32) -> Result<(), CountError> {
        // The kernel denies everything about a process that is ending.
        let attached = self.try_to_attach(pid);
        attached.map_err(|error| match error {
            CountError::NoProcess(_) => error,
            _ if is_ending(pid) => CountError::HasEnded(pid),
            _ => error,
        })
    }

    fn try_to_attach(&mut self, pid: i32) -> Result<(), CountError> {
        check(pid)?;
        let refuse = |error: io::Error| CountError::CannotAttach(pid, error.to_string());
        let could_gain = status::number(pid, "NoNewPrivs") == Some(0);
        let threads = stop_threads(pid)?;
        self.attached = Some(Left { pid, lost_privileges: could_gain });
        self.can_leave = true;
        let taken = check_mode(&threads).and_then(|()| self.take_over(pid, &threads));
        if let Err(error) = taken {
            threads.iter().for_each(|&tid| drop(self.park(tid)));
            self.finish_leaving();
            threads.iter().for_each(|&tid| drop(sys::detach(tid)));
            return Err(refuse(error));
        }
        Ok(())
    }

    fn take_over(&mut self, pid: i32, threads: &[i32]) -> io::Result<()> {
        let Some((&first, others)) = threads.split_first() else {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        };
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let files = self.next_files(pid);
        let provision = self.provision(pid, files, &path);
        let (mut thread, first_registers) = (Thread::new(first, pid, None, 0), Parked::of(first)?);
        let mut stopped = StoppedThread::new(first, false, &mut thread.held);
        self.note_most_addresses(pid)?;
        let space = prepare_running(&mut stopped, &self.syscall_page, provision, self.watcher.clone());
        let space = space.inspect_err(|_| take_mappings_away(&mut stopped, None))?;
        self.filtered = true;
        // From here on, a failure leaves the thread as detaching does.
        thread.parked = Some(first_registers);
        self.add_program(&mut thread, space, path);
        let number = thread.space;
        let action = fault_action(&mut StoppedThread::new(first, false, &mut thread.held));
        self.threads.insert(first, thread);
        for &tid in others {
            let thread = Thread { parked: Some(Parked::of(tid)?), ..Thread::new(tid, pid, number, 0) };
            self.threads.insert(tid, thread);
            self.counted(tid).into_iter().for_each(|(_, program)| program.threads += 1);
        }
        self.fault_actions.extend(action?.map(|action| (pid, action)));
        for &tid in threads {
            sys::keep(tid)?;
            self.begin_running(tid)?;
        }
        for &tid in threads {
            self.keep(tid);
            if let Err(error) = self.resume(tid) {
                self.give_up(tid, error);
            }
        }
        Ok(())
    }

    /// Lets a thread that is stopped in its own code continue in translated code.
    fn begin_running(&mut self, tid: i32) -> io::Result<()> {
        let Some(mut thread) = self.threads.remove(&tid) else { return Ok(()) };
        let program = thread.space.and_then(|number| self.spaces[number].take());
        let number = thread.space;
        let begun = match program {
            Some(mut program) => {
                let begun = sys::registers(tid).and_then(|mut registers| {
                    self.has_left_part |= go_on_after_stop(tid, &mut registers);
                    self.lead_in(&mut thread, &mut program.space, registers)
                });
                if let Some(number) = number {
                    self.spaces[number] = Some(program);
                }
                begun
            }
            None => Ok(()),
        };
        self.threads.insert(tid, thread);
        begun.and_then(|()| self.select(tid))
    }

    fn lead_in(
        &self,
        thread: &mut Thread,
        space: &mut AddressSpace,
        mut registers: Registers,
    ) -> io::Result<()> {
        let tid = thread.tid;
        let own = registers;
        thread.parked = Some(Parked { registers });
        let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
        thread.restartable = Restartable::take(&mut stopped, &mut registers)?;
        thread.parked = Some(Parked { registers });
        thread.area = give_area(space, &mut stopped, own.0.gs_base)?;
        self.begin_selecting(thread, space, None);
        let at = registers.0.rip;
        registers.0.gs_base = space.areas.gs_base(thread.area);
        ThreadStop::with(thread, space, false, |stop| {
            registers.0.rip = if is_interrupted_call(&registers) {
                stop.enter_behind_call(at, &mut registers)?
            } else {
                registers.0.orig_rax = u64::MAX;
                stop.enter(at)?.unwrap_or(at)
            };
            stop_again(stop.stopped)?;
            sys::set_registers(tid, &registers)
        })?;
        thread.slow_path.note_transfer(BranchKind::Start, None, Some(at));
        thread.parked = None;
        Ok(())
    }

    /// Begins to detach from everything that was attached to: each thread stops as soon as it can.
    pub(crate) fn leave(&mut self) {
        self.leaving = true;
        // A thread that has ended needs nothing. The others are asked again at each of their stops.
        self.threads.keys().for_each(|&tid| drop(sys::interrupt(tid)));
    }

    /// Asks a thread to stop, unless it is parked already.
    pub(crate) fn ask_to_stop(&mut self, tid: i32) {
        if self.threads.get(&tid).is_some_and(|thread| thread.parked.is_none()) {
            let _ = sys::interrupt(tid);
        }
    }

    /// Detaches once all threads are parked; whether that is done.
    pub(crate) fn has_left(&mut self) -> bool {
        let is_ready = self.leaving
            && self.early.is_empty()
            && self.pending_clones.is_empty()
            && self.threads.values().all(|thread| thread.parked.is_some());
        if is_ready {
            self.finish_leaving();
        }
        is_ready
    }

    /// Parks a stopped thread: puts it back into its own code, where it stays until all threads are parked.
    /// Returns whether it is parked.
    pub(crate) fn park(&mut self, tid: i32) -> io::Result<bool> {
        let Some(thread) = self.threads.get(&tid) else { return Ok(true) };
        // The parent of a thread that borrows its memory (`vfork`) waits for it, and cannot be stopped meanwhile.
        if thread.parked.is_some() || thread.state != State::Running || thread.borrows {
            return Ok(thread.parked.is_some());
        }
        if thread.space.is_none() {
            let parked = Some(Parked::of(tid)?);
            self.threads.get_mut(&tid).into_iter().for_each(|thread| thread.parked = parked);
            return Ok(true);
        }
        let mut has_left_part = false;
        let parked = self.with(tid, false, |stop, registers| {
            if !stop.restore_program_state(registers)? {
                // It is asked again a little later.
                return Ok(false);
            }
            has_left_part = go_on_after_stop(tid, registers);
            registers.0.gs_base = stop.space.areas.slot(stop.thread.area, OWN_GS);
            sys::set_registers(tid, registers)?;
            stop.thread.parked = Some(Parked { registers: *registers });
            Ok(true)
        })?;
        self.has_left_part |= has_left_part;
        Ok(parked.unwrap_or(true))
    }

    /// Detaches from all threads, which are parked.
    fn finish_leaving(&mut self) {
        self.affinity.part();
        self.delayed_signals.cancel();
        let mut threads: Vec<i32> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        for &tid in &threads {
            let told =
                self.threads.get_mut(&tid).and_then(|thread| Some((thread.restartable.take()?, thread)));
            if let Some((restartable, thread)) = told {
                let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
                let given = restartable.give_back(&mut stopped);
                self.note_left(tid, given);
            }
        }
        for number in 0..self.spaces.len() {
            let Some(tid) = threads
                .iter()
                .copied()
                .find(|tid| self.threads.get(tid).is_some_and(|thread| thread.space == Some(number)))
            else {
                continue;
            };
            let cleared = self.counted(tid).map_or(Ok(()), |(thread, program)| {
                let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
                take_away(&program.space, &mut stopped)
            });
            self.note_left(tid, cleared);
            let limited = self.give_most_addresses_back(self.process_of(tid));
            self.note_left(tid, limited);
        }
        for tid in threads {
            self.look_for_open_function(tid);
            let Some(thread) = self.forget_thread(tid) else { continue };
            let let_go = let_go(thread);
            self.note_left(tid, let_go);
        }
        if let Some(left) = &mut self.attached {
            left.lost_privileges &= status::number(left.pid, "NoNewPrivs") == Some(1);
        }
    }

    fn note_left(&mut self, tid: i32, done: io::Result<()>) {
        match done {
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                let text = format!("its original state could not be restored: {error}");
                self.note(UncountedReason::Other, tid, text);
            }
            _ => {}
        }
    }
}

/// Detaches from a parked thread.
fn let_go(mut thread: Thread) -> io::Result<()> {
    let tid = thread.tid;
    let mut stopped = StoppedThread::new(tid, false, &mut thread.held);
    if let Some(Parked { registers }) = thread.parked {
        stop_again(&mut stopped)?;
        sys::set_registers(tid, &registers)?;
    }
    let waiting = thread.throttle.into_waiting().filter(|waiting| is_caught(tid, waiting.signal));
    let held = thread.held.into_iter().filter(|held| !held.info.is_sent_again());
    for HeldSignal { signal, info } in held.chain(waiting) {
        sys::send_signal_as(thread.pid, tid, signal, &info);
    }
    sys::detach(tid)
}

/// Brings a thread, after remote system calls, back to the kind of stop that it was in: only from there does
/// the kernel restart an interrupted call. The caller sets the registers afterwards.
fn stop_again(thread: &mut StoppedThread<'_>) -> io::Result<()> {
    let tid = thread.tid;
    let mut registers = sys::registers(tid)?;
    registers.0.orig_rax = u64::MAX;
    sys::set_registers(tid, &registers)?;
    let mut signal = 0;
    loop {
        sys::interrupt(tid)?;
        sys::resume(tid, std::mem::take(&mut signal))?;
        match sys::wait(tid)? {
            Some((_, Stop::Event(EVENT_STOP, _))) => return Ok(()),
            Some((_, Stop::Signal(arrived))) => signal = thread.take_signal(arrived)?.unwrap_or(0),
            Some((_, Stop::Event(..) | Stop::SystemCall)) => {}
            Some((_, Stop::Exited(_) | Stop::Killed(_))) | None => {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
    }
}

/// Whether the kernel would restart the thread's system call, at once or when a handler returns.
fn is_interrupted_call(registers: &Registers) -> bool {
    /// `ERESTARTSYS`, `ERESTARTNOINTR`, `ERESTARTNOHAND` and `ERESTART_RESTARTBLOCK`
    const AGAIN: [i64; 4] = [-512, -513, -514, -516];
    registers.0.orig_rax as i64 >= 0 && AGAIN.contains(&(registers.0.rax as i64))
}

impl ThreadStop<'_, '_> {
    /// Where a thread continues whose system call, directly before `address`, was interrupted. It is the
    /// place behind the call of the system call page: the kernel steps back from there to restart the call.
    fn enter_behind_call(&mut self, address: u64, registers: &mut Registers) -> io::Result<u64> {
        /// The length of `syscall`, `sysenter` and `int 0x80`.
        const LENGTH: u64 = 2;
        let call = address.wrapping_sub(LENGTH);
        let entry = self.enter(call)?;
        let blocks = &self.space.cache.blocks;
        if let Some(block) = blocks.at(call).filter(|&block| blocks.get(block).end == End::System) {
            self.space.areas.set_call_next(self.thread.area, blocks.behind_last_instruction(block));
            return Ok(BEHIND_CALL);
        }
        // Without a translated call, the thread makes the call again itself, also after a signal.
        let is_to_go_on = registers.0.rax as i64 == -516;
        registers.0.rax = if is_to_go_on { libc::SYS_restart_syscall as u64 } else { registers.0.orig_rax };
        registers.0.orig_rax = u64::MAX;
        Ok(entry.unwrap_or(call))
    }
}

/// Removes everything of the tracer from a process whose threads are parked, and makes its code executable again.
fn take_away(space: &AddressSpace, thread: &mut StoppedThread<'_>) -> io::Result<()> {
    take_mappings_away(thread, Some(space));
    let here = treering_proc::mappings(thread.tid)?;
    match here.iter().any(|mapping| mapping.start == SYSCALL_PAGE) {
        true => Err(io::Error::other("the kernel keeps our memory mapped")),
        false => Ok(()),
    }
}

/// Unmaps the tracer's memory, the system call page last. With a `space`, the program's code becomes
/// executable again.
fn take_mappings_away(thread: &mut StoppedThread<'_>, space: Option<&AddressSpace>) {
    let Ok(mappings) = treering_proc::mappings(thread.tid) else { return };
    if !mappings.iter().any(|mapping| mapping.start == SYSCALL_PAGE) {
        return;
    }
    let is_ours = |mapping: &&Mapping| {
        let is_named = mapping.path.to_str().is_some_and(|name| name.starts_with("/memfd:treering "));
        let is_counters = match space {
            Some(space) => space
                .areas
                .segment_bases
                .iter()
                .any(|base| (*base..base + SEGMENT_SIZE).contains(&mapping.start)),
            None => {
                COUNTERS.iter().any(|range| range.contains(&mapping.start))
                    && mapping.is_shared
                    && is_kept(mapping)
            }
        };
        (is_named || is_counters) && mapping.start != SYSCALL_PAGE
    };
    // The failure of one does not prevent the others.
    let _ = thread.remotely(|calls| {
        if let Some(space) = space {
            space.program.give_execution_back(&mappings, calls);
        }
        for mapping in mappings.iter().filter(is_ours) {
            let _ = calls.unmap(mapping.start, mapping.end - mapping.start);
        }
        calls.unmap(SYSCALL_PAGE, SYSCALL_PAGE_SIZE + ROOM_SIZE)
    });
}

/// Whether a mapping is of one of the files that hold counters.
fn is_kept(mapping: &Mapping) -> bool {
    mapping.path.extension().is_some_and(|kind| kind.as_encoded_bytes().starts_with(b"counters"))
}

/// The reason not to attach to a process that goes on in other threads than its first.
const FIRST_HAS_ENDED: &str = "its first thread has ended";

/// Finds out, before anything is changed, whether a process can be attached to.
fn check(pid: i32) -> Result<(), CountError> {
    let Some(state) = status::line(pid, "State") else { return Err(CountError::NoProcess(pid)) };
    let refuse = |why: &str| Err(CountError::CannotAttach(pid, why.to_owned()));
    if status::process_of(pid) != pid {
        return refuse("it is a thread, not a process");
    }
    if pid == std::process::id().cast_signed() {
        return refuse("a process cannot count itself");
    }
    match state.as_bytes().first() {
        Some(b'Z' | b'X') if tasks(pid).into_iter().any(is_alive) => return refuse(FIRST_HAS_ENDED),
        Some(b'Z' | b'X') => return Err(CountError::HasEnded(pid)),
        Some(b'T') => return refuse("it is stopped; let it go on first (kill -CONT)"),
        _ => {}
    }
    match status::number(pid, "TracerPid") {
        None | Some(0) => {}
        Some(tracer) => return refuse(&format!("process {tracer} traces it already")),
    }
    if status::line(pid, "x86_Thread_features").is_some_and(|features| features.contains("shstk")) {
        return refuse("it uses the processor's shadow stack, which translated code cannot keep consistent");
    }
    // Only a user who may trace the process may read its mappings.
    let denied = |_| CountError::Attach(pid, io::Error::from_raw_os_error(libc::EPERM));
    let mappings = treering_proc::mappings(pid).map_err(denied)?;
    if mappings.is_empty() {
        return match treering_proc::is_of_kernel(pid.cast_unsigned()) {
            Some(true) => refuse("it is a kernel thread"),
            _ => Err(CountError::HasEnded(pid)),
        };
    }
    let number = |tid, name| status::number(tid, name).unwrap_or(0);
    let filters = |tid| (number(tid, "Seccomp"), number(tid, "Seccomp_filters"));
    // If one thread has our filter, all have it. The process is asked later whether the filter is ours.
    let of_all = filters(pid);
    let are_others = |tid: &i32| filters(*tid) != of_all && is_alive(*tid);
    if ![(0, 0), (2, 1)].contains(&of_all) || tasks(pid).iter().any(are_others) {
        return refuse(FILTERED);
    }
    if let Some(start) = taken(&mappings) {
        return refuse(&format!("its memory lies at an address that counting needs ({start:#x})"));
    }
    Ok(())
}

fn check_mode(threads: &[i32]) -> io::Result<()> {
    const CODE_OF_64_BITS: u64 = 0x33;
    for &tid in threads {
        if sys::registers(tid)?.0.cs != CODE_OF_64_BITS {
            return Err(io::Error::other("it is not a 64-bit program for x86"));
        }
    }
    Ok(())
}

/// How a stopped thread's process handles faults.
fn fault_action(thread: &mut StoppedThread<'_>) -> io::Result<Option<crate::tracer::thread::Action>> {
    const SIZE: usize = size_of::<crate::tracer::thread::Action>();
    let bytes = thread.remotely(|calls| {
        let arguments = |at| [libc::SIGSEGV as u64, 0, at, size_of::<u64>() as u64, 0, 0];
        calls.call_for_bytes(libc::SYS_rt_sigaction, SIZE, arguments)
    })?;
    let (words, _) = bytes.as_chunks();
    Ok((bytes.len() == SIZE).then(|| std::array::from_fn(|word| u64::from_le_bytes(words[word]))))
}

/// Whether a thread has not ended yet.
fn is_alive(tid: i32) -> bool {
    status::line(tid, "State").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// Whether a process that was there has ended, or is ending: its memory is gone then.
fn is_ending(pid: i32) -> bool {
    let has_memory = |tid| status::line(tid, "VmSize").is_some();
    !tasks(pid).into_iter().any(has_memory) && treering_proc::is_of_kernel(pid.cast_unsigned()) != Some(true)
}

/// The threads of a process.
fn tasks(pid: i32) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Stops all threads of a process, and returns them, its first thread first.
fn stop_threads(pid: i32) -> Result<Vec<i32>, CountError> {
    let mut threads = Vec::new();
    let stopped = stop_all(pid, &mut threads);
    if stopped.is_err() {
        threads.iter().for_each(|&tid| drop(sys::detach(tid)));
    }
    stopped.map(|()| threads)
}

/// Stops threads until none is left running that could make another one.
fn stop_all(pid: i32, threads: &mut Vec<i32>) -> Result<(), CountError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let new: Vec<i32> = tasks(pid).into_iter().filter(|tid| !threads.contains(tid)).collect();
        let mut waited_for = Vec::new();
        for tid in new {
            match sys::seize_running(tid).and_then(|()| sys::interrupt(tid)) {
                Ok(()) => waited_for.push(tid),
                Err(_) if !is_alive(tid) => {}
                Err(error) => return Err(CountError::Attach(pid, error)),
            }
        }
        if waited_for.is_empty() {
            break;
        }
        for tid in waited_for {
            if stop_one(pid, tid, deadline)? {
                threads.push(tid);
            }
        }
    }
    threads.sort_unstable_by_key(|&tid| (tid != pid, tid));
    match threads.first() {
        Some(&first) if first == pid => Ok(()),
        Some(_) => Err(CountError::CannotAttach(pid, FIRST_HAS_ENDED.to_owned())),
        None => Err(CountError::HasEnded(pid)),
    }
}

/// Waits until a thread that was asked to stop has stopped. Whether it still exists.
fn stop_one(pid: i32, tid: i32, deadline: Instant) -> Result<bool, CountError> {
    let refuse = |why: &str| Err(CountError::CannotAttach(pid, why.to_owned()));
    let attach = |error| CountError::Attach(pid, error);
    loop {
        match sys::stop_of(tid).map_err(attach)? {
            Some(Stop::Event(EVENT_STOP, libc::SIGTRAP)) => return Ok(true),
            Some(Stop::Event(EVENT_STOP, _)) => {
                let _ = sys::detach(tid);
                return refuse("it is stopped; let it go on first (kill -CONT)");
            }
            Some(Stop::Exited(_) | Stop::Killed(_)) => return Ok(false),
            Some(Stop::Signal(signal)) => {
                sys::resume(tid, signal).and_then(|()| sys::interrupt(tid)).map_err(attach)?;
            }
            Some(Stop::Event(..) | Stop::SystemCall) => sys::resume(tid, 0).map_err(attach)?,
            None if Instant::now() > deadline => {
                return refuse("one of its threads is in a call that cannot be interrupted, such as `vfork`");
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

impl ProgramCode {
    /// Gives the program back its own protections: it may execute its code in place, and write to its writable code.
    fn give_execution_back(&self, mappings: &[Mapping], calls: &mut RemoteSyscalls<'_, '_>) {
        let mut protect = |start: u64, end: u64, protection: i32| {
            // Mappings that the kernel has sealed were never changed.
            let _ = calls.call(libc::SYS_mprotect, [start, end - start, protection as u64, 0, 0, 0]);
        };
        for mapping in mappings.iter().filter(|mapping| mapping.is_readable && !mapping.is_executable) {
            for (start, end) in self.regions.within(mapping.start, mapping.end) {
                let write = if mapping.is_writable { libc::PROT_WRITE } else { 0 };
                protect(start, end, libc::PROT_READ | libc::PROT_EXEC | write);
            }
        }
        for page in self.regions.protected_pages() {
            protect(page.start, page.end, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
        }
    }
}
