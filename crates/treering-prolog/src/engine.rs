//! The ports of wrapped predicates, as call events.
//!
//! Prolog runs an engine in one thread at a time. What an engine has open is a part of its thread's
//! stack of activations: above that of the engine whose predicate made it go on.

use core::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

use treering_runtime::{Call, Function, Place};

use crate::activation::{Activations, Number, State};
use crate::recording;

/// How many engines there may be at a time, threads among them. Events of further ones are counted as
/// lost.
pub(crate) const MOST: usize = 1 << 16;

static ENGINES: [OnceLock<Box<Mutex<Engine>>>; MOST] = [const { OnceLock::new() }; MOST];

thread_local! {
    /// The engines that this thread has made go on and that have not given up control, outermost first.
    static RUNNING: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

/// What is known of an engine.
struct Engine {
    /// Which recording the functions are of.
    recording: u32,
    functions: Arc<[Function]>,
    activations: Activations,
    /// Those that run, or are suspended with the engine as a whole, outermost first.
    open: Vec<Number>,
    /// The thread in which it runs; nothing while it rests.
    home: Option<ThreadId>,
    /// The most activations that were open at a time.
    deepest: usize,
}

impl Engine {
    fn new() -> Self {
        Self {
            recording: 0,
            functions: Vec::new().into(),
            activations: Activations::default(),
            open: Vec::new(),
            home: None,
            deepest: 0,
        }
    }
}

fn lock(number: i32) -> Option<MutexGuard<'static, Engine>> {
    let engine = ENGINES.get(usize::try_from(number).ok()?)?;
    let engine = engine.get_or_init(|| Box::new(Mutex::new(Engine::new())));
    Some(engine.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The engine in whose name something happens, with what it has open on top of the thread's stack.
fn running(number: i32) -> Option<MutexGuard<'static, Engine>> {
    let is_on_top = RUNNING.with_borrow(|running| running.last() == Some(&number));
    if is_on_top {
        return lock(number);
    }
    turn_to(number)
}

/// Suspends the engines that run above, and has this one go on.
#[cold]
fn turn_to(number: i32) -> Option<MutexGuard<'static, Engine>> {
    let here = std::thread::current().id();
    RUNNING.with_borrow_mut(|running| {
        if let Some(at) = running.iter().position(|&known| known == number) {
            for above in running.split_off(at + 1).into_iter().rev() {
                if let Some(mut engine) = lock(above).filter(|engine| engine.home == Some(here)) {
                    engine.suspend_from(0);
                    engine.home = None;
                }
            }
        } else {
            running.push(number);
        }
        let mut engine = lock(number)?;
        // One that was left in another thread is that thread's to end.
        let is_elsewhere = engine.home.is_some_and(|home| home != here);
        if engine.home.replace(here).is_none() || is_elsewhere {
            engine.resume();
        }
        Some(engine)
    })
}

impl Engine {
    /// Leaves the activations from a place on, without a port.
    fn suspend_from(&mut self, first: usize) {
        for &number in self.open[first..].iter().rev() {
            if let Some(activation) = self.activations.get(number)
                && activation.state == State::Running
            {
                let call = Call::from_raw(activation.token);
                (activation.place, activation.state) = (call.place(), State::Suspended);
                call.leave();
            }
        }
    }

    /// Goes on with what was suspended with the engine as a whole.
    fn resume(&mut self) {
        for &number in &self.open {
            if let Some(activation) = self.activations.get(number)
                && activation.state == State::Suspended
            {
                let call = activation.place.map(Place::resume);
                (activation.token, activation.state) = (call.map_or(0, Call::into_raw), State::Running);
            }
        }
    }

    /// Makes an activation that runs the topmost one, by suspending those above; takes it off the list.
    fn take_top(&mut self, number: Number) {
        if self.open.last() != Some(&number) {
            let Some(at) = self.open.iter().rposition(|&open| open == number) else { return };
            self.suspend_from(at + 1);
            self.open.truncate(at + 1);
        }
        self.open.pop();
    }

    /// The continuation of an activation that has ended succeeds.
    fn exit_continued(&mut self, function: usize, for_good: bool) -> Option<Number> {
        let call = self.functions.get(function)?.resume();
        let place = call.place();
        call.exit();
        if for_good {
            return None;
        }
        let number = self.activations.add(0)?;
        if let Some(activation) = self.activations.get(number) {
            (activation.state, activation.place) = (State::Continued, place);
        }
        Some(number)
    }

    fn refresh(&mut self, recording: u32) {
        self.recording = recording;
        self.functions = recording::functions();
        self.deepest = 0;
    }
}

