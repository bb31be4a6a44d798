//! Watchpoints of a selection: the functions and marks at which counting starts and stops.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hashbrown::HashMap;

use crate::program::region::Region;

/// Where functions begin in a file, as offsets.
pub type FindFunctions = Rc<dyn Fn(&Path) -> Vec<u64>>;

/// Which part of a program's run is counted, by each thread on its own.
#[derive(Clone)]
pub struct Selection {
    /// Which functions: from the enter of one of them to its leave is counted. Asked once for each file
    /// with code.
    pub functions: FindFunctions,
    /// Whether the program's own marks start and stop as well: [`START`] and [`STOP`].
    pub marks: bool,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("marks", &self.marks).finish_non_exhaustive()
    }
}

/// The instruction from which on a thread is counted: a `nop` with an operand that nobody else writes.
pub const START: [u8; 7] = [0x0f, 0x1f, 0x80, b't', b'r', b'g', b'1'];
/// The instruction from which on it is not.
pub const STOP: [u8; 7] = [0x0f, 0x1f, 0x80, b't', b'r', b'g', b'0'];

/// What is watched at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    Function,
    Start,
    Stop,
}

/// A selection, with what it said of files.
#[derive(Debug)]
pub(crate) struct Watcher {
    selection: Selection,
    files: RefCell<HashMap<PathBuf, Rc<[u64]>>>,
}

impl Watcher {
    pub(crate) fn new(selection: Selection) -> Self {
        Self { selection, files: RefCell::default() }
    }

    /// Where functions begin in a region.
    pub(crate) fn functions(&self, region: &Region) -> Vec<u64> {
        let (Some(path), Some((_, from))) = (region.path(), &region.file) else { return Vec::new() };
        let mut files = self.files.borrow_mut();
        let offsets =
            files.entry_ref(path.as_path()).or_insert_with(|| (self.selection.functions)(&path).into());
        let addresses = offsets.iter().filter_map(|offset| Some(offset.checked_sub(*from)? + region.start));
        addresses.filter(|&address| address < region.end).collect()
    }

    /// Whether the program's marks count.
    pub(crate) fn has_marks(&self) -> bool {
        self.selection.marks
    }

    /// Whether code begins with a mark.
    pub(crate) fn mark(&self, bytes: &[u8]) -> Option<Watch> {
        match bytes.first_chunk() {
            Some(&START) if self.selection.marks => Some(Watch::Start),
            Some(&STOP) if self.selection.marks => Some(Watch::Stop),
            _ => None,
        }
    }
}
