//! The part of a run that `treering count` counts.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use treering_symbols::{Options, function_offsets};
use treering_translator::Selection;

/// Names of functions, and which of them were found in any file.
#[derive(Debug, Default)]
pub struct Selected {
    names: Vec<String>,
    found: Rc<RefCell<BTreeSet<String>>>,
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
                if !here.is_empty() {
                    found.borrow_mut().insert(name.clone());
                }
                offsets.extend(here.into_iter().map(|offset| offset.0));
            }
            offsets
        };
        Some(Selection { functions: Rc::new(functions), marks })
    }

    /// The names that no code of the programs had.
    pub fn missing(&self) -> Vec<String> {
        let found = self.found.borrow();
        self.names.iter().filter(|name| !found.contains(*name)).cloned().collect()
    }
}
