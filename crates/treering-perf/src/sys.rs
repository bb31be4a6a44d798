//! The system calls. All of the crate's `unsafe` is here.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use libc::{c_int, pid_t};
pub(crate) use perf_event_open_sys::bindings as abi;
use perf_event_open_sys::{ioctls, perf_event_open};
use treering_proc::Inherited;

/// The size of a page of memory, in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf only reads a number.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// Nanoseconds of CLOCK_MONOTONIC, the clock that samples are stamped with.
pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Whether this process is root in its user namespace.
pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid only reads a number.
    unsafe { libc::geteuid() == 0 }
}

/// Raises the limit of open files as far as this user may.
pub(crate) fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit to write to and to read from.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

/// An open perf event.
#[derive(Debug)]
pub(crate) struct Event(OwnedFd);

impl Event {
    /// Opens an event on one thread, 0 for this one, and one processor (`perf_event_open(2)`).
    pub(crate) fn open(attribute: &mut abi::perf_event_attr, tid: u32, cpu: u32) -> io::Result<Self> {
        Self::open_in_group(attribute, tid, cpu, None)
    }

    /// Opens an event that counts whenever the leader of its group does.
    pub(crate) fn open_in_group(
        attribute: &mut abi::perf_event_attr,
        tid: u32,
        cpu: u32,
        leader: Option<&Self>,
    ) -> io::Result<Self> {
        attribute.size = size_of::<abi::perf_event_attr>() as u32;
        let leader = leader.map_or(-1, Self::raw);
        // SAFETY: `attribute` is a valid structure of the size it states.
        let fd = unsafe {
            perf_event_open(attribute, tid as pid_t, cpu as c_int, leader, abi::PERF_FLAG_FD_CLOEXEC.into())
        };
        // SAFETY: a descriptor that is not negative is new and ours.
        check(fd).map(|fd| Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Opens an event on one thread, 0 for this one, and all processors.
    pub(crate) fn open_on_thread(attribute: &mut abi::perf_event_attr, tid: u32) -> io::Result<Self> {
        Self::open(attribute, tid, u32::MAX)
    }

    /// The id that its records carry.
    pub(crate) fn id(&self) -> io::Result<u64> {
        let mut id = 0;
        // SAFETY: `id` is a valid place for the result.
        check(unsafe { ioctls::ID(self.0.as_raw_fd(), &mut id) }).map(|_| id)
    }

    /// Sends its records to the ring of `other`, which must be on the same processor.
    pub(crate) fn redirect_to(&self, other: &Self) -> io::Result<()> {
        // SAFETY: both descriptors are open.
        check(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), other.0.as_raw_fd()) }).map(drop)
    }

    /// Sets the interval to the next sample and those after it; restarts the current interval.
    ///
    /// Called directly: the kernel takes the address of the number, and the crate's `PERIOD`
    /// passes the number itself.
    pub(crate) fn set_period(&self, period: u64) -> io::Result<()> {
        // SAFETY: `period` outlives the call, which only reads it.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), abi::PERIOD.into(), &raw const period) }).map(drop)
    }

    /// Its count so far, and that of the events that were inherited from it.
    pub(crate) fn read(&self) -> io::Result<Reading> {
        let mut words = [0_u64; 2];
        // SAFETY: the descriptor is open, and the buffer has the length that is given.
        let read = unsafe { libc::read(self.0.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
        check(read as c_int).map(|_| Reading { count: words[0], running_ns: words[1] })
    }

    /// The count of an event that tells both of its times, and of the events that were inherited from it.
    ///
    /// A group that found no room on the processor when it was opened reads as an end of file.
    pub(crate) fn read_counter(&self) -> io::Result<CounterReading> {
        let mut words = [0_u64; 3];
        // SAFETY: the descriptor is open, and the buffer has the length that is given.
        let read = unsafe { libc::read(self.0.as_raw_fd(), words.as_mut_ptr().cast(), size_of_val(&words)) };
        check(read as c_int).map(|_| CounterReading {
            count: words[0],
            enabled_ns: words[1],
            running_ns: words[2],
        })
    }

    /// Starts counting, in inherited events too.
    pub(crate) fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open.
        check(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) }).map(drop)
    }

    /// Stops counting, in inherited events too.
    pub(crate) fn disable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open.
        check(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) }).map(drop)
    }

    /// The descriptor, to poll.
    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// An event's count, and how long it counted: the processor time of its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) count: u64,
    pub(crate) running_ns: u64,
}

