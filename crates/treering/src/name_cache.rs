//! Names of functions that are addresses, looked up once for a profile that is read again and again.

use std::collections::HashMap;

use treering_profile::{
    Frame, Function, FunctionId, FunctionKind, Interner, Metric, Module, Profile, RecursionRule,
    StatedAddress, Unit,
};

use crate::naming::{Reachable, Wanted, name_functions};

/// Names of functions that are addresses.
#[derive(Debug, Default)]
pub struct NameCache {
    by_place: HashMap<Place, Named>,
}

/// A module's path, its build id and an address in it.
type Place = (String, Box<[u8]>, u64);

#[derive(Debug)]
struct Named {
    name: String,
    linkage_name: String,
    file: String,
    line: u32,
    address: Option<StatedAddress>,
    kind: FunctionKind,
}

impl NameCache {
    /// Names the functions of a profile whose calls were counted at their addresses. Their indexes
    /// stay as they are.
    pub fn name(&mut self, profile: &mut Profile) {
        self.look_up(profile);
        let mut functions = profile.functions.entries().to_vec();
        for function in &mut functions {
            let named = place(profile, function).and_then(|place| self.by_place.get(&place));
            if let Some(named) = named {
                let strings = &mut profile.strings;
                *function = Function {
                    name: strings.intern(&named.name),
                    linkage_name: strings.intern(&named.linkage_name),
                    file: strings.intern(&named.file),
                    line: named.line,
                    address: named.address,
                    kind: named.kind,
                    ..*function
                };
            }
        }
        profile.functions = Interner::from_entries(functions);
    }

    /// Looks up the names that are not known yet.
    fn look_up(&mut self, profile: &Profile) {
        let places = profile.functions.entries().iter().filter_map(|function| place(profile, function));
        let new: Vec<Place> = places.filter(|place| !self.by_place.contains_key(place)).collect();
        if new.is_empty() {
            return;
        }
        let wanted = Wanted { inlines: false, sources: false, addresses: false };
        let named = name_functions(calls_of(profile, &new), Reachable::default(), wanted).profile;
        for (thread, place) in named.threads.iter().zip(new) {
            let Some(node) = named.tree.nodes().find(|node| named.tree.parent(*node) == Some(thread.root))
            else {
                continue;
            };
            self.by_place.insert(place, Named::of(&named, named.tree.function(node)));
        }
    }
}

impl Named {
    fn of(profile: &Profile, function: FunctionId) -> Self {
        let function = &profile.functions[function];
        let text = |id| profile.strings[id].to_owned();
        Self {
            name: text(function.name),
            linkage_name: text(function.linkage_name),
            file: text(function.file),
            line: function.line,
            address: function.address,
            kind: function.kind,
        }
    }
}

/// Where a function is that has no name; nothing for one that has.
fn place(profile: &Profile, function: &Function) -> Option<Place> {
    let address = function.address.filter(|_| function.kind == FunctionKind::Address)?;
    let module = &profile.modules[function.module?];
    Some((profile.strings[module.path].to_owned(), module.build_id.clone(), address.0))
}

/// A profile in which each place was called once, in a thread of its own.
fn calls_of(profile: &Profile, places: &[Place]) -> Profile {
    let mut calls = Profile::new(RecursionRule::Full);
    calls.add_metric(Metric::exact("calls", Unit::Count));
    for (path, build_id, address) in places {
        let thread = calls.add_single_thread("");
        let kind = profile.modules.entries().iter().find(|module| profile.strings[module.path] == **path);
        let module = Module {
            path: calls.strings.intern(path),
            build_id: build_id.clone(),
            kind: kind.map(|module| module.kind).unwrap_or_default(),
        };
        let module = calls.modules.intern(module);
        let function = Function::at_address(Some(module), StatedAddress(*address));
        let frame = Frame::new(calls.functions.intern(function));
        let node = calls.add_stack(thread, &[frame], None, &[]);
        calls.tree.add_calls(node, 1, 0);
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_stay_and_names_are_those_of_a_report() {
        let mut profile = Profile::new(RecursionRule::Direct);
        let thread = profile.add_single_thread("demo");
        let path = profile.strings.intern("/not/there/solver");
        let kind = treering_profile::ModuleKind::Elf;
        let module = profile.modules.intern(Module { path, build_id: Box::default(), kind });
        let at = |address| Function::at_address(Some(module), StatedAddress(address));
        let functions = [0x20, 0x10].map(|address| profile.functions.intern(at(address)));
        for function in functions {
            let node = profile.add_stack(thread, &[Frame::new(function)], None, &[]);
            profile.tree.add_calls(node, 1, 0);
        }
        let mut names = NameCache::default();
        for _ in 0..2 {
            let mut named = profile.clone();
            names.name(&mut named);
            assert_eq!(named.validate(), Ok(()));
            let name = |function: FunctionId| &named.strings[named.functions[function].name];
            assert_eq!(functions.map(name), ["solver+0x20", "solver+0x10"]);
        }
        assert_eq!(names.by_place.len(), 2);
    }
}
