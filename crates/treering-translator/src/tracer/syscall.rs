//! The system calls that the tracer must see: those about memory, code, filters, signals and threads.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::program::container_file::{HiddenFile, seen_by};
use crate::program::file_version::Version;
use crate::program::program_code::ProgramCode;
use crate::program::region::{PAGE, Region};
use crate::sys::filter::{INDIRECT, RULES, SET_DISPATCH, SET_MDWE, before_own_filter};
use crate::sys::layout::{FILTER, FILTER_SIZE, OWN_GS};
use crate::sys::remote_syscall::StoppedThread;
use crate::sys::{self, Registers};
use crate::tracer::thread::{Call, Verdict};
use crate::tracer::thread_stop::ThreadStop;
use treering_proc::Mapping;

const SET_GS: u64 = 0x1001;
const SET_FS: u64 = 0x1002;
const GET_GS: u64 = 0x1004;
/// `ARCH_SHSTK_ENABLE`: the processor would compare returns with calls, but translated code makes no real calls.
const ENABLE_SHADOW_STACK: u64 = 0x5001;

/// `SECCOMP_SET_MODE_FILTER`, of `seccomp(2)`; its strict mode is 0.
const SET_FILTER: u64 = 1;
/// `SECCOMP_MODE_FILTER`, of `prctl(2)`.
const MODE_FILTER: u64 = 2;

/// Whether a call of `seccomp` or `prctl` restricts system calls, or memory that is made executable.
fn is_own_rule(number: i64, r: &libc::user_regs_struct) -> bool {
    match number {
        libc::SYS_seccomp => matches!(r.rdi, 0 | SET_FILTER),
        _ => match r.rdi {
            SET_DISPATCH => r.rsi != 0,
            SET_MDWE => true,
            option => option == libc::PR_SET_SECCOMP as u64,
        },
    }
}

impl ThreadStop<'_, '_> {
    /// Examines a system call that is about to be made, and changes it if necessary.
    pub(crate) fn before_call(&mut self, registers: &mut Registers) -> io::Result<Verdict> {
        let r = registers.0;
        let number = r.orig_rax as i64;
        let unmaps = matches!(number, libc::SYS_mmap | libc::SYS_munmap);
        if unmaps && self.space.program.regions.overlaps(r.rdi, r.rdi.saturating_add(r.rsi)) {
            // The log refers to the code as it is before the call.
            self.space.take_log(self.thread.area)?;
        }
        if let Some((range, gives_way)) = changed_memory(number, registers)
            && let Some(verdict) = self.give_way(range, gives_way, registers)?
        {
            return Ok(verdict);
        }
        Ok(match number {
            libc::SYS_brk
            | libc::SYS_mmap
            | libc::SYS_munmap
            | libc::SYS_mprotect
            | libc::SYS_pkey_mprotect
            | libc::SYS_madvise
            | libc::SYS_process_madvise
            | libc::SYS_remap_file_pages
            | libc::SYS_mremap => self.memory_call(number, registers)?,
            libc::SYS_open | libc::SYS_creat | libc::SYS_truncate | libc::SYS_openat | libc::SYS_openat2 => {
                Verdict::Opens
            }
            libc::SYS_rt_sigreturn => Verdict::Watch(Call::HandlerReturn),
            libc::SYS_rt_sigaction => fault_action(r.rsi, self.stopped),
            libc::SYS_arch_prctl => self.architecture_call(registers)?,
            libc::SYS_seccomp | libc::SYS_prctl if is_own_rule(number, &r) => {
                self.own_rule(number, registers)?
            }
            libc::SYS_wait4 | libc::SYS_clone | libc::SYS_clone3 | libc::SYS_sched_getaffinity
                if self.release_for_call(registers)? =>
            {
                again(registers, self.stopped)?
            }
            libc::SYS_sched_getaffinity | libc::SYS_sched_setaffinity | libc::SYS_sched_setattr => {
                Verdict::Unbind
            }
            libc::SYS_ptrace => Verdict::Trace,
            libc::SYS_getrlimit | libc::SYS_setrlimit | libc::SYS_prlimit64 => Verdict::Limit,
            libc::SYS_prctl if RULES.contains(&r.rdi) => Verdict::Rules,
            libc::SYS_wait4 => Verdict::Wait,
            libc::SYS_clone | libc::SYS_clone3 => have_traced(number, registers, self.stopped)?,
            libc::SYS_shmat if r.rdx & libc::SHM_EXEC as u64 != 0 => {
                Verdict::Refuse("it runs code in System V shared memory")
            }
            _ if self.release_for_call(registers)? => again(registers, self.stopped)?,
            _ => Verdict::Go,
        })
    }

