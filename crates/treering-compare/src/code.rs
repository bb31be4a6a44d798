//! Functions whose code differs between two builds of a program.
//!
//! Costs tell where a program got slower; the code tells what was changed. Functions are compared by their symbols and by
//! the form (`treering_x86::form`) of their code, which does not depend on where it lies.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use hashbrown::HashMap;
use treering_profile::{FunctionId, Profile};
use treering_x86::form;

use crate::name::{Spelling, spelled};
use crate::pairing::{Group, Pairing};
use crate::sides::Sides;

/// A function of a binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionBytes<'a> {
    /// Its stated address.
    pub start: u64,
    /// Its name, demangled.
    pub name: String,
    /// Its code.
    pub code: &'a [u8],
}

/// The code of a binary for comparison with that of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinaryCode {
    /// By name, the functions that have it, in the order of their digests.
    functions: BTreeMap<String, Vec<FunctionForm>>,
    /// The name of the function at each address.
    starts: HashMap<u64, String>,
    /// A digest of its constants.
    constants: u64,
    /// The compilers that made it, as they say.
    compilers: String,
}

/// The form of a function: a digest of its instructions, their length in bytes, and the functions that it calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionForm {
    digest: [u64; 2],
    length: usize,
    targets: Vec<String>,
}

impl BinaryCode {
    /// Takes functions of a binary apart, which are in the order of their addresses. `name`: the name of the function at
    /// an address, which need not be among them. `fixed`: its addresses, if it lies at a fixed place. `constants`: where
    /// its sections of constants lie, and their bytes. `compilers`: how its compilers name themselves.
    pub fn new(
        functions: &[FunctionBytes<'_>],
        name: impl Fn(u64) -> Option<String>,
        fixed: &Range<u64>,
        constants: &[(u64, &[u8])],
        compilers: &str,
    ) -> Self {
        let mut code = Self { compilers: compilers.to_owned(), ..Self::default() };
        let mut data = BTreeSet::new();
        for function in functions {
            let form = form::form(function.code, function.start, fixed);
            data.extend(form.data);
            let target = |&target: &u64| name(target).map_or(String::new(), |name| compared(&name));
            let targets = form.targets.iter().map(target).collect();
            let digest = [0_u8, 1].map(|salt| digest(&form.instructions, salt));
            let of = FunctionForm { digest, length: form.instructions.len(), targets };
            let name = compared(&function.name);
            code.starts.insert(function.start, name.clone());
            code.functions.entry(name).or_default().push(of);
        }
        code.functions.values_mut().for_each(|forms| forms.sort());
        let is_code = |address: u64| {
            let near = functions.partition_point(|function| function.start <= address).checked_sub(1);
            near.is_some_and(|at| address - functions[at].start < functions[at].code.len() as u64)
        };
        let mut hasher = DefaultHasher::new();
        for &(start, bytes) in constants {
            without_addresses(start, bytes, &data, fixed, is_code).hash(&mut hasher);
        }
        code.constants = hasher.finish();
        code
    }

    /// Whether it has a function of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.functions.contains_key(&*spelled(name, Spelling::WithoutSuffix))
    }
}

/// Constants with zeros for what depends on where code lies: the tables of jumps by which compilers translate `switch`,
/// and addresses in a program at a fixed place.
///
/// A table begins where code refers to, and has the distances from there to code, of four bytes each (System V ABI,
/// x86-64 supplement, position-independent code).
fn without_addresses(
    start: u64,
    bytes: &[u8],
    data: &BTreeSet<u64>,
    fixed: &Range<u64>,
    is_code: impl Fn(u64) -> bool,
) -> Vec<u8> {
    const FEWEST: usize = 3;
    let mut left = bytes.to_vec();
    for &table in data.range(start..start.saturating_add(bytes.len() as u64)) {
        let (entries, _) = bytes[(table - start) as usize..].as_chunks::<4>();
        let is_entry = |at: usize, entry: &[u8; 4]| {
            let target = table.wrapping_add_signed(i32::from_le_bytes(*entry).into());
            is_code(target) && (at == 0 || !data.contains(&table.wrapping_add(4 * at as u64)))
        };
        let length = entries.iter().enumerate().take_while(|(at, entry)| is_entry(*at, entry)).count();
        if length >= FEWEST {
            let at = (table - start) as usize;
            left[at..at + 4 * length].fill(0);
        }
    }
    let (words, _) = left.as_chunks_mut::<8>();
    words.iter_mut().filter(|word| fixed.contains(&u64::from_le_bytes(**word))).for_each(|word| word.fill(0));
    left
}

/// A name as it is compared.
fn compared(name: &str) -> String {
    spelled(name, Spelling::WithoutSuffix).into_owned()
}

