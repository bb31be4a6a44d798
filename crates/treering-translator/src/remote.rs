//! System calls made in a stopped thread's name.

use std::io;

use crate::layout::{GATE, ROOM, ROOM_SIZE};
use crate::status;
use crate::sys::{self, Registers, SignalInfo, Stop};

/// A stopped thread, which may make system calls for the translator.
#[derive(Debug)]
pub(crate) struct Stopped<'a> {
    pub(crate) tid: i32,
    /// Whether it is stopped inside of a system call, which is then skipped.
    pub(crate) in_call: bool,
    /// Where the `syscall` instruction is that it may use.
    pub(crate) gate: u64,
    /// Signals that came meanwhile, to be delivered later.
    pub(crate) held: &'a mut Vec<HeldSignal>,
    /// Whether the thread was killed meanwhile.
    pub(crate) gone: bool,
}

/// A signal that came when it could not be delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldSignal {
    pub(crate) signal: i32,
    pub(crate) info: SignalInfo,
}

impl<'a> Stopped<'a> {
    /// A thread in a stop outside of system calls, or inside of one that is to be skipped.
    pub(crate) fn new(tid: i32, in_call: bool, held: &'a mut Vec<HeldSignal>) -> Self {
        Self { tid, in_call, gate: GATE, held, gone: false }
    }

