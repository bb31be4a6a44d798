//! One profile in the words of another, so that both can be merged.

use treering_profile::{Function, FunctionId, Interner, Module, ModuleId, Profile, StringId};

use crate::pairing::Pairing;

/// The base with its modules and functions named as the head names them, where both have them. Merged with the head, a
/// function of both is one.
///
/// `pairing` is that of these two.
pub fn align(base: &Profile, head: &Profile, pairing: &Pairing) -> Profile {
    let mut aligned = base.clone();
    let mut functions = base.functions.entries().to_vec();
    for group in pairing.groups.iter().skip(1).filter(|group| group.is_paired()) {
        for &id in &group.functions.base {
            let kind = base.functions[id].kind;
            let same_kind = |other: &&FunctionId| head.functions[**other].kind == kind;
            let model = group.functions.head.iter().find(same_kind).unwrap_or(&group.functions.head[0]);
            let model = &head.functions[*model];
            let module = model.module.map(|module| translated(&mut aligned, head, module));
            let mut text = |id: StringId| aligned.strings.intern(&head.strings[id]);
            functions[id.index()] = Function {
                name: text(model.name),
                linkage_name: text(model.linkage_name),
                module,
                file: text(model.file),
                line: model.line,
                address: model.address,
                kind,
            };
        }
    }
    aligned.functions = Interner::from_entries(functions);
    aligned
}

fn translated(aligned: &mut Profile, head: &Profile, module: ModuleId) -> ModuleId {
    let Module { path, build_id, kind } = &head.modules[module];
    let path = aligned.strings.intern(&head.strings[*path]);
    aligned.modules.intern(Module { path, build_id: build_id.clone(), kind: *kind })
}