    /// Makes the memory that a call may write to writable. Returns whether any of it was write-protected.
    pub(crate) fn release_for_call(&mut self, registers: &Registers) -> io::Result<bool> {
        /// No structure that a call writes is larger.
        const LARGEST: u64 = 1 << 16;
        /// No length that a call is given is larger.
        const LONGEST: u64 = 1 << 31;
        let r = &registers.0;
        let arguments = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
        let is_indirect = INDIRECT.contains(&r.orig_rax.cast_signed());
        let lengths = arguments.into_iter().filter(|&argument| argument < LONGEST);
        let length = lengths.max().unwrap_or(0).max(LARGEST);
        let is_written = |page: u64| {
            is_indirect || arguments.iter().any(|&at| at < page + PAGE && at.saturating_add(length) > page)
        };
        let pages = self.space.program.regions.protected_pages().map(|page| page.start);
        let pages: Vec<u64> = pages.filter(|&page| is_written(page)).collect();
        for &page in &pages {
            self.space.release_written(page, self.stopped)?;
        }
        Ok(!pages.is_empty())
    }

    /// Keeps the program's base of GS in the area, as the tracer uses GS itself.
    fn architecture_call(&mut self, registers: &mut Registers) -> io::Result<Verdict> {
        match registers.0.rdi {
            SET_GS => {
                self.set_slot(OWN_GS, registers.0.rsi);
                skip(registers, 0, self.stopped)
            }
            GET_GS => {
                let value = self.slot(OWN_GS).to_le_bytes();
                let written = sys::write_memory(self.stopped.tid, registers.0.rsi, &value);
                skip(registers, if written { 0 } else { -libc::EFAULT }, self.stopped)
            }
            SET_FS => {
                if let Some(model) = &mut self.space.model {
                    model.set_fs_base(self.thread.area, registers.0.rsi, &self.space.areas);
                }
                Ok(Verdict::Go)
            }
            ENABLE_SHADOW_STACK => skip(registers, -libc::EOPNOTSUPP, self.stopped),
            _ => Ok(Verdict::Go),
        }
    }

