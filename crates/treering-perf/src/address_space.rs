//! What is mapped where in a process, and how to unwind its stacks.

use std::collections::BTreeMap;

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder as _};
use hashbrown::HashMap;
use treering_profile::{FileOffset, Function, FunctionId, ModuleId, Profile, RuntimeAddress, StatedAddress};

use crate::binary::{Binary, Bytes};
use crate::blocked::unknown_function;
use crate::generated_code::{Epilogue, GeneratedCode};
use crate::record::Sample;

/// The executable mappings of a process.
#[derive(Default)]
pub(crate) struct AddressSpace {
    mappings: BTreeMap<u64, Mapping>,
    unwinder: UnwinderX86_64<Bytes>,
    cache: CacheX86_64,
    generated: GeneratedCode,
    /// The functions of addresses that were asked for; the same few thousand come again and again.
    functions: HashMap<u64, FunctionId>,
}

/// An executable mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    end: u64,
    module: Option<ModuleId>,
    /// Runtime minus stated address, wrapping.
    bias: u64,
    /// The stated address at which the module is started, or 0.
    entry: u64,
    /// Whether its code was made while the program ran.
    generated: bool,
}

/// An address in terms of the module that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) module: Option<ModuleId>,
    pub(crate) address: StatedAddress,
}

/// How the unwinding of a stack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the thread's first function.
    Complete,
    /// At the end of the copied stack or of what could be understood.
    Truncated,
}

impl Clone for AddressSpace {
    /// A copy for a forked child; the cache of unwind rules starts afresh.
    fn clone(&self) -> Self {
        let (mappings, unwinder) = (self.mappings.clone(), self.unwinder.clone());
        Self { mappings, unwinder, ..Self::default() }
    }
}

/// Stacks deeper than this are cut; a copied stack of 64 KiB can hold no more frames.
const MOST_FRAMES: usize = 8192;

/// How long the code is with which programs and dynamic linkers are started: `_start`, and
/// `_dl_start_user` behind it.
const ENTRY_BYTES: u64 = 96;

/// The kernel's walk along frame pointers stops after this many frames by default
/// (`kernel.perf_event_max_stack`).
const LONGEST_CHAIN: usize = 127;

impl AddressSpace {
    /// Notes a mapping of a binary, or of memory that holds code (`module` of kind Jit, or none).
    /// What it overlaps is unmapped.
    pub(crate) fn map(
        &mut self,
        start: u64,
        length: u64,
        file_offset: u64,
        module: Option<ModuleId>,
        binary: Option<&Binary>,
    ) {
        let end = start.saturating_add(length);
        self.unmap(start, end);
        let from_file =
            |binary: &Binary| binary.segments.bias(RuntimeAddress(start), FileOffset(file_offset), length);
        let bias = binary.and_then(from_file);
        let entry = binary.map_or(0, |binary| binary.entry);
        let generated = binary.is_none();
        self.mappings.insert(start, Mapping { end, module, bias: bias.unwrap_or(0), entry, generated });
        self.generated.forget();
        self.functions.clear();
        if let (Some(binary), Some(bias)) = (binary, bias) {
            let sections = binary.unwind_sections();
            self.unwinder.add_module(Module::new(String::new(), start..end, bias, sections));
        }
    }

    /// Forgets what lies in a range; mappings that stick out are shortened.
    fn unmap(&mut self, start: u64, end: u64) {
        let touched: Vec<(u64, Mapping)> = self
            .mappings
            .range(..end)
            .rev()
            .take_while(|(_, mapping)| mapping.end > start)
            .map(|(&at, &mapping)| (at, mapping))
            .collect();
        for (at, mapping) in touched {
            self.mappings.remove(&at);
            self.unwinder.remove_module(at);
            if at < start {
                self.mappings.insert(at, Mapping { end: start, ..mapping });
            }
            if mapping.end > end {
                self.mappings.insert(end, mapping);
            }
        }
    }

