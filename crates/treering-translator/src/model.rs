//! A model of caches and a branch predictor of a given shape.
//!
//! Translated code writes the numbers of executed blocks and the addresses of their operands into a buffer in the
//! thread's area (`plan`, and `emit/model_code.rs`). When the buffer is full, and whenever the tracer needs the
//! counts, it replays the buffer in the model (`replay`). The threads of a process share one model; a buffer is
//! replayed at once, as if threads took turns of that many instructions. A new process begins with an empty model.

pub mod cache;
pub(crate) mod plan;
pub mod predictor;
mod replay;
mod result;
mod tally;

use hashbrown::HashMap;
use treering_x86::Decoded;

use cache::Caches;
use plan::{Event, Planner};
use predictor::Predictor;
use tally::Tally;

pub use cache::{CacheShape, Geometry, ShapeError};
pub use result::{Modelled, ModelledInstruction};

/// The parts of the processor that are modelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// Caches of these shapes.
    pub caches: Option<Geometry>,
    /// A branch predictor; see [`predictor`].
    pub branches: bool,
}

impl ModelOptions {
    /// Whether any part is modelled.
    pub(crate) fn is_wanted(self) -> bool {
        self != Self::default()
    }
}

/// The model of one address space.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) options: ModelOptions,
    caches: Option<Caches>,
    predictor: Option<Predictor>,
    pub(crate) planner: Planner,
    /// By the block's number.
    blocks: Vec<Plan>,
    events: Vec<Event>,
    /// By the thread's area.
    threads: HashMap<usize, ThreadModel>,
    /// The words of a thread while they are replayed.
    words: Vec<u64>,
    bytes: Vec<u8>,
}

/// The facts about a block that do not depend on its execution.
#[derive(Debug, Clone, Copy, Default)]
struct Plan {
    address: u64,
    first: u32,
    events: u16,
    words: u8,
    instructions: u8,
    /// The offset behind the instruction that records the block's number.
    told_from: u32,
    /// The address of its last instruction, and of the next one.
    last: u64,
    next: u64,
    end: Ending,
    /// Whether an address of it is not exact.
    inexact: bool,
}

/// The kind of prediction that a block's last instruction needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Ending {
    #[default]
    None,
    Branch,
    Indirect,
}

/// The model's state of a thread.
#[derive(Debug, Default)]
struct ThreadModel {
    tally: Tally,
    /// The block whose last instruction has run and whose successor is not known yet.
    open: Option<u32>,
    fs_base: u64,
}

impl Model {
    /// A model, if any part is modelled.
    pub(crate) fn new(options: ModelOptions) -> Option<Self> {
        options.is_wanted().then(|| Self {
            options,
            caches: options.caches.as_ref().map(Caches::new),
            predictor: options.branches.then(Predictor::default),
            planner: Planner::default(),
            blocks: Vec::new(),
            events: Vec::new(),
            threads: HashMap::new(),
            words: Vec::new(),
            bytes: Vec::new(),
        })
    }

    /// Plans a block, and returns the number of words that it records.
    pub(crate) fn plan_block(&mut self, block: u32, decoded: &[Decoded], last: &Decoded) -> u8 {
        use treering_x86::Flow;
        let first = self.events.len();
        match &self.caches {
            Some(caches) => {
                let line_of = |address| caches.instruction_line(address);
                self.planner.plan(decoded, line_of, &mut self.events);
            }
            None => self.planner.clear(),
        }
        let end = match last.flow() {
            Flow::Branch { .. } | Flow::CountedBranch(_) => Ending::Branch,
            Flow::IndirectJump | Flow::IndirectCall => Ending::Indirect,
            _ => Ending::None,
        };
        let at = block as usize;
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, Plan::default());
        }
        self.blocks[at] = Plan {
            address: decoded[0].address(),
            first: first as u32,
            events: (self.events.len() - first) as u16,
            words: self.planner.words,
            instructions: decoded.len() as u8,
            told_from: u32::MAX,
            last: last.address(),
            next: last.next(),
            end,
            inexact: self.planner.inexact,
        };
        self.planner.words
    }

    pub(crate) fn set_told_from(&mut self, block: u32, offset: u64) {
        self.blocks[block as usize].told_from = offset as u32;
    }

    fn thread(&mut self, area: usize) -> &mut ThreadModel {
        self.threads.entry(area).or_default()
    }
}