fn digest(bytes: &[u8], salt: u8) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(salt);
    hasher.write(bytes);
    hasher.finish()
}

/// The code of the binaries of two profiles, by module; nothing for those that are not known, or are of one build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramCode {
    /// By the index of the module.
    pub modules: Sides<Vec<Option<BinaryCode>>>,
    /// Modules of two builds whose code was not compared, and why.
    pub not_compared: Vec<(String, String)>,
}

/// The difference of the code of two profiles' programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeDifference {
    /// How many functions were compared: those that both binaries have.
    pub functions: usize,
    /// The names of those whose code differs.
    pub changed: BTreeSet<String>,
    /// Modules whose constants differ.
    pub constants: Vec<String>,
    /// Modules that other compilers made, and how these name themselves.
    pub compilers: Vec<(String, Sides<String>)>,
    /// Functions with equal code under two names.
    pub renamed: Vec<Sides<String>>,
    /// Modules of two builds whose code was not compared, and why.
    pub not_compared: Vec<(String, String)>,
}

/// The difference of one module's code.
pub(crate) struct ModuleDifference<'c> {
    pub(crate) code: Sides<&'c BinaryCode>,
    /// The names that both have and whose code differs.
    changed: BTreeSet<&'c str>,
    /// By the name in the base, that in the head.
    pub(crate) renamed: BTreeMap<&'c str, &'c str>,
}

/// Functions with less code than this have it in common with others.
const SMALLEST_RENAMED: usize = 40;

impl<'c> ModuleDifference<'c> {
    pub(crate) fn of(base: &'c BinaryCode, head: &'c BinaryCode) -> Self {
        let renamed = renamed(base, head);
        let both = base.functions.iter().filter_map(|(name, of_base)| {
            let other = renamed.get(name.as_str()).copied().unwrap_or(name);
            Some((name.as_str(), of_base, head.functions.get(other)?))
        });
        let differs = |of_base: &[FunctionForm], of_head: &[FunctionForm]| {
            of_base.len() != of_head.len()
                || of_base.iter().zip(of_head).any(|(base, head)| !is_same(base, head, &renamed))
        };
        let changed = both.filter(|(_, base, head)| differs(base, head)).map(|(name, ..)| name).collect();
        Self { code: Sides { base, head }, changed, renamed }
    }

    /// How many functions both have.
    fn compared(&self) -> usize {
        let is_in_head =
            |name: &str| self.code.head.functions.contains_key(name) || self.renamed.contains_key(name);
        self.code.base.functions.keys().filter(|name| is_in_head(name)).count()
    }

    /// Whether the code of a function differs, by its entries in both profiles; nothing if it is not known.
    fn is_changed(&self, starts: Sides<Option<u64>>) -> Option<bool> {
        let base = self.code.base.starts.get(&starts.base?)?;
        let head = self.code.head.starts.get(&starts.head?)?;
        let other = self.renamed.get(base.as_str()).copied().unwrap_or(base);
        Some(self.changed.contains(base.as_str()) || other != head)
    }
}

/// Whether two functions are equal, where those that they call may have other names.
fn is_same(base: &FunctionForm, head: &FunctionForm, renamed: &BTreeMap<&str, &str>) -> bool {
    let same_target = |(base, head): (&String, &String)| {
        base == head || renamed.get(base.as_str()).is_some_and(|other| other == head)
    };
    (base.digest, base.length) == (head.digest, head.length)
        && base.targets.len() == head.targets.len()
        && base.targets.iter().zip(&head.targets).all(same_target)
}

/// Functions that have one name in the base and another one in the head: their code is equal, and no other's is.
fn renamed<'c>(base: &'c BinaryCode, head: &'c BinaryCode) -> BTreeMap<&'c str, &'c str> {
    let alone = |of: &'c BinaryCode, other: &BinaryCode| {
        let mut by_digest: HashMap<[u64; 2], Vec<(&'c str, &'c FunctionForm)>> = HashMap::new();
        for (name, forms) in of.functions.iter().filter(|(name, _)| !other.functions.contains_key(*name)) {
            if let [form] = &forms[..]
                && form.length >= SMALLEST_RENAMED
            {
                by_digest.entry(form.digest).or_default().push((name, form));
            }
        }
        by_digest.retain(|_, functions| functions.len() == 1);
        by_digest
    };
    let (of_base, of_head) = (alone(base, head), alone(head, base));
    let pairs = of_base.iter().filter_map(|(digest, base)| Some((base[0], of_head.get(digest)?[0])));
    let pairs: Vec<_> = pairs.collect();
    let mut renamed: BTreeMap<&str, &str> = pairs.iter().map(|(base, head)| (base.0, head.0)).collect();
    // They must call the same functions, some of which may be renamed themselves.
    loop {
        let wrong: Vec<&str> = pairs
            .iter()
            .filter(|(base, head)| !is_same(base.1, head.1, &renamed))
            .map(|(base, _)| base.0)
            .collect();
        let before = renamed.len();
        wrong.iter().for_each(|name| _ = renamed.remove(name));
        if renamed.len() == before {
            return renamed;
        }
    }
}

