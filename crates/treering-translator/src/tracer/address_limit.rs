//! The limit on a process's address space (`RLIMIT_AS`), which does not count the tracer's memory.
//!
//! The kernel's limit is the program's and the size of what the tracer has mapped: mapping that raises the limit, and
//! the calls that read and set it are answered here. The most to which a program may raise its limit is kept here alone:
//! the kernel would not let the tracer raise it again.

use std::io;

use crate::address_space::AddressSpace;
use crate::sys::layout::{ROOM_SIZE, SEGMENT_SIZE, SYSCALL_PAGE_SIZE, TABLES_SIZE, UNIT_SIZE};
use crate::sys::{self, NO_LIMIT, Registers};
use crate::tracer::state::Tracer;
use crate::tracer::thread::{Call, State};
use treering_proc::status;

/// The process that a call is about, by the program's number, and where it reads and writes limits; 0 for nowhere.
struct LimitCall {
    process: i32,
    from: u64,
    to: u64,
}

impl LimitCall {
    fn of(registers: &Registers) -> Self {
        let r = &registers.0;
        match r.orig_rax as i64 {
            libc::SYS_getrlimit => Self { process: 0, from: 0, to: r.rsi },
            libc::SYS_setrlimit => Self { process: 0, from: r.rsi, to: 0 },
            _ => Self { process: r.rdi as i32, from: r.rdx, to: r.r10 },
        }
    }
}

impl AddressSpace {
    /// The size of what the tracer has mapped into the process.
    pub(crate) fn own_size(&self) -> u64 {
        let (units, segments) = (self.cache.units.len() as u64, self.areas.segment_bases.len() as u64);
        SYSCALL_PAGE_SIZE + ROOM_SIZE + TABLES_SIZE + units * UNIT_SIZE + segments * SEGMENT_SIZE
    }
}

impl Tracer {
    /// A thread reads or sets a limit on address space.
    pub(crate) fn limit_call(&mut self, tid: i32) -> io::Result<()> {
        let mut registers = sys::registers(tid)?;
        let call = LimitCall::of(&registers);
        let Some((pid, own)) = self.limited(tid, call.process) else { return sys::resume(tid, 0) };
        let [current, most] = sys::limit(pid, sys::ADDRESSES)?;
        let current = if current == NO_LIMIT { current } else { current.saturating_sub(own) };
        let mut limits = [current, self.most_addresses.get(&pid).copied().unwrap_or(most)];
        let result = change(tid, pid, &call, own, &mut limits)?;
        self.most_addresses.insert(pid, limits[1]);
        registers.0.orig_rax = u64::MAX;
        sys::set_registers(tid, &registers)?;
        self.set_state(tid, State::InCall(Call::Answered(i64::from(result) as u64)));
        sys::resume_to_call(tid, 0)
    }

    /// Notes the most to which a process may raise its limit, before the tracer raises that itself.
    pub(crate) fn note_most_addresses(&mut self, pid: i32) -> io::Result<()> {
        let [_, most] = sys::limit(pid, sys::ADDRESSES)?;
        self.most_addresses.entry(pid).or_insert(most);
        Ok(())
    }

    /// Gives a process that is left the most that it has set.
    pub(crate) fn give_most_addresses_back(&mut self, pid: i32) -> io::Result<()> {
        let Some(most) = self.most_addresses.remove(&pid) else { return Ok(()) };
        match sys::limit(pid, sys::ADDRESSES)? {
            [_, now] if now <= most => Ok(()),
            [current, _] => sys::set_limit(pid, sys::ADDRESSES, [current.min(most), most]),
        }
    }

    /// A program is about to be replaced by another one, which has none of the tracer's memory yet.
    pub(crate) fn lower_limit(&mut self, tid: i32) -> io::Result<()> {
        let Some((thread, program)) = self.counted(tid) else { return Ok(()) };
        sys::move_limit(thread.pid, sys::ADDRESSES, program.space.own_size().cast_signed().wrapping_neg())
    }

    /// The counted process that a thread means by a number, if the thread may change its limits, and the size of the
    /// tracer's memory there.
    fn limited(&mut self, tid: i32, named: i32) -> Option<(i32, u64)> {
        let own = self.process_of(tid);
        let pid = match named {
            0 => own,
            _ if status::shares_names(tid) => status::process_of(named),
            _ => {
                let is_named = |&&other: &&i32| status::inner_pid(other) == u32::try_from(named).ok();
                status::process_of(*self.threads.keys().find(is_named)?)
            }
        };
        let may = pid == own || status::user(tid) == Some(0) || status::user(tid) == status::user(pid);
        let thread = self.threads.values().find(|thread| thread.pid == pid && thread.space.is_some());
        // A child that has not begun has a copy of its parent's memory.
        let begins = || self.pending_clones.get(&pid)?.space;
        let space = thread.and_then(|thread| thread.space).or_else(begins)?;
        let size = self.spaces[space].as_ref()?.space.own_size();
        may.then_some((pid, size))
    }
}

/// Does what a call asks for with the program's limits of a process. Returns the call's result.
fn change(tid: i32, pid: i32, call: &LimitCall, own: u64, limits: &mut [u64; 2]) -> io::Result<i32> {
    let before = *limits;
    if call.from != 0 {
        let mut bytes = [0; 16];
        if sys::read_memory(tid, call.from, &mut bytes) != bytes.len() {
            return Ok(-libc::EFAULT);
        }
        let (words, _) = bytes.as_chunks();
        let wanted = [words[0], words[1]].map(u64::from_le_bytes);
        if wanted[0] > wanted[1] {
            return Ok(-libc::EINVAL);
        }
        if wanted[1] > before[1] && !may_raise(tid) {
            return Ok(-libc::EPERM);
        }
        // A limit above every address, or none, stays so.
        let current = wanted[0].checked_add(own).unwrap_or(NO_LIMIT);
        let [_, most] = sys::limit(pid, sys::ADDRESSES)?;
        if let Err(error) = sys::set_limit(pid, sys::ADDRESSES, [current, most.max(current)]) {
            return Ok(-error.raw_os_error().unwrap_or(libc::EPERM));
        }
        *limits = wanted;
    }
    let bytes: Vec<u8> = before.into_iter().flat_map(u64::to_le_bytes).collect();
    let is_told = call.to == 0 || sys::write_memory(tid, call.to, &bytes);
    Ok(if is_told { 0 } else { -libc::EFAULT })
}

/// Whether a thread may raise its hard limits.
fn may_raise(tid: i32) -> bool {
    /// `CAP_SYS_RESOURCE`, as the number of a signal whose bit it has.
    const RESOURCE: i32 = 24 + 1;
    status::has_signal(tid, "CapEff", RESOURCE)
}
