//! The functions that occur, renumbered: one entry for what is one function to a person.

use hashbrown::HashMap;
use serde_json::{Value, json};
use treering_analysis::{Categories, Identity, function_name};
use treering_profile::{FunctionId, FunctionKind, Profile, StringId};

use crate::columns::Columns;

/// The functions of the page by number; 0 is what lies outside of every function.
pub(crate) struct Functions {
    identity: Identity,
    /// By number: the entry of the profile.
    entries: Vec<FunctionId>,
    numbers: HashMap<FunctionId, u32>,
}

impl Functions {
    /// Numbers the functions that the tree or arcs have.
    pub(crate) fn of(profile: &Profile) -> Self {
        let identity = Identity::of(profile);
        let mut functions =
            Self { identity, entries: vec![Profile::ROOT], numbers: HashMap::from([(Profile::ROOT, 0)]) };
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
        let function = self.identity.representative(function);
        *self.numbers.entry(function).or_insert_with(|| {
            self.entries.push(function);
            self.entries.len() as u32 - 1
        })
    }

    /// The number of a function that occurs.
    pub(crate) fn known(&self, function: FunctionId) -> Option<u32> {
        self.numbers.get(&self.identity.representative(function)).copied()
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
