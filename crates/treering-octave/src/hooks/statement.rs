//! Statements: hits and time of lines.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use treering_runtime::Function;

use super::interpreter::{Interpreter, STATEMENT, STATEMENT_LINE, with_interpreter};
use super::{Pointer, recorded, what};

type Visit = unsafe extern "C-unwind" fn(Pointer, Pointer);

/// A line that runs, and the statement by which it was entered: that one comes again when the line does.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Line {
    number: u32,
    first: usize,
}

impl Line {
    /// The next statement of the activation. Whether its line is entered by it, rather than gone on with.
    fn enter(&mut self, number: u32, statement: usize) -> bool {
        let is_hit = self.number != number || self.first == statement;
        if is_hit {
            *self = Self { number, first: statement };
        }
        is_hit
    }
}

/// A statement that runs, on the stack of its hook.
pub(super) struct Statement {
    line: u32,
    /// Whether the line is entered by it.
    is_hit: bool,
    start: u64,
    /// Ticks of statements in it, and of calls made by it but not by those.
    inner: u64,
    callees: u64,
    outer: *mut Statement,
}

impl Drop for Statement {
    fn drop(&mut self) {
        let taken = treering_runtime::ticks().wrapping_sub(self.start);
        with_interpreter(|interpreter| interpreter.statement = self.outer);
        if !self.outer.is_null() {
            // SAFETY: the outer statement's frame is further out.
            unsafe { (*self.outer).inner += taken };
        }
        let total = taken.saturating_sub(self.inner);
        let add = if self.is_hit { treering_runtime::line } else { treering_runtime::rest_of_line };
        add(self.line, total, total.saturating_sub(self.callees));
    }
}

pub(super) unsafe extern "C-unwind" fn statement(evaluator: Pointer, node: Pointer) {
    // SAFETY: the addresses are those of functions of these types; the state as above.
    unsafe {
        let original: Visit = core::mem::transmute(STATEMENT.load(Relaxed));
        if recorded() & what::LINES == 0 || with_interpreter(|interpreter| interpreter.is_hidden) {
            return original(evaluator, node);
        }
        let line_of: unsafe extern "C-unwind" fn(Pointer) -> c_int =
            core::mem::transmute(STATEMENT_LINE.load(Relaxed));
        let line = line_of(node).max(0) as u32;
        let (outer, is_hit) = with_interpreter(|interpreter| {
            (interpreter.statement, interpreter.line.enter(line, node as usize))
        });
        let mut frame =
            Statement { line, is_hit, start: treering_runtime::ticks(), inner: 0, callees: 0, outer };
        with_interpreter(|interpreter| interpreter.statement = &raw mut frame);
        original(evaluator, node);
        drop(frame);
    }
}

/// The function that a call from the running statement leads to, as it is called from that line.
///
/// A function that is open already is the same whatever line calls it again: with a node for each
/// line, a recursive function would have as many contexts as there are ways through its calls.
pub(super) fn from_line(function: Function) -> Function {
    with_interpreter(|interpreter| {
        let line = if interpreter.statement.is_null() {
            0
        } else {
            // SAFETY: the statement's frame is further out.
            unsafe { (*interpreter.statement).line }
        };
        let open = interpreter.open.entry(function).or_insert(0);
        *open += 1;
        if *open > 1 || line == 0 {
            return function;
        }
        *interpreter.sites.entry((function, line)).or_insert_with(|| function.called_from(line))
    })
}

/// The call of a function that [`from_line`] was asked for is over.
pub(super) fn close(function: Function) {
    with_interpreter(|interpreter| {
        if let Some(open) = interpreter.open.get_mut(&function) {
            *open = open.saturating_sub(1);
        }
    });
}

/// The statement that made a call, while that runs.
pub(super) struct Caller {
    statement: *mut Statement,
    line: Line,
    /// When the call began; 0 where its time stays the statement's.
    start: u64,
    /// Whether the caller's lines are kept out.
    was_hidden: bool,
}

/// Ends the lines of the caller while a callee runs. Where it `hides` the lines of the callee, these are
/// not recorded.
#[inline(always)]
pub(super) fn leave_statement(hides: bool, start: u64) -> Caller {
    with_interpreter(|interpreter| {
        let Interpreter { statement, line, is_hidden: was_hidden, .. } = *interpreter;
        let caller = Caller { statement, line, start, was_hidden };
        interpreter.is_hidden = hides;
        if !hides {
            interpreter.statement = core::ptr::null_mut();
            interpreter.line = Line::default();
        }
        caller
    })
}

impl Caller {
    /// The call is over.
    ///
    /// # Safety
    /// Before the caller's frame is gone.
    #[inline(always)]
    pub(super) unsafe fn go_on(self) {
        with_interpreter(|interpreter| {
            interpreter.statement = self.statement;
            interpreter.line = self.line;
            interpreter.is_hidden = self.was_hidden;
        });
        if !self.statement.is_null() && self.start != 0 {
            // SAFETY: the caller's frame is there, by this function's own requirement.
            unsafe { (*self.statement).callees += treering_runtime::ticks().wrapping_sub(self.start) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines and statements in the order in which they run, and which of them enter their lines.
    fn hits(run: &[(u32, usize)]) -> Vec<bool> {
        let mut line = Line::default();
        run.iter().map(|&(number, statement)| line.enter(number, statement)).collect()
    }

    #[test]
    fn a_line_is_hit_once_whatever_stands_on_it() {
        // a = 1; b = 2;
        assert_eq!(hits(&[(1, 1), (1, 2)]), [true, false]);
        // for i = 1:2, on a line of its own, with two statements on the next.
        assert_eq!(hits(&[(1, 1), (2, 2), (2, 3), (2, 2), (2, 3)]), [true, true, false, true, false]);
        // The same on one line, run twice.
        assert_eq!(hits(&[(1, 1), (1, 2), (1, 2), (1, 1), (1, 2)]), [true, false, false, true, false]);
        // A line of one statement in a loop.
        assert_eq!(hits(&[(1, 1), (2, 2), (2, 2)]), [true, true, true]);
    }
}
