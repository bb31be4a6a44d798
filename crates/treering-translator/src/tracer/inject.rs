//! Injection: prepares a process to run from the code cache.

use std::io;
use std::rc::Rc;

use crate::address_space::{AddressSpace, Provision};
use crate::program::container_file::{HiddenFile, seen_by};
use crate::program::file_version::Version;
use crate::program::region::{Region, Regions};
use crate::program::watch::Watcher;
use crate::sys::filter::{For, install, is_ours};
use crate::sys::layout::{OWN_GS, ROOM, ROOM_SIZE, SYSCALL_PAGE, SYSCALL_PAGE_SIZE};
use crate::sys::remote_syscall::{RemoteSyscalls, StoppedThread};
use crate::sys::shared_memory::SharedMemory;
use crate::sys::{self};
use crate::tracer::memory_conflict::taken;
use treering_proc::{Mapping, status};

/// The size to which an executable stack may grow and still be taken for code.
const LARGEST_STACK: u64 = 64 << 20;

/// The end of the addresses that a program can use.
const USER_END: u64 = 0x7fff_ffff_f000;

/// Prepares a process that has just become a program and is stopped before its first instruction.
///
/// `filtered`: the process has the filter from the program that it was before.
pub(crate) fn prepare_program(
    thread: &mut StoppedThread<'_>,
    syscall_page: &SharedMemory,
    filtered: bool,
    provision: Provision,
    watcher: Option<Rc<Watcher>>,
) -> io::Result<AddressSpace> {
    let rip = sys::registers(thread.tid)?.0.rip;
    let mappings = treering_proc::mappings(thread.tid)?;
    if let Some(start) = taken(&mappings) {
        return Err(io::Error::other(format!(
            "its own memory lies where counting needs some ({start:#x}); link it to another address, or so that it can \
             be loaded anywhere (-pie)"
        )));
    }
    by_call_at(thread, rip, |calls| {
        calls.map_room()?;
        map_syscall_page(calls, syscall_page)
    })?;
    if !filtered {
        let program = match provision.surroundings.is_any_held() {
            true => For::HeldProgram,
            false if provision.calls_at_page => For::Running,
            false => For::Program,
        };
        thread.remotely(|calls| install(calls, program))?;
    }
    thread.with_lists(|thread| prepare(thread, &mappings, rip, provision, watcher))
}

/// The refusal of a process whose threads have a filter of their own.
pub(crate) const FILTERED: &str =
    "it filters its own system calls (seccomp), and its filter would not let the tracer's calls pass";

/// Prepares a process that runs already, and whose threads are stopped anywhere. It may still have our filter
/// from an earlier attachment.
pub(crate) fn prepare_running(
    thread: &mut StoppedThread<'_>,
    syscall_page: &SharedMemory,
    provision: Provision,
    watcher: Option<Rc<Watcher>>,
) -> io::Result<AddressSpace> {
    let mappings = treering_proc::mappings(thread.tid)?;
    let code = mappings.iter().find(|mapping| is_code(mapping) && mapping.path.is_absolute());
    let code = code.ok_or_else(|| io::Error::other("it has no code that comes from a file"))?.start;
    let is_filtered = status::number(thread.tid, "Seccomp") != Some(0);
    by_call_at(thread, code, |calls| {
        calls.map_room()?;
        let filtered = match is_filtered {
            true if is_ours(calls) => Ok(()),
            true => Err(io::Error::other(FILTERED)),
            false => install(calls, For::Running),
        };
        let made = filtered.and_then(|()| map_syscall_page(calls, syscall_page));
        if made.is_err() {
            let _ = calls.unmap(ROOM, ROOM_SIZE);
        }
        made
    })?;
    prepare(thread, &mappings, code, provision, watcher)
}

