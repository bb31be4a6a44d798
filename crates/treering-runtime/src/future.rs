//! Futures as activations.

use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::scope::{Scope, Site};

pin_project! {
    /// A future that is in a [`Site`] whenever it is polled.
    ///
    /// The first poll is a call; later ones, in whatever thread, only add their time, under whatever
    /// runs there. Of futures that are polled more than once, the shortest and longest activation and
    /// the deviation are those of first polls. Each poll bears the cost of an enter and a leave, but
    /// only calls are counted, so the correction takes off too little of it.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct Instrumented<F> {
        #[pin]
        future: F,
        site: &'static Site,
        state: State,
    }
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

impl State {
    /// Enters the site: a call at first, and a resumption later.
    fn enter(&mut self, site: &'static Site) -> Scope {
        match *self {
            Self::New => {
                let scope = site.enter();
                *self = Self::Begun { is_timed: scope.is_timed() };
                scope
            }
            Self::Begun { is_timed } => site.resume(is_timed),
        }
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _scope = this.state.enter(this.site);
        this.future.poll(context)
    }
}
