//! Remote system calls, which the tracer makes in the name of a stopped thread.

use std::io;

use crate::sys::layout::{CALLS, REQUEST_CALL, ROOM, ROOM_SIZE, SYSCALL_PAGE};
use crate::sys::mapping_thread::DESCRIPTORS_FOR_MAPPING;
use crate::sys::syscall_page::LISTED_CALL;
use crate::sys::wait::{EVENT_STOP, STOPS};
use crate::sys::{self, Registers, SignalInfo, Stop};
use treering_proc::status;

/// Where lists of calls lie, behind the data of the calls.
const LIST: u64 = ROOM + ROOM_SIZE / 2;
/// The most calls in a list, besides the one that ends it.
const MOST_LISTED: usize = ((ROOM + ROOM_SIZE - LIST) / LISTED_CALL) as usize - 1;

/// A stopped thread, in whose name the translator may make system calls.
#[derive(Debug)]
pub(crate) struct StoppedThread<'a> {
    pub(crate) tid: i32,
    /// Whether it is stopped inside a system call, which is then skipped.
    pub(crate) in_call: bool,
    /// The address of the `syscall` instruction for remote calls.
    pub(crate) syscall_page: u64,
    /// Signals that came meanwhile, to be delivered later.
    pub(crate) held: &'a mut Vec<HeldSignal>,
    /// Whether the thread was killed meanwhile.
    pub(crate) gone: bool,
    /// Whether it has the same names for files and processes as this process, once that is known.
    shares_names: Option<bool>,
    /// Whether lists of calls can be made: the system call page and the filter are there.
    takes_lists: bool,
    /// Whether it stands at the end of a list, in a call that is to be skipped.
    at_end: bool,
}

/// A signal that came when it could not be delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldSignal {
    pub(crate) signal: i32,
    pub(crate) info: SignalInfo,
}

impl<'a> StoppedThread<'a> {
    /// A thread in a stop outside of system calls, or inside of one that is to be skipped.
    pub(crate) fn new(tid: i32, in_call: bool, held: &'a mut Vec<HeldSignal>) -> Self {
        let (shares_names, takes_lists, at_end) = (None, false, false);
        Self {
            tid,
            in_call,
            syscall_page: SYSCALL_PAGE,
            held,
            gone: false,
            shares_names,
            takes_lists,
            at_end,
        }
    }