    /// A call that changes the program's memory.
    fn memory_call(&mut self, number: i64, registers: &mut Registers) -> io::Result<Verdict> {
        let r = registers.0;
        Ok(match number {
            libc::SYS_brk => Verdict::Watch(Call::Heap(r.rdi)),
            libc::SYS_mmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect
                if r.rdx & libc::PROT_EXEC as u64 != 0 =>
            {
                become_code(registers, self.stopped)?
            }
            libc::SYS_mmap | libc::SYS_munmap => self
                .space
                .program
                .about_code(r.rdi, r.rsi, |start, end| Call::Gone { start, end, is_unmapped: true }),
            libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
                self.space.program.about_code(r.rdi, r.rsi, |start, end| Call::Gone {
                    start,
                    end,
                    is_unmapped: false,
                })
            }
            libc::SYS_madvise => self.space.program.advised(r.rdi, r.rsi, r.rdx as i32),
            libc::SYS_remap_file_pages => {
                self.space.program.about_code(r.rdi, r.rsi, |start, end| Call::Changed { start, end })
            }
            // The ranges are in the program's memory, where another thread may change them meanwhile.
            libc::SYS_process_madvise => Verdict::Watch(Call::Changed { start: 0, end: u64::MAX }),
            libc::SYS_mremap => match self.release_before_move(r.rdi, r.rsi)? {
                true => again(registers, self.stopped)?,
                false => Verdict::Watch(Call::Move { from: r.rdi, length: r.rsi, to_length: r.rdx }),
            },
            _ => Verdict::Go,
        })
    }

    /// The program restricts its own system calls.
    fn own_rule(&mut self, number: i64, registers: &mut Registers) -> io::Result<Verdict> {
        let r = registers.0;
        let is_filter = match number {
            libc::SYS_seccomp => r.rdi == SET_FILTER,
            _ => r.rdi == libc::PR_SET_SECCOMP as u64 && r.rsi == MODE_FILTER,
        };
        if is_filter {
            return own_filter(registers, r.rdx, self.stopped);
        }
        match (number, r.rdi) {
            (libc::SYS_prctl, SET_DISPATCH) => {
                self.space.warnings.push(
                    "it was refused syscall user dispatch, which would take its system calls from the tracer",
                );
                skip(registers, -libc::EINVAL, self.stopped)
            }
            // The kernel never sees the program's code as executable, so the setting would forbid nothing.
            // The call fails as on an older kernel.
            (libc::SYS_prctl, SET_MDWE) => skip(registers, -libc::EINVAL, self.stopped),
            _ => Ok(Verdict::Refuse("it forbids itself nearly all system calls (strict seccomp)")),
        }
    }

    /// A watched call has returned.
    pub(crate) fn after_call(&mut self, call: Call, registers: &mut Registers) -> io::Result<()> {
        let result = registers.0.rax as i64;
        let failed = (-4095..0).contains(&result);
        match call {
            Call::Executable { number, address, length, protection, file, shared } => {
                registers.0.rdx = protection;
                sys::set_registers(self.stopped.tid, registers)?;
                match (number, failed) {
                    (libc::SYS_mmap, false) => {
                        self.code_mapped(result as u64, length, protection, (file, shared));
                    }
                    (libc::SYS_mmap, true) => {}
                    (_, false) => self.code_appeared(address, address + length, protection)?,
                    // The call has taken effect up to the first unmapped address.
                    (_, true) => self.code_appeared(
                        address,
                        reached(result, address, length, self.stopped.tid)?,
                        protection,
                    )?,
                }
            }
            Call::Move { from, length, to_length } if !failed => {
                self.code_moved(from, length, result as u64, to_length);
            }
            Call::Gone { start, end, is_unmapped: true } if !failed => self.space.unload(start, end),
            Call::Gone { is_unmapped: true, .. } => {}
            Call::Gone { start, end, .. } => {
                let end = if failed { reached(result, start, end - start, self.stopped.tid)? } else { end };
                self.space.evict(start, end);
            }
            Call::Changed { start, end } => self.space.read_again(start, end),
            Call::Heap(wanted) => self.heap_grown(wanted, registers.0.rax),
            Call::Answered(result) => {
                registers.0.rax = result;
                sys::set_registers(self.stopped.tid, registers)?;
            }
            Call::Clone(argument) => {
                registers.0.rdi = argument;
                sys::set_registers(self.stopped.tid, registers)?;
            }
            Call::Filtered(argument) => {
                registers.0.rdx = argument;
                sys::set_registers(self.stopped.tid, registers)?;
            }
            Call::Held(call) => self.after_held_call(call, registers)?,
            Call::Move { .. }
            | Call::HandlerReturn
            | Call::FaultAction(_)
            | Call::OpenedMemory
            | Call::Waits { .. } => {}
        }
        Ok(())
    }

    /// Makes protected pages of a range writable before the range is moved: the kernel moves only one mapping
    /// at a time, and protected pages are separate mappings. Returns whether there were any.
    fn release_before_move(&mut self, from: u64, length: u64) -> io::Result<bool> {
        let end = from.saturating_add(length);
        let pages = self.space.program.regions.protected_pages().map(|page| page.start);
        let pages: Vec<u64> = pages.filter(|page| (from..end).contains(page)).collect();
        pages.iter().try_for_each(|&page| self.space.release_written(page, self.stopped).map(drop))?;
        Ok(!pages.is_empty())
    }

    /// `mmap` has mapped code.
    fn code_mapped(
        &mut self,
        start: u64,
        length: u64,
        protection: u64,
        (file, shared): (Option<(i32, u64)>, bool),
    ) {
        let tid = self.stopped.tid;
        let opened = file.and_then(|(descriptor, offset)| {
            let link = PathBuf::from(format!("/proc/{tid}/fd/{descriptor}"));
            Some((std::fs::read_link(&link).ok()?, offset, is_written_to(&link, tid, descriptor)))
        });
        let written = opened.as_ref().is_some_and(|&(.., written)| written);
        let file = opened.map(|(path, offset, _)| (path, offset)).filter(|(path, _)| is_there(path, tid));
        let end = (start + length).next_multiple_of(PAGE);
        self.space.unload(start, end);
        self.add_code(start..end, protection, file, shared || written);
    }

    /// Mapped memory has become code: perhaps parts of several files.
    fn code_appeared(&mut self, start: u64, end: u64, protection: u64) -> io::Result<()> {
        let end = end.next_multiple_of(PAGE);
        let tid = self.stopped.tid;
        let mappings = treering_proc::mappings(tid)?;
        let mut parts: Vec<Mapping> = Vec::new();
        for mut mapping in mappings.into_iter().filter(|mapping| mapping.end > start && mapping.start < end) {
            let cut = start.saturating_sub(mapping.start);
            (mapping.start, mapping.file_offset) = (mapping.start + cut, mapping.file_offset + cut);
            mapping.end = mapping.end.min(end);
            match parts.last_mut().filter(|last| last.continues_in(&mapping)) {
                Some(last) => last.end = mapping.end,
                None => parts.push(mapping),
            }
        }
        for Mapping { start, end, file_offset, path, is_shared, .. } in parts {
            // Mappings without a named file, or of a deleted one, may be of a file that other processes can write to.
            let is_named = path.is_absolute();
            let file = is_there(&path, tid).then_some((path, file_offset));
            let changes = is_shared || is_named && file.is_none();
            self.add_code(start..end, protection, file, changes);
        }
        Ok(())
    }

    fn add_code(&mut self, place: Range<u64>, protection: u64, file: Option<(PathBuf, u64)>, changes: bool) {
        let tid = self.stopped.tid;
        let hidden = file.as_ref().and_then(|(path, _)| HiddenFile::find(path, &seen_by(tid, path)));
        let (start, end) = (place.start, place.end);
        let writable = protection & libc::PROT_WRITE as u64 != 0;
        let version = file.as_ref().filter(|_| hidden.is_none()).and_then(|(path, _)| Version::of(path));
        let (stack, vdso, number) = (false, false, 0);
        let region = Region { start, end, writable, stack, file, hidden, version, vdso, changes, number };
        self.space.add_region(region);
    }

    fn code_moved(&mut self, from: u64, length: u64, to: u64, to_length: u64) {
        let [length, to_length] = [length, to_length].map(|length| length.next_multiple_of(PAGE));
        let mut parts = self.space.program.regions.parts(from, from + length);
        if from == to {
            if to_length < length {
                self.space.unload(from + to_length, from + length);
            }
            parts.retain(|part| part.end == from + length && to_length > length);
            parts.iter_mut().for_each(|part| part.end = from + to_length);
        } else {
            self.space.unload(from, from + length);
            self.space.unload(to, to + to_length);
            for part in &mut parts {
                let end = if part.end == from + length { to_length } else { part.end - from };
                (part.start, part.end) = (part.start - from + to, end.min(to_length) + to);
            }
        }
        parts.into_iter().filter(|part| part.start < part.end).for_each(|part| self.space.add_region(part));
    }
}