/// Prepares a process that has the system call page and whose threads are stopped, with the first unit near
/// `code`. `mappings` are the process's own.
fn prepare(
    thread: &mut StoppedThread<'_>,
    mappings: &[Mapping],
    code: u64,
    provision: Provision,
    watcher: Option<Rc<Watcher>>,
) -> io::Result<AddressSpace> {
    let executable: Vec<_> = mappings.iter().filter(|mapping| is_code(mapping)).collect();
    let mut regions = Regions::watched_by(watcher);
    executable.iter().for_each(|mapping| regions.insert(region(mapping, thread.tid)));
    let space = AddressSpace::new(regions, code, thread, None, provision)?;
    let calls: Vec<_> = executable.iter().map(|mapping| without_execution(mapping)).collect();
    // A mapping that the kernel has sealed, as the vDSO may be, stays executable; its code is translated all
    // the same.
    thread.remotely(|made| made.call_all(&calls).map(drop))?;
    Ok(space)
}

fn is_code(mapping: &Mapping) -> bool {
    mapping.is_executable && mapping.start < USER_END
}

fn region(mapping: &Mapping, tid: i32) -> Region {
    let has_file = mapping.path.is_absolute();
    let is_stack = mapping.path.as_os_str() == "[stack]";
    let hidden = has_file.then(|| HiddenFile::find(&mapping.path, &seen_by(tid, &mapping.path)));
    let hidden = hidden.flatten();
    Region {
        // The stack grows downwards.
        start: if is_stack { mapping.end - LARGEST_STACK } else { mapping.start },
        end: mapping.end,
        writable: mapping.is_writable,
        stack: is_stack,
        file: has_file.then(|| (mapping.path.clone(), mapping.file_offset)),
        version: Version::of(&mapping.path).filter(|_| has_file && hidden.is_none()),
        hidden,
        vdso: mapping.path.as_os_str() == "[vdso]",
        changes: mapping.is_shared,
        number: 0,
    }
}

fn map_syscall_page(calls: &mut RemoteSyscalls<'_, '_>, syscall_page: &SharedMemory) -> io::Result<()> {
    calls.map(syscall_page, SYSCALL_PAGE, SYSCALL_PAGE_SIZE, libc::PROT_READ | libc::PROT_EXEC, false)
}

/// Makes remote system calls where there is no system call page, with a `syscall` instruction put temporarily
/// at `code`.
fn by_call_at(
    thread: &mut StoppedThread<'_>,
    code: u64,
    make: impl FnOnce(&mut RemoteSyscalls<'_, '_>) -> io::Result<()>,
) -> io::Result<()> {
    const SYSTEM_CALL: u64 = 0x050f;
    let old = sys::exchange_code(thread.tid, code, SYSTEM_CALL)?;
    let made = thread.remotely(|calls| {
        calls.use_gate(code);
        let made = make(calls);
        calls.use_gate(SYSCALL_PAGE);
        made
    });
    sys::exchange_code(thread.tid, code, old)?;
    made
}

/// Makes the program's own code non-executable: should control reach it all the same, there is a fault.
/// Mappings that the kernel has sealed stay as they are.
fn without_execution(mapping: &Mapping) -> (i64, [u64; 6]) {
    let mut protection = libc::PROT_READ;
    if mapping.is_writable {
        protection |= libc::PROT_WRITE;
    }
    (libc::SYS_mprotect, [mapping.start, mapping.end - mapping.start, protection as u64, 0, 0, 0])
}

/// Gives a thread its area, and sets GS to it.
pub(crate) fn give_area(
    space: &mut AddressSpace,
    thread: &mut StoppedThread<'_>,
    own_gs: u64,
) -> io::Result<usize> {
    let area = space.areas.take_area(thread)?;
    space.areas.set_slot(area, OWN_GS, own_gs);
    let mut registers = sys::registers(thread.tid)?;
    if let Some(model) = &mut space.model {
        model.set_fs_base(area, registers.0.fs_base, &space.areas);
    }
    registers.0.gs_base = space.areas.gs_base(area);
    sys::set_registers(thread.tid, &registers)?;
    Ok(area)
}