    /// Makes calls, and restores the thread's registers afterwards.
    pub(crate) fn remotely<T>(
        &mut self,
        calls: impl FnOnce(&mut RemoteSyscalls<'_, 'a>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut saved = sys::registers(self.tid)?;
        if self.in_call {
            self.skip_call(&saved)?;
            saved.0.orig_rax = u64::MAX;
        }
        let mut made = RemoteSyscalls { thread: self, saved };
        let result = calls(&mut made);
        if !self.gone {
            if self.at_end {
                saved.0.orig_rax = u64::MAX;
            }
            sys::set_registers(self.tid, &saved)?;
        }
        result
    }

    /// The same, with lists of calls made at once where that is possible; the thread is not left inside a
    /// call. It must have our filter, and no interrupted call that is to be restarted.
    pub(crate) fn with_lists<T>(
        &mut self,
        act: impl FnOnce(&mut StoppedThread<'a>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.takes_lists = true;
        let result = act(self);
        self.takes_lists = false;
        self.leave_end()?;
        result
    }

    /// Leaves the call that ends a list.
    fn leave_end(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.at_end) && !self.gone {
            self.reach_border()?;
        }
        Ok(())
    }

    /// Leaves the system call that the thread is in, without making it.
    pub(crate) fn skip_call(&mut self, saved: &Registers) -> io::Result<()> {
        let mut skipping = *saved;
        skipping.0.orig_rax = u64::MAX;
        sys::set_registers(self.tid, &skipping)?;
        self.in_call = false;
        self.reach_border()
    }

    /// Handles a signal that is about to be delivered: the signal to resume the thread with, or nothing for a fault.
    ///
    /// A signal that stops the process does so at once, as a `SIGCONT` that is sent before the stop is sent again would
    /// be lost. Any other signal is held. A fault is not held: it comes again when its instruction is executed again, and
    /// could not be sent in its original form.
    pub(crate) fn take_signal(&mut self, signal: i32) -> io::Result<Option<i32>> {
        if STOPS.contains(&signal) && !status::has_signal(self.tid, "SigCgt", signal) {
            return Ok(Some(signal));
        }
        let info = sys::signal_info(self.tid)?;
        if info.is_of_instruction() {
            return Ok(None);
        }
        self.held.push(HeldSignal { signal, info });
        Ok(Some(0))
    }

    /// Runs up to the next entry or exit of a system call.
    pub(crate) fn reach_border(&mut self) -> io::Result<()> {
        self.run_to(sys::resume_to_call, |stop| stop == Stop::SystemCall).map(drop)
    }

    /// Runs up to the next call that the filter stops.
    fn reach_filtered(&mut self) -> io::Result<()> {
        let filtered = Stop::Event(libc::PTRACE_EVENT_SECCOMP, libc::SIGTRAP);
        self.run_to(sys::resume, |stop| stop == filtered).map(drop)
    }

    /// If its process is stopped meanwhile, the thread runs on, and reports the stop again when it is next resumed, unless
    /// the process has been continued.
    fn run_to(
        &mut self,
        resume: fn(i32, i32) -> io::Result<()>,
        is_end: impl Fn(Stop) -> bool,
    ) -> io::Result<Stop> {
        /// A fault may have been pending.
        const MOST_FAULTS: u32 = 16;
        let (mut signal, mut in_group_stop, mut faults) = (0, false, 0);
        loop {
            resume(self.tid, signal)?;
            signal = 0;
            match sys::wait(self.tid)? {
                Some((_, stop)) if is_end(stop) => {
                    if in_group_stop {
                        sys::interrupt(self.tid)?;
                    }
                    return Ok(stop);
                }
                Some((_, Stop::Signal(arrived))) => match self.take_signal(arrived)? {
                    Some(taken) => signal = taken,
                    None if faults < MOST_FAULTS => faults += 1,
                    None => return Err(io::Error::other("no system call can be made in its name")),
                },
                Some((_, Stop::Event(EVENT_STOP, reason))) => in_group_stop = STOPS.contains(&reason),
                Some((_, Stop::Event(..) | Stop::SystemCall)) => {}
                end => {
                    if let Some((tid, end)) = end {
                        sys::tell_again(tid, end);
                    }
                    self.gone = true;
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
        }
    }
}

/// The calls that are made in a thread's name.
pub(crate) struct RemoteSyscalls<'t, 'a> {
    pub(crate) thread: &'t mut StoppedThread<'a>,
    saved: Registers,
}

impl RemoteSyscalls<'_, '_> {
    /// Makes one system call.
    pub(crate) fn call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        self.begin_call(number, arguments)?;
        self.thread.reach_border()?;
        result(sys::registers(self.thread.tid)?.0.rax)
    }

    /// Makes a call of `clone` that makes another thread. Returns our number for it.
    pub(crate) fn make_thread(&mut self, arguments: [u64; 6]) -> io::Result<i32> {
        let is_made = |stop| matches!(stop, Stop::Event(libc::PTRACE_EVENT_CLONE, _));
        self.begin_call(libc::SYS_clone, arguments)?;
        let stop =
            self.thread.run_to(sys::resume_to_call, |stop| is_made(stop) || stop == Stop::SystemCall)?;
        if !is_made(stop) {
            return result(sys::registers(self.thread.tid)?.0.rax).map(|tid| tid as i32);
        }
        let tid = sys::event_message(self.thread.tid, libc::PTRACE_EVENT_CLONE)? as i32;
        self.thread.reach_border()?;
        Ok(tid)
    }

    /// Brings the thread into a system call.
    fn begin_call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<()> {
        if self.thread.at_end {
            let mut registers = self.saved;
            registers.0.orig_rax = u64::MAX;
            sys::set_registers(self.thread.tid, &registers)?;
            self.thread.leave_end()?;
        }
        let mut registers = self.saved;
        let r = &mut registers.0;
        [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] = arguments;
        r.rax = number as u64;
        r.orig_rax = u64::MAX;
        r.rip = self.thread.syscall_page;
        sys::set_registers(self.thread.tid, &registers)?;
        self.thread.reach_border()
    }

    /// Makes several calls, all of them, and returns their results. A list takes one stop where single calls
    /// take two each.
    pub(crate) fn call_all(&mut self, calls: &[(i64, [u64; 6])]) -> io::Result<Vec<io::Result<u64>>> {
        if !self.thread.takes_lists {
            return Ok(calls.iter().map(|(number, arguments)| self.call(*number, *arguments)).collect());
        }
        let lists = calls.chunks(MOST_LISTED).map(|list| self.make_list(list, [None; 2]));
        Ok(lists.collect::<io::Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// Makes a list of calls at once. The result of the first can become an argument of up to two others,
    /// given by call and argument.
    fn make_list(
        &mut self,
        calls: &[(i64, [u64; 6])],
        passed_on: [Option<(usize, usize)>; 2],
    ) -> io::Result<Vec<io::Result<u64>>> {
        let (tid, size) = (self.thread.tid, calls.len() * LISTED_CALL as usize);
        let place = |call: usize, word: usize| LIST + call as u64 * LISTED_CALL + word as u64 * 8;
        let entries = calls.iter().enumerate().flat_map(|(at, (number, [a, b, c, d, e, f]))| {
            let goes_to = passed_on.map(|to| match to {
                Some((call, argument)) if at == 0 => place(call, 1 + argument),
                _ => place(at, 0),
            });
            [*number as u64, *a, *b, *c, *d, *e, *f, goes_to[0], goes_to[1]]
        });
        let end = [u64::from(REQUEST_CALL), 0, 0, 0, 0, 0, 0, 0, 0];
        let mut bytes: Vec<u8> = entries.chain(end).flat_map(u64::to_le_bytes).collect();
        debug_assert!(calls.len() <= MOST_LISTED, "a list has room");
        if !sys::write_memory(tid, LIST, &bytes) {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        let mut registers = self.saved;
        (registers.0.rip, registers.0.r12, registers.0.orig_rax) = (CALLS, LIST, u64::MAX);
        sys::set_registers(tid, &registers)?;
        self.thread.reach_filtered()?;
        self.thread.at_end = true;
        if sys::read_memory(tid, LIST, &mut bytes[..size]) != size {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        let results = bytes[..size].chunks(LISTED_CALL as usize).filter_map(|entry| entry.first_chunk());
        Ok(results.map(|bytes| result(u64::from_le_bytes(*bytes))).collect())
    }

    /// Uses another `syscall` instruction from now on.
    pub(crate) fn use_gate(&mut self, syscall_page: u64) {
        self.thread.syscall_page = syscall_page;
    }

    /// Maps the [room](ROOM) for the data of calls.
    pub(crate) fn map_room(&mut self) -> io::Result<()> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        sys::move_limit(self.thread.tid, sys::ADDRESSES, ROOM_SIZE.cast_signed())?;
        match self.call(libc::SYS_mmap, [ROOM, ROOM_SIZE, protection, flags as u64, u64::MAX, 0])? {
            ROOM => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        }
    }

    /// Makes a call with bytes in the [room](ROOM), which the call may change; reads them back.
    fn call_in_place(
        &mut self,
        number: i64,
        bytes: &mut [u8],
        arguments: impl FnOnce(u64) -> [u64; 6],
    ) -> io::Result<u64> {
        let tid = self.thread.tid;
        debug_assert!(bytes.len() as u64 <= ROOM_SIZE, "what a call needs has room");
        if !sys::write_memory(tid, ROOM, bytes) {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        let result = self.call(number, arguments(ROOM))?;
        match sys::read_memory(tid, ROOM, bytes) == bytes.len() {
            true => Ok(result),
            false => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        }
    }

    /// Makes a call that reads bytes.
    pub(crate) fn call_with_bytes(
        &mut self,
        number: i64,
        bytes: &[u8],
        arguments: impl FnOnce(u64) -> [u64; 6],
    ) -> io::Result<u64> {
        self.call_in_place(number, &mut bytes.to_vec(), arguments)
    }

    /// Makes a call that writes a given number of bytes, and returns them.
    pub(crate) fn call_for_bytes(
        &mut self,
        number: i64,
        length: usize,
        arguments: impl FnOnce(u64) -> [u64; 6],
    ) -> io::Result<Vec<u8>> {
        let mut written = vec![0; length];
        self.call_in_place(number, &mut written, arguments)?;
        Ok(written)
    }

    /// Maps memory shared with this process at a fixed address.
    pub(crate) fn map(
        &mut self,
        memory: &crate::sys::shared_memory::SharedMemory,
        address: u64,
        size: u64,
        protection: i32,
        replace: bool,
    ) -> io::Result<()> {
        self.map_part((memory, 0), address, size, protection, replace)
    }

    /// The same for a part of the memory.
    pub(crate) fn map_part(
        &mut self,
        (memory, offset): (&crate::sys::shared_memory::SharedMemory, u64),
        address: u64,
        size: u64,
        protection: i32,
        replace: bool,
    ) -> io::Result<()> {
        if !replace {
            sys::move_limit(self.thread.tid, sys::ADDRESSES, size.cast_signed())?;
        }
        let fixed = if replace { libc::MAP_FIXED } else { libc::MAP_FIXED_NOREPLACE };
        let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE | fixed) as u64;
        let map = |file: u64| (libc::SYS_mmap, [address, size, protection as u64, flags, file, offset]);
        let close = |file: u64| (libc::SYS_close, [file, 0, 0, 0, 0, 0]);
        // The same advice as for the tracer's own mapping; a failure only costs speed.
        let advise = (libc::SYS_madvise, [address, size, libc::MADV_RANDOM as u64, 0, 0, 0]);
        let calls_needed = if memory.is_on_disk() { 3 } else { 2 };
        let tid = self.thread.tid;
        let shares_names = *self.thread.shares_names.get_or_insert_with(|| status::shares_names(tid));
        if self.thread.takes_lists && shares_names {
            let open = self.opening(memory.descriptor())?;
            let all = [open, map(0), close(0), advise];
            let made = self.make_list(&all[..=calls_needed], [Some((1, 4)), Some((2, 0))])?;
            if made[0].is_ok() {
                return self.mapped(is_at(address, made.into_iter().nth(1)), size, replace);
            }
        }
        let open_and_map = |calls: &mut RemoteSyscalls<'_, '_>| {
            let file = calls.open_in_excess(memory.descriptor(), shares_names)?;
            let made = calls.call_all(&[map(file), close(file), advise][..calls_needed])?;
            is_at(address, made.into_iter().next())
        };
        let made = match open_and_map(self) {
            Err(error) if is_full(&error) => self.in_new_thread(open_and_map).map_err(no_descriptor),
            made => made,
        };
        self.mapped(made, size, replace)
    }

    /// Takes back that the limit on address space was raised, if nothing was mapped.
    fn mapped(&self, made: io::Result<()>, size: u64, replace: bool) -> io::Result<()> {
        if made.is_err() && !replace {
            sys::move_limit(self.thread.tid, sys::ADDRESSES, size.cast_signed().wrapping_neg())?;
        }
        made
    }

    /// Unmaps memory that was mapped at an address.
    pub(crate) fn unmap(&mut self, address: u64, size: u64) -> io::Result<()> {
        self.call(libc::SYS_munmap, [address, size, 0, 0, 0, 0])?;
        sys::move_limit(self.thread.tid, sys::ADDRESSES, size.cast_signed().wrapping_neg())
    }

    /// The same as [`open`](Self::open) in a process that may have as many descriptors as it has: it may have some more
    /// meanwhile, if the tracer has the privilege to allow that.
    fn open_in_excess(&mut self, descriptor: i32, shares_names: bool) -> io::Result<u64> {
        match self.open(descriptor, shares_names) {
            Err(error) if is_full(&error) => {
                let tid = self.thread.tid;
                let before = sys::limit(tid, sys::DESCRIPTORS)?;
                sys::move_limit(tid, sys::DESCRIPTORS, DESCRIPTORS_FOR_MAPPING.cast_signed())?;
                let opened = self.open(descriptor, shares_names);
                sys::set_limit(tid, sys::DESCRIPTORS, before)?;
                opened
            }
            opened => opened,
        }
    }

    /// Opens a descriptor of this process in the thread's process. `shares_names`: that process finds this
    /// one by its number.
    fn open(&mut self, descriptor: i32, shares_names: bool) -> io::Result<u64> {
        if !shares_names {
            return self.receive(descriptor);
        }
        let (number, arguments) = self.opening(descriptor)?;
        self.call(number, arguments).or_else(|_| self.receive(descriptor))
    }

    /// The call that opens it there; its path is put into the [room](ROOM).
    fn opening(&mut self, descriptor: i32) -> io::Result<(i64, [u64; 6])> {
        let path = format!("/proc/{}/fd/{descriptor}\0", std::process::id());
        if !sys::write_memory(self.thread.tid, ROOM, path.as_bytes()) {
            return Err(io::Error::from_raw_os_error(libc::EFAULT));
        }
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
        Ok((libc::SYS_openat, [libc::AT_FDCWD as u64, ROOM, flags, 0, 0, 0]))
    }

    /// The same for a process that does not find this one, as in a container: the descriptor is sent through
    /// a pair of the process's own sockets (`unix(7)`, `SCM_RIGHTS`).
    fn receive(&mut self, descriptor: i32) -> io::Result<u64> {
        let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
        let ends =
            self.call_for_bytes(libc::SYS_socketpair, 8, |at| [libc::AF_UNIX as u64, kind, 0, at, 0, 0])?;
        let [near, far] = [word(&ends, 0), word(&ends, 4)];
        let sent = sys::send_descriptor(self.thread.tid, near as i32, descriptor);
        let received = sent.and_then(|()| self.receive_through(far));
        for end in [near, far] {
            self.call(libc::SYS_close, [end.into(), 0, 0, 0, 0, 0])?;
        }
        received
    }

    /// Receives the descriptor that waits in a socket of the thread's process.
    fn receive_through(&mut self, socket: u32) -> io::Result<u64> {
        /// `struct msghdr`, `struct iovec`, the byte that is sent, and room for one `struct cmsghdr`.
        const VECTOR: usize = 56;
        const BYTE: usize = VECTOR + 16;
        const CONTROL: usize = BYTE + 8;
        const CONTROL_SIZE: usize = 24;
        const SIZE: usize = CONTROL + CONTROL_SIZE;
        let mut bytes = vec![0; SIZE];
        let pointers = [
            (16, ROOM + VECTOR as u64),
            (24, 1),
            (32, ROOM + CONTROL as u64),
            (40, CONTROL_SIZE as u64),
            (VECTOR, ROOM + BYTE as u64),
            (VECTOR + 8, 1),
        ];
        for (place, value) in pointers {
            bytes[place..place + 8].copy_from_slice(&value.to_le_bytes());
        }
        let flags = libc::MSG_CMSG_CLOEXEC as u64;
        self.call_in_place(libc::SYS_recvmsg, &mut bytes, |at| [socket.into(), at, flags, 0, 0, 0])?;
        let is_descriptor = word(&bytes, CONTROL + 12) == libc::SCM_RIGHTS as u32;
        let received = is_descriptor.then(|| word(&bytes, CONTROL + 16).into());
        // There was room for the sockets, and none for what was sent.
        received.ok_or_else(|| io::Error::from_raw_os_error(libc::EMFILE))
    }
}

/// The result of a call.
fn result(rax: u64) -> io::Result<u64> {
    match rax as i64 {
        // In this process, that error would mean that the thread has ended.
        error if error == -i64::from(libc::ESRCH) => Err(io::Error::other("no such process")),
        error @ -4095..=-1 => Err(io::Error::from_raw_os_error(-error as i32)),
        _ => Ok(rax),
    }
}

/// Whether the mapping is at its fixed address.
fn is_at(address: u64, mapped: Option<io::Result<u64>>) -> io::Result<()> {
    match mapped.transpose()? {
        Some(place) if place == address => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
    }
}

/// Whether a call failed because the process has as many descriptors as it may have.
fn is_full(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}

/// The error where a process at its limit of descriptors cannot have another thread for a moment either.
fn no_descriptor(error: io::Error) -> io::Error {
    io::Error::other(format!(
        "it has as many descriptors as it may have (RLIMIT_NOFILE, ulimit -n), and a thread of its own with fewer, which \
         the tracer needs for a moment to share memory with it, could not do so: {error}"
    ))
}

/// Four bytes as a number.
fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}
