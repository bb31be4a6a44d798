//! How to return from code that was made while the program ran.
//!
//! Such code comes without unwind tables, and not all of it keeps frame pointers: CPython's
//! trampolines, one for each Python function, only move the stack pointer. What they do to
//! return can be read from the instructions that follow the call.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// What the instructions from some address on do to the stack before they return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epilogue {
    /// How far above the stack pointer the return address is.
    pub(crate) return_offset: u64,
    /// How far above the stack pointer the caller's base pointer is, if it is restored.
    pub(crate) base_offset: Option<u64>,
}

/// The epilogues of a process's generated code, each read once from its memory.
#[derive(Default)]
pub(crate) struct GeneratedCode {
    memory: Option<File>,
    known: HashMap<u64, Option<Epilogue>>,
}

/// How many bytes of instructions are looked at.
const LOOK_AHEAD: usize = 32;

impl GeneratedCode {
    /// The epilogue at a return address of process `pid`; nothing when the instructions there do
    /// more than return, or cannot be read: the process has ended, or is not ours.
    pub(crate) fn epilogue(&mut self, pid: u32, address: u64) -> Option<Epilogue> {
        let memory = &mut self.memory;
        *self.known.entry(address).or_insert_with(|| {
            if memory.is_none() {
                *memory = File::open(format!("/proc/{pid}/mem")).ok();
            }
            let mut code = [0; LOOK_AHEAD];
            let length = memory.as_ref()?.read_at(&mut code, address).ok()?;
            decode(&code[..length])
        })
    }

    /// Forgets what was read, since other code may be there now.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }
}

/// Follows instructions that restore registers up to a return; any other ends the attempt.
///
/// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: ADD, POP, RET.
fn decode(mut code: &[u8]) -> Option<Epilogue> {
    let mut offset = 0_u64;
    let mut base_offset = None;
    loop {
        let length = match *code {
            [0xc3, ..] | [0xf3, 0xc3, ..] | [0xc2, ..] => {
                return Some(Epilogue { return_offset: offset, base_offset });
            }
            [0x48, 0x83, 0xc4, bytes, ..] if bytes < 0x80 => {
                offset += u64::from(bytes);
                4
            }
            [0x48, 0x81, 0xc4, a, b, c, d, ..] => {
                offset += u64::from(u32::from_le_bytes([a, b, c, d]));
                7
            }
            [0x5d, ..] => {
                base_offset = Some(offset);
                offset += 8;
                1
            }
            [0x58..=0x5b | 0x5e..=0x5f, ..] => {
                offset += 8;
                1
            }
            [0x41, 0x58..=0x5f, ..] => {
                offset += 8;
                2
            }
            _ => return None,
        };
        code = &code[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trampoline_of_cpython_moves_the_stack_pointer_and_returns() {
        let code = [0x48, 0x83, 0xc4, 0x08, 0xc3];
        assert_eq!(decode(&code), Some(Epilogue { return_offset: 8, base_offset: None }));
    }

    #[test]
    fn restored_registers_lie_below_the_return_address() {
        let code = [0x5b, 0x41, 0x5c, 0x5d, 0xc3];
        assert_eq!(decode(&code), Some(Epilogue { return_offset: 24, base_offset: Some(16) }));
    }

    #[test]
    fn code_that_goes_on_working_is_no_epilogue() {
        assert_eq!(decode(&[0x48, 0x89, 0xd8, 0xc3]), None);
        assert_eq!(decode(&[0x48, 0x83]), None);
        assert_eq!(decode(&[]), None);
    }

    #[test]
    fn our_own_code_can_be_read() {
        let mut code = GeneratedCode::default();
        // Whatever is there, it must neither fail nor be asked for twice.
        let address = decode as *const () as u64;
        let first = code.epilogue(std::process::id(), address);
        assert_eq!(code.epilogue(std::process::id(), address), first);
        assert!(code.memory.is_some());
    }
}
