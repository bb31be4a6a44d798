//! How to return from code that was made while the program ran.
//!
//! Such code has no unwind tables, and not all of it keeps frame pointers: CPython's trampolines, one for each Python
//! function, only move the stack pointer. The instructions up to the return are read from the process's memory.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use hashbrown::HashMap;

use crate::registers::Width;
use crate::rule::{Place, Rule, is_behind_call};

/// The generated code of a process, looked at where a stack leads to it.
#[derive(Default)]
pub(crate) struct GeneratedCode {
    memory: Option<File>,
    rules: HashMap<Place, Rule>,
    /// Whether addresses are behind calls.
    behind_calls: HashMap<u64, Option<bool>>,
    /// The time at which the known code was last forgotten.
    fresh_at: u64,
}

/// How long code that was read is believed: compilers replace functions that are no longer needed.
const BELIEVED_NS: u64 = 1_000_000_000;

impl GeneratedCode {
    /// How to leave a frame in generated code of process `pid`.
    pub(crate) fn rule(&mut self, pid: u32, width: Width, place: Place) -> Rule {
        if let Some(rule) = self.rules.get(&place) {
            return rule.clone();
        }
        let memory = self.memory(pid);
        let read = |address: u64, bytes: &mut [u8]| read_at(memory, address, bytes);
        let landmark = Rule::from_landmark(&read, width, place);
        let rule = landmark.unwrap_or_else(|| Rule::from_code(&read, width, place, None));
        self.rules.insert(place, rule.clone());
        rule
    }

    /// Whether the instruction before an address is a call; nothing where it cannot be read: the
    /// process has ended, or is not ours.
    pub(crate) fn is_behind_call(&mut self, pid: u32, address: u64) -> Option<bool> {
        if let Some(&known) = self.behind_calls.get(&address) {
            return known;
        }
        let memory = self.memory(pid);
        let known = is_behind_call(&|address, bytes| read_at(memory, address, bytes), address);
        self.behind_calls.insert(address, known);
        known
    }

    /// Forgets code that was read too long before a sample.
    pub(crate) fn refresh(&mut self, now: u64) {
        if now.saturating_sub(self.fresh_at) > BELIEVED_NS {
            self.fresh_at = now;
            self.forget();
        }
    }

    /// Forgets all code, since other code may be there now.
    pub(crate) fn forget(&mut self) {
        self.rules.clear();
        self.behind_calls.clear();
    }

    /// Reads the memory of process `pid` at an address, as far as it can be read.
    pub(crate) fn read_memory(&mut self, pid: u32, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let length = read_at(self.memory(pid), address, &mut bytes);
        bytes.truncate(length);
        bytes
    }

    fn memory(&mut self, pid: u32) -> Option<&File> {
        if self.memory.is_none() {
            self.memory = File::open(format!("/proc/{pid}/mem")).ok();
        }
        self.memory.as_ref()
    }
}

fn read_at(memory: Option<&File>, address: u64, bytes: &mut [u8]) -> usize {
    memory.and_then(|memory| memory.read_at(bytes, address).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_code_can_be_read() {
        let mut code = GeneratedCode::default();
        let place = Place::interrupted(read_at as *const () as u64);
        let rule = code.rule(std::process::id(), Width::Bits64, place);
        assert!(matches!(rule, Rule::Code(exits) if !exits.ways_out.is_empty()));
    }

    #[test]
    fn unreadable_code_has_no_rule() {
        let mut code = GeneratedCode::default();
        let place = Place::interrupted(0x10);
        assert!(matches!(code.rule(std::process::id(), Width::Bits64, place), Rule::Unreadable));
        assert_eq!(code.is_behind_call(std::process::id(), 0x10), None);
    }
}
