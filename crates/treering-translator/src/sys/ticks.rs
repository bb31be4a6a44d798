//! A timer that interrupts a waiting thread.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// Interrupts what the thread that made it waits for, again and again: without another thread, which would take a
/// hundredth of the time of a program that does nothing.
#[derive(Debug)]
pub(crate) struct Ticks(libc::timer_t);

/// The signal that does it: one that means nothing to others.
fn signal() -> i32 {
    libc::SIGRTMAX() - 3
}

extern "C" fn nothing(_: i32) {}

impl Ticks {
    /// None come yet. From now on this process neither ignores nor blocks their signal, nor do programs that it starts.
    ///
    /// # Errors
    /// There is no timer left.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the kernel reads an action, whose handler does nothing, what is to happen, and a set, and writes the
        // timer's number.
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
            // Whoever started this process may have blocked it.
            let mut ours: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut ours);
            libc::sigaddset(&raw mut ours, signal());
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const ours, std::ptr::null_mut());
            Ok(Self(timer.assume_init()))
        }
    }

    /// They come in such a distance from now on.
    ///
    /// # Errors
    /// The distance is too long.
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

    /// None come any more.
    pub(crate) fn stop(&self) {
        // What is no distance cannot be too long.
        let _ = self.start(Duration::ZERO);
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and nobody has it any more.
        unsafe { libc::timer_delete(self.0) };
    }
}