/// Where a failed call on memory stopped: a call that changes protection takes effect up to the first
/// unmapped address.
fn reached(result: i64, start: u64, length: u64, tid: i32) -> io::Result<u64> {
    if result != i64::from(-libc::ENOMEM) {
        return Ok(start);
    }
    let mut end = start;
    for mapping in treering_proc::mappings(tid)? {
        if mapping.start <= end && mapping.end > end {
            end = mapping.end;
        }
    }
    Ok(end.min(start.saturating_add(length)))
}

/// Whether any process may write to a file that a thread has mapped. If the kernel cannot tell, the file
/// counts as written to when the thread itself opened it for writing.
fn is_written_to(path: &Path, tid: i32, descriptor: i32) -> bool {
    let opened = || {
        let facts = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{descriptor}")).ok()?;
        let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"))?;
        i32::from_str_radix(flags.trim(), 8).ok()
    };
    sys::is_open_for_writing(path).unwrap_or(false)
        || opened().is_none_or(|flags| flags & libc::O_ACCMODE != 0)
}

/// The memory that a call changes at a fixed address, and whether the kernel refuses the call if that memory
/// is in use.
fn changed_memory(number: i64, registers: &Registers) -> Option<((u64, u64), bool)> {
    let r = &registers.0;
    let has = |value: u64, flag: i32| value & flag as u64 != 0;
    Some(match number {
        libc::SYS_mmap if has(r.r10, libc::MAP_FIXED_NOREPLACE) => ((r.rdi, r.rsi), true),
        libc::SYS_mmap if has(r.r10, libc::MAP_FIXED) => ((r.rdi, r.rsi), false),
        libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect => ((r.rdi, r.rsi), false),
        libc::SYS_mremap if has(r.r10, libc::MREMAP_FIXED) => ((r.r8, r.rdx), false),
        // The segment's size is unknown here.
        libc::SYS_shmat if r.rsi != 0 => ((r.rsi, 1), !has(r.rdx, libc::SHM_REMAP)),
        _ => return None,
    })
}

