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
/// Functions agree if their kinds, modules and names do. Code without a name agrees within one build alone.
pub fn function(profile: &Profile, id: FunctionId) -> (Key, Named) {
    let function = &profile.functions[id];
    let module = function.module.map(|module| &profile.modules[module]);
    let path = module.map_or("", |module| &profile.strings[module.path]);
    let base = path.rsplit('/').next().unwrap_or_default();
    let written = &profile.strings[function.name];
    let kind = function.kind.as_str();
    let build: &[u8] = module.map_or(&[], |module| &module.build_id);
    if matches!(function.kind, FunctionKind::Unresolved | FunctionKind::Address) {
        let address = function.address.map(|address| format!("{address}")).unwrap_or_default();
        let name = if written.is_empty() { format!("[{base}]") } else { written.to_owned() };
        let key = Key::of(&[kind.as_bytes(), path.as_bytes(), build, written.as_bytes(), address.as_bytes()]);
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

#[cfg(test)]
mod tests {
    use super::*;

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
