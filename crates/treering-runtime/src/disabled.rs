//! The interface without the feature `enabled`: every call that a program may contain, doing nothing. No
//! thread-local word, no static, no code that the optimiser does not remove.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::alloc::{GlobalAlloc, Layout, System};

use pin_project_lite::pin_project;

use crate::options::Options;

/// A place in a program that could be entered.
#[derive(Clone, Copy, Debug)]
pub struct Site;

impl Site {
    /// A place.
    pub const fn new(_name: &'static str, _file: &'static str, _line: u32) -> Self {
        Self
    }

    /// The same place.
    #[must_use]
    pub const fn timed_one_in(self, _calls: u32) -> Self {
        self
    }

    /// Nothing.
    #[inline(always)]
    pub const fn enter(&'static self) -> Scope {
        Scope { here: core::marker::PhantomData }
    }

    /// Nothing.
    #[inline(always)]
    pub const fn enter_leaf(&'static self) -> Leaf {
        Leaf { here: core::marker::PhantomData }
    }

    /// The future as it is.
    #[inline(always)]
    pub const fn instrument<F: Future>(&'static self, future: F) -> Instrumented<F> {
        Instrumented { future }
    }
}

/// Nothing that ends.
#[must_use = "the activation ends when this is dropped"]
#[derive(Debug)]
pub struct Scope {
    here: core::marker::PhantomData<*const ()>,
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {}
}

/// Nothing that ends.
#[must_use = "the activation ends when this is dropped"]
#[derive(Debug)]
pub struct Leaf {
    here: core::marker::PhantomData<*const ()>,
}

impl Drop for Leaf {
    #[inline(always)]
    fn drop(&mut self) {}
}

pin_project! {
    /// A future as it is.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Instrumented<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(context)
    }
}

/// The allocator that it is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<A = System> {
    inner: A,
}

impl Allocator {
    /// The system's allocator.
    pub const fn new() -> Self {
        Self::around(System)
    }
}

impl<A> Allocator<A> {
    /// Another allocator.
    pub const fn around(inner: A) -> Self {
        Self { inner }
    }
}

// SAFETY: every call is handed on as it is.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's word.
        unsafe { self.inner.alloc(layout) }
    }

    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the caller's word.
        unsafe { self.inner.dealloc(block, layout) }
    }

    #[inline(always)]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's word.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    #[inline(always)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: by the caller's word.
        unsafe { self.inner.realloc(block, layout, new_size) }
    }
}

/// Nothing.
pub fn set_profiler(_options: Options) {}

/// Nothing.
pub fn clear_profiler() {}

/// True.
pub fn finish() -> bool {
    true
}

/// Nothing.
pub fn mark(_name: &str) {}

/// Nothing.
pub fn note(_text: &str) {}

/// Nothing.
pub fn point(_description: &str) {}

/// Nothing.
pub fn parameter(_name: &str, _value: impl core::fmt::Display) {}

/// Nothing.
pub fn result(_name: &str, _value: impl core::fmt::Display) {}

/// Nothing.
pub fn line(_number: u32, _total: u64, _self_ticks: u64) {}

/// Nothing.
pub fn rest_of_line(_number: u32, _total: u64, _self_ticks: u64) {}

/// Nothing.
pub fn set_call_cost(_ticks: f64) {}

/// 0.
#[inline(always)]
pub fn allocated(_bytes: u64) -> u64 {
    0
}

/// Nothing.
///
/// # Safety
/// None is needed here, as opposed to the function of this name that records.
#[inline(always)]
pub unsafe fn freed(_tag: u64, _bytes: u64) {}

/// A function that is never recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function;

impl Function {
    /// A function.
    pub fn new(_name: &[u8], _file: &[u8], _line: u32) -> Self {
        Self
    }

    /// A function of a kind.
    pub fn of_kind(_kind: u32, _name: &[u8], _file: &[u8], _line: u32) -> Self {
        Self
    }

    /// A task.
    pub fn task(_name: &[u8]) -> Self {
        Self
    }

    /// The same.
    pub fn called_from(self, _line: u32) -> Self {
        self
    }

    /// False.
    pub fn is_recorded(self) -> bool {
        false
    }

    /// Nothing.
    #[inline(always)]
    pub fn enter(self) -> Call {
        Call
    }

    /// Nothing.
    pub fn redo(self) -> Call {
        Call
    }

    /// Nothing.
    pub fn resume(self) -> Call {
        Call
    }
}

/// Nothing that goes on.
#[must_use = "the activation has to be left"]
#[derive(Debug, PartialEq, Eq)]
pub struct Call;

impl Call {
    /// Nothing.
    #[inline(always)]
    pub fn leave(self) {}

    /// Nothing.
    pub fn withdraw(self) {}

    /// Nothing.
    pub fn exit(self) {}

    /// Nothing.
    pub fn fail(self) {}

    /// Nothing.
    pub fn exception(self) {}

    /// Nothing.
    pub fn cut(&self) {}

    /// Nothing.
    pub fn place(&self) -> Option<Place> {
        None
    }

    /// Nothing.
    pub fn argument_size(&self, _size: u64) {}

    /// 0.
    pub fn into_raw(self) -> u64 {
        0
    }

    /// Nothing.
    pub fn from_raw(_number: u64) -> Self {
        Self
    }
}

/// No place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place;

impl Place {
    /// Nothing.
    pub fn redo(self) -> Call {
        Call
    }

    /// Nothing.
    pub fn resume(self) -> Call {
        Call
    }

    /// Nothing.
    pub fn exit(self) {}

    /// Nothing.
    pub fn fail(self) {}

    /// Nothing.
    pub fn exception(self) {}

    /// Nothing.
    pub fn cut(self) {}
}

/// 0, as no time is taken.
#[inline(always)]
pub fn ticks() -> u64 {
    0
}

/// A [`Site`] of a method: nothing.
#[doc(hidden)]
#[macro_export]
macro_rules! method_site {
    ($($any:tt)*) => {
        &$crate::Site
    };
}

/// A [`Site`] that stands here: nothing.
#[macro_export]
macro_rules! site {
    ($name:expr $(, timed_one_in = $calls:expr)?) => {
        &$crate::Site
    };
}
