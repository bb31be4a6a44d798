//! The part of a run that `treering count` counts.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use treering_symbols::{Options, function_offsets};
use treering_translator::{FindFunctions, Selection};

/// Names of functions, and where they were found.
#[derive(Debug, Default)]
pub struct Selected {
    names: Vec<String>,
    found: Rc<RefCell<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    /// The names that some file has.
    names: BTreeSet<String>,
    /// The names that stand for code that chooses the function, with the file that has it.
    indirect: BTreeMap<String, PathBuf>,
}

impl Selected {
    /// Functions by their names.
    pub fn new(names: &[String]) -> Self {
        Self { names: names.to_vec(), found: Rc::default() }
    }

    /// The selection, if there is any.
    pub fn selection(&self, marks: bool) -> Option<Selection> {
        if self.names.is_empty() && !marks {
            return None;
        }
        let (names, found) = (self.names.clone(), Rc::clone(&self.found));
        let functions = move |path: &Path| {
            let mut offsets = Vec::new();
            for name in &names {
                // A file that is no binary has no functions.
                let here = function_offsets(path, name, &Options::default()).unwrap_or_default();
                if !here.offsets.is_empty() {
                    found.borrow_mut().names.insert(name.clone());
                }
                if here.is_indirect {
                    found.borrow_mut().indirect.insert(name.clone(), path.to_owned());
                }
                offsets.extend(here.offsets.into_iter().map(|offset| offset.0));
            }
            offsets
        };
        let has_functions = !self.names.is_empty();
        Some(Selection { functions: has_functions.then(|| Rc::new(functions) as FindFunctions), marks })
    }

    /// Notes on names that no code of the programs had, and on names that stand for other functions.
    pub fn missing(&self) -> Vec<String> {
        let found = self.found.borrow();
        let note = |name: &String| match found.indirect.get(name) {
            Some(file) => Some(format!(
                "{name} of {} was not counted: it is an indirect function, whose resolver chooses another one when the \
                 program is loaded; select that one by its own name, which treering report of a whole count shows",
                file.display()
            )),
            None if found.names.contains(name) => None,
            None => Some(format!("the code of this run has no function {name}")),
        };
        self.names.iter().filter_map(note).collect()
    }
}
