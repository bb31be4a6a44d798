//! The ports of wrapped predicates, as call events.
//!
//! Prolog runs an engine in one thread at a time. The open activations of an engine are a part of its
//! thread's stack of activations: above that of the engine whose predicate made it go on. An engine that
//! goes on in another thread takes its activations there: they are entered anew in that thread's tree, and
//! the ports that they come to are counted there.

use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use treering_runtime::{Call, Function, Place};

use crate::activation::{Activations, Number, State};
use crate::recording;

/// How many engines there may be at a time, threads among them. Events of further ones are counted as
/// lost.
pub(crate) const MOST: usize = 1 << 16;

/// From how many open activations on it is noted which predicate has most of them.
const DEEP: usize = 100_000;

/// How many of the deepest are looked at for that.
const LOOKED_AT: usize = 1000;

static ENGINES: [OnceLock<Box<Mutex<Engine>>>; MOST] = [const { OnceLock::new() }; MOST];

/// A thread that runs engines.
struct Here {
    /// Its number, from 1; none is used twice.
    number: u64,
    /// The engines that it has made go on and that have not given up control, outermost first.
    running: Vec<i32>,
}

thread_local! {
    static HERE: RefCell<Here> = {
        static THREADS: AtomicU64 = AtomicU64::new(1);
        RefCell::new(Here { number: THREADS.fetch_add(1, Relaxed), running: Vec::new() })
    };
}

impl Drop for Here {
    /// The thread ends. Activations of engines that are open here go on elsewhere, if at all.
    fn drop(&mut self) {
        for &number in self.running.iter().rev() {
            if let Some(mut engine) = lock(number) {
                engine.left_behind.retain(|&(thread, _)| thread != self.number);
                if engine.home == self.number {
                    engine.suspend_without_leaving();
                    engine.home = 0;
                }
            }
        }
    }
}

/// An engine: its activations, and the thread that runs it.
struct Engine {
    /// The recording that the functions belong to.
    recording: u32,
    functions: Arc<[Function]>,
    activations: Activations,
    /// The activations that run, or are suspended with the engine as a whole, outermost first.
    open: Vec<Number>,
    /// The number of the thread in which it runs; 0 while it rests.
    home: u64,
    /// Activations of the runtime that are open in a thread which the engine has left since, with the
    /// number of that thread, which is to leave them; outermost first.
    left_behind: Vec<(u64, u64)>,
    /// The most activations that were open at a time.
    deepest: usize,
    /// The commonest predicate among the innermost activations, noted when `deepest` grows.
    commonest: usize,
}

impl Engine {
    fn new() -> Self {
        Self {
            recording: 0,
            functions: Vec::new().into(),
            activations: Activations::default(),
            open: Vec::new(),
            home: 0,
            left_behind: Vec::new(),
            deepest: 0,
            commonest: 0,
        }
    }
}

fn lock(number: i32) -> Option<MutexGuard<'static, Engine>> {
    let engine = ENGINES.get(usize::try_from(number).ok()?)?;
    let engine = engine.get_or_init(|| Box::new(Mutex::new(Engine::new())));
    Some(engine.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The engine that an event belongs to, with its open activations on top of the thread's stack.
fn running(number: i32) -> Option<MutexGuard<'static, Engine>> {
    // Events in a thread whose own data are gone are counted as lost.
    let mut engine = HERE
        .try_with(|here| {
            let mut here = here.borrow_mut();
            if here.running.last() == Some(&number) {
                let engine = lock(number)?;
                if engine.home == here.number {
                    return Some(engine);
                }
            }
            here.turn_to(number)
        })
        .ok()
        .flatten()?;
    let now = recording::number();
    if engine.recording != now {
        engine.refresh(now);
    }
    Some(engine)
}

impl Here {
    /// Suspends the engines that run above, and has this one go on.
    #[cold]
    fn turn_to(&mut self, number: i32) -> Option<MutexGuard<'static, Engine>> {
        match self.running.iter().position(|&known| known == number) {
            Some(at) => {
                for above in self.running.split_off(at + 1).into_iter().rev() {
                    if let Some(mut engine) = lock(above) {
                        engine.rest(self.number);
                    }
                }
            }
            None => self.running.push(number),
        }
        let mut engine = lock(number)?;
        if engine.home != self.number {
            engine.leave_behind(self.number);
            engine.go_on(self.number);
        }
        Some(engine)
    }
}

impl Engine {
    /// It has given up control, or has left this thread before.
    fn rest(&mut self, here: u64) {
        if self.home == here {
            self.suspend_from(0);
            self.home = 0;
        } else {
            self.leave_behind(here);
        }
    }

    /// Leaves the activations that it had open in this thread when it went on in another one.
    fn leave_behind(&mut self, here: u64) {
        for &(thread, token) in self.left_behind.iter().rev() {
            if thread == here {
                Call::from_raw(token).leave();
            }
        }
        self.left_behind.retain(|&(thread, _)| thread != here);
    }

