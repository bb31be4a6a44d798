//! The filters of a process that ran before it was counted.
//!
//! A filter cannot be taken out again, and without a tracer the calls that it names fail. So each looks only
//! at calls that are made in a part of an arena ([`crate::filter`]), and when the process is left
//! alone, nothing is mapped there again: the place stays taken, under a name that says how many filters the
//! process has of ours and how far those of the place reach, and who attaches to it later uses both again.
//!
//! Programs that the process executes later have the filters as well, and not the places: should the code of
//! one come to lie in a filter's part, it fails. So the parts are no larger than they have to be, and grow
//! with the code.

use std::io;
use std::ops::Range;

use crate::filter::filter;
use crate::layout::{ARENA, REACH};
use crate::maps::Mapping;
use crate::remote::Calls;
use crate::shared_memory::SharedMemory;
use crate::status;

/// What the mappings that stay are called, before the number of filters.
const NAME: &str = "treering left";

/// How much of an arena its first filter is for; each further one is for as much as all before.
const FIRST_PART: u64 = 1 << 20;

/// The filters of all processes with one address space, and of those that they came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters {
    /// The process, and where the part begins that its filter is for.
    installed: Vec<(i32, u64)>,
    /// Places of a former attachment that are still taken.
    left: Vec<u64>,
    /// Whether several processes run in the address space at the same time.
    shared: bool,
}

/// The parts of an arena that filters are for, up to a length.
fn parts(base: u64, length: u64) -> impl Iterator<Item = Range<u64>> {
    let ends = std::iter::successors(Some(FIRST_PART), |end| Some(end * 2));
    let parts = ends.scan(0, move |start, end| {
        let part = base + *start..base + end;
        *start = end;
        Some(part)
    });
    parts.take_while(move |part| part.start < base + length)
}

impl Filters {
    /// Those that a former attachment has left in a process, as its mappings tell.
    pub(crate) fn left_in(pid: i32, mappings: &[Mapping]) -> Self {
        let mut filters = Self::default();
        let mut number = 0;
        for (base, all, length) in mappings.iter().filter_map(left_place) {
            filters.left.push(base);
            filters.installed.extend(parts(base, length).map(|part| (pid, part.start)));
            number = number.max(all);
        }
        // Of some, the place is gone, as after `execve`.
        let unknown = number.saturating_sub(filters.installed.len());
        filters.installed.extend(std::iter::repeat_n((pid, 0), unknown));
        filters
    }

    /// Those of a process that was copied.
    pub(crate) fn of_child(&self, parent: i32, child: i32) -> Self {
        let own = self.of(parent).map(|base| (child, base)).collect();
        Self { installed: own, ..Self::default() }
    }

    /// Those of a process that becomes another program.
    pub(crate) fn of_program(&self, pid: i32) -> Self {
        self.of_child(pid, pid)
    }

    fn of(&self, pid: i32) -> impl Iterator<Item = u64> {
        self.installed.iter().filter(move |&&(process, _)| process == pid).map(|&(_, base)| base)
    }

    /// How many a process has.
    pub(crate) fn number(&self, pid: i32) -> usize {
        self.of(pid).count()
    }

    /// A place that was left, within reach of code.
    pub(crate) fn place_near(&self, code: u64) -> Option<u64> {
        self.left.iter().copied().find(|base| base.abs_diff(code) < REACH)
    }

    /// Whether a place is still taken by what was left there, which goes with this question.
    pub(crate) fn take_place(&mut self, base: u64) -> bool {
        let before = self.left.len();
        self.left.retain(|&left| left != base);
        self.left.len() != before
    }

    /// Notes that another process runs in the same memory.
    pub(crate) fn share(&mut self) {
        self.shared = true;
    }

    /// Installs the filters of an arena, up to a length, in the process of a stopped thread, as far as they are
    /// not there. Returns how far they reach.
    ///
    /// # Errors
    /// The kernel refuses it, as where a thread has a filter of its own; or another process that runs in
    /// the arena would lack it.
    pub(crate) fn install(&mut self, base: u64, length: u64, calls: &mut Calls<'_, '_>) -> io::Result<u64> {
        let pid = status::process_of(calls.tid());
        let mut reached = 0;
        for part in parts(base, length) {
            reached = part.end - base;
            if self.of(pid).any(|start| start == part.start) {
                continue;
            }
            if self.shared {
                return Err(io::Error::other("it shares its memory with another process that runs"));
            }
            let start = part.start;
            install(calls, Some(part))?;
            self.installed.push((pid, start));
        }
        Ok(reached)
    }
}

/// Where a mapping is, how many filters it says that its process has, and how far those of the place reach, if
/// it is one of those that stay.
fn left_place(mapping: &Mapping) -> Option<(u64, usize, u64)> {
    let name = mapping.name.to_str()?.strip_prefix("/memfd:")?.strip_prefix(NAME)?;
    let mut numbers = name.split_whitespace();
    Some((mapping.start, numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// What stays mapped where an arena was.
pub(crate) fn placeholder(filters: usize, length: u64) -> io::Result<SharedMemory> {
    SharedMemory::new(&format!("{NAME} {filters} {length}"), ARENA)
}

/// Installs a filter in all threads of a process. The kernel allows it to everybody who gives up gaining
/// privileges, and to some without.
pub(crate) fn install(calls: &mut Calls<'_, '_>, within: Option<Range<u64>>) -> io::Result<()> {
    const SET_MODE_FILTER: u64 = 1;
    /// `SECCOMP_FILTER_FLAG_TSYNC` and `SECCOMP_FILTER_FLAG_SPEC_ALLOW`: older kernels would slow it down.
    const RUNNING: u64 = 1 | 4;
    let (is_running, filter) = (within.is_some(), filter(within));
    let mut bytes = vec![0; 16];
    filter.iter().for_each(|instruction| bytes.extend_from_slice(instruction));
    bytes[..8].copy_from_slice(&(filter.len() as u64).to_le_bytes());
    // The address is known only where the bytes lie.
    let place = calls.place_for(bytes.len() as u64);
    bytes[8..16].copy_from_slice(&(place + 16).to_le_bytes());
    let install = |calls: &mut Calls<'_, '_>| {
        let flags = if is_running { RUNNING } else { 0 };
        calls.call_with_bytes(libc::SYS_seccomp, &bytes, |at| {
            debug_assert_eq!(at, place, "bytes lie where they were said to");
            [SET_MODE_FILTER, flags, at, 0, 0, 0]
        })
    };
    let denied = |error: &io::Error| error.raw_os_error() == Some(libc::EACCES);
    let installed = match is_running.then(|| install(calls)) {
        Some(done) if !done.as_ref().is_err_and(denied) => done,
        _ => {
            calls.call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0])?;
            install(calls)
        }
    };
    match installed? {
        0 => Ok(()),
        thread => Err(io::Error::other(format!("its thread {thread} filters system calls of its own"))),
    }
}