/// Whether a thread finds a file at a path. Memory files and deleted files can no longer be opened when their
/// code is read again.
fn is_there(path: &Path, tid: i32) -> bool {
    path.is_absolute() && (path.is_file() || seen_by(tid, path).is_file())
}

/// The program's new action for faults, if the call sets one.
fn fault_action(at: u64, thread: &StoppedThread<'_>) -> Verdict {
    let mut bytes = [0; 32];
    if at == 0 || sys::read_memory(thread.tid, at, &mut bytes) != bytes.len() {
        return Verdict::Go;
    }
    let (words, _) = bytes.as_chunks();
    Verdict::Watch(Call::FaultAction(std::array::from_fn(|word| u64::from_le_bytes(words[word]))))
}

/// Has a thread repeat the call that it is stopped at, as remote calls were made meanwhile.
pub(crate) fn again(registers: &mut Registers, thread: &mut StoppedThread<'_>) -> io::Result<Verdict> {
    const LENGTH: u64 = 2;
    let r = &mut registers.0;
    (r.rax, r.rip, r.orig_rax) = (r.orig_rax, r.rip - LENGTH, u64::MAX);
    sys::set_registers(thread.tid, registers)?;
    Ok(Verdict::Go)
}

/// Answers a call in the kernel's place.
pub(crate) fn skip(
    registers: &mut Registers,
    result: i32,
    thread: &mut StoppedThread<'_>,
) -> io::Result<Verdict> {
    registers.0.orig_rax = u64::MAX;
    sys::set_registers(thread.tid, registers)?;
    Ok(Verdict::Watch(Call::Answered(i64::from(result) as u64)))
}

/// Puts instructions that let our calls pass before a program's own filter. The longer filter lies in the
/// thread's area, where only the kernel reads it before the call is done.
fn own_filter(registers: &mut Registers, at: u64, thread: &mut StoppedThread<'_>) -> io::Result<Verdict> {
    let mut header = [0; 16];
    if sys::read_memory(thread.tid, at, &mut header) != 16 {
        return Ok(Verdict::Go);
    }
    let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
    let mut address = [0; 8];
    address.copy_from_slice(&header[8..]);
    let mut program = vec![0; length * 8];
    if sys::read_memory(thread.tid, u64::from_le_bytes(address), &mut program) != program.len() {
        return Ok(Verdict::Go);
    }
    let before = before_own_filter();
    let mut bytes = vec![0; 16];
    bytes[..8].copy_from_slice(&((before.len() + length) as u64).to_le_bytes());
    before.iter().for_each(|instruction| bytes.extend_from_slice(instruction));
    bytes.extend_from_slice(&program);
    let place = registers.0.gs_base + u64::from(FILTER);
    bytes[8..16].copy_from_slice(&(place + 16).to_le_bytes());
    if bytes.len() > FILTER_SIZE as usize || !sys::write_memory(thread.tid, place, &bytes) {
        return Ok(Verdict::Refuse("there is no room for its filter of system calls"));
    }
    let argument = registers.0.rdx;
    registers.0.rdx = place;
    sys::set_registers(thread.tid, registers)?;
    Ok(Verdict::Watch(Call::Filtered(argument)))
}