    /// Goes on in this thread, after it has rested or has run in another one.
    fn go_on(&mut self, here: u64) {
        if self.home != 0 {
            let home = self.home;
            let running = self.suspend_without_leaving();
            self.left_behind.extend(running.into_iter().map(|token| (home, token)));
        }
        self.home = here;
        for at in 0..self.open.len() {
            let Some(&mut activation) = self.activations.get(self.open[at]) else { continue };
            if activation.state == State::Suspended {
                let call = self.place(activation.function, activation.place).map(Place::resume);
                let token = call.map_or(0, Call::into_raw);
                if let Some(activation) = self.activations.get(self.open[at]) {
                    (activation.token, activation.state) = (token, State::Running);
                }
            }
        }
    }

    /// The place of an activation in the tree of the thread that the engine runs in. If the activation has
    /// been in another thread, its place is below the open activations of this thread.
    fn place(&self, function: u32, place: Option<(u64, Place)>) -> Option<Place> {
        if let Some((thread, place)) = place
            && thread == self.home
        {
            return Some(place);
        }
        let call = self.functions.get(function as usize)?.resume();
        let place = call.place();
        call.leave();
        place
    }

    /// Counts a port of an activation that is not open.
    fn at_place(&self, function: u32, place: Option<(u64, Place)>, count: fn(Place)) {
        if let Some(place) = self.place(function, place) {
            count(place);
        }
    }

    /// Leaves the activations from a place on, without a port.
    fn suspend_from(&mut self, first: usize) {
        let home = self.home;
        for &number in self.open[first..].iter().rev() {
            if let Some(activation) = self.activations.get(number)
                && activation.state == State::Running
            {
                let call = Call::from_raw(activation.token);
                activation.place = call.place().map(|place| (home, place));
                activation.state = State::Suspended;
                call.leave();
            }
        }
    }

