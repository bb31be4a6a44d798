//! The mappings of a process, and how to unwind its stacks.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;
use treering_profile::{FileOffset, Function, FunctionId, ModuleId, Profile, RuntimeAddress, StatedAddress};

use crate::binary::Binary;
use crate::blocked::unknown_function;
use crate::ending::Endings;
use crate::generated_code::GeneratedCode;
use crate::landmark::Switch;
use crate::record::Sample;
use crate::registers::Width;
use crate::rule::{self, Rule};
use crate::walk::{Walk, follow_frame_pointers};

/// The executable mappings of a process.
#[derive(Default)]
pub(crate) struct AddressSpace {
    mappings: BTreeMap<u64, Mapping>,
    generated: GeneratedCode,
    endings: Endings,
    /// The functions of addresses that were asked for; the same few thousand come again and again.
    functions: HashMap<u64, FunctionId>,
}

/// An executable mapping.
#[derive(Clone, Debug)]
struct Mapping {
    end: u64,
    module: Option<ModuleId>,
    /// Runtime minus stated address, wrapping.
    bias: u64,
    /// The mapped binary; nothing for code that was made while the program ran, and for other files.
    binary: Option<Rc<Binary>>,
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
    /// There too, but not all callers are certain.
    Uncertain(Uncertainty),
    /// Before.
    Cut(Cut),
}

/// Why callers in a whole stack may be missing or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Uncertainty {
    /// Frame pointers were followed through code that may keep none.
    FramePointers,
    /// Outer frames were read from the process some time after the sample.
    ReadLater,
    /// The function that left a goroutine's stack is not known.
    Goroutine,
}

/// Why a stack was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is deeper than the copied part.
    BeyondCopy,
    /// It continues in memory that was not copied: a signal's own stack, or a coroutine's.
    OtherStack,
    /// The kernel's copy stops at memory that was not there, and the rest could not be read later.
    Hole,
    /// It continues on a goroutine's stack, from code that Go runs on the thread's own.
    Goroutine(Switch),
    /// The caller of the code at this address cannot be found.
    Lost(u64),
    /// It has more frames than are read.
    TooDeep,
    /// The kernel's chain of frame pointers ended.
    FramePointers,
}

impl Clone for AddressSpace {
    /// A copy for a forked child, whose memory is its own.
    fn clone(&self) -> Self {
        Self { mappings: self.mappings.clone(), ..Self::default() }
    }
}

/// How long the code is with which programs and dynamic linkers are started: `_start`, and
/// `_dl_start_user` behind it.
const ENTRY_BYTES: u64 = 96;

impl AddressSpace {
    /// Notes a mapping of a binary, or of memory that holds code (`module` of kind Jit, or none). Mappings that it
    /// overlaps are unmapped.
    pub(crate) fn map(
        &mut self,
        start: u64,
        length: u64,
        file_offset: u64,
        module: Option<ModuleId>,
        binary: Option<&Rc<Binary>>,
    ) {
        let end = start.saturating_add(length);
        self.unmap(start, end);
        let from_file = |binary: &Rc<Binary>| {
            binary.segments.bias(RuntimeAddress(start), FileOffset(file_offset), length)
        };
        let bias = binary.and_then(from_file);
        let binary = binary.filter(|_| bias.is_some()).cloned();
        self.mappings.insert(start, Mapping { end, module, bias: bias.unwrap_or(0), binary });
        self.generated.forget();
        self.endings.forget();
        self.functions.clear();
    }

    /// Removes the mappings in a range; those that extend beyond it are shortened.
    fn unmap(&mut self, start: u64, end: u64) {
        let touched: Vec<(u64, Mapping)> = self
            .mappings
            .range(..end)
            .rev()
            .take_while(|(_, mapping)| mapping.end > start)
            .map(|(&at, mapping)| (at, mapping.clone()))
            .collect();
        for (at, mapping) in touched {
            self.mappings.remove(&at);
            if at < start {
                self.mappings.insert(at, Mapping { end: start, ..mapping.clone() });
            }
            if mapping.end > end {
                self.mappings.insert(end, mapping);
            }
        }
    }

