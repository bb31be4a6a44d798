//! A timer that interrupts a waiting thread.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Interrupts the waiting of the thread that made it, periodically. It uses no other thread, which would take
/// a hundredth of the time of a program that does nothing.
#[derive(Debug)]
pub(crate) struct Ticks(libc::timer_t);

/// The signal of the timer, which has no other use.
fn signal() -> i32 {
    libc::SIGRTMAX() - 3
}

extern "C" fn nothing(_: i32) {}

impl Ticks {
    /// A timer that is not running yet. From now on this process neither ignores nor blocks its signal, nor
    /// do programs that it starts.
    ///
    /// # Errors
    /// There is no timer left.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the kernel reads an action, whose handler does nothing, the timer's event, and a signal
        // set, and writes the timer's number.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(i32) as usize;
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = MaybeUninit::<libc::timer_t>::uninit();
            if libc::sigaction(signal(), &raw const action, std::ptr::null_mut()) != 0
                || libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()) != 0
            {
                return Err(io::Error::last_os_error());
            }
            // The parent of this process may have blocked it.
            let mut ours: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut ours);
            libc::sigaddset(&raw mut ours, signal());
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const ours, std::ptr::null_mut());
            Ok(Self(timer.assume_init()))
        }
    }

    /// Starts the timer with a period.
    ///
    /// # Errors
    /// The period is too long.
    pub(crate) fn start(&self, distance: Duration) -> io::Result<()> {
        let time =
            libc::timespec { tv_sec: distance.as_secs() as i64, tv_nsec: distance.subsec_nanos().into() };
        let times = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: the timer is ours, and the kernel reads the times.
        match unsafe { libc::timer_settime(self.0, 0, &raw const times, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Stops the timer.
    pub(crate) fn stop(&self) {
        // A period of zero stops it, and cannot be too long.
        let _ = self.start(Duration::ZERO);
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and is not used any more.
        unsafe { libc::timer_delete(self.0) };
    }
}
