//! Modules and functions that two profiles have in common.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;
use treering_analysis::{Identity, default_metric, function_name};
use treering_profile::{FunctionId, FunctionKind, ModuleId, ModuleKind, Profile, StringId};

use crate::code::{CodeDifferences, ProgramCode};
use crate::name::{Spelling, spelled};
use crate::sides::{Side, Sides};

/// A function of both profiles, or of one: an index of [`Pairing::groups`].
pub type GroupIndex = usize;

/// By what two modules, or two functions, were found to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PairedBy {
    /// Their build-ids are equal.
    BuildId,
    /// Their names are equal.
    Name,
    /// Each is the main executable of its profile.
    Main,
}

/// Two modules that are the same program or library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModulePair {
    /// Their file names.
    pub names: Sides<String>,
    /// By what they were found.
    pub by: PairedBy,
    /// Whether both are of one build, by their build-ids.
    pub same_build: bool,
}

/// A function of both profiles, or of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name: in the head, or in the base where the head has none.
    pub name: String,
    /// Its name in the base where that differs.
    pub other_name: Option<String>,
    /// The file name of its module.
    pub module: Option<String>,
    /// How much of the names was left out to find them equal.
    pub spelling: Spelling,
    /// Whether their names differ, and were found to be of one function by equal code.
    pub by_code: bool,
    /// Its entries in the function tables.
    pub functions: Sides<Vec<FunctionId>>,
}

impl Group {
    /// Whether both profiles have it.
    pub fn is_paired(&self) -> bool {
        !self.functions.base.is_empty() && !self.functions.head.is_empty()
    }
}

/// The modules and functions that two profiles have in common.
#[derive(Clone, Debug)]
pub struct Pairing {
    /// The modules that both have.
    pub modules: Vec<ModulePair>,
    /// The names of modules that one alone has.
    pub lone_modules: Sides<Vec<String>>,
    /// Every function that occurs; the first one stands for the roots of threads.
    pub groups: Vec<Group>,
    /// The group of each entry of the function tables; nothing for those that do not occur.
    pub of: Sides<Vec<Option<GroupIndex>>>,
    /// By module, a number that both of a pair share.
    pub(crate) place: Sides<Vec<usize>>,
}

impl Pairing {
    /// Pairs the functions that occur in two profiles.
    pub fn of(base: &Profile, head: &Profile) -> Self {
        Self::with_code(base, head, &ProgramCode::default()).0
    }

    /// The same with functions whose names differ and whose code is equal. Returns the differences of the code as well.
    pub(crate) fn with_code<'c>(
        base: &Profile,
        head: &Profile,
        code: &'c ProgramCode,
    ) -> (Self, CodeDifferences<'c>) {
        let profiles = Sides { base, head };
        let modules = pair_modules(profiles);
        let place = Sides { base: &modules.place.base[..], head: &modules.place.head[..] };
        let name = |module: usize| file_name(head, ModuleId::from_usize(module));
        let differences = CodeDifferences::of(code, place, name);
        let mut pairing = Pairer::new(profiles, modules.place.clone()).pair(&differences);
        (pairing.modules, pairing.lone_modules) = (modules.pairs, modules.lone);
        pairing.place = modules.place;
        (pairing, differences)
    }

    /// How many functions both have.
    pub fn paired(&self) -> usize {
        self.groups.iter().skip(1).filter(|group| group.is_paired()).count()
    }
}

/// The modules that are the same.
struct ModulePairs {
    pairs: Vec<ModulePair>,
    lone: Sides<Vec<String>>,
    /// By module, a number that both of a pair share.
    place: Sides<Vec<usize>>,
}

fn file_name(profile: &Profile, module: ModuleId) -> String {
    let path = &profile.strings[profile.modules[module].path];
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path).to_owned()
}

/// The functions that occur in a profile.
fn occurring(profile: &Profile) -> Vec<bool> {
    let mut occurs = vec![false; profile.functions.len()];
    let arcs = profile.arcs.iter().flat_map(|arc| [arc.caller, arc.callee]);
    for function in profile.tree.function_column().iter().copied().chain(arcs) {
        occurs[function.index()] = true;
    }
    occurs
}