/// The count of an event, for how long it should have counted, and for how long it did.
///
/// The two times differ if the processor has fewer counters than there are events, so that they take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterReading {
    /// The count.
    pub count: u64,
    /// The time in which it should have counted, summed up over threads.
    pub enabled_ns: u64,
    /// The part of that in which it did.
    pub running_ns: u64,
}

/// The ring buffer of an event, mapped into memory.
///
/// The kernel writes records at the head, we read them at the tail; both only grow, and the
/// position in the buffer is their remainder.
#[derive(Debug)]
pub(crate) struct Ring {
    base: *mut u8,
    page: usize,
    size: usize,
}

impl Ring {
    /// Maps a ring of `size` bytes, a power of two of at least a page.
    pub(crate) fn map(event: &Event, size: usize) -> io::Result<Self> {
        assert!(size.is_power_of_two(), "the kernel takes rings of a power of two");
        let page = page_size();
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), page + size, access, libc::MAP_SHARED, event.raw(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { base: base.cast(), page, size })
    }

    /// Where the kernel will write next. Everything before it may be read.
    pub(crate) fn head(&self) -> u64 {
        self.position(std::mem::offset_of!(abi::perf_event_mmap_page, data_head)).load(Ordering::Acquire)
    }

    /// Gives the space before `tail` back to the kernel.
    pub(crate) fn set_tail(&self, tail: u64) {
        let offset = std::mem::offset_of!(abi::perf_event_mmap_page, data_tail);
        self.position(offset).store(tail, Ordering::Release);
    }

    /// Copies the bytes from `position` on into `into`. They must lie between tail and head, which only the caller
    /// can know; bytes outside are meaningless but harmless.
    pub(crate) fn copy(&self, position: u64, into: &mut [u8]) {
        assert!(into.len() <= self.size, "a record fits the ring");
        let start = position as usize & (self.size - 1);
        let first = into.len().min(self.size - start);
        let (head, rest) = into.split_at_mut(first);
        // SAFETY: both pieces lie within the mapping of `page + size` bytes, by the masks above.
        // The kernel does not write between tail and head.
        unsafe {
            let data = self.base.add(self.page);
            std::ptr::copy_nonoverlapping(data.add(start), head.as_mut_ptr(), head.len());
            std::ptr::copy_nonoverlapping(data, rest.as_mut_ptr(), rest.len());
        }
    }

    /// Shows `size` bytes from `position` on to `look`, under the same conditions as
    /// [`copy`](Self::copy): where they lie, unless they go on at the start of the ring, in which
    /// case they are put together in `spare`.
    ///
    /// A sample is mostly a copied stack of which few words are looked at. Copying it once more
    /// would take most of the time that a sample costs us, and put other things out of the caches.
    pub(crate) fn show(&self, position: u64, size: usize, spare: &mut Vec<u8>, look: impl FnOnce(&[u8])) {
        let start = position as usize & (self.size - 1);
        if start + size > self.size {
            spare.resize(size, 0);
            self.copy(position, spare);
            return look(spare);
        }
        // SAFETY: the piece lies within the mapping. The kernel does not write between tail and
        // head, and the tail stays while `look` runs: it has no way to this ring.
        look(unsafe { std::slice::from_raw_parts(self.base.add(self.page + start), size) });
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping is a `perf_event_mmap_page`, both fields are
        // aligned 64-bit numbers, and the kernel accesses them atomically.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the range is exactly the mapped one, and nothing borrows from it any more.
        unsafe { libc::munmap(self.base.cast(), self.page + self.size) };
    }
}

/// A child process that waits for [`release`](Self::release) before it runs its program.
#[derive(Debug)]
pub(crate) struct Child {
    pid: u32,
    go: Option<OwnedFd>,
    failure: Option<OwnedFd>,
}

/// The end of a process, and its use of resources.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// The status as `wait(2)` gives it.
    pub(crate) status: i32,
    /// Processor time of the process and the children that it waited for.
    pub(crate) cpu: Duration,
    /// All that `wait4(2)` tells.
    pub(crate) usage: Usage,
}

