//! Files and descriptors.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use nix::sys::socket;
use treering_proc::status;

/// Sends a descriptor of this process through a socket that a thread of another one has, with one byte. Before Linux 6.9,
/// the socket must be in the table of that process's first thread.
pub(crate) fn send_descriptor(tid: i32, socket: i32, descriptor: i32) -> io::Result<()> {
    /// `PIDFD_THREAD`, of `pidfd_open(2)`.
    const OF_THREAD: i32 = libc::O_EXCL;
    let own = |found: libc::c_long| match found {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has just made it for us.
        found => Ok(unsafe { OwnedFd::from_raw_fd(found as i32) }),
    };
    // SAFETY: the call takes numbers.
    let of_thread = own(unsafe { libc::syscall(libc::SYS_pidfd_open, tid, OF_THREAD) });
    let process = status::process_of(tid);
    // SAFETY: the call takes numbers.
    let of_process = || own(unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) });
    let owner = of_thread.or_else(|_| of_process())?;
    // SAFETY: the call takes numbers; the first is a descriptor that is open until the end of this function.
    let socket = own(unsafe { libc::syscall(libc::SYS_pidfd_getfd, owner.as_raw_fd(), socket, 0) })?;
    let sent = socket::sendmsg::<()>(
        socket.as_raw_fd(),
        &[IoSlice::new(&[0])],
        &[socket::ControlMessage::ScmRights(&[descriptor])],
        socket::MsgFlags::empty(),
        None,
    );
    sent.map(drop).map_err(io::Error::from)
}

/// Locks a file while it is open.
///
/// # Errors
/// Another process has locked it.
pub(crate) fn lock(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open.
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether any process has a file open for writing: then the kernel grants no read lease on it (`fcntl(2)`).
/// Nothing where this process may not take a lease.
pub(crate) fn is_open_for_writing(path: &Path) -> Option<bool> {
    use std::os::unix::fs::OpenOptionsExt as _;
    /// A signal without effect, for the case that the file is opened meanwhile.
    const SET_SIGNAL: i32 = 10;
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    // SAFETY: these calls take numbers; the descriptor is open.
    let leased = unsafe {
        libc::fcntl(file.as_raw_fd(), SET_SIGNAL, libc::SIGURG);
        libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK)
    };
    match leased {
        // Closing the file ends the lease.
        0 => Some(false),
        _ => (io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN)).then_some(true),
    }
}

