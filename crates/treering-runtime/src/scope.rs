//! Scopes of Rust programs.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

use treering_events::function_kind;

use crate::event::{self, NO_FRAME, NOTHING};
use crate::future::Instrumented;
use crate::leaf;
use crate::leave;
use crate::port;
use crate::process::{self, OFF, Quiet, STATE};
use crate::registry::{self, Described};

/// A place in a program that can be entered: a function or a part of one.
///
/// Usually made by [`scope!`](crate::scope) or `#[instrument]`.
#[derive(Debug)]
pub struct Site {
    /// The number of its function; 0 before it was reached.
    number: AtomicU32,
    name: &'static str,
    /// Of a method: gives the compiler's name of a function in it.
    inner: Option<fn() -> &'static str>,
    file: &'static str,
    line: u32,
    timed_one_in: u32,
}

impl Site {
    /// A place of that name, with the file and line where it stands.
    pub const fn new(name: &'static str, file: &'static str, line: u32) -> Self {
        Self { number: AtomicU32::new(0), name, inner: None, file, line, timed_one_in: 1 }
    }

    /// A method, whose name follows from the compiler's name of a function in it. See
    /// [`method_site!`](crate::method_site).
    #[doc(hidden)]
    pub const fn of_method(inner: fn() -> &'static str, file: &'static str, line: u32) -> Self {
        Self { inner: Some(inner), ..Self::new("", file, line) }
    }

    /// Times only one of this many calls, chosen evenly; 0 for none. All are counted. This is for short functions
    /// that are called very often: the clock is most of an event's cost.
    #[must_use]
    pub const fn timed_one_in(mut self, calls: u32) -> Self {
        self.timed_one_in = calls;
        self
    }

    /// Enters the place until the scope ends. Costs a load and a branch while nothing is recorded.
    #[inline(always)]
    pub fn enter(&'static self) -> Scope {
        let state = STATE.load(Ordering::Relaxed);
        if state == OFF {
            return Scope { token: NOTHING, here: PhantomData };
        }
        let number = match self.number.load(Ordering::Relaxed) {
            0 => self.register(),
            number => number,
        };
        // No frame is compared: jumping over a scope that is to be dropped is not allowed.
        Scope { token: event::enter_in(state, number, NO_FRAME, 0), here: PhantomData }
    }

    /// Enters the place until the leaf ends. In it nothing else is entered: see [`leaf!`](crate::leaf).
    #[inline(always)]
    pub fn enter_leaf(&'static self) -> Leaf {
        let state = STATE.load(Ordering::Relaxed);
        if state == OFF {
            return Leaf { token: leaf::Token::UNTIMED, here: PhantomData };
        }
        let number = match self.number.load(Ordering::Relaxed) {
            0 => self.register(),
            number => number,
        };
        Leaf { token: leaf::enter(state, number, 0), here: PhantomData }
    }

    /// A future that is in the place whenever it is polled, as one call.
    pub fn instrument<F: Future>(&'static self, future: F) -> Instrumented<F> {
        Instrumented::new(self, future)
    }

    /// Enters the place again for an activation that has been counted.
    pub(crate) fn resume(&'static self, is_timed: bool) -> Scope {
        let number = self.number.load(Ordering::Relaxed);
        let token =
            if STATE.load(Ordering::Relaxed) == OFF { NOTHING } else { port::resume(number, is_timed) };
        Scope { token, here: PhantomData }
    }

    #[cold]
    fn register(&self) -> u32 {
        let _quiet = Quiet::begin();
        process::initialise();
        if STATE.load(Ordering::Relaxed) == OFF {
            return registry::IGNORED;
        }
        let &Self { line, timed_one_in, .. } = self;
        let name = self.inner.map_or(self.name, |inner| method_name(inner()));
        let (name, file) = (name.as_bytes(), self.file.as_bytes());
        let described = Described { name, file, line, kind: function_kind::TASK, timed_one_in };
        let number = registry::number(described, &process::filter());
        self.number.store(number, Ordering::Relaxed);
        number
    }
}

/// The name of the method in which the compiler calls a function `inner`.
fn method_name(inner: &'static str) -> &'static str {
    let method = inner.rsplit_once("::").map_or(inner, |(method, _)| method);
    // The body of an `async fn` is a function in it.
    method.strip_suffix("::{{closure}}").unwrap_or(method)
}

/// An activation that ends when this goes out of scope, also when the stack unwinds.
///
/// It belongs to the thread that entered it. One that is dropped in another thread, or after one
/// that was entered before it, is counted as unbalanced and changes nothing else.
#[must_use = "the activation ends when this is dropped"]
#[derive(Debug)]
pub struct Scope {
    token: u64,
    here: PhantomData<*const ()>,
}

impl Scope {
    /// Whether the activation that was just entered is timed.
    pub(crate) fn is_timed(&self) -> bool {
        port::is_timed(self.token)
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        if self.token != NOTHING {
            leave(self.token);
        }
    }
}

/// An activation of a leaf that ends when this goes out of scope, also when the stack unwinds.
///
/// It belongs to the thread that entered it; its time is not used if it is dropped in another one.
#[must_use = "the activation ends when this is dropped"]
#[derive(Debug)]
pub struct Leaf {
    token: leaf::Token,
    here: PhantomData<*const ()>,
}

impl Drop for Leaf {
    #[inline(always)]
    fn drop(&mut self) {
        if self.token.is_timed() {
            leaf::leave(self.token);
        }
    }
}

/// Kept out of the code that drops a scope, so that this is small enough to stand wherever a scope
/// ends: while nothing is recorded, the test is all that is left of it.
#[inline(never)]
fn leave(token: u64) {
    leave::leave(token);
}

/// A [`Site`] that stands here: `site!("name")`, or `site!("name", timed_one_in = 16)`. It is the
/// same one whenever the expression is evaluated.
#[macro_export]
macro_rules! site {
    ($name:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name, file!(), line!());
        &SITE
    }};
    ($name:expr, timed_one_in = $calls:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name, file!(), line!()).timed_one_in($calls);
        &SITE
    }};
}

/// A [`Site`] of the method that it stands in, with its type in the name. For `#[instrument]`.
#[doc(hidden)]
#[macro_export]
macro_rules! method_site {
    ($(timed_one_in = $calls:expr)?) => {{
        fn here() -> &'static str {
            ::core::any::type_name_of_val(&here)
        }
        static SITE: $crate::Site = $crate::Site::of_method(here, file!(), line!())$(.timed_one_in($calls))?;
        &SITE
    }};
}