    /// Where an address lies; nothing when nothing executable is mapped there.
    pub(crate) fn place(&self, address: u64) -> Option<Place> {
        let mapping = self.mapping(address)?;
        let address_in = StatedAddress(address.wrapping_sub(mapping.bias));
        Some(Place { module: mapping.module, address: address_in })
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        let (_, mapping) = self.mappings.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    /// Whether code is mapped at an address.
    pub(crate) fn is_mapped(&self, address: u64) -> bool {
        self.mapping(address).is_some()
    }

    /// Whether an address lies in the few instructions with which a module is started. They have
    /// no caller, and hand-written as they are often no unwind table that says so.
    pub(crate) fn is_entry(&self, address: u64) -> bool {
        self.mapping(address).is_some_and(|mapping| {
            let entry = mapping.binary.as_ref().map_or(0, |binary| binary.entry);
            let stated = address.wrapping_sub(mapping.bias);
            entry != 0 && (entry..entry.saturating_add(ENTRY_BYTES)).contains(&stated)
        })
    }

    /// Whether code was made at an address while the program ran.
    pub(crate) fn is_generated(&self, address: u64) -> bool {
        self.mapping(address).is_some_and(|mapping| mapping.binary.is_none())
    }

    /// The width of the code that is mapped at an address.
    pub(crate) fn width(&self, address: u64) -> Width {
        let binary = self.mapping(address).and_then(|mapping| mapping.binary.as_ref());
        binary.map(|binary| binary.width).unwrap_or_default()
    }

    /// How to leave a frame of process `pid`; nothing when no code is mapped there.
    pub(crate) fn rule(&mut self, pid: u32, width: Width, place: rule::Place) -> Option<Rule> {
        let mapping = self.mapping(place.lookup())?;
        Some(match &mapping.binary {
            Some(binary) => binary.rule(place.stated(mapping.bias)),
            None => self.generated.rule(pid, width, place),
        })
    }

    /// Whether an address of process `pid` is mapped, and the instruction before it a call as far
    /// as can be told.
    pub(crate) fn is_behind_call(&mut self, pid: u32, address: u64) -> bool {
        let Some(mapping) = self.mapping(address) else { return false };
        match &mapping.binary {
            Some(binary) => binary.is_behind_call(address.wrapping_sub(mapping.bias)),
            None => self.generated.is_behind_call(pid, address).unwrap_or(true),
        }
    }

    /// The function that the call before an address of a binary calls by its address.
    pub(crate) fn call_target(&self, address: u64) -> Option<u64> {
        let mapping = self.mapping(address)?;
        let target = mapping.binary.as_ref()?.call_target(address.wrapping_sub(mapping.bias))?;
        Some(target.wrapping_add(mapping.bias)).filter(|&target| self.is_mapped(target))
    }

    /// Where the function of a binary begins that holds an address, as far as unwind tables tell.
    pub(crate) fn function_start(&self, address: u64) -> Option<u64> {
        let mapping = self.mapping(address)?;
        let start = mapping.binary.as_ref()?.function_start(address.wrapping_sub(mapping.bias))?;
        Some(start.wrapping_add(mapping.bias))
    }

    /// The frames that always follow a frame of the C library's start of a thread.
    pub(crate) fn known_ending(&self, frame: u64) -> Option<&[u64]> {
        self.endings.after(frame)
    }

    /// Whether it is worth looking for those frames.
    pub(crate) fn seek_ending(&mut self, frame: u64) -> bool {
        self.endings.seek(frame)
    }

    /// Reads the memory of process `pid` at an address now, as far as it can be read.
    pub(crate) fn read_memory(&mut self, pid: u32, address: u64, length: usize) -> Vec<u8> {
        self.generated.read_memory(pid, address, length)
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

    /// Finds the callers of a sampled place in user mode, innermost first, into `stack`: the
    /// instruction pointer, then for every caller an address within its call instruction, or the
    /// next instruction where a signal interrupted it.
    pub(crate) fn unwind(&mut self, sample: &Sample, stack: &mut Vec<u64>) -> End {
        stack.clear();
        self.generated.refresh(sample.time);
        let Some((registers, copy)) = sample.stack.filter(|_| sample.stack_room > 0) else {
            return follow_frame_pointers(self, sample, stack);
        };
        let end = Walk::of_sample(self, sample, registers, copy, stack).run(sample);
        if end == End::Complete {
            self.note_ending(stack);
        }
        end
    }

    /// Notes how a whole stack ends.
    pub(crate) fn note_ending(&mut self, stack: &[u64]) {
        let module = |address: u64| self.mapping(address).and_then(|mapping| mapping.module);
        if let Some(ending) = Endings::boundary(stack, module) {
            self.endings.note(&stack[ending..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_mapping_replaces_the_mappings_it_overlaps() {
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