impl ProgramCode {
    /// A call on some memory, whose result is needed if there is any code.
    fn about_code(&self, start: u64, length: u64, call: impl FnOnce(u64, u64) -> Call) -> Verdict {
        let end = start.saturating_add(length).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
        match self.regions.overlaps(start, end) {
            true => Verdict::Watch(call(start, end)),
            false => Verdict::Go,
        }
    }

    fn advised(&mut self, start: u64, length: u64, advice: i32) -> Verdict {
        if advice == libc::MADV_FREE {
            // The kernel may free the pages at any later time.
            self.regions.set_restless(start, start.saturating_add(length));
        }
        self.about_code(start, length, |start, end| Call::Changed { start, end })
    }
}

/// Memory is made executable: the kernel makes it readable instead, and the tracer adds it as code afterwards.
fn become_code(registers: &mut Registers, thread: &mut StoppedThread<'_>) -> io::Result<Verdict> {
    let r = &mut registers.0;
    let protection = r.rdx;
    let mut given = protection & !(libc::PROT_EXEC as u64);
    if given & (libc::PROT_READ | libc::PROT_WRITE) as u64 == 0 {
        given |= libc::PROT_READ as u64;
    }
    let number = r.orig_rax as i64;
    let anonymous = r.r10 & libc::MAP_ANONYMOUS as u64 != 0;
    let file = (number == libc::SYS_mmap && !anonymous).then_some((r.r8 as i32, r.r9));
    let shared = number == libc::SYS_mmap && r.r10 & libc::MAP_SHARED as u64 != 0;
    let call = Call::Executable { number, address: r.rdi, length: r.rsi, protection, file, shared };
    r.rdx = given;
    sys::set_registers(thread.tid, registers)?;
    Ok(Verdict::Watch(call))
}

/// Has a child traced although its parent asked for an untraced one: the child has our filter, and executes
/// translated code.
fn have_traced(
    number: i64,
    registers: &mut Registers,
    thread: &mut StoppedThread<'_>,
) -> io::Result<Verdict> {
    const UNTRACED: u64 = libc::CLONE_UNTRACED as u64;
    const MOST_ARGUMENTS: usize = 4096;
    let own = registers.0.rdi;
    let mut flags = [0; 8];
    match number {
        libc::SYS_clone => flags = own.to_le_bytes(),
        _ if sys::read_memory(thread.tid, own, &mut flags) != flags.len() => return Ok(Verdict::Go),
        _ => {}
    }
    let flags = u64::from_le_bytes(flags);
    if flags & UNTRACED == 0 {
        return Ok(Verdict::Go);
    }
    let traced = flags & !UNTRACED;
    registers.0.rdi = if number == libc::SYS_clone {
        traced
    } else {
        let mut arguments = vec![0; (registers.0.rsi as usize).min(MOST_ARGUMENTS)];
        if arguments.len() < 8 || sys::read_memory(thread.tid, own, &mut arguments) != arguments.len() {
            return Ok(Verdict::Go);
        }
        arguments[..8].copy_from_slice(&traced.to_le_bytes());
        let place = registers.0.gs_base + u64::from(FILTER);
        if !sys::write_memory(thread.tid, place, &arguments) {
            return Ok(Verdict::Refuse(
                "there is no room for the arguments of its call that makes an untraced child",
            ));
        }
        place
    };
    sys::set_registers(thread.tid, registers)?;
    Ok(Verdict::Watch(Call::Clone(own)))
}