    /// Makes several calls; the thread's registers are the same afterwards.
    pub(crate) fn remotely<T>(
        &mut self,
        calls: impl FnOnce(&mut Calls<'_, 'a>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut saved = sys::registers(self.tid)?;
        if self.in_call {
            self.skip_call(&saved)?;
            saved.0.orig_rax = u64::MAX;
        }
        let mut made = Calls { thread: self, saved };
        let result = calls(&mut made);
        if !self.gone {
            sys::set_registers(self.tid, &saved)?;
        }
        result
    }

    /// Leaves the system call that the thread is in without its having been made.
    pub(crate) fn skip_call(&mut self, saved: &Registers) -> io::Result<()> {
        let mut skipping = *saved;
        skipping.0.orig_rax = u64::MAX;
        sys::set_registers(self.tid, &skipping)?;
        self.in_call = false;
        self.reach_border()
    }

    /// Keeps a signal that cannot be delivered now. A fault, which comes again with the instruction that is
    /// executed again, is not kept: nobody could send it as it was. Whether it is kept.
    pub(crate) fn hold(&mut self, signal: i32) -> io::Result<bool> {
        let info = sys::signal_info(self.tid)?;
        let is_kept = !info.is_of_instruction();
        if is_kept {
            self.held.push(HeldSignal { signal, info });
        }
        Ok(is_kept)
    }

    /// Runs up to the next border of a system call.
    pub(crate) fn reach_border(&mut self) -> io::Result<()> {
        /// One may have been on its way.
        const MOST_FAULTS: u32 = 16;
        let mut faults = 0;
        loop {
            sys::resume_to_call(self.tid, 0)?;
            match sys::wait(self.tid)? {
                Some((_, Stop::SystemCall)) => return Ok(()),
                Some((_, Stop::Signal(signal))) if self.hold(signal)? => {}
                Some((_, Stop::Signal(_))) if faults < MOST_FAULTS => faults += 1,
                Some((_, Stop::Signal(_))) => {
                    return Err(io::Error::other("no system call can be made in its name"));
                }
                Some((_, Stop::Event(libc::PTRACE_EVENT_EXIT, _) | Stop::Event(..))) => {}
                Some((_, Stop::Exited(_) | Stop::Killed(_))) | None => {
                    self.gone = true;
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
            }
        }
    }
}

/// Calls being made in a thread's name.
pub(crate) struct Calls<'t, 'a> {
    thread: &'t mut Stopped<'a>,
    saved: Registers,
}

impl Calls<'_, '_> {
    /// Makes one system call.
    pub(crate) fn call(&mut self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        let mut registers = self.saved;
        let r = &mut registers.0;
        [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] = arguments;
        r.rax = number as u64;
        r.orig_rax = u64::MAX;
        r.rip = self.thread.gate;
        sys::set_registers(self.thread.tid, &registers)?;
        self.thread.reach_border()?;
        self.thread.reach_border()?;
        let result = sys::registers(self.thread.tid)?.0.rax as i64;
        match result {
            // As an error of ours it would say that the thread is gone.
            _ if result == -i64::from(libc::ESRCH) => Err(io::Error::other("no such process")),
            -4095..=-1 => Err(io::Error::from_raw_os_error(-result as i32)),
            _ => Ok(result as u64),
        }
    }

    /// Uses another `syscall` instruction from now on.
    pub(crate) fn use_gate(&mut self, gate: u64) {
        self.thread.gate = gate;
    }

    /// Maps the [room](ROOM) for what calls read and write.
    pub(crate) fn map_room(&mut self) -> io::Result<()> {
        let protection = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        match self.call(libc::SYS_mmap, [ROOM, ROOM_SIZE, protection, flags as u64, u64::MAX, 0])? {
            ROOM => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        }
    }

    /// Makes a call with bytes in the [room](ROOM); they become what the call makes of them.
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

    /// Makes a call with bytes that it reads.
    pub(crate) fn call_with_bytes(
        &mut self,
        number: i64,
        bytes: &[u8],
        arguments: impl FnOnce(u64) -> [u64; 6],
    ) -> io::Result<u64> {
        self.call_in_place(number, &mut bytes.to_vec(), arguments)
    }

    /// Makes a call that writes so many bytes to where it is told; returns them.
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

    /// Maps shared memory of ours at a fixed place.
    pub(crate) fn map(
        &mut self,
        memory: &crate::shared_memory::SharedMemory,
        address: u64,
        size: u64,
        protection: i32,
        replace: bool,
    ) -> io::Result<()> {
        self.map_part((memory, 0), address, size, protection, replace)
    }

    /// The same from an offset of the memory on.
    pub(crate) fn map_part(
        &mut self,
        (memory, offset): (&crate::shared_memory::SharedMemory, u64),
        address: u64,
        size: u64,
        protection: i32,
        replace: bool,
    ) -> io::Result<()> {
        let descriptor = self.open(memory.descriptor())?;
        let fixed = if replace { libc::MAP_FIXED } else { libc::MAP_FIXED_NOREPLACE };
        let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE | fixed) as u64;
        let arguments = [address, size, protection as u64, flags, descriptor, offset];
        let mapped = self.call(libc::SYS_mmap, arguments);
        self.call(libc::SYS_close, [descriptor, 0, 0, 0, 0, 0])?;
        match mapped? {
            place if place == address => {
                if memory.is_on_disk() {
                    // As the tracer's own mapping of it; without, all is as well but slower.
                    let _ = self.call(libc::SYS_madvise, [address, size, libc::MADV_RANDOM as u64, 0, 0, 0]);
                }
                Ok(())
            }
            _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        }
    }

    /// Opens a descriptor of this process in the thread's.
    fn open(&mut self, descriptor: i32) -> io::Result<u64> {
        if !status::shares_names(self.thread.tid) {
            return self.receive(descriptor);
        }
        let own = std::process::id();
        let path = format!("/proc/{own}/fd/{descriptor}\0");
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as u64;
        let directory = libc::AT_FDCWD as u64;
        let opened =
            self.call_with_bytes(libc::SYS_openat, path.as_bytes(), |at| [directory, at, flags, 0, 0, 0]);
        opened.or_else(|_| self.receive(descriptor))
    }

    /// The same for a process that does not find this one, as in a container: the descriptor is sent to it
    /// through a pair of sockets of its own (`unix(7)`, `SCM_RIGHTS`).
    fn receive(&mut self, descriptor: i32) -> io::Result<u64> {
        let kind = (libc::SOCK_DGRAM | libc::SOCK_CLOEXEC) as u64;
        let ends =
            self.call_for_bytes(libc::SYS_socketpair, 8, |at| [libc::AF_UNIX as u64, kind, 0, at, 0, 0])?;
        let [near, far] = [word(&ends, 0), word(&ends, 4)];
        let sent = sys::send_descriptor(status::process_of(self.thread.tid), near as i32, descriptor);
        let received = sent.and_then(|()| self.receive_through(far));
        for end in [near, far] {
            self.call(libc::SYS_close, [end.into(), 0, 0, 0, 0, 0])?;
        }
        received
    }

    /// The descriptor that waits in a socket of the thread's process.
    fn receive_through(&mut self, socket: u32) -> io::Result<u64> {
        /// `struct msghdr`, `struct iovec`, the byte that comes along, and room for one `struct cmsghdr`.
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
        received.ok_or_else(|| io::Error::other("no memory can be shared with it"))
    }
}

/// Four bytes as a number.
fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}