/// The differences of the code of paired modules, by the number that both of a pair share.
pub(crate) struct CodeDifferences<'c>(HashMap<usize, (ModuleDifference<'c>, String)>);

impl<'c> CodeDifferences<'c> {
    /// `place`: by module, the number that both of a pair share; `name`: the name of a module of the head.
    pub(crate) fn of(code: &'c ProgramCode, place: Sides<&[usize]>, name: impl Fn(usize) -> String) -> Self {
        let known = |modules: &'c [Option<BinaryCode>], place: &[usize]| {
            let known = modules.iter().zip(place).enumerate();
            let known = known.filter_map(|(module, (code, &place))| Some((place, (module, code.as_ref()?))));
            known.collect::<HashMap<usize, (usize, &'c BinaryCode)>>()
        };
        let base = known(&code.modules.base, place.base);
        let head = known(&code.modules.head, place.head);
        let both = head.into_iter().filter_map(|(place, (module, head))| {
            Some((place, (ModuleDifference::of(base.get(&place)?.1, head), name(module))))
        });
        Self(both.collect())
    }

    /// The difference of the module with a number.
    pub(crate) fn module(&self, place: usize) -> Option<&ModuleDifference<'c>> {
        self.0.get(&place).map(|(difference, _)| difference)
    }

    /// Everything for the reader.
    pub(crate) fn summary(&self, not_compared: &[(String, String)]) -> Option<CodeDifference> {
        if self.0.is_empty() && not_compared.is_empty() {
            return None;
        }
        let mut summary = CodeDifference { not_compared: not_compared.to_vec(), ..CodeDifference::default() };
        let mut modules: Vec<_> = self.0.values().collect();
        modules.sort_by_key(|(_, name)| name);
        for (module, name) in modules {
            let Sides { base, head } = module.code;
            summary.functions += module.compared();
            summary.changed.extend(module.changed.iter().map(|&name| name.to_owned()));
            let pairs = module.renamed.iter();
            let pairs = pairs.map(|(&base, &head)| Sides { base: base.to_owned(), head: head.to_owned() });
            summary.renamed.extend(pairs);
            if base.constants != head.constants {
                summary.constants.push(name.clone());
            }
            if base.compilers != head.compilers {
                let compilers = module.code.map(|code| code.compilers.clone());
                summary.compilers.push((name.clone(), compilers));
            }
        }
        Some(summary)
    }

    /// Whether the code of a group's function differs; nothing if it is not known.
    pub(crate) fn is_changed(
        &self,
        group: &Group,
        pairing: &Pairing,
        profiles: Sides<&Profile>,
    ) -> Option<bool> {
        let find = |profile: &Profile, functions: &[FunctionId], place: &[usize]| {
            functions.iter().find_map(|&id| {
                let function = &profile.functions[id];
                Some((place[function.module?.index()], function.address?.0))
            })
        };
        let (at, base) = find(profiles.base, &group.functions.base, &pairing.place.base)?;
        let (_, head) = find(profiles.head, &group.functions.head, &pairing.place.head)?;
        self.module(at)?.is_changed(Sides { base: Some(base), head: Some(head) })
    }

    /// Whether the binary of one side lacks the function of a group that only the other side has; nothing if it is not
    /// known.
    pub(crate) fn is_absent(
        &self,
        group: &Group,
        pairing: &Pairing,
        profiles: Sides<&Profile>,
    ) -> Option<bool> {
        let in_base = !group.functions.base.is_empty();
        let (profile, functions, place) = match in_base {
            true => (profiles.base, &group.functions.base, &pairing.place.base),
            false => (profiles.head, &group.functions.head, &pairing.place.head),
        };
        let module = profile.functions[*functions.first()?].module?;
        let code = self.module(place[module.index()])?.code;
        let (own, other) = if in_base { (code.base, code.head) } else { (code.head, code.base) };
        // Others, such as stubs, are not among the functions of any binary.
        let is_known = |id: &FunctionId| {
            profile.functions[*id].address.is_some_and(|address| own.starts.contains_key(&address.0))
        };
        functions.iter().any(is_known).then(|| !other.has(&group.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of some length that differs by a number, and then calls a function.
    fn body(number: u8, from: u64, callee: u64) -> Vec<u8> {
        let mut code = vec![0xb8, number, 0, 0, 0];
        code.extend([0x01, 0xc0].repeat(12));
        code.push(0xe8);
        code.extend((callee.wrapping_sub(from + code.len() as u64 + 4) as u32).to_le_bytes());
        code.push(0xc3);
        code
    }

    /// A binary with functions of 64 bytes each from an address on: their names, their numbers, and the functions that
    /// they call by index.
    fn binary(from: u64, functions: &[(&str, u8, usize)], constants: &[u8], compiler: &str) -> BinaryCode {
        let start = |at: usize| from + 64 * at as u64;
        let bodies: Vec<_> = (0..)
            .zip(functions)
            .map(|(at, &(_, number, callee))| body(number, start(at), start(callee)))
            .collect();
        let parts: Vec<_> = (0..)
            .zip(functions.iter().zip(&bodies))
            .map(|(at, ((name, ..), code))| FunctionBytes {
                start: start(at),
                name: (*name).to_owned(),
                code,
            })
            .collect();
        let name = |address: u64| {
            functions.get(((address - from) / 64) as usize).map(|function| function.0.to_owned())
        };
        BinaryCode::new(&parts, name, &(0..0), &[(0x9000, constants)], compiler)
    }

    fn changed(base: &BinaryCode, head: &BinaryCode) -> (Vec<String>, Vec<(String, String)>) {
        let difference = ModuleDifference::of(base, head);
        let renamed = difference.renamed.iter().map(|(&base, &head)| (base.to_owned(), head.to_owned()));
        (difference.changed.iter().map(|&name| name.to_owned()).collect(), renamed.collect())
    }

    #[test]
    fn functions_change_by_their_instructions_and_by_what_they_call() {
        let base = binary(0x1000, &[("main", 1, 1), ("work", 2, 2), ("leaf", 3, 2)], b"abc", "GCC 12");
        let moved = binary(0x5040, &[("main", 1, 1), ("work", 2, 2), ("leaf", 3, 2)], b"abc", "GCC 12");
        assert_eq!(changed(&base, &moved).0, [""; 0]);
        let other = binary(0x1000, &[("main", 1, 1), ("work", 9, 2), ("leaf", 3, 2)], b"abx", "clang 14");
        assert_eq!(changed(&base, &other).0, ["work"]);
        let calls = binary(0x1000, &[("main", 1, 2), ("work", 2, 2), ("leaf", 3, 2)], b"abc", "GCC 12");
        assert_eq!(changed(&base, &calls).0, ["main"]);
        assert!(base.constants == calls.constants && base.constants != other.constants);
    }

    #[test]
    fn tables_of_jumps_and_addresses_are_no_constants() {
        let code = |address: u64| (0x1000..0x1100).contains(&address);
        let table =
            |distance: i32| [distance, distance + 8, distance + 16, 5, 7].map(i32::to_le_bytes).concat();
        let left = |start: u64, bytes: &[u8], data: &[u64]| {
            without_addresses(start, bytes, &data.iter().copied().collect(), &(0..0), code)
        };
        // Distances from 0x2000 and from 0x2010 to the same code.
        let first = left(0x2000, &table(-0x1000), &[0x2000]);
        assert_eq!(first, left(0x2010, &table(-0x1010), &[0x2010]));
        assert_eq!(first[12..], table(0)[12..]);
        assert_eq!(left(0x2000, &table(-0x1000), &[]), table(-0x1000), "nothing refers to it");
        let pointers = [0x40_1000_u64, 3].map(u64::to_le_bytes).concat();
        let fixed = without_addresses(0, &pointers, &BTreeSet::new(), &(0x40_0000..0x41_0000), code);
        assert_eq!(fixed, [0_u64, 3].map(u64::to_le_bytes).concat());
    }

    #[test]
    fn equal_code_under_another_name_is_renamed_and_its_callers_are_unchanged() {
        let base = binary(0x1000, &[("main", 1, 1), ("work", 2, 2), ("leaf", 3, 2)], b"", "");
        let head = binary(0x1000, &[("main", 1, 1), ("toil", 2, 2), ("tip", 3, 2)], b"", "");
        let pairs =
            [("leaf", "tip"), ("work", "toil")].map(|(base, head)| (base.to_owned(), head.to_owned()));
        assert_eq!(changed(&base, &head), (Vec::new(), pairs.to_vec()));
        // Two functions with the same code could be either.
        let head = binary(0x1000, &[("main", 1, 1), ("toil", 2, 2), ("also", 2, 2), ("leaf", 3, 3)], b"", "");
        assert!(changed(&base, &head).1.is_empty());
    }
}
