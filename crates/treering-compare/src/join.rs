//! Two profiles as one, in which a function of both is one.

use treering_profile::{
    Function, FunctionId, Interner, Line, LineId, Module, ModuleId, Profile, StringId, merge,
};

use crate::pairing::Pairing;
use crate::sides::{Side, Sides};

/// Two profiles as one.
#[derive(Clone, Debug)]
pub struct Joined {
    /// All runs, those of the base first. Modules and functions of the base have the names that the head gives them.
    pub profile: Profile,
    /// By group of the pairing, its function in `profile`; that of the head where it has several.
    pub groups: Vec<FunctionId>,
    /// By function of the base and of the head, the same in `profile`.
    pub functions: Sides<Vec<FunctionId>>,
    /// By line of the base and of the head, the same in `profile`.
    pub lines: Sides<Vec<LineId>>,
}

impl Joined {
    /// A line of a file of the base or the head, in `profile`.
    pub fn line(&mut self, from: &Profile, file: StringId, line: u32) -> LineId {
        let file = self.profile.strings.intern(&from.strings[file]);
        self.profile.lines.intern(Line { file, line })
    }
}

/// Merges two profiles so that a function of both is one. `pairing` is that of these two. Of a file whose text both have,
/// it has the text of the head.
pub fn join(base: &Profile, head: &Profile, pairing: &Pairing) -> Joined {
    let aligned = align(base, head, pairing);
    let mut profile = merge(&[&aligned, head]);
    let functions =
        Sides { base: all_transferred(&mut profile, &aligned), head: all_transferred(&mut profile, head) };
    let groups = pairing.groups.iter().map(|group| {
        let of_head = group.functions.head.first().map(|id| functions.head[id.index()]);
        let of_base = || group.functions.base.first().map(|id| functions.base[id.index()]);
        of_head.or_else(of_base).unwrap_or(Profile::ROOT)
    });
    let groups = groups.collect();
    let mut joined = Joined { groups, profile, functions, lines: Sides::default() };
    for (side, from) in [(Side::Base, base), (Side::Head, head)] {
        let lines = from.lines.entries().iter().map(|line| joined.line(from, line.file, line.line)).collect();
        *joined.lines.of(side) = lines;
    }
    joined
}

/// By function of a profile, the same in another.
fn all_transferred(into: &mut Profile, from: &Profile) -> Vec<FunctionId> {
    let functions = from.functions.iter().map(|(id, _)| {
        let function = transferred(into, from, id);
        into.functions.intern(function)
    });
    functions.collect()
}

/// The base with its modules and functions named as the head names them, where both have them.
fn align(base: &Profile, head: &Profile, pairing: &Pairing) -> Profile {
    let mut aligned = base.clone();
    let of_head: Vec<&str> = head.sources.iter().map(|source| &head.strings[source.file]).collect();
    aligned.sources.retain(|source| !of_head.contains(&&base.strings[source.file]));
    let mut functions = base.functions.entries().to_vec();
    for group in pairing.groups.iter().skip(1).filter(|group| group.is_paired()) {
        for &id in &group.functions.base {
            let kind = base.functions[id].kind;
            let same_kind = |other: &&FunctionId| head.functions[**other].kind == kind;
            let model = *group.functions.head.iter().find(same_kind).unwrap_or(&group.functions.head[0]);
            functions[id.index()] = Function { kind, ..transferred(&mut aligned, head, model) };
        }
    }
    aligned.functions = Interner::from_entries(functions);
    aligned
}

/// A function of another profile, in the tables of this one.
fn transferred(into: &mut Profile, from: &Profile, id: FunctionId) -> Function {
    let function = &from.functions[id];
    let module = function.module.map(|module| module_in(into, from, module));
    let mut text = |id: StringId| into.strings.intern(&from.strings[id]);
    Function {
        name: text(function.name),
        linkage_name: text(function.linkage_name),
        module,
        file: text(function.file),
        line: function.line,
        address: function.address,
        kind: function.kind,
    }
}

fn module_in(into: &mut Profile, from: &Profile, module: ModuleId) -> ModuleId {
    let Module { path, build_id, kind } = &from.modules[module];
    let path = into.strings.intern(&from.strings[*path]);
    into.modules.intern(Module { path, build_id: build_id.clone(), kind: *kind })
}
