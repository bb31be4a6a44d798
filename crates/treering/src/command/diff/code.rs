//! The code of the programs of two profiles, read from the files that the profiles name.

use std::collections::HashSet;

use treering_compare::Sides;
use treering_compare::code::{BinaryCode, FunctionBytes, ProgramCode};
use treering_profile::{Module, ModuleId, ModuleKind, Profile};
use treering_symbols::{Options, Problem, program_code};

/// The code of modules of two builds. Those of one build need not be read: their code is equal.
pub(crate) fn read(profiles: Sides<&Profile>) -> ProgramCode {
    let known = profiles.map(|profile| {
        let modules = profile.modules.entries().iter();
        modules.map(|module| module.build_id.clone()).collect::<HashSet<_>>()
    });
    let is_of_one_build =
        |module: &Module| known.base.contains(&module.build_id) && known.head.contains(&module.build_id);
    let mut code = ProgramCode::default();
    let mut not_compared = Vec::new();
    let modules = profiles.map(|profile| {
        let mut modules = vec![None; profile.modules.len()];
        for (id, module) in profile.modules.iter().filter(|(id, module)| has_functions(profile, *id, module))
        {
            if !module.build_id.is_empty() && is_of_one_build(module) {
                continue;
            }
            let path = &profile.strings[module.path];
            match read_module(path, &module.build_id) {
                Ok(read) => modules[id.index()] = Some(read),
                Err(why) => not_compared.push((path.rsplit('/').next().unwrap_or(path).to_owned(), why)),
            }
        }
        modules
    });
    not_compared.sort();
    not_compared.dedup();
    (code.modules, code.not_compared) = (modules, not_compared);
    code
}

/// Whether a module is a file with functions that the profile knows by their addresses.
fn has_functions(profile: &Profile, id: ModuleId, module: &Module) -> bool {
    module.kind == ModuleKind::Elf
        && profile.strings[module.path].starts_with('/')
        && profile
            .functions
            .iter()
            .any(|(_, function)| function.module == Some(id) && function.address.is_some())
}

fn read_module(path: &str, build_id: &[u8]) -> Result<BinaryCode, String> {
    if build_id.is_empty() {
        return Err("it has no build-id, so its file may be another one".to_owned());
    }
    let read = program_code(path, build_id, &Options::default()).map_err(|problem| match problem {
        Problem::OtherBuild { .. } => "its file is of another build now".to_owned(),
        other => other.to_string(),
    })?;
    if read.functions.is_empty() {
        return Err("it has no symbols".to_owned());
    }
    let functions: Vec<FunctionBytes<'_>> = read
        .functions
        .iter()
        .map(|function| FunctionBytes {
            start: function.start,
            name: function.name.clone(),
            code: &function.code,
        })
        .collect();
    let constants: Vec<(u64, &[u8])> =
        read.constants.iter().map(|(start, bytes)| (*start, bytes.as_slice())).collect();
    Ok(BinaryCode::new(&functions, |address| read.name(address), &read.fixed, &constants, &read.compilers))
}
