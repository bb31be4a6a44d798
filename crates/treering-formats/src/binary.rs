//! Binaries that a file's addresses are in, and where they were mapped.

use std::collections::BTreeMap;

use treering_profile::{
    FileOffset, Function, FunctionKind, Module, ModuleId, ModuleKind, Profile, RuntimeAddress, SegmentMap,
    StatedAddress,
};

use crate::label::file_name;

/// The questions about binaries that readers of files with addresses ask.
pub trait Binaries {
    /// The segments of the binary at a path. Nothing if it cannot be read, or its build-id is another one
    /// than this, where one is given.
    fn segments(&mut self, path: &str, build_id: &[u8]) -> Option<SegmentMap>;

    /// Whether a kernel is the one that runs here, so that its addresses can be named.
    fn is_running_kernel(&mut self, kernel: &Kernel) -> bool;
}

/// The kernel that a file was recorded on, as far as the file tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Its build-id, or empty.
    pub build_id: Vec<u8>,
    /// The symbol by which it tells where it lies, such as `_text`.
    pub symbol: String,
    /// The address of that symbol.
    pub address: u64,
}

/// No binaries: every address stays without a name.
#[derive(Clone, Copy, Debug)]
pub struct NoBinaries;

impl Binaries for NoBinaries {
    fn segments(&mut self, _: &str, _: &[u8]) -> Option<SegmentMap> {
        None
    }

    fn is_running_kernel(&mut self, _: &Kernel) -> bool {
        false
    }
}

/// The meaning of the addresses of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Addresses in a module, after the bias is taken away from them; wraps.
    Stated { module: ModuleId, bias: u64 },
    /// Nothing is known of them but the module.
    Nameless(Function),
}

impl Place {
    /// The function of an address.
    pub(crate) fn function(self, address: u64) -> Function {
        match self {
            Self::Stated { module, bias } => {
                Function::at_address(Some(module), StatedAddress(address.wrapping_sub(bias)))
            }
            Self::Nameless(function) => function,
        }
    }

    /// A module of which no address has a name.
    pub(crate) fn nameless(profile: &mut Profile, path: &str, build_id: &[u8], kind: ModuleKind) -> Self {
        let module = module(profile, path, build_id, kind);
        let name = format!("[{}]", file_name(path).trim_start_matches('[').trim_end_matches(']'));
        let name = profile.strings.intern(&name);
        Self::Nameless(Function {
            module: Some(module),
            kind: FunctionKind::Unresolved,
            ..Function::named(name)
        })
    }

    /// A mapping of a binary's code.
    pub(crate) fn of_binary(
        profile: &mut Profile,
        binaries: &mut dyn Binaries,
        (path, build_id): (&str, &[u8]),
        (start, end, offset): (u64, u64, u64),
    ) -> Self {
        let segments = binaries.segments(path, build_id);
        let bias = segments.and_then(|segments| {
            segments.bias(RuntimeAddress(start), FileOffset(offset), end.saturating_sub(start))
        });
        match bias {
            Some(bias) => Self::Stated { module: module(profile, path, build_id, ModuleKind::Elf), bias },
            None => Self::nameless(profile, path, build_id, ModuleKind::Elf),
        }
    }
}

/// The module of that path.
pub(crate) fn module(profile: &mut Profile, path: &str, build_id: &[u8], kind: ModuleKind) -> ModuleId {
    let path = profile.strings.intern(path);
    profile.modules.intern(Module { path, build_id: build_id.into(), kind })
}

/// The mappings of a process. A new one replaces what was there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mappings {
    by_start: BTreeMap<u64, (u64, Place)>,
}

impl Mappings {
    /// Maps a range; nothing happens if it is empty.
    pub(crate) fn map(&mut self, start: u64, end: u64, place: Place) {
        if start >= end {
            return;
        }
        if let Some((&before, &(last, old))) = self.by_start.range(..start).next_back()
            && last > start
        {
            self.by_start.insert(before, (start, old));
            if last > end {
                self.by_start.insert(end, (last, old));
            }
        }
        while let Some((&inner, &(last, old))) = self.by_start.range(start..end).next() {
            self.by_start.remove(&inner);
            if last > end {
                self.by_start.insert(end, (last, old));
            }
        }
        self.by_start.insert(start, (end, place));
    }

    /// The mapping that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<Place> {
        let (_, &(end, place)) = self.by_start.range(..=address).next_back()?;
        (address < end).then_some(place)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_start.len()
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::ModuleId;

    use super::*;

    fn place(bias: u64) -> Place {
        Place::Stated { module: ModuleId::new(0), bias }
    }

    fn found(mappings: &Mappings) -> Vec<Option<u64>> {
        let bias = |place| match place {
            Place::Stated { bias, .. } => bias,
            Place::Nameless(_) => u64::MAX,
        };
        (0..8).map(|address| mappings.find(address).map(bias)).collect()
    }

    #[test]
    fn a_new_mapping_replaces_what_it_covers_and_nothing_else() {
        let mut mappings = Mappings::default();
        mappings.map(1, 7, place(1));
        mappings.map(3, 5, place(2));
        let (n, a, b) = (None, Some(1), Some(2));
        assert_eq!(found(&mappings), [n, a, a, b, b, a, a, n]);
        mappings.map(2, 4, place(3));
        let c = Some(3);
        assert_eq!(found(&mappings), [n, a, c, c, b, a, a, n]);
        mappings.map(0, 6, place(4));
        let d = Some(4);
        assert_eq!(found(&mappings), [d, d, d, d, d, d, a, n]);
        mappings.map(5, 5, place(5));
        assert_eq!((found(&mappings)[5], mappings.len()), (d, 2));
    }
}
