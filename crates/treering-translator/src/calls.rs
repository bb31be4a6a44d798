//! System calls of the program that the tracer has to know of.

use std::io;
use std::path::Path;

use crate::filter::{SET_DISPATCH, before_own_filter};
use crate::hidden::{HiddenFile, seen_by};
use crate::layout::{FILTER, FILTER_SIZE, OWN_GS};
use crate::region::{PAGE, Region};
use crate::remote::Stopped;
use crate::space::Space;
use crate::sys::{self, Registers};
use crate::thread::Call;

/// What is to become of a stopped call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may be made, and nothing is left to do.
    Go,
    /// It may be made; its result is wanted.
    Watch(Call),
    /// It cannot be counted, for a reason.
    Refuse(&'static str),
    /// It may be made, but something must be noted.
    Note(&'static str),
    /// It may be made once every thread may run where the program has it run.
    Unbind,
}

const SET_GS: u64 = 0x1001;
const SET_FS: u64 = 0x1002;
const GET_GS: u64 = 0x1004;
/// `ARCH_SHSTK_ENABLE`: the processor would compare returns with calls, and there are none here.
const ENABLE_SHADOW_STACK: u64 = 0x5001;

impl Space {
    /// Looks at a system call that is about to be made, and changes it if need be.
    pub(crate) fn before_call(
        &mut self,
        slice: usize,
        registers: &mut Registers,
        thread: &mut Stopped<'_>,
    ) -> io::Result<Verdict> {
        let r = registers.0;
        let number = r.orig_rax as i64;
        Ok(match number {
            libc::SYS_mmap | libc::SYS_mprotect | libc::SYS_pkey_mprotect => {
                self.become_code(registers, thread)?
            }
            libc::SYS_mremap => Verdict::Watch(Call::Move { from: r.rdi, length: r.rsi, to_length: r.rdx }),
            libc::SYS_rt_sigreturn => Verdict::Watch(Call::HandlerReturn),
            libc::SYS_rt_sigaction => fault_action(r.rsi, thread),
            libc::SYS_arch_prctl => self.architecture_call(slice, registers, thread)?,
            libc::SYS_seccomp if r.rdi == 1 => own_filter(registers, r.rdx, thread)?,
            libc::SYS_prctl if r.rdi == libc::PR_SET_SECCOMP as u64 && r.rsi == 2 => {
                own_filter(registers, r.rdx, thread)?
            }
            libc::SYS_seccomp if r.rdi == 0 => {
                Verdict::Refuse("it allows itself no system calls (strict seccomp)")
            }
            libc::SYS_prctl if r.rdi == libc::PR_SET_SECCOMP as u64 => {
                Verdict::Refuse("it allows itself no system calls (strict seccomp)")
            }
            libc::SYS_prctl if r.rdi == SET_DISPATCH && r.rsi != 0 => skip(registers, -libc::EINVAL, thread)?,
            libc::SYS_sched_getaffinity | libc::SYS_sched_setaffinity | libc::SYS_sched_setattr => {
                Verdict::Unbind
            }
            libc::SYS_ptrace => {
                Verdict::Note("it tried to trace; what is counted cannot be traced by others")
            }
            libc::SYS_shmat if r.rdx & libc::SHM_EXEC as u64 != 0 => {
                Verdict::Refuse("it runs code in shared memory of System V")
            }
            _ => Verdict::Go,
        })
    }

    /// Memory is to be executable: it is made readable instead, and known as code afterwards.
    fn become_code(&mut self, registers: &mut Registers, thread: &mut Stopped<'_>) -> io::Result<Verdict> {
        let r = &mut registers.0;
        let protection = r.rdx;
        let mut given = protection & !(libc::PROT_EXEC as u64);
        if given & (libc::PROT_READ | libc::PROT_WRITE) as u64 == 0 {
            given |= libc::PROT_READ as u64;
        }
        let number = r.orig_rax as i64;
        let anonymous = r.r10 & libc::MAP_ANONYMOUS as u64 != 0;
        let file = (number == libc::SYS_mmap && !anonymous).then_some((r.r8 as i32, r.r9));
        if number == libc::SYS_mmap && r.r10 & libc::MAP_SHARED as u64 != 0 {
            self.warnings.push("its code lies in shared memory; changes made elsewhere are not seen");
        }
        let call = Call::Executable { number, address: r.rdi, length: r.rsi, protection, file };
        r.rdx = given;
        sys::set_registers(thread.tid, registers)?;
        Ok(Verdict::Watch(call))
    }

    /// The program's base of GS is kept in the slice: GS itself is ours.
    fn architecture_call(
        &mut self,
        slice: usize,
        registers: &mut Registers,
        thread: &mut Stopped<'_>,
    ) -> io::Result<Verdict> {
        match registers.0.rdi {
            SET_GS => {
                self.set_slot(slice, OWN_GS, registers.0.rsi);
                skip(registers, 0, thread)
            }
            GET_GS => {
                let value = self.slot(slice, OWN_GS).to_le_bytes();
                let written = sys::write_memory(thread.tid, registers.0.rsi, &value);
                skip(registers, if written { 0 } else { -libc::EFAULT }, thread)
            }
            SET_FS => {
                self.set_fs_base(slice, registers.0.rsi);
                Ok(Verdict::Go)
            }
            ENABLE_SHADOW_STACK => skip(registers, -libc::EOPNOTSUPP, thread),
            _ => Ok(Verdict::Go),
        }
    }

    /// A watched call is done.
    pub(crate) fn after_call(
        &mut self,
        call: Call,
        registers: &mut Registers,
        thread: &mut Stopped<'_>,
    ) -> io::Result<()> {
        let result = registers.0.rax as i64;
        let failed = (-4095..0).contains(&result);
        match call {
            Call::Executable { number, address, length, protection, file } => {
                registers.0.rdx = protection;
                sys::set_registers(thread.tid, registers)?;
                if !failed {
                    let start = if number == libc::SYS_mmap { result as u64 } else { address };
                    self.code_appeared(start, length, protection, file, thread.tid);
                }
            }
            Call::Move { from, length, to_length } if !failed => {
                self.code_moved(from, length, result as u64, to_length);
            }
            Call::Answered(result) => {
                registers.0.rax = result;
                sys::set_registers(thread.tid, registers)?;
            }
            Call::Filtered(argument) => {
                registers.0.rdx = argument;
                sys::set_registers(thread.tid, registers)?;
            }
            Call::Move { .. } | Call::HandlerReturn | Call::FaultAction(_) => {}
        }
        Ok(())
    }

    fn code_appeared(
        &mut self,
        start: u64,
        length: u64,
        protection: u64,
        file: Option<(i32, u64)>,
        tid: i32,
    ) {
        let end = (start + length).next_multiple_of(PAGE);
        let path = |(descriptor, offset): (i32, u64)| {
            let path = std::fs::read_link(format!("/proc/{tid}/fd/{descriptor}")).ok()?;
            is_there(&path, tid).then_some((path, offset))
        };
        // What `mprotect` makes executable may be part of a file that was mapped before.
        let file = file.and_then(path).or_else(|| mapped_file(tid, start));
        let hidden = file.as_ref().and_then(|(path, _)| HiddenFile::find(path, &seen_by(tid, path)));
        let writable = protection & libc::PROT_WRITE as u64 != 0;
        self.add_region(Region { start, end, writable, stack: false, file, hidden, vdso: false, number: 0 });
    }

    fn code_moved(&mut self, from: u64, length: u64, to: u64, to_length: u64) {
        let Some(region) = self.regions.find(from).cloned() else { return };
        if from == to && to_length <= length {
            return;
        }
        let moved = from - region.start;
        let file = region.file.clone().map(|(path, offset)| (path, offset + moved));
        if from != to {
            self.forget(from, (from + length).next_multiple_of(PAGE));
        }
        self.add_region(Region { start: to, end: (to + to_length).next_multiple_of(PAGE), file, ..region });
    }
}

/// The file at an address, with where the address is in it.
fn mapped_file(tid: i32, address: u64) -> Option<(std::path::PathBuf, u64)> {
    let mappings = crate::maps::mappings(tid).ok()?;
    let mapping = mappings.into_iter().find(|mapping| (mapping.start..mapping.end).contains(&address))?;
    let offset = mapping.offset + (address - mapping.start);
    // A file that is written to is no source of what is in memory.
    (is_there(&mapping.name, tid) && !mapping.shared).then_some((mapping.name, offset))
}

/// Whether a thread has a file at a path. Files in memory and deleted ones are gone when their code is to be read
/// again.
fn is_there(path: &Path, tid: i32) -> bool {
    path.is_absolute() && (path.is_file() || seen_by(tid, path).is_file())
}

/// What is to be done about faults from now on, if the call says so.
fn fault_action(at: u64, thread: &Stopped<'_>) -> Verdict {
    let mut bytes = [0; 32];
    if at == 0 || sys::read_memory(thread.tid, at, &mut bytes) != bytes.len() {
        return Verdict::Go;
    }
    let (words, _) = bytes.as_chunks();
    Verdict::Watch(Call::FaultAction(std::array::from_fn(|word| u64::from_le_bytes(words[word]))))
}

/// Answers a call in the kernel's place.
pub(crate) fn skip(registers: &mut Registers, result: i32, thread: &mut Stopped<'_>) -> io::Result<Verdict> {
    registers.0.orig_rax = u64::MAX;
    sys::set_registers(thread.tid, registers)?;
    Ok(Verdict::Watch(Call::Answered(i64::from(result) as u64)))
}

/// A program's own filter gets a beginning that lets our calls pass. The longer program lies in the thread's
/// slice, where nobody but the kernel reads it before the call is done.
fn own_filter(registers: &mut Registers, at: u64, thread: &mut Stopped<'_>) -> io::Result<Verdict> {
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