/// The groups of all entries of a function table: those that do not occur have the group of the function that they are.
pub(crate) fn with_alike(profile: &Profile, groups: &[Option<GroupIndex>]) -> Vec<Option<GroupIndex>> {
    let identity = Identity::of(profile);
    let mut of: Vec<Option<GroupIndex>> = vec![None; groups.len()];
    for (id, _) in profile.functions.iter() {
        if let Some(group) = groups[id.index()] {
            of[identity.representative(id).index()].get_or_insert(group);
        }
    }
    let entries = profile.functions.iter();
    entries.map(|(id, _)| groups[id.index()].or(of[identity.representative(id).index()])).collect()
}

fn pair_modules(profiles: Sides<&Profile>) -> ModulePairs {
    let used: Sides<BTreeSet<ModuleId>> = profiles.map(|profile| {
        let occurs = occurring(profile);
        let entries = profile.functions.iter().filter(|(id, _)| occurs[id.index()]);
        entries.filter_map(|(_, function)| function.module).collect()
    });
    let mut place = profiles.map(|profile| vec![usize::MAX; profile.modules.len()]);
    let mut pairs = Vec::new();
    let mut next = 0;
    let path = |profile: &Profile, id: ModuleId| profile.strings[profile.modules[id].path].to_owned();
    let build = |profile: &Profile, id: ModuleId| {
        let build: String = profile.modules[id].build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        build
    };
    type Key = dyn Fn(&Profile, ModuleId) -> String;
    let keys: [(&Key, PairedBy); 4] = [
        (&build, PairedBy::BuildId),
        (&path, PairedBy::Name),
        (&|profile, id| file_name(profile, id), PairedBy::Name),
        (&|profile, id| without_version(&file_name(profile, id)), PairedBy::Name),
    ];
    for (key, by) in keys {
        let by_key = |side: Side, place: &Sides<Vec<usize>>| {
            let (profile, used, place) = match side {
                Side::Base => (profiles.base, &used.base, &place.base),
                Side::Head => (profiles.head, &used.head, &place.head),
            };
            let mut by_key: BTreeMap<String, Vec<ModuleId>> = BTreeMap::new();
            for &id in used.iter().filter(|id| place[id.index()] == usize::MAX) {
                by_key.entry(key(profile, id)).or_default().push(id);
            }
            by_key.remove("");
            by_key
        };
        let mut of_head = by_key(Side::Head, &place);
        for (key, of_base) in by_key(Side::Base, &place) {
            let Some(of_head) = of_head.remove(&key) else { continue };
            pairs.push(pair(profiles, of_base[0], of_head[0], by));
            of_base.iter().for_each(|id| place.base[id.index()] = next);
            of_head.iter().for_each(|id| place.head[id.index()] = next);
            next += 1;
        }
    }
    let main =
        Sides { base: main_module(profiles.base, &used.base), head: main_module(profiles.head, &used.head) };
    if let (Some(base), Some(head)) = (main.base, main.head)
        && place.base[base.index()] == usize::MAX
        && place.head[head.index()] == usize::MAX
    {
        pairs.push(pair(profiles, base, head, PairedBy::Main));
        (place.base[base.index()], place.head[head.index()]) = (next, next);
        next += 1;
    }
    let mut lone = Sides::default();
    for side in Side::BOTH {
        let (profile, used) = match side {
            Side::Base => (profiles.base, &used.base),
            Side::Head => (profiles.head, &used.head),
        };
        for &id in used {
            if place.of(side)[id.index()] == usize::MAX {
                place.of(side)[id.index()] = next;
                next += 1;
                let names: &mut Vec<String> = lone.of(side);
                names.push(file_name(profile, id));
            }
        }
    }
    ModulePairs { pairs, lone, place }
}

