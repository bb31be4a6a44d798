//! Marks: moments with a name, for the recorder that has started the program, and for the program's own profile if that
//! keeps time.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

use treering_events::Ref;
use treering_events::mark_file::{self, LONGEST, VARIABLE, WORDS};

use crate::event::Ready;
use crate::process::{self, Quiet};
use crate::record::place_of;
use crate::sys::Lock;
use crate::{environment, sys};

pub(crate) use treering_events::mark_file::MOST;

/// A mark of the program's own profile.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    /// The clock.
    pub(crate) ticks: u64,
    /// Where its thread's record stands.
    pub(crate) thread: Ref,
    pub(crate) name: String,
}

/// The marks of the store in use, and how many there was no room for.
static OWN: Lock<(Vec<Own>, u64)> = Lock::new((Vec::new(), 0));

/// The marks of the program's own profile.
pub(crate) fn own() -> Vec<Own> {
    OWN.hold().0.clone()
}

/// How many marks of the program's own profile there was no room for.
pub(crate) fn dropped() -> u64 {
    OWN.hold().1
}

/// Forgets the marks of a store that is no longer in use.
pub(crate) fn forget() {
    *OWN.hold() = (Vec::new(), 0);
}

/// Adds a mark, if a recorder waits for any, or the program's own profile keeps time. Else it costs two loads and two
/// branches.
pub(crate) fn add(name: &[u8]) {
    if process::wants_course() {
        add_own(name);
    }
    add_for_recorder(name);
}

fn add_own(name: &[u8]) {
    let Some(ready) = Ready::take() else { return };
    let (ticks, thread) = (sys::ticks(), place_of(ready.thread()));
    let mut own = OWN.hold();
    let (marks, dropped) = &mut *own;
    if marks.len() == MOST {
        *dropped += 1;
        return;
    }
    // A long name may be cut within a character.
    let name = String::from_utf8_lossy(&name[..name.len().min(LONGEST)]);
    let name = name.trim_end_matches('\u{fffd}').to_owned();
    marks.push(Own { ticks, thread, name });
}

fn add_for_recorder(name: &[u8]) {
    static FILE: OnceLock<Option<&'static [AtomicU64]>> = OnceLock::new();
    let Some(words) = *FILE.get_or_init(open) else { return };
    let writer = (std::process::id(), sys::thread_id());
    mark_file::add(words, sys::clock_ns(libc::CLOCK_MONOTONIC), writer, name);
}

/// Maps the file that the environment names. It stays mapped in children that are forked, which add to it as well.
fn open() -> Option<&'static [AtomicU64]> {
    let _quiet = Quiet::begin();
    let path = environment::variable(VARIABLE)?;
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    let facts = file.metadata().ok()?;
    // The recorder makes no file of another kind or length.
    if !facts.is_file() || facts.len() != 8 * WORDS as u64 {
        return None;
    }
    sys::map_words(file.as_raw_fd(), WORDS)
}
