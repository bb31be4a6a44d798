//! The functions that occur, renumbered: one entry for what is one function to a person.

use hashbrown::HashMap;
use serde_json::{Value, json};
use treering_analysis::{Categories, Identity, function_name};
use treering_profile::{FunctionId, FunctionKind, ModuleId, Profile, StringId};

use crate::columns::Columns;

/// The functions of the page by number; 0 is what lies outside of every function.
pub(crate) struct Functions {
    identity: Identity,
    /// By number: the entry of the profile.
    entries: Vec<FunctionId>,
    numbers: HashMap<FunctionId, u32>,
    /// In a difference: functions of other builds of a module, and what they are in the first one.
    other_builds: HashMap<FunctionId, FunctionId>,
}

impl Functions {
    /// Numbers the functions that the tree or arcs have. `across_builds` joins those of different builds of one
    /// module, as in a difference: they are what is compared.
    pub(crate) fn of(profile: &Profile, across_builds: bool) -> Self {
        let identity = Identity::of(profile);
        let other_builds = if across_builds { other_builds(profile, &identity) } else { HashMap::new() };
        let numbers = HashMap::from([(Profile::ROOT, 0)]);
        let mut functions = Self { identity, entries: vec![Profile::ROOT], numbers, other_builds };
        for &function in profile.tree.function_column() {
            functions.number(function);
        }
        for arc in &profile.arcs {
            functions.number(arc.caller);
            functions.number(arc.callee);
        }
        functions
    }

    /// The number of a function, a new one where it has none.
    pub(crate) fn number(&mut self, function: FunctionId) -> u32 {
        let function = self.representative(function);
        *self.numbers.entry(function).or_insert_with(|| {
            self.entries.push(function);
            self.entries.len() as u32 - 1
        })
    }

    /// The number of a function that occurs.
    pub(crate) fn known(&self, function: FunctionId) -> Option<u32> {
        self.numbers.get(&self.representative(function)).copied()
    }

    fn representative(&self, function: FunctionId) -> FunctionId {
        let function = self.identity.representative(function);
        self.other_builds.get(&function).copied().unwrap_or(function)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn entries(&self) -> &[FunctionId] {
        &self.entries
    }

    /// The columns of the page's function table. `inlined` has those that are nowhere called.
    pub(crate) fn columns(
        &self,
        profile: &Profile,
        texts: &mut Texts,
        columns: &mut Columns,
        inlined: &[bool],
    ) -> Value {
        let categories = Categories::of(profile);
        let entry = |&id: &FunctionId| profile.functions[id];
        let module = |id: &FunctionId| {
            entry(id)
                .module
                .map_or(0, |module| texts.clone_text(&profile.strings[profile.modules[module].path]))
        };
        let modules: Vec<u64> = self.entries.iter().map(module).collect();
        let names: Vec<u64> =
            self.entries.iter().map(|&id| texts.clone_text(&function_name(profile, id))).collect();
        let files: Vec<u64> =
            self.entries.iter().map(|id| texts.clone_text(&profile.strings[entry(id).file])).collect();
        let lines: Vec<u64> = self.entries.iter().map(|id| entry(id).line.into()).collect();
        let kinds: Vec<u64> = self.entries.iter().map(|id| entry(id).kind as u64).collect();
        let of: Vec<u64> = self.entries.iter().map(|&id| categories.category(id) as u64).collect();
        let inlined: Vec<u64> = inlined.iter().map(|&inlined| inlined.into()).collect();
        json!({
            "name": columns.add(&names),
            "module": columns.add(&modules),
            "file": columns.add(&files),
            "line": columns.add(&lines),
            "kind": columns.add(&kinds),
            "category": columns.add(&of),
            "inlined": columns.add(&inlined),
        })
    }

    /// By number: whether every node of the function is inlined into its caller.
    pub(crate) fn inlined(&self, profile: &Profile) -> Vec<bool> {
        let mut occurs = vec![false; self.len()];
        let mut called = vec![false; self.len()];
        for &function in profile.tree.function_column() {
            let Some(number) = self.known(function) else { continue };
            occurs[number as usize] = true;
            called[number as usize] |= profile.functions[function].kind != FunctionKind::Inlined;
        }
        occurs.into_iter().zip(called).map(|(occurs, called)| occurs && !called).collect()
    }
}

/// The common key of functions that were built from one.
#[derive(PartialEq, Eq, Hash)]
struct Built {
    name: StringId,
    linkage_name: StringId,
    module: StringId,
    file: StringId,
    kind: FunctionKind,
}

/// The functions that a later build of a module has as well as the first one: equal in name, file, and path of the
/// module. Where a build has several such functions it is not known which is which, and all stay apart.
fn other_builds(profile: &Profile, identity: &Identity) -> HashMap<FunctionId, FunctionId> {
    let mut alike: HashMap<Built, Vec<(ModuleId, FunctionId)>> = HashMap::new();
    for (id, function) in profile.functions.iter() {
        let Some(module) = function.module.filter(|_| identity.representative(id) == id) else { continue };
        let key = Built {
            name: function.name,
            linkage_name: function.linkage_name,
            module: profile.modules[module].path,
            file: function.file,
            kind: match function.kind {
                FunctionKind::Inlined => FunctionKind::Native,
                kind => kind,
            },
        };
        // Without a name, functions are told apart by their addresses, which differ between builds.
        if key.name != StringId::new(0) {
            alike.entry(key).or_default().push((module, id));
        }
    }
    let mut others = HashMap::new();
    for functions in alike.into_values() {
        let mut modules: Vec<ModuleId> = functions.iter().map(|&(module, _)| module).collect();
        modules.sort_unstable();
        modules.dedup();
        if modules.len() == functions.len() {
            others.extend(functions[1..].iter().map(|&(_, other)| (other, functions[0].1)));
        }
    }
    others
}

/// Texts of the page, each once; 0 is the empty one.
pub(crate) struct Texts {
    known: HashMap<Box<str>, u32>,
    list: Vec<Box<str>>,
}

impl Texts {
    pub(crate) fn new() -> Self {
        Self { known: HashMap::from([("".into(), 0)]), list: vec!["".into()] }
    }

    /// The number of a text.
    pub(crate) fn clone_text(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.known.get(text) {
            return number.into();
        }
        let number = self.list.len() as u32;
        self.known.insert(text.into(), number);
        self.list.push(text.into());
        number.into()
    }

    pub(crate) fn of(&mut self, profile: &Profile, text: StringId) -> u64 {
        self.clone_text(&profile.strings[text])
    }

    pub(crate) fn into_json(self) -> Value {
        Value::Array(self.list.into_iter().map(|text| Value::String(text.into())).collect())
    }
}