fn pair(profiles: Sides<&Profile>, base: ModuleId, head: ModuleId, by: PairedBy) -> ModulePair {
    let names = Sides { base: file_name(profiles.base, base), head: file_name(profiles.head, head) };
    let builds = (&profiles.base.modules[base].build_id, &profiles.head.modules[head].build_id);
    ModulePair { names, by, same_build: !builds.0.is_empty() && builds.0 == builds.1 }
}

/// `libz.so.1.2` and `libz.so.1.3` are versions of one library.
fn without_version(name: &str) -> String {
    match name.split_once(".so") {
        Some((name, _)) => format!("{name}.so"),
        None => name.to_owned(),
    }
}

/// The program itself: the only executable, or of several that with the highest cost.
fn main_module(profile: &Profile, used: &BTreeSet<ModuleId>) -> Option<ModuleId> {
    let is_program = |id: &ModuleId| {
        let name = file_name(profile, *id);
        profile.modules[*id].kind == ModuleKind::Elf && !name.contains(".so") && !name.starts_with('[')
    };
    let programs: Vec<ModuleId> = used.iter().copied().filter(is_program).collect();
    if let [only] = programs[..] {
        return Some(only);
    }
    let metric = default_metric(profile)?;
    let mut costs: HashMap<ModuleId, u64> = HashMap::new();
    for node in profile.tree.nodes() {
        if let Some(module) = profile.functions[profile.tree.function(node)].module {
            *costs.entry(module).or_default() += profile.tree.self_cost(metric, node);
        }
    }
    programs.into_iter().max_by_key(|id| costs.get(id).copied().unwrap_or(0))
}

/// A function of one profile that has no counterpart yet.
struct Candidate {
    side: Side,
    id: FunctionId,
    name: String,
    /// The number of its module; nothing where none is known.
    module: Option<usize>,
    file: String,
}

/// The key by which functions are found equal.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    module: Option<Option<usize>>,
    name: String,
    file: Option<String>,
}

struct Pairer<'p> {
    profiles: Sides<&'p Profile>,
    pairing: Pairing,
    waiting: Vec<Candidate>,
}

impl<'p> Pairer<'p> {
    fn new(profiles: Sides<&'p Profile>, place: Sides<Vec<usize>>) -> Self {
        let mut of = profiles.map(|profile| vec![None; profile.functions.len()]);
        let mut waiting = Vec::new();
        for side in Side::BOTH {
            let (profile, place) = match side {
                Side::Base => (profiles.base, &place.base),
                Side::Head => (profiles.head, &place.head),
            };
            let occurs = occurring(profile);
            for (id, function) in profile.functions.iter().filter(|(id, _)| occurs[id.index()]) {
                if function.kind == FunctionKind::Root {
                    of.of(side)[id.index()] = Some(0);
                    continue;
                }
                let file = &profile.strings[function.file];
                // Addresses mean nothing in another build: what is known is the module alone.
                let name = match function.kind {
                    FunctionKind::Address | FunctionKind::Unresolved if function.name == StringId::new(0) => {
                        "[unresolved]".to_owned()
                    }
                    _ => function_name(profile, id).into_owned(),
                };
                waiting.push(Candidate {
                    side,
                    id,
                    name,
                    module: function.module.map(|module| place[module.index()]),
                    file: file.rsplit('/').next().unwrap_or(file).to_owned(),
                });
            }
        }
        let root = Group {
            name: treering_analysis::OUTSIDE.to_owned(),
            other_name: None,
            module: None,
            spelling: Spelling::Exact,
            by_code: false,
            functions: profiles.map(|_| vec![Profile::ROOT]),
        };
        let pairing = Pairing {
            modules: Vec::new(),
            lone_modules: Sides::default(),
            groups: vec![root],
            of,
            place: Sides::default(),
        };
        Self { profiles, pairing, waiting }
    }

    /// Pairs by ever looser keys. Of keys that leave out parts of names, only those that fit one function of each
    /// side pair any: more could be mixed up.
    fn pair(mut self, code: &CodeDifferences<'_>) -> Pairing {
        for spelling in Spelling::ALL {
            if spelling == Spelling::WithoutOrdinals {
                self.pair_by_code(code);
            }
            for (in_module, in_file) in [(true, true), (true, false), (false, false)] {
                self.pair_by(spelling, in_module, in_file);
            }
        }
        // The rest is of one side only.
        for candidate in std::mem::take(&mut self.waiting) {
            self.add(Spelling::Exact, false, vec![candidate]);
        }
        self.pairing
    }

