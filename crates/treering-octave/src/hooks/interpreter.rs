//! The state of the interpreter as the hooks know it, and the functions that they stand in for.

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use core::sync::atomic::AtomicUsize;
use std::collections::HashMap;

use treering_runtime::{Call, Function};

use super::recorded;
use super::statement::{Line, Statement};
use crate::naming::{Known, Namer};
use crate::numbers::{Numbers, Objects};

/// The functions that the hooks stand in for.
macro_rules! words {
    ($($name:ident),*) => { $(pub(super) static $name: AtomicUsize = AtomicUsize::new(0);)* };
}
words!(EVALUATE, CONSTRUCT, STATEMENT, ENTER, EXIT, SHUTDOWN, EVAL_OPTION, SET_ACTIVE);
words!(USER_D0, USER_D1, SCRIPT_D0, SCRIPT_D1, MEX_D0, MEX_D1, DLD_D0, DLD_D1);
// Functions and places in tables of virtual functions that are asked; 0 for none.
words!(NAME_INDEX, FILE_INDEX, COUNT_INDEX, BUILTIN_TABLE, STATEMENT_LINE, FREE_TEXT, CURRENT_LINE);

/// The state of the interpreter as the hooks know it.
pub(super) struct Interpreter {
    pub(super) objects: Objects<Known>,
    pub(super) namer: Namer,
    pub(super) operators: HashMap<Vec<u8>, Known, Numbers>,
    /// Operators that run: where their names stand, and their activations.
    pub(super) open_operators: Vec<(usize, Call)>,
    /// Where anonymous functions were made, by the address of their object: line and column.
    pub(super) made_at: HashMap<usize, (u32, u32), Numbers>,
    /// The anonymous function that is being made.
    pub(super) making: Option<(u32, u32)>,
    /// The statement that runs in the running activation.
    pub(super) statement: *mut Statement,
    /// The line that runs in the running activation, and the statement by which it was entered.
    pub(super) line: Line,
    /// With lines: functions as they are called from a line, and those that are open, with how often.
    pub(super) sites: HashMap<(Function, u32), Function, Numbers>,
    pub(super) open: HashMap<Function, u32, Numbers>,
    /// Whether the function that runs is not recorded, so that its lines are not either.
    pub(super) is_hidden: bool,
}

impl Interpreter {
    /// The hooks do not make room for the state on their own stacks: functions that call each other have many of them.
    #[cold]
    #[inline(never)]
    fn new() -> Box<Self> {
        Box::new(Self {
            objects: Objects::new(),
            namer: Namer::new(),
            operators: HashMap::default(),
            open_operators: Vec::new(),
            made_at: HashMap::default(),
            making: None,
            statement: core::ptr::null_mut(),
            line: Line::default(),
            sites: HashMap::default(),
            open: HashMap::default(),
            is_hidden: false,
        })
    }
}

thread_local! {
    /// Not destroyed, since functions of Octave run until the very end. A thread other than the
    /// interpreter's has an empty state of its own. The state is boxed, as there is little room for
    /// thread-local data.
    static INTERPRETER: ManuallyDrop<RefCell<Option<Box<Interpreter>>>> =
        const { ManuallyDrop::new(RefCell::new(None)) };
}

/// Does something with the interpreter's state; no code of Octave may run meanwhile.
#[inline(always)]
pub(super) fn with_interpreter<R>(use_it: impl FnOnce(&mut Interpreter) -> R) -> R {
    INTERPRETER.with(|interpreter| use_it(interpreter.borrow_mut().get_or_insert_with(Interpreter::new)))
}

/// Records the kinds of events that `bits` select, from the next event on. Functions are named anew, by the
/// rules of `namer`.
pub(crate) fn start(bits: u32, namer: Namer) {
    with_interpreter(|interpreter| {
        interpreter.objects.clear();
        interpreter.operators.clear();
        interpreter.namer = namer;
        interpreter.open.clear();
        interpreter.statement = core::ptr::null_mut();
        interpreter.line = Line::default();
        interpreter.is_hidden = false;
    });
    recorded::resume(bits);
}
