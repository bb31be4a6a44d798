//! Names for functions and chains of callers that are the same in every profile, without a service that hands them out.

use sha2::{Digest as _, Sha256};
use treering_compare::{Spelling, spelled};
use treering_profile::{FunctionId, FunctionKind, Profile, RecursionRule};

/// The first 128 bits of a SHA-256: of a run, a function, or a chain of callers.
///
/// With 64 bits, two of 10^10 chains would be equal by chance more often than not, and nothing would tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The id of some parts, each of which counts with its length.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&hash.finalize()[..16]);
        Self(key)
    }

    /// The chain of callers of a thread's root. Trees of other rules for recursion have chains of other meaning.
    pub fn root(rule: RecursionRule) -> Self {
        match rule {
            RecursionRule::Full | RecursionRule::Direct => Self::of(&[b"root"]),
            RecursionRule::SwiClassic => Self::of(&[b"root", b"swi-classic"]),
            RecursionRule::Flat => Self::of(&[b"root", b"flat"]),
        }
    }

    /// The chain of callers that ends in a call of `function` by `caller`.
    pub fn call(caller: Self, function: Self) -> Self {
        Self::of(&[&caller.0, &function.0])
    }
}

/// A function as all profiles know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its name, without what compilers add to copies of a function, and without Rust's hashes.
    pub name: String,
    /// The last part of its module's path; empty if it has none.
    pub module: String,
    /// The word for its kind.
    pub kind: &'static str,
}

/// A function of a profile, and its key.
///
/// Functions agree if their kinds, modules and names do; one that was inlined agrees with its other copies, so that recursion
/// through both counts once. Code without a name agrees within one build alone, which stands in
/// the name that it has here: questions group by names. Builds that a profile does not tell cannot be told apart, and the
/// name says so.
pub fn function(profile: &Profile, id: FunctionId) -> (Key, Named) {
    let function = &profile.functions[id];
    let module = function.module.map(|module| &profile.modules[module]);
    let path = module.map_or("", |module| &profile.strings[module.path]);
    let base = path.rsplit('/').next().unwrap_or_default();
    let written = &profile.strings[function.name];
    let kind = match function.kind {
        FunctionKind::Inlined => FunctionKind::Native,
        FunctionKind::Address => FunctionKind::Unresolved,
        kind => kind,
    };
    let kind = kind.as_str();
    let build: &[u8] = module.map_or(&[], |module| &module.build_id);
    if matches!(function.kind, FunctionKind::Unresolved | FunctionKind::Address) {
        let mut name = if written.is_empty() { format!("[{base}]") } else { written.to_owned() };
        if module.is_some() && !name.contains(BUILD) {
            name = format!("{name}{BUILD}{})", build_text(build));
        }
        let key = Key::of(&[kind.as_bytes(), path.as_bytes(), build, name.as_bytes()]);
        return (key, Named { name, module: base.to_owned(), kind });
    }
    if function.kind == FunctionKind::Root {
        return (
            Key::of(&[kind.as_bytes()]),
            Named { name: "[root]".to_owned(), module: String::new(), kind },
        );
    }
    let name = spelled(written, Spelling::WithoutSuffix).into_owned();
    let key = Key::of(&[kind.as_bytes(), base.as_bytes(), name.as_bytes()]);
    (key, Named { name, module: base.to_owned(), kind })
}

/// Between a name and its build, as in reports.
const BUILD: &str = " (build ";

/// The beginning of a build's id, as reports show it.
fn build_text(build: &[u8]) -> String {
    match build {
        [] => "unknown".to_owned(),
        build => build.iter().take(4).map(|byte| format!("{byte:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use treering_profile::{Function, Module, ModuleKind, StatedAddress};

    use super::*;

    fn nameless(path: &str, build: &[u8], name: &str) -> (Key, String) {
        let mut profile = Profile::new(RecursionRule::Full);
        let path = profile.strings.intern(path);
        let module = profile.modules.intern(Module { path, build_id: build.into(), kind: ModuleKind::Elf });
        let name = profile.strings.intern(name);
        let known = Function { name, ..Function::at_address(Some(module), StatedAddress(0x1170)) };
        let id = profile.functions.intern(Function { kind: FunctionKind::Unresolved, ..known });
        let (key, named) = function(&profile, id);
        (key, named.name)
    }

    #[test]
    fn code_without_a_name_has_its_build_in_the_name() {
        let (one, of_one) = nameless("/bin/solve", &[0x25, 0x7c, 0x84, 0x53, 1], "solve+0x1170");
        let (other, of_other) = nameless("/bin/solve", &[0xcd, 0x91, 0x8c, 0x7c, 1], "solve+0x1170");
        assert_eq!(
            [of_one.as_str(), &of_other],
            ["solve+0x1170 (build 257c8453)", "solve+0x1170 (build cd918c7c)"]
        );
        assert_ne!(one, other);
        assert_eq!(nameless("/bin/solve", &[], "solve+0x1170").1, "solve+0x1170 (build unknown)");
        // A merged profile has it there already.
        let merged = nameless("/bin/solve", &[0x25, 0x7c, 0x84, 0x53, 1], "solve+0x1170 (build 257c8453)");
        assert_eq!(merged, (one, of_one));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(Key::of(&[b"ab", b"c"]), Key::of(&[b"a", b"bc"]));
        assert_ne!(Key::of(&[b"abc"]), Key::of(&[b"abc", b""]));
    }

    #[test]
    fn trees_of_other_rules_share_no_chain() {
        let roots = [RecursionRule::Full, RecursionRule::SwiClassic, RecursionRule::Flat].map(Key::root);
        assert!(roots[0] != roots[1] && roots[1] != roots[2] && roots[0] != roots[2]);
        assert_eq!(Key::root(RecursionRule::Full), Key::root(RecursionRule::Direct));
    }
}
