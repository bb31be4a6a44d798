//! Call events as text.

use std::collections::HashMap;

use treering_profile::{
    CallRecorder, Frame, Function, FunctionId, Metric, Profile, RecursionRule, ThreadId, Unit,
};

/// The profile of a trace, with a node for each depth. See [`trace_with`].
pub fn trace(text: &str) -> Profile {
    trace_with(RecursionRule::Full, text)
}

/// The profile of a trace under a recursion rule, in one exact metric, `time` in nanoseconds.
///
/// A line is `TIME [@THREAD] enter FUNCTION` or `TIME [@THREAD] leave [FUNCTION]`; indentation
/// is free, and lines without a thread belong to `main`. `leave` without a function leaves the
/// one entered last.
///
/// # Panics
/// On a line that is not an event, and on events that [`CallRecorder`] refuses.
pub fn trace_with(rule: RecursionRule, text: &str) -> Profile {
    let mut profile = Profile::new(rule);
    let clock = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    play(CallRecorder::new(profile, vec![clock]), text)
}

/// Like [`trace_with`], with statistics of single activations.
pub fn timed_trace_with(rule: RecursionRule, text: &str) -> Profile {
    let mut profile = Profile::new(rule);
    let clock = profile.add_metric(Metric::exact("time", Unit::Nanoseconds));
    play(CallRecorder::new(profile, vec![clock]).with_statistics(clock), text)
}

fn play(recorder: CallRecorder, text: &str) -> Profile {
    let mut player = Player { recorder, threads: HashMap::new() };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        player.event(line);
    }
    player.recorder.finish()
}

/// Feeds the events of a trace to a recorder.
struct Player {
    recorder: CallRecorder,
    threads: HashMap<String, (ThreadId, Vec<FunctionId>)>,
}

impl Player {
    fn event(&mut self, line: &str) {
        let mut words = line.split_whitespace().peekable();
        let time = words.next().and_then(|word| word.parse().ok());
        let time: u64 = time.unwrap_or_else(|| panic!("no time at the start of {line:?}"));
        let thread = words.next_if(|word| word.starts_with('@')).map_or("main", |word| &word[1..]);
        match (words.next(), words.next()) {
            (Some("enter"), Some(function)) => self.enter(thread, function, time),
            (Some("leave"), function) => self.leave(thread, function, time),
            _ => panic!("neither enter nor leave in {line:?}"),
        }
    }

    fn enter(&mut self, thread: &str, function: &str, time: u64) {
        let profile = self.recorder.profile_mut();
        let name = profile.strings.intern(function);
        let function = profile.functions.intern(Function::named(name));
        let (thread, open) = self.threads.entry(thread.to_owned()).or_insert_with(|| {
            let added = self.recorder.profile_mut().add_single_thread(thread);
            (added, Vec::new())
        });
        open.push(function);
        let entered = self.recorder.enter(*thread, &Frame::new(function), &[time]);
        entered.unwrap_or_else(|error| panic!("at {time}: {error}"));
    }

    fn leave(&mut self, thread: &str, function: Option<&str>, time: u64) {
        let (thread, open) = self.threads.get_mut(thread).expect("the thread entered something");
        let last = open.pop().unwrap_or_else(|| panic!("at {time}: nothing to leave"));
        let left = function.map_or(last, |name| {
            let profile = self.recorder.profile_mut();
            let name = profile.strings.intern(name);
            profile.functions.intern(Function::named(name))
        });
        let outcome = self.recorder.leave(*thread, left, &[time]);
        outcome.unwrap_or_else(|error| panic!("at {time}: {error}"));
    }
}