/// A wrapped predicate is called: the number of its activation, or nothing where there is no room.
pub(crate) fn call(engine: i32, function: usize) -> Option<Number> {
    let Some(mut engine) = running(engine) else {
        recording::lose();
        return None;
    };
    let now = recording::number();
    if engine.recording != now {
        engine.refresh(now);
    }
    let token = engine.functions.get(function).map_or(0, |function| function.enter().into_raw());
    let number = engine.activations.add(token)?;
    engine.open.push(number);
    engine.deepest = engine.deepest.max(engine.open.len());
    Some(number)
}

/// It succeeded; with `for_good` it has left no choice. The number by which it is asked for more.
///
/// An activation may succeed after it has failed: tabling captures its continuation, has it fail, and
/// calls the continuation for each answer.
pub(crate) fn exit(engine: i32, function: usize, number: Number, for_good: bool) -> Option<Number> {
    let Some(mut engine) = running(engine) else {
        recording::lose();
        return None;
    };
    let Some(activation) = engine.activations.get(number) else {
        return engine.exit_continued(function, for_good);
    };
    let (state, token, place) = (activation.state, activation.token, activation.place);
    activation.state = if for_good { State::Finished } else { State::Exited };
    match state {
        State::Running => {
            if !for_good {
                let call = Call::from_raw(token);
                activation.place = call.place();
            }
            engine.take_top(number);
            Call::from_raw(token).exit();
        }
        // A continuation was called once more.
        _ => at_place(place, Place::exit),
    }
    Some(number)
}

/// Another solution is asked for.
pub(crate) fn redo(engine: i32, number: Number) {
    let Some(mut engine) = running(engine) else { return recording::lose() };
    let Some(activation) = engine.activations.get(number) else { return recording::lose() };
    let call = activation.place.map(Place::redo);
    let token = call.map_or(0, Call::into_raw);
    match activation.state {
        // Nothing will tell of the end of a continuation.
        State::Continued => {
            engine.activations.end(number);
            return Call::from_raw(token).leave();
        }
        // Several continuations are asked for more: of all but one the time is their caller's.
        State::Running => return Call::from_raw(token).leave(),
        _ => {}
    }
    (activation.token, activation.state) = (token, State::Running);
    engine.open.push(number);
}

/// It has no further solution.
pub(crate) fn fail(engine: i32, number: Number) {
    end(engine, number, Call::fail, Place::fail);
}

/// What an exit has left was cut. Of all but continuations, [`pruned`] tells that.
pub(crate) fn exit_pruned(engine: i32, number: Number) {
    let Some(mut engine) = running(engine) else { return recording::lose() };
    let found = engine.activations.get(number).filter(|activation| activation.state == State::Continued);
    let Some(place) = found.map(|activation| activation.place) else { return };
    engine.activations.end(number);
    at_place(place, Place::cut);
}

/// Its frame is gone: after it succeeded for good, by an exception, or by a cut of what it has left.
pub(crate) fn pruned(engine: i32, number: Number) {
    let Some(mut engine_here) = running(engine) else { return recording::lose() };
    match engine_here.activations.get(number).map(|activation| (activation.state, activation.place)) {
        Some((State::Finished, _)) => engine_here.activations.end(number),
        Some((State::Exited, place)) => {
            engine_here.activations.end(number);
            at_place(place, Place::cut);
        }
        Some(_) => {
            drop(engine_here);
            end(engine, number, Call::exception, Place::exception);
        }
        None => recording::lose(),
    }
}

fn end(engine: i32, number: Number, by_call: fn(Call), by_place: fn(Place)) {
    let Some(mut engine) = running(engine) else { return recording::lose() };
    let Some(activation) = engine.activations.get(number) else { return recording::lose() };
    let (state, token, place) = (activation.state, activation.token, activation.place);
    if state == State::Running {
        engine.take_top(number);
        by_call(Call::from_raw(token));
    } else {
        if state == State::Suspended {
            engine.open.retain(|&open| open != number);
        }
        at_place(place, by_place);
    }
    engine.activations.end(number);
}

/// Counts a port of an activation that is not open.
fn at_place(place: Option<Place>, count: fn(Place)) {
    if let Some(place) = place {
        count(place);
    }
}

/// How many activations have not ended, in all engines.
pub(crate) fn live() -> usize {
    all().map(|engine| engine.activations.count()).sum()
}

/// The most activations that an engine had open in a recording.
pub(crate) fn deepest(recording: u32) -> usize {
    all().filter(|engine| engine.recording == recording).map(|engine| engine.deepest).max().unwrap_or(0)
}

fn all() -> impl Iterator<Item = MutexGuard<'static, Engine>> {
    let known = ENGINES.iter().filter_map(OnceLock::get);
    known.map(|engine| engine.lock().unwrap_or_else(PoisonError::into_inner))
}
