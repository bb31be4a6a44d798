//! Watchpoints of a selection: the functions and marks at which counting starts and stops.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hashbrown::HashMap;
use treering_x86::Decoded;

use crate::program::region::Region;

/// Where functions begin in a file, as offsets.
pub type FindFunctions = Rc<dyn Fn(&Path) -> Vec<u64>>;

/// The part of a program's run that is counted, by each thread separately.
#[derive(Clone)]
pub struct Selection {
    /// The selected functions, if any are: counting lasts from the entry of one of them until its return. Called once for
    /// each file with code.
    pub functions: Option<FindFunctions>,
    /// Whether the program's own marks also start and stop counting: [`START`] and [`STOP`].
    pub marks: bool,
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selection").field("marks", &self.marks).finish_non_exhaustive()
    }
}

/// The instruction that starts the counting of a thread: a `nop` whose operand no compiler writes.
pub const START: [u8; 7] = [0x0f, 0x1f, 0x80, b't', b'r', b'g', b'1'];
/// The instruction that stops the counting of a thread.
pub const STOP: [u8; 7] = [0x0f, 0x1f, 0x80, b't', b'r', b'g', b'0'];

/// The kind of a watched address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    Function,
    /// An instruction that may go on on another stack.
    Stack,
    Start,
    Stop,
}

/// A selection, and its functions by file.
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
        let Some(find) = &self.selection.functions else { return Vec::new() };
        let mut files = self.files.borrow_mut();
        let offsets = files.entry_ref(path.as_path()).or_insert_with(|| find(&path).into());
        let addresses = offsets.iter().filter_map(|offset| Some(offset.checked_sub(*from)? + region.start));
        addresses.filter(|&address| address < region.end).collect()
    }

    /// How the instruction that `code` begins with is watched, wherever it stands. The first instruction of a function does
    /// not move the stack. Marks hold on any stack.
    pub(crate) fn watch(&self, one: &Decoded, code: &[u8]) -> Option<Watch> {
        match code.first_chunk() {
            Some(&START) if self.selection.marks => Some(Watch::Start),
            Some(&STOP) if self.selection.marks => Some(Watch::Stop),
            _ => (self.selection.functions.is_some() && one.moves_stack()).then_some(Watch::Stack),
        }
    }
}
