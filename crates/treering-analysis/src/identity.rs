//! Entries of the function table that are one function to a person.

use std::borrow::Cow;

use hashbrown::HashMap;
use treering_profile::{Function, FunctionId, FunctionKind, ModuleId, Profile, StringId};

/// Entries of the function table that are one function to a person.
///
/// A function that was inlined in some places and called in others has an entry for each; a
/// compiler that works while the program runs may put one function at several addresses. Both
/// are one function in every view, under the entry that stands for itself. Functions without a
/// file stay apart, since equal names may be different functions then.
#[derive(Clone, Debug)]
pub struct Identity {
    representatives: Vec<FunctionId>,
}

impl Identity {
    /// Groups the functions of a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut first: HashMap<Key, FunctionId> = HashMap::new();
        let mut representatives: Vec<FunctionId> = profile.functions.iter().map(|(id, _)| id).collect();
        // Native entries come first, as they know the most.
        for native in [true, false] {
            for (id, function) in profile.functions.iter() {
                if (function.kind == FunctionKind::Native) == native
                    && let Some(key) = Key::of(function)
                {
                    representatives[id.index()] = *first.entry(key).or_insert(id);
                }
            }
        }
        Self { representatives }
    }

    /// The entry that stands for a function.
    pub fn representative(&self, function: FunctionId) -> FunctionId {
        self.representatives[function.index()]
    }

    /// How many entries the function table has.
    pub(crate) fn table_len(&self) -> usize {
        self.representatives.len()
    }
}

/// The common key of entries that are one function to a person.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: StringId,
    linkage_name: StringId,
    module: Option<ModuleId>,
    file: StringId,
    jit: bool,
}

impl Key {
    fn of(function: &Function) -> Option<Self> {
        let known_file = function.file != StringId::new(0);
        let jit = function.kind == FunctionKind::Jit;
        let native = matches!(function.kind, FunctionKind::Native | FunctionKind::Inlined);
        if !(jit || native && known_file) {
            return None;
        }
        let Function { name, linkage_name, module, file, .. } = *function;
        Some(Self { name, linkage_name, module, file, jit })
    }
}

/// The name of the place for cost that was spent outside of every function.
pub const OUTSIDE: &str = "<outside of any function>";

/// The name of a function for a person, or its address or module in place of a name.
pub fn function_name(profile: &Profile, function: FunctionId) -> Cow<'_, str> {
    let entry = &profile.functions[function];
    let module = || module_name(profile, function).unwrap_or("unknown module");
    match entry.kind {
        FunctionKind::Root => Cow::Borrowed(OUTSIDE),
        _ if entry.name != StringId::new(0) => Cow::Borrowed(&profile.strings[entry.name]),
        FunctionKind::Unresolved => Cow::Owned(format!("[{}]", module())),
        _ => match entry.address {
            Some(address) => Cow::Owned(format!("{:#x} [{}]", address.0, module())),
            None => Cow::Owned(format!("[{}]", module())),
        },
    }
}

/// The file name of the module that holds a function, without its folders.
pub fn module_name(profile: &Profile, function: FunctionId) -> Option<&str> {
    let path = &profile.strings[profile.modules[profile.functions[function].module?].path];
    let last = path.rsplit('/').next().filter(|last| !last.is_empty());
    Some(last.unwrap_or(path))
}
