//! Functions of interpreters: known by name at run time, entered and left by hand.

use treering_events::function_kind;

use crate::event::{self, NO_FRAME};
use crate::leave;
use crate::port::{self, Port};
use crate::process::{self, Quiet, STATE};
use crate::registry::{self, Described, IGNORED};
use crate::store;
use crate::sys;
use core::sync::atomic::Ordering;

/// A function of an interpreted language.
///
/// ```
/// use treering_runtime::Function;
///
/// # treering_runtime::clear_profiler();
/// let solve = Function::new(b"solve", b"model.m", 12);
/// let call = solve.enter();
/// call.argument_size(1024);
/// // ... the interpreter runs the function ...
/// call.leave();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function(u32);

impl Function {
    /// The function of that name, defined in `file` on `line` (0 where it is not known). Asked for
    /// again, it is the same. Names may be any bytes.
    ///
    /// While nothing is recorded it may be one whose events have no effect; ask again when a
    /// profiler was set.
    pub fn new(name: &[u8], file: &[u8], line: u32) -> Self {
        Self::of_kind(function_kind::INTERPRETED, name, file, line)
    }

    /// The same for a function of one of the [kinds](treering_events::function_kind) that
    /// interpreters have. The kind does not tell functions apart: it is that of the first one.
    pub fn of_kind(kind: u32, name: &[u8], file: &[u8], line: u32) -> Self {
        Self::described(Described { file, line, kind, ..Described::task(name) })
    }

    /// The task of that name.
    pub fn task(name: &[u8]) -> Self {
        Self::described(Described::task(name))
    }

    fn described(described: Described) -> Self {
        let _quiet = Quiet::begin();
        process::initialise();
        if store::header().is_none() {
            return Self(IGNORED);
        }
        Self(registry::number(described, &process::filter()))
    }

    /// The function as it is called from a line of its caller's file. Each time this is asked there
    /// is another one, so the answer is to be kept; readers know that they are the same function.
    ///
    /// ```
    /// # treering_runtime::clear_profiler();
    /// let solve = treering_runtime::Function::new(b"solve", b"model.m", 12);
    /// let from_line_7 = solve.called_from(7);
    /// from_line_7.enter().leave();
    /// ```
    pub fn called_from(self, line: u32) -> Self {
        let _quiet = Quiet::begin();
        if !self.is_recorded() || store::header().is_none() {
            return self;
        }
        Self(registry::number_for_line(self.0, line))
    }

    /// Whether events of it have any effect, rather than having been filtered.
    pub fn is_recorded(self) -> bool {
        self.0 != IGNORED
    }

    /// A call of the function.
    #[inline]
    pub fn enter(self) -> Call {
        match STATE.load(Ordering::Relaxed) {
            process::OFF => Call(event::NOTHING),
            state => Call(event::enter_in(state, self.0, NO_FRAME, 0)),
        }
    }

    /// The function is entered again, to look for another solution: Byrd's redo port. It is an
    /// activation, but no call.
    pub fn redo(self) -> Call {
        Call(port::redo(self.0, sys::stack_pointer()))
    }

    /// The function goes on with an activation that was counted when it began, and that has ended since:
    /// its continuation is called. Only its time is added.
    pub fn resume(self) -> Call {
        Call(port::resume(self.0, true))
    }
}

/// An activation that goes on until one of the methods ends it. Nothing ends it by itself; when an
/// activation further out is left, it is left with it and counted as unwound.
#[must_use = "the activation has to be left"]
#[derive(Debug, PartialEq, Eq)]
pub struct Call(u64);

impl Call {
    /// The function is left; in logic programs this is Byrd's exit port.
    #[inline]
    pub fn leave(self) {
        if self.0 != event::NOTHING {
            leave::leave(self.0);
        }
    }

    /// The call did not take place: the function has refused it, for instance for too many
    /// arguments. It counts no more, and its time stays the caller's.
    ///
    /// ```
    /// # treering_runtime::clear_profiler();
    /// let call = treering_runtime::Function::new(b"solve", b"model.m", 12).enter();
    /// call.withdraw();
    /// ```
    pub fn withdraw(self) {
        leave::withdraw(self.0);
    }

    /// The function succeeds and is left, where [`Options::counts_exits`](crate::Options::counts_exits)
    /// is set: Byrd's exit port.
    pub fn exit(self) {
        port::count_port(self.0, Port::Exit);
        self.leave();
    }

    /// The function fails and is left.
    pub fn fail(self) {
        port::count_port(self.0, Port::Fail);
        self.leave();
    }

    /// The function is left by an exception.
    pub fn exception(self) {
        port::count_port(self.0, Port::Exception);
        self.leave();
    }

    /// Choices of the activation are given up, which goes on.
    pub fn cut(&self) {
        port::count_port(self.0, Port::Cut);
    }

    /// Where the activation stands in the tree, to enter it again when it was left.
    ///
    /// Nothing when the activation is not recorded.
    pub fn place(&self) -> Option<Place> {
        port::place(self.0).map(|(node, thread)| Place { node, thread })
    }

    /// The size of an argument, in whatever unit: elements, bytes.
    pub fn argument_size(&self, size: u64) {
        port::argument_size(self.0, size);
    }

    /// The activation as a number, to be kept where no `Call` can be.
    pub fn into_raw(self) -> u64 {
        self.0
    }

    /// The activation of a number from [`into_raw`](Self::into_raw). Any other number is an
    /// activation that is not open, whose methods change nothing but a count.
    pub fn from_raw(number: u64) -> Self {
        Self(number)
    }
}

/// The place of an activation in the tree of its thread, for events that come when the activation is no
/// longer open.
///
/// In another thread, or when another profile was begun, its methods change nothing but the count of
/// unbalanced events.
///
/// ```
/// # treering_runtime::clear_profiler();
/// let call = treering_runtime::Function::new(b"member/2", b"lists.pl", 12).enter();
/// let place = call.place();
/// call.exit();
/// // Another solution is asked for, and there is none:
/// if let Some(place) = place {
///     place.redo().fail();
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    node: u64,
    thread: u64,
}

impl Place {
    /// Another solution is asked for: Byrd's redo port. It is an activation, but no call.
    pub fn redo(self) -> Call {
        Call(port::enter_again((self.node, self.thread), false))
    }

    /// The activation goes on, that was left for a while; only its time is added.
    pub fn resume(self) -> Call {
        Call(port::enter_again((self.node, self.thread), true))
    }

    /// The activation succeeded while it was not open.
    pub fn exit(self) {
        port::count_port_at((self.node, self.thread), Port::Exit);
    }

    /// The activation failed while it was not open.
    pub fn fail(self) {
        port::count_port_at((self.node, self.thread), Port::Fail);
    }

    /// An exception ended the activation while it was not open.
    pub fn exception(self) {
        port::count_port_at((self.node, self.thread), Port::Exception);
    }

    /// The choices that the activation left were cut.
    pub fn cut(self) {
        port::count_port_at((self.node, self.thread), Port::Cut);
    }
}
