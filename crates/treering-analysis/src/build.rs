//! Several builds of one program in a profile, as after a merge.

use std::collections::HashMap;

use treering_profile::{FunctionKind, Interner, ModuleId, Profile, StringId};

use crate::identity::module_name;

/// Adds the build to the names of functions that nothing but the build of their module tells apart:
/// `spin (build 1f2e3d4c)`. Every view and every file that is written then tells them apart in the same way.
pub fn tell_builds_apart(profile: &mut Profile) {
    let builds = builds(profile);
    if builds.is_empty() {
        return;
    }
    let mut of_name: HashMap<_, Vec<usize>> = HashMap::new();
    for (at, function) in profile.functions.entries().iter().enumerate() {
        let Some(path) = function.module.map(|module| profile.modules[module].path) else { continue };
        let key = (function.name, function.file, function.line, function.kind, path);
        of_name.entry(key).or_default().push(at);
    }
    let mut functions = profile.functions.entries().to_vec();
    for same in of_name.into_values() {
        let differ = same.iter().any(|&at| functions[at].module != functions[same[0]].module);
        for at in same.into_iter().filter(|_| differ) {
            let Some(build) = functions[at].module.and_then(|module| builds.get(&module)) else { continue };
            let id = treering_profile::FunctionId::from_usize(at);
            let name = match functions[at].kind {
                FunctionKind::Unresolved if functions[at].name == StringId::new(0) => {
                    format!("[{} (build {build})]", module_name(profile, id).unwrap_or_default())
                }
                _ if functions[at].name == StringId::new(0) => continue,
                _ => format!("{} (build {build})", &profile.strings[functions[at].name]),
            };
            functions[at].name = profile.strings.intern(&name);
        }
    }
    profile.functions = Interner::from_entries(functions);
}

/// A name to which [`tell_builds_apart`] added the build, without it.
pub(crate) fn without_build(name: &str) -> Option<&str> {
    let (own, build) = name.strip_suffix(')')?.rsplit_once(" (build ")?;
    build.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(own)
}

/// The builds of modules that have the path of another, as short as they can be told apart.
fn builds(profile: &Profile) -> HashMap<ModuleId, String> {
    const SHORTEST: usize = 8;
    let mut of_path: HashMap<StringId, Vec<ModuleId>> = HashMap::new();
    for (id, module) in profile.modules.iter() {
        of_path.entry(module.path).or_default().push(id);
    }
    let mut builds = HashMap::new();
    for same in of_path.into_values().filter(|same| same.len() > 1) {
        let hex = |id: &ModuleId| -> String {
            profile.modules[*id].build_id.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let all: Vec<String> = same.iter().map(hex).collect();
        let short = |length: usize| all.iter().map(move |build| &build[..build.len().min(length)]);
        let are_told = |length: &usize| {
            let mut seen: Vec<_> = short(*length).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len() == all.len()
        };
        let longest = all.iter().map(String::len).max().unwrap_or(0);
        let length = (SHORTEST..=longest).find(are_told).unwrap_or(longest);
        let known = same.iter().zip(short(length)).filter(|(_, build)| !build.is_empty());
        builds.extend(known.map(|(&id, build)| (id, build.to_owned())));
    }
    builds
}

#[cfg(test)]
mod tests {
    use treering_profile::{Function, Module, ModuleKind, RecursionRule};

    use super::*;

    /// The names of functions `name, build` of one program.
    fn names(functions: &[(&str, &[u8])]) -> Vec<String> {
        let mut profile = Profile::new(RecursionRule::Full);
        let path = profile.strings.intern("/tmp/w");
        for (name, build) in functions {
            let module = Module { path, build_id: (*build).into(), kind: ModuleKind::Elf };
            let module = Some(profile.modules.intern(module));
            let name = profile.strings.intern(name);
            let kind = if name == StringId::new(0) { FunctionKind::Unresolved } else { FunctionKind::Native };
            profile.functions.intern(Function { module, kind, ..Function::named(name) });
        }
        tell_builds_apart(&mut profile);
        let functions = profile.functions.entries().iter().skip(1);
        functions.map(|function| profile.strings[function.name].to_owned()).collect()
    }

    #[test]
    fn functions_of_two_builds_have_the_build_in_their_names() {
        let [one, two] = [[0x1f, 0x2e, 0x3d, 0x4c, 0x5b], [0x1f, 0x2e, 0x3d, 0x4c, 0x6a]];
        let both = names(&[("spin", &one), ("main", &one), ("spin", &two), ("extra", &two)]);
        assert_eq!(both, ["spin (build 1f2e3d4c5)", "main", "spin (build 1f2e3d4c6)", "extra"]);
        assert_eq!(names(&[("spin", &one), ("main", &one)]), ["spin", "main"]);
        // A program without a build-id keeps its name.
        assert_eq!(names(&[("spin", &[]), ("spin", &one)]), ["spin", "spin (build 1f2e3d4c)"]);
        assert_eq!(names(&[("", &one), ("", &[7; 20])]), ["[w (build 1f2e3d4c)]", "[w (build 07070707)]"]);
    }
}