/// The use of resources by a process and the children that it waited for (`getrusage(2)`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time in its own code.
    pub user: Duration,
    /// Time in the kernel for it.
    pub system: Duration,
    /// The most memory that one of these processes had at once.
    pub peak_bytes: u64,
    /// Page faults that needed no input.
    pub minor_faults: u64,
    /// Page faults that waited for input.
    pub major_faults: u64,
    /// Switches away because it waited.
    pub voluntary_switches: u64,
    /// Switches away because something else was to run.
    pub involuntary_switches: u64,
}

impl Usage {
    fn of(usage: &libc::rusage) -> Self {
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        Self {
            user: time(usage.ru_utime),
            system: time(usage.ru_stime),
            peak_bytes: usage.ru_maxrss as u64 * 1024,
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }
}

impl Child {
    /// Forks a child that will run `command`, looked up in `PATH`.
    ///
    /// Its environment is ours with some other variables.
    pub(crate) fn prepare(
        command: &[impl AsRef<OsStr>],
        others: &[(OsString, OsString)],
    ) -> io::Result<Self> {
        let text = |bytes: &[u8]| {
            let problem = "an argument holds a zero byte";
            CString::new(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, problem))
        };
        let terminated = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
        };
        let arguments: Vec<CString> =
            command.iter().map(|argument| text(argument.as_ref().as_bytes())).collect::<Result<_, _>>()?;
        let ours = std::env::vars_os().filter(|(name, _)| others.iter().all(|(other, _)| other != name));
        let joined = |(name, value): (OsString, OsString)| [name.as_bytes(), b"=", value.as_bytes()].concat();
        let variables: Vec<CString> = ours
            .chain(others.iter().cloned())
            .map(|variable| text(&joined(variable)))
            .collect::<Result<_, _>>()?;
        let (pointers, variables) = (terminated(&arguments), terminated(&variables));
        let (go_read, go_write) = pipe()?;
        let (failure_read, failure_write) = pipe()?;
        let inherited = Inherited::get();
        // SAFETY: the child runs only `run_child`, which calls nothing that takes a lock.
        match check(unsafe { libc::fork() })? {
            0 => {
                drop(go_write);
                // SAFETY: both are null-terminated arrays of C strings, and this is the child of the fork.
                unsafe {
                    run_child(
                        &pointers,
                        &variables,
                        inherited,
                        go_read.as_raw_fd(),
                        failure_write.as_raw_fd(),
                    )
                }
            }
            pid => Ok(Self { pid: pid as u32, go: Some(go_write), failure: Some(failure_read) }),
        }
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child run its program; returns when it does, or with the reason why it can't.
    pub(crate) fn release(&mut self) -> io::Result<()> {
        if let Some(go) = self.go.take() {
            // SAFETY: one byte from a valid buffer.
            check(unsafe { libc::write(go.as_raw_fd(), b"g".as_ptr().cast(), 1) } as c_int)?;
        }
        let Some(failure) = self.failure.take() else { return Ok(()) };
        let mut code = [0_u8; 4];
        match io::Read::read(&mut File::from(failure), &mut code)? {
            4 => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(code))),
            _ => Ok(()),
        }
    }

    /// Waits until the process has ended.
    pub(crate) fn wait(&self) -> io::Result<Ended> {
        let mut status = 0;
        // SAFETY: all zeros is a valid rusage.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        loop {
            // SAFETY: both results are valid places to write to.
            let waited = unsafe { libc::wait4(self.pid as pid_t, &mut status, 0, &mut usage) };
            match check(waited) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        let usage = Usage::of(&usage);
        Ok(Ended { status, cpu: usage.user + usage.system, usage })
    }
}

impl Drop for Child {
    /// A child that was never released ends: its pipe closes, and it exits.
    fn drop(&mut self) {
        if self.go.take().is_some() {
            let _ = self.wait();
        }
    }
}

