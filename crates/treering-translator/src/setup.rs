//! A process made ready to run from the code cache.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use crate::filter::filter;
use crate::layout::{GATE, GATE_SIZE, OWN_GS};
use crate::maps::{self, Mapping};
use crate::region::{Region, Regions};
use crate::remote::{Calls, Stopped};
use crate::selection::Watcher;
use crate::shared_memory::SharedMemory;
use crate::space::Space;
use crate::sys;

/// As far down a stack may grow and still be taken for code, if it is executable.
const LARGEST_STACK: u64 = 64 << 20;

/// Addresses from here on are not the program's.
const USER_END: u64 = 0x7fff_ffff_f000;

/// The page with the `syscall` instruction, mapped into every process.
pub(crate) fn gate() -> io::Result<SharedMemory> {
    let memory = SharedMemory::new("treering gate", GATE_SIZE)?;
    memory.write(0, &[0x0f, 0x05, 0x0f, 0x0b]);
    Ok(memory)
}

/// Prepares a process that has just become a program and is stopped before its first instruction.
///
/// `filtered`: the filter is there already, from before it became this program.
pub(crate) fn prepare_program(
    thread: &mut Stopped<'_>,
    gate: &SharedMemory,
    filtered: bool,
    files: Option<PathBuf>,
    tree: bool,
    watcher: Option<Rc<Watcher>>,
) -> io::Result<Space> {
    let rip = sys::registers(thread.tid)?.0.rip;
    let mappings = maps::mappings(thread.tid)?;
    let code: Vec<_> = mappings.iter().filter(|mapping| is_code(mapping)).collect();
    map_gate(thread, rip, gate)?;
    let mut regions = Regions::watched_by(watcher);
    code.iter().for_each(|mapping| regions.insert(region(mapping)));
    let space = Space::new(regions, rip, thread, None, files, tree)?;
    thread.remotely(|calls| {
        code.iter().for_each(|mapping| take_execution_away(calls, mapping));
        if filtered { Ok(()) } else { install_filter(calls) }
    })?;
    Ok(space)
}

fn is_code(mapping: &Mapping) -> bool {
    mapping.executable && mapping.start < USER_END
}

fn region(mapping: &Mapping) -> Region {
    let has_file = mapping.name.is_absolute();
    let is_stack = mapping.name.as_os_str() == "[stack]";
    Region {
        // It grows downwards.
        start: if is_stack { mapping.end - LARGEST_STACK } else { mapping.start },
        end: mapping.end,
        writable: mapping.writable,
        stack: is_stack,
        file: has_file.then(|| (mapping.name.clone(), mapping.offset)),
        vdso: mapping.name.as_os_str() == "[vdso]",
        number: 0,
    }
}

/// Maps the gate, by a `syscall` that stands at `rip` for so long.
fn map_gate(thread: &mut Stopped<'_>, rip: u64, gate: &SharedMemory) -> io::Result<()> {
    const SYSTEM_CALL: u64 = 0x050f;
    let old = sys::exchange_code(thread.tid, rip, SYSTEM_CALL)?;
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    let mapped = thread.remotely(|calls| {
        calls.use_gate(rip);
        let mapped = calls.map(gate, GATE, GATE_SIZE, protection, false);
        calls.use_gate(GATE);
        mapped
    });
    sys::exchange_code(thread.tid, rip, old)?;
    mapped
}

/// The program's own code is never run where it lies: should control get there all the same, there
/// is a fault. Mappings that the kernel has sealed stay as they are.
fn take_execution_away(calls: &mut Calls<'_, '_>, mapping: &Mapping) {
    let mut protection = libc::PROT_READ;
    if mapping.writable {
        protection |= libc::PROT_WRITE;
    }
    let length = mapping.end - mapping.start;
    // Sealed by the kernel, as the vDSO may be: its code is found by the same lookups.
    let _ = calls.call(libc::SYS_mprotect, [mapping.start, length, protection as u64, 0, 0, 0]);
}

/// Installs the filter, which the kernel allows to everybody who gives up gaining privileges.
fn install_filter(calls: &mut Calls<'_, '_>) -> io::Result<()> {
    const SET_MODE_FILTER: u64 = 1;
    let filter = filter();
    let mut bytes = vec![0; 16];
    filter.iter().for_each(|instruction| bytes.extend_from_slice(instruction));
    bytes[..8].copy_from_slice(&(filter.len() as u64).to_le_bytes());
    calls.call(libc::SYS_prctl, [libc::PR_SET_NO_NEW_PRIVS as u64, 1, 0, 0, 0, 0])?;
    install(calls, bytes, SET_MODE_FILTER)
}

/// `bytes`: the program's length, eight bytes for its address, and the program.
fn install(calls: &mut Calls<'_, '_>, bytes: Vec<u8>, mode: u64) -> io::Result<()> {
    // The address is known only where the bytes lie: they are written twice.
    let length = bytes.len() as u64;
    let place = calls.place_for(length);
    let mut bytes = bytes;
    bytes[8..16].copy_from_slice(&(place + 16).to_le_bytes());
    calls.call_with_bytes(libc::SYS_seccomp, &bytes, |at| {
        debug_assert_eq!(at, place, "bytes lie where they were said to");
        [mode, 0, at, 0, 0, 0]
    })?;
    Ok(())
}

/// Gives a thread its slice, and GS with it.
pub(crate) fn give_slice(space: &mut Space, thread: &mut Stopped<'_>, own_gs: u64) -> io::Result<usize> {
    let slice = space.take_slice(thread)?;
    space.set_slot(slice, OWN_GS, own_gs);
    let mut registers = sys::registers(thread.tid)?;
    space.set_fs_base(slice, registers.0.fs_base);
    registers.0.gs_base = space.gs_base(slice);
    sys::set_registers(thread.tid, &registers)?;
    Ok(slice)
}
