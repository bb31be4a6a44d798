//! Where threads waited, and who ended the waits, as JSON.

use serde::Serialize;
use treering_analysis::{Basis, WaitingPlace, Waker};
use treering_profile::{Profile, WaitKind};

use super::{Place, RunObject, place, run, text};
use crate::options::Options;

/// Where threads waited as JSON: `run` and `places`, each with those who ended its waits.
///
/// `places` are those of `profile`, and `basis` is of the time of waits.
pub fn wakers_json(profile: &Profile, places: &[WaitingPlace], basis: &Basis, options: &Options) -> String {
    #[derive(Serialize)]
    struct Document<'a> {
        view: &'static str,
        run: RunObject<'a>,
        places: Vec<PlaceObject<'a>>,
    }
    let shown = places.iter().filter(|place| basis.share(place.time_ns) >= options.min_share);
    let shown = shown.take(options.limit.unwrap_or(usize::MAX));
    let places = shown.map(|at| PlaceObject {
        place: place(profile, at.function),
        waiting_for: match at.kind {
            WaitKind::Lock => "lock",
            WaitKind::InputOutput => "input_output",
            WaitKind::Idle => "nothing",
            WaitKind::Other => "other",
        },
        waits: at.waits,
        time_ns: at.time_ns,
        ended_by: at.wakers.iter().map(|waker| waker_object(profile, waker)).collect(),
        unknown_waits: at.unknown.0,
        unknown_time_ns: at.unknown.1,
    });
    text(&Document { view: "wakers", run: run(profile, basis), places: places.collect() })
}

fn waker_object<'a>(profile: &'a Profile, waker: &Waker) -> WakerObject<'a> {
    let thread = |thread: &treering_profile::ThreadId| {
        let thread = &profile.threads[thread.index()];
        ThreadObject { name: &thread.name, tid: thread.tid }
    };
    WakerObject {
        waker: waker.kind.as_str(),
        place: waker.function.map(|function| place(profile, function)),
        through: waker.through.map(|function| place(profile, function)),
        threads: waker.threads.iter().map(thread).collect(),
        waits: waker.waits,
        time_ns: waker.time_ns,
    }
}

#[derive(Serialize)]
struct PlaceObject<'a> {
    #[serde(flatten)]
    place: Place<'a>,
    waiting_for: &'static str,
    waits: u64,
    time_ns: u64,
    ended_by: Vec<WakerObject<'a>>,
    unknown_waits: u64,
    unknown_time_ns: u64,
}

#[derive(Serialize)]
struct WakerObject<'a> {
    waker: &'static str,
    place: Option<Place<'a>>,
    through: Option<Place<'a>>,
    threads: Vec<ThreadObject<'a>>,
    waits: u64,
    time_ns: u64,
}

#[derive(Serialize)]
struct ThreadObject<'a> {
    name: &'a str,
    tid: u32,
}