    /// The same where another thread than this one has to leave them; returns the tokens that it has to
    /// leave.
    fn suspend_without_leaving(&mut self) -> Vec<u64> {
        let mut tokens = Vec::new();
        for &number in &self.open {
            if let Some(activation) = self.activations.get(number)
                && activation.state == State::Running
            {
                tokens.push(activation.token);
                (activation.place, activation.state) = (None, State::Suspended);
            }
        }
        tokens
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

    /// The continuation of an activation that has ended succeeds: it was entered again, and has exited.
    fn exit_continued(&mut self, function: usize, for_good: bool) -> Option<Number> {
        let function = u32::try_from(function).ok()?;
        let place = self.place(function, None)?;
        place.redo().exit();
        if for_good {
            return None;
        }
        let number = self.activations.add(function, 0)?;
        let home = self.home;
        if let Some(activation) = self.activations.get(number) {
            (activation.state, activation.place) = (State::Continued, Some((home, place)));
        }
        Some(number)
    }

    /// Its thread ends with whatever is open.
    fn end_all(&mut self) {
        while let Some(number) = self.open.pop() {
            let Some(&mut activation) = self.activations.get(number) else { continue };
            if activation.state == State::Running {
                Call::from_raw(activation.token).exception();
            } else {
                self.at_place(activation.function, activation.place, Place::exception);
            }
            self.activations.end(number);
        }
        for activation in self.activations.take_live() {
            if activation.state == State::Exited {
                self.at_place(activation.function, activation.place, Place::cut);
            }
        }
    }

    #[cold]
    fn refresh(&mut self, recording: u32) {
        self.recording = recording;
        self.functions = recording::functions();
        self.activations.forget();
        self.left_behind.clear();
        self.deepest = 0;
    }

    /// Notes which predicate most of the deepest activations are of.
    #[cold]
    fn note_commonest(&mut self) {
        let mut counts = vec![0; self.functions.len()];
        let first = self.open.len().saturating_sub(LOOKED_AT);
        for &number in &self.open[first..] {
            let function = self.activations.get(number).map(|activation| activation.function as usize);
            if let Some(count) = function.and_then(|function| counts.get_mut(function)) {
                *count += 1;
            }
        }
        self.commonest = (0..counts.len()).rev().max_by_key(|&at| counts[at]).unwrap_or(0);
    }
}

/// A wrapped predicate is called: the number of its activation, or nothing where there is no room.
pub(crate) fn call(engine: i32, function: usize) -> Option<Number> {
    let Some(mut engine) = running(engine) else {
        recording::lose();
        return None;
    };
    let token = engine.functions.get(function).map_or(0, |function| function.enter().into_raw());
    let number = engine.activations.add(function as u32, token)?;
    engine.open.push(number);
    let depth = engine.open.len();
    if depth > engine.deepest {
        engine.deepest = depth;
        if depth == DEEP {
            engine.note_commonest();
        }
    }
    Some(number)
}

/// It succeeded; with `for_good` it has left no choice. The number by which it is asked for more.
///
/// An activation may succeed after it has failed: tabling captures its continuation, has it fail, and
/// calls the continuation for each answer. And it may succeed again without having been asked for more,
/// when its continuation is called once more. Both count as a redo and an exit.
pub(crate) fn exit(engine: i32, function: usize, number: Number, for_good: bool) -> Option<Number> {
    let Some(mut engine) = running(engine) else {
        recording::lose();
        return None;
    };
    let home = engine.home;
    let Some(activation) = engine.activations.get(number) else {
        return engine.exit_continued(function, for_good);
    };
    let (state, token, place, function) =
        (activation.state, activation.token, activation.place, activation.function);
    activation.state = if for_good { State::Finished } else { State::Exited };
    match state {
        State::Running => {
            if !for_good {
                let call = Call::from_raw(token);
                activation.place = call.place().map(|place| (home, place));
            }
            engine.take_top(number);
            Call::from_raw(token).exit();
        }
        State::Suspended => {
            engine.open.retain(|&open| open != number);
            engine.at_place(function, place, Place::exit);
        }
        _ => engine.at_place(function, place, |place| place.redo().exit()),
    }
    Some(number)
}

/// Another solution is asked for.
pub(crate) fn redo(engine: i32, number: Number) {
    let Some(mut engine) = running(engine) else { return recording::lose() };
    let Some(&mut activation) = engine.activations.get(number) else { return recording::lose() };
    let place = engine.place(activation.function, activation.place);
    match activation.state {
        // That it was entered again was counted when it exited; nothing will tell how it ends.
        State::Continued => return engine.activations.end(number),
        // The one of its continuations that was asked for more before has failed, and nothing told that.
        State::Running | State::Suspended => {
            if let Some(place) = place {
                place.fail();
                place.redo().leave();
            }
            return;
        }
        _ => {}
    }
    let home = engine.home;
    let token = place.map_or(0, |place| place.redo().into_raw());
    if let Some(activation) = engine.activations.get(number) {
        activation.place = place.map(|place| (home, place));
        (activation.token, activation.state) = (token, State::Running);
    }
    engine.open.push(number);
}

/// It has no further solution.
pub(crate) fn fail(engine: i32, number: Number) {
    end(engine, number, Call::fail, Place::fail);
}

/// Choice points that an exit has left were cut. Ends activations whose continuation was called; [`pruned`]
/// ends all others.
pub(crate) fn exit_pruned(engine: i32, number: Number) {
    let Some(mut engine) = running(engine) else { return recording::lose() };
    let found = engine.activations.get(number).filter(|activation| activation.state == State::Continued);
    let Some(&mut activation) = found else { return };
    engine.activations.end(number);
    engine.at_place(activation.function, activation.place, Place::cut);
}

/// Its frame is gone: after it succeeded for good, by an exception, or by a cut of its choice points.
pub(crate) fn pruned(engine: i32, number: Number) {
    let Some(mut engine_here) = running(engine) else { return recording::lose() };
    match engine_here.activations.get(number).map(|activation| *activation) {
        Some(activation) if activation.state == State::Finished => engine_here.activations.end(number),
        Some(activation) if activation.state == State::Exited => {
            engine_here.activations.end(number);
            engine_here.at_place(activation.function, activation.place, Place::cut);
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
    let Some(&mut activation) = engine.activations.get(number) else { return recording::lose() };
    if activation.state == State::Running {
        engine.take_top(number);
        by_call(Call::from_raw(activation.token));
    } else {
        if activation.state == State::Suspended {
            engine.open.retain(|&open| open != number);
        }
        engine.at_place(activation.function, activation.place, by_place);
    }
    engine.activations.end(number);
}

/// The thread whose own engine this is ends: thread_exit/1 does not unwind the stack.
pub(crate) fn thread_ends(engine: i32) {
    let has_any = lock(engine).is_some_and(|engine| engine.activations.count() > 0);
    if has_any && let Some(mut engine) = running(engine) {
        engine.end_all();
    }
}

/// How many activations have not ended, in all engines.
pub(crate) fn live() -> usize {
    all().map(|engine| engine.activations.count()).sum()
}

/// The most activations that an engine had open in a recording, and the predicate of most of the deepest.
pub(crate) fn deepest(recording: u32) -> (usize, usize) {
    let of = all().filter(|engine| engine.recording == recording);
    of.map(|engine| (engine.deepest, engine.commonest)).max().unwrap_or((0, usize::MAX))
}

fn all() -> impl Iterator<Item = MutexGuard<'static, Engine>> {
    let known = ENGINES.iter().filter_map(OnceLock::get);
    known.map(|engine| engine.lock().unwrap_or_else(PoisonError::into_inner))
}