    /// Pairs functions that have other names in the head, and equal code.
    fn pair_by_code(&mut self, code: &CodeDifferences<'_>) {
        let mut by_name: BTreeMap<(usize, String), Vec<Candidate>> = BTreeMap::new();
        for candidate in std::mem::take(&mut self.waiting) {
            let name = spelled(&candidate.name, Spelling::WithoutSuffix);
            let renamed = candidate.module.and_then(|place| {
                let renamed = &code.module(place)?.renamed;
                let is_head = || renamed.values().any(|head| **head == *name);
                match candidate.side {
                    Side::Base => renamed.get(&*name).map(|head| (place, (*head).to_owned())),
                    Side::Head => is_head().then(|| (place, name.into_owned())),
                }
            });
            match renamed {
                Some(key) => by_name.entry(key).or_default().push(candidate),
                None => self.waiting.push(candidate),
            }
        }
        for candidates in by_name.into_values() {
            let is_of = |side: Side| candidates.iter().any(|candidate| candidate.side == side);
            match Side::BOTH.into_iter().all(is_of) {
                true => self.add(Spelling::Exact, true, candidates),
                false => self.waiting.extend(candidates),
            }
        }
    }

    fn pair_by(&mut self, spelling: Spelling, in_module: bool, in_file: bool) {
        let mut by_key: BTreeMap<Key, Vec<Candidate>> = BTreeMap::new();
        for candidate in std::mem::take(&mut self.waiting) {
            let name = spelled(&candidate.name, spelling).into_owned();
            let module = in_module.then_some(candidate.module);
            let file = in_file.then(|| candidate.file.clone());
            by_key.entry(Key { module, name, file }).or_default().push(candidate);
        }
        for candidates in by_key.into_values() {
            let of = |side: Side| candidates.iter().filter(|candidate| candidate.side == side).count();
            let (base, head) = (of(Side::Base), of(Side::Head));
            let certain = spelling <= Spelling::WithoutSuffix && in_module;
            if base > 0 && head > 0 && (certain || base == 1 && head == 1) {
                self.add(spelling, false, candidates);
            } else {
                self.waiting.extend(candidates);
            }
        }
    }

    fn add(&mut self, spelling: Spelling, by_code: bool, candidates: Vec<Candidate>) {
        let index = self.pairing.groups.len();
        let mut functions: Sides<Vec<FunctionId>> = Sides::default();
        let mut names: Sides<Option<String>> = Sides::default();
        for candidate in candidates {
            self.pairing.of.of(candidate.side)[candidate.id.index()] = Some(index);
            functions.of(candidate.side).push(candidate.id);
            let profile = match candidate.side {
                Side::Base => self.profiles.base,
                Side::Head => self.profiles.head,
            };
            let name = match candidate.name.as_str() {
                "[unresolved]" => format!("[{}]", module_of(profile, candidate.id).unwrap_or_default()),
                _ => candidate.name,
            };
            let known = names.of(candidate.side);
            if known.as_ref().is_none_or(|known| name.len() < known.len()) {
                *known = Some(name);
            }
        }
        let module = match (functions.head.first(), functions.base.first()) {
            (Some(&id), _) => module_of(self.profiles.head, id),
            (None, Some(&id)) => module_of(self.profiles.base, id),
            (None, None) => None,
        };
        let Sides { base, head } = names;
        let other_name = base.clone().filter(|base| head.as_ref().is_some_and(|head| head != base));
        let name = head.or(base).unwrap_or_default();
        self.pairing.groups.push(Group { name, other_name, module, spelling, by_code, functions });
    }
}

fn module_of(profile: &Profile, id: FunctionId) -> Option<String> {
    profile.functions[id].module.map(|module| file_name(profile, module))
}