    /// Where an address lies; nothing when nothing executable is mapped there.
    pub(crate) fn place(&self, address: u64) -> Option<Place> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        let address_in = StatedAddress(address.wrapping_sub(mapping.bias));
        (address < mapping.end).then_some(Place { module: mapping.module, address: address_in })
    }

    /// The function of a profile that stands for an address, until names are looked for.
    pub(crate) fn function(&mut self, profile: &mut Profile, address: u64) -> FunctionId {
        if let Some(&known) = self.functions.get(&address) {
            return known;
        }
        let Some(place) = self.place(address) else { return unknown_function(profile, "[unmapped code]") };
        let function = profile.functions.intern(Function::at_address(place.module, place.address));
        self.functions.insert(address, function);
        function
    }

    /// Whether an address lies in the few instructions with which a module is started. They have
    /// no caller, and hand-written as they are often no unwind table that says so.
    fn is_entry(&self, address: u64) -> bool {
        let Some((_, mapping)) = self.mappings.range(..=address).next_back() else { return false };
        let stated = address.wrapping_sub(mapping.bias);
        mapping.entry != 0 && (mapping.entry..mapping.entry + ENTRY_BYTES).contains(&stated)
    }

    /// Finds the callers of a sampled place in user mode, innermost first, into `stack`: the
    /// instruction pointer, then for every caller an address within its call instruction.
    ///
    /// Follows the tables of the binaries through the copy of the stack. Where that ends, goes on
    /// along the frame pointers that the kernel followed through the whole stack, from the last
    /// frame that both ways agree on.
    pub(crate) fn unwind(&mut self, sample: &Sample, stack: &mut Vec<u64>) -> End {
        stack.clear();
        let end = match sample.stack {
            Some((registers, copy)) if !copy.is_empty() => {
                let mut walk = Walk { base: registers.stack, copy };
                let mut registers =
                    UnwindRegsX86_64::new(registers.instruction, registers.stack, registers.base);
                self.follow_tables(sample.pid, &mut registers, &mut walk, stack)
            }
            _ => End::Truncated,
        };
        let end = match end {
            End::Truncated => self.splice_chain(sample, stack),
            complete => complete,
        };
        for return_address in stack.iter_mut().skip(1) {
            *return_address -= 1;
        }
        end
    }

    /// Unwinds by tables until the first function or the end of the copy; return addresses are
    /// left as they are.
    fn follow_tables(
        &mut self,
        pid: u32,
        registers: &mut UnwindRegsX86_64,
        walk: &mut Walk,
        stack: &mut Vec<u64>,
    ) -> End {
        let mut frame = FrameAddress::from_instruction_pointer(registers.ip());
        stack.push(registers.ip());
        while stack.len() < MOST_FRAMES {
            let next = match self.caller(pid, frame, registers, walk) {
                Ok(None) => return End::Complete,
                Ok(Some(next)) if self.place(next).is_some() => next,
                Ok(Some(_)) | Err(_) if self.is_entry(frame.address_for_lookup()) => return End::Complete,
                Ok(Some(_)) | Err(_) => return End::Truncated,
            };
            let Some(address) = FrameAddress::from_return_address(next) else { return End::Complete };
            stack.push(next);
            frame = address;
        }
        End::Truncated
    }

    /// The return address of a frame, and the registers after returning to it. Nothing when the
    /// frame has no caller.
    fn caller(
        &mut self,
        pid: u32,
        frame: FrameAddress,
        registers: &mut UnwindRegsX86_64,
        walk: &Walk,
    ) -> Result<Option<u64>, framehop::Error> {
        if frame.is_return_address()
            && self.is_generated(frame.address())
            && let Some(epilogue) = self.generated.epilogue(pid, frame.address())
            && let Ok(next) = walk.return_by(epilogue, registers)
        {
            return Ok(Some(next));
        }
        let mut read = |address| walk.read(address);
        self.unwinder.unwind_frame(frame, registers, &mut self.cache, &mut read)
    }

    fn is_generated(&self, address: u64) -> bool {
        let mapping = self.mappings.range(..=address).next_back();
        mapping.is_some_and(|(_, mapping)| address < mapping.end && mapping.generated)
    }

    /// Appends what the kernel found along frame pointers beyond the last frame of `stack` that
    /// it found too. Frames after that one keep no frame pointers, so the chain passes them by.
    fn splice_chain(&self, sample: &Sample, stack: &mut Vec<u64>) -> End {
        let chain: Vec<u64> = sample.chain.user().collect();
        if stack.is_empty() {
            stack.extend(chain.first());
        }
        let in_chain = |address: &u64| chain.iter().position(|other| other == address);
        let agreed = stack.iter().rev().find_map(in_chain);
        let Some(in_chain) = agreed else { return End::Truncated };
        let rest = &chain[in_chain + 1..];
        let sound = rest.iter().take_while(|&&address| self.place(address).is_some()).count();
        stack.extend(&rest[..sound]);
        let whole = sound == rest.len() && sound > 0 && chain.len() < LONGEST_CHAIN;
        if whole { End::Complete } else { End::Truncated }
    }
}

/// The copied part of a stack.
struct Walk<'a> {
    base: u64,
    copy: &'a [u8],
}

impl Walk<'_> {
    /// Does to the registers what an epilogue does; returns the return address.
    fn return_by(&self, epilogue: Epilogue, registers: &mut UnwindRegsX86_64) -> Result<u64, ()> {
        let stack = registers.sp();
        let next = self.read(stack.wrapping_add(epilogue.return_offset))?;
        if let Some(offset) = epilogue.base_offset {
            registers.set_bp(self.read(stack.wrapping_add(offset))?);
        }
        registers.set_sp(stack.wrapping_add(epilogue.return_offset + 8));
        registers.set_ip(next);
        Ok(next)
    }

    fn read(&self, address: u64) -> Result<u64, ()> {
        let offset = usize::try_from(address.checked_sub(self.base).ok_or(())?).map_err(|_| ())?;
        let word = self.copy.get(offset..).and_then(|rest| rest.first_chunk()).ok_or(())?;
        Ok(u64::from_ne_bytes(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_mapping_replaces_what_it_overlaps() {
        let module = |number| Some(ModuleId::new(number));
        let mut space = AddressSpace::default();
        space.map(0x1000, 0x3000, 0, module(1), None);
        space.map(0x2000, 0x1000, 0, module(2), None);
        let at = |address| space.place(address).and_then(|place| place.module);
        assert_eq!(at(0xfff), None);
        assert_eq!(at(0x1fff), module(1));
        assert_eq!(at(0x2000), module(2));
        assert_eq!(at(0x3000), module(1));
        assert_eq!(at(0x4000), None);
    }
}
