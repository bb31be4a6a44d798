//! Futures as activations.

use core::pin::Pin;
use core::task::{Context, Poll};

use crate::scope::{Scope, Site};

/// A future that is in a [`Site`] whenever it is polled.
///
/// The first poll is a call; later ones, in whatever thread, only add their time, under whatever
/// runs there. Of futures that are polled more than once, the shortest and longest activation and
/// the deviation are those of first polls. Each poll bears the cost of an enter and a leave, but
/// only calls are counted, so the correction takes off too little of it.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are polled"]
pub struct Instrumented<F> {
    future: F,
    site: &'static Site,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    New,
    Begun { is_timed: bool },
}

impl<F: Future> Instrumented<F> {
    pub(crate) fn new(site: &'static Site, future: F) -> Self {
        Self { future, site, state: State::New }
    }
}

impl<F> Instrumented<F> {
    fn enter(&mut self) -> Scope {
        match self.state {
            State::New => {
                let scope = self.site.enter();
                self.state = State::Begun { is_timed: scope.is_timed() };
                scope
            }
            State::Begun { is_timed } => self.site.resume(is_timed),
        }
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: nothing is moved out; the future is pinned as long as this is, and only ever
        // handed on as such. There is no `Drop` and no other way to it.
        let this = unsafe { self.get_unchecked_mut() };
        let _scope = this.enter();
        // SAFETY: the future is pinned as long as this is, and nothing is moved out of it.
        unsafe { Pin::new_unchecked(&mut this.future) }.poll(context)
    }
}