/// The child's side of [`Child::prepare`]. Never returns.
///
/// # Safety
/// Only between fork and exec, with null-terminated arrays of C strings.
unsafe fn run_child(
    arguments: &[*const libc::c_char],
    variables: &[*const libc::c_char],
    inherited: Inherited,
    go: RawFd,
    failure: RawFd,
) -> ! {
    let mut byte = 0_u8;
    // SAFETY: only calls that may be made between fork and exec, on valid buffers. `execvpe`
    // allocates on the stack in the C libraries that we support.
    unsafe {
        if libc::read(go, (&raw mut byte).cast(), 1) == 1 {
            inherited.restore();
            libc::execvpe(arguments[0], arguments.as_ptr(), variables.as_ptr());
            let code = (*libc::__errno_location()).to_ne_bytes();
            libc::write(failure, code.as_ptr().cast(), code.len());
        }
        libc::_exit(127)
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are new and ours on success.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC))?;
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// A handle to a process that can be polled for its end (`pidfd_open(2)`, Linux 5.3).
#[derive(Debug)]
pub(crate) struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Opens a handle to the process of that number.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: takes two numbers; a descriptor that is not negative is new and ours.
        unsafe {
            let fd = check(libc::syscall(libc::SYS_pidfd_open, pid as pid_t, 0) as c_int)?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// The descriptor, to poll.
    pub(crate) fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Sends a signal to a process; one that has ended already is no error.
pub(crate) fn send_signal(pid: u32, signal: i32) {
    // SAFETY: takes two numbers.
    unsafe { libc::kill(pid as pid_t, signal) };
}

/// Whether a process exists, seen or not.
pub(crate) fn process_exists(pid: u32) -> bool {
    // Of 0 and of negative numbers the kernel would think of groups of processes.
    let Some(pid) = pid_t::try_from(pid).ok().filter(|&pid| pid > 0) else { return false };
    // SAFETY: signal 0 only asks.
    let answer = unsafe { libc::kill(pid, 0) };
    answer == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}

/// The signals that end a recording: from the keyboard, from a terminal that is closed, from other processes, and from a
/// limit of processor time.
const ENDING: [c_int; 5] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGXCPU];

/// The signals that end a recording as something to poll, blocked in this thread until dropped.
#[derive(Debug)]
pub(crate) struct Interrupts {
    fd: File,
    before: libc::sigset_t,
}

impl Interrupts {
    /// Blocks the signals and opens a descriptor that receives them.
    pub(crate) fn block() -> io::Result<Self> {
        // SAFETY: all zeros is a valid set to initialise; every pointer is to a local.
        unsafe {
            let mut set = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in ENDING {
                libc::sigaddset(&mut set, signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &set, &mut before))?;
            let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
            Ok(Self { fd: File::from_raw_fd(fd), before })
        }
    }

    /// The next signal that came, and whether a process sent it rather than the terminal.
    ///
    /// A terminal that is closed says so several times: the kernel does, and the shell. Later ones would end this process
    /// while it gives names to what was recorded, so they are ignored from the first one on.
    pub(crate) fn next(&mut self) -> Option<(i32, bool)> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let read = io::Read::read(&mut self.fd, &mut info).ok()?;
        let number = |offset: usize| i32::from_ne_bytes([0, 1, 2, 3].map(|at| info[offset + at]));
        let signal = number(std::mem::offset_of!(libc::signalfd_siginfo, ssi_signo));
        let code = number(std::mem::offset_of!(libc::signalfd_siginfo, ssi_code));
        if signal == libc::SIGHUP {
            // SAFETY: takes two numbers.
            unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        }
        (read == info.len()).then_some((signal, code != libc::SI_KERNEL))
    }

    /// The descriptor, to poll.
    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // SAFETY: `before` was filled by the kernel.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut()) };
    }
}

/// Waits until one of the descriptors can be read or the time is up; tells which can be.
pub(crate) fn poll(fds: &[RawFd], timeout: Duration, ready: &mut Vec<bool>) -> io::Result<()> {
    let mut entries: Vec<libc::pollfd> =
        fds.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let timeout =
        libc::timespec { tv_sec: timeout.as_secs() as libc::time_t, tv_nsec: timeout.subsec_nanos().into() };
    // SAFETY: `entries` is an array of that length; no signal mask is given.
    let result = unsafe {
        libc::ppoll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, &timeout, std::ptr::null())
    };
    ready.clear();
    match check(result) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
        Err(_) => ready.resize(fds.len(), false),
        Ok(_) => ready.extend(entries.iter().map(|entry| entry.revents != 0)),
    }
    Ok(())
}

/// Turns the −1 of a system call into the error that it stands for.
fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