/// The free bytes on a file's disk.
pub(crate) fn free_room(file: &impl AsRawFd) -> io::Result<u64> {
    let mut found = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the kernel fills the structure; all its fields are numbers.
    unsafe {
        match libc::fstatvfs(file.as_raw_fd(), found.as_mut_ptr()) {
            0 => Ok(found.assume_init().f_bavail * found.assume_init().f_frsize),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether a file system reports unwritten parts of mapped files, too (`SEEK_HOLE`, `lseek(2)`). File systems
/// on other machines or in other processes may only know of data that has reached them.
pub(crate) fn tells_holes(file: &impl AsRawFd) -> bool {
    const EXT: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    const TMPFS: i64 = 0x0102_1994;
    let mut found = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel fills the structure; all its fields are numbers.
    let kind = unsafe {
        match libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) {
            0 => found.assume_init().f_type,
            _ => return false,
        }
    };
    [EXT, XFS, TMPFS].contains(&kind)
}

/// The next byte of a file that was written, or that was not (`SEEK_DATA`, `SEEK_HOLE`); nothing behind the last one.
pub(crate) fn seek(file: &impl AsRawFd, from: u64, whence: i32) -> io::Result<Option<u64>> {
    // SAFETY: the descriptor is open, and its position is not used for reading or writing.
    match unsafe { libc::lseek(file.as_raw_fd(), from.cast_signed(), whence) } {
        -1 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
            error => Err(error),
        },
        at => Ok(Some(at.cast_unsigned())),
    }
}

/// Raises the limit on this process's open files as far as allowed, as each followed process needs several.
/// Programs started before keep their limit.
pub(crate) fn allow_open_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure, and reads it.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Takes the limit on this process's address space away as far as allowed: the memory that it shares with programs is
/// mapped here as well. Programs started before keep their limit.
pub(crate) fn allow_memory() {
    let own = std::process::id().cast_signed();
    if set_limit(own, ADDRESSES, [NO_LIMIT; 2]).is_err()
        && let Ok([_, most]) = limit(own, ADDRESSES)
    {
        let _ = set_limit(own, ADDRESSES, [most; 2]);
    }
}

/// No limit.
pub(crate) const NO_LIMIT: u64 = libc::RLIM_INFINITY;

/// A limited resource.
pub(crate) type Resource = libc::__rlimit_resource_t;
/// The bytes of address space.
pub(crate) const ADDRESSES: Resource = libc::RLIMIT_AS;
/// The bytes of the stack.
pub(crate) const STACK_SIZE: Resource = libc::RLIMIT_STACK;
/// The open descriptors.
pub(crate) const DESCRIPTORS: Resource = libc::RLIMIT_NOFILE;

/// The limit on a process's resource, and the most to which the process may raise it.
pub(crate) fn limit(pid: i32, resource: Resource) -> io::Result<[u64; 2]> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills the structure, and reads none.
    match unsafe { libc::prlimit(pid, resource, std::ptr::null(), &raw mut limit) } {
        0 => Ok([limit.rlim_cur, limit.rlim_max]),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets that limit.
pub(crate) fn set_limit(pid: i32, resource: Resource, [current, most]: [u64; 2]) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: current, rlim_max: most };
    // SAFETY: the kernel reads the structure, and writes none.
    match unsafe { libc::prlimit(pid, resource, &raw const limit, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Raises or lowers a limit, if there is one, by what the tracer takes or gives back. The most is raised only where that
/// is necessary, and never lowered: raising it needs a privilege. Without that, the limit is raised up to the most.
pub(crate) fn move_limit(pid: i32, resource: Resource, by: i64) -> io::Result<()> {
    let [current, most] = limit(pid, resource)?;
    let moved = current.saturating_add_signed(by);
    match current == NO_LIMIT || by == 0 {
        true => Ok(()),
        false => set_limit(pid, resource, [moved, most.max(moved)])
            .or_else(|_| set_limit(pid, resource, [moved.min(most), most])),
    }
}

/// The time after which a socket of a process gives up, by the option that holds it; nothing if it has none, or is no
/// socket.
pub(crate) fn socket_time(pid: i32, descriptor: i32, option: i32) -> Option<Duration> {
    let [seconds, microseconds]: [i64; 2] = socket_option(pid, descriptor, option, [0; 2])?;
    let time = Duration::new(seconds.try_into().ok()?, u32::try_from(microseconds).ok()? * 1000);
    (!time.is_zero()).then_some(time)
}

/// Whether a descriptor of a process is a socket whose messages have no borders.
pub(crate) fn is_stream(pid: i32, descriptor: i32) -> bool {
    socket_option(pid, descriptor, libc::SO_TYPE, [0_i32]) == Some([libc::SOCK_STREAM])
}

/// An option of a process's socket: an array of numbers, which gives the size.
fn socket_option<T: From<i32>, const N: usize>(
    pid: i32,
    descriptor: i32,
    option: i32,
    mut value: [T; N],
) -> Option<[T; N]> {
    let mut length = size_of::<[T; N]>() as libc::socklen_t;
    // SAFETY: the calls take numbers; descriptors that they return are owned at once. The kernel fills the numbers up to
    // the length that is passed.
    let answered = unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        let process = (process >= 0).then(|| OwnedFd::from_raw_fd(process as i32))?;
        let socket = libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0);
        let socket = (socket >= 0).then(|| OwnedFd::from_raw_fd(socket as i32))?;
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (answered == 0).then_some(value)
}

/// Whether a file grants capabilities to the processes that execute it (`capabilities(7)`, "File capabilities").
pub(crate) fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both are strings that end with 0, and nothing is written to no bytes.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// Watches files for being opened (`inotify(7)`).
#[derive(Debug)]
pub(crate) struct OpenWatch(File);

impl OpenWatch {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes a number.
        match unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) } {
            -1 => Err(io::Error::last_os_error()),
            // SAFETY: the kernel has just made it for us.
            made => Ok(Self(unsafe { File::from_raw_fd(made) })),
        }
    }

    /// Watches another file. Returns the number of its watch.
    pub(crate) fn add(&self, path: &str) -> io::Result<i32> {
        let path = CString::new(path)?;
        // SAFETY: the descriptor is open, and the path ends with a zero.
        match unsafe { libc::inotify_add_watch(self.0.as_raw_fd(), path.as_ptr(), libc::IN_OPEN) } {
            -1 => Err(io::Error::last_os_error()),
            watch => Ok(watch),
        }
    }

    pub(crate) fn remove(&self, watch: i32) {
        // SAFETY: the call takes numbers; the descriptor is open.
        unsafe { libc::inotify_rm_watch(self.0.as_raw_fd(), watch) };
    }

    /// Whether any of the files was opened since the last question.
    pub(crate) fn was_any_opened(&self) -> bool {
        /// The size of an event about a watched file itself, and where its mask is.
        const EVENT: usize = 16;
        const MASK_AT: usize = 4;
        let (mut events, mut opened) = ([0; 256 * EVENT], false);
        while let Ok(length @ EVENT..) = (&self.0).read(&mut events) {
            opened |= events[..length].chunks_exact(EVENT).any(|event| {
                let mask = u32::from_ne_bytes(event[MASK_AT..][..4].try_into().expect("four bytes"));
                mask & libc::IN_OPEN != 0
            });
        }
        opened
    }
}
