//! Where threads waited, and who ended the waits, as text.

use treering_analysis::{Basis, WaitingPlace, Waker};
use treering_profile::{Profile, WaitKind, WakerKind, pluralize};

use crate::function::Labels;
use crate::header::header_lines;
use crate::number::{duration, grouped, percent};
use crate::options::Options;
use crate::printable::{printable, printable_profile};
use crate::style::Style;
use crate::table::Table;

/// The places where threads waited, each with those who ended the waits, and the share of the place's time that each ended.
///
/// `places` are those of `profile`, and `basis` is of the time of waits.
pub fn wakers_text(
    profile: &Profile,
    places: &[WaitingPlace],
    basis: &Basis,
    style: &Style,
    options: &Options,
) -> String {
    let profile = &*printable_profile(profile);
    let listing = Listing { profile, labels: Labels::of(profile) };
    let mut text = header_lines(profile, basis, style);
    text.push('\n');
    let headings = ["% wait", "waits", "time"].map(str::to_owned).to_vec();
    let mut table = Table::new(headings, "where threads waited, and below it who ended that");
    let is_shown = |place: &&WaitingPlace| basis.share(place.time_ns) >= options.min_share;
    let shown: Vec<_> = places.iter().filter(is_shown).take(options.limit.unwrap_or(usize::MAX)).collect();
    for place in &shown {
        let share = basis.share(place.time_ns);
        table.row(cells(share, place.waits, place.time_ns), listing.place(place), share);
        listing.wakers(place, &mut table);
    }
    text += &table.render(style);
    let left_out = places.len() - shown.len();
    if left_out > 0 {
        let sum =
            |places: &mut dyn Iterator<Item = &WaitingPlace>| places.map(|place| place.time_ns).sum::<u64>();
        let rest = sum(&mut places.iter()) - sum(&mut shown.iter().copied());
        let (counted, share) = (pluralize(left_out as u64, "place", "places"), percent(basis.share(rest)));
        text += &format!("… {counted} more, together {share} %\n");
    }
    text
}

fn cells(share: f64, waits: u64, time_ns: u64) -> Vec<String> {
    vec![percent(share), grouped(waits), duration(time_ns as f64)]
}

struct Listing<'a> {
    profile: &'a Profile,
    labels: Labels<'a>,
}

/// Wakers below this share of their place have a row together, if there are several.
const SMALL: f64 = 0.01;

impl Listing<'_> {
    fn place(&self, place: &WaitingPlace) -> String {
        let kind = match place.kind {
            WaitKind::Lock => ", for a lock",
            WaitKind::InputOutput => ", for input or output",
            WaitKind::Idle => ", with nothing to do",
            WaitKind::Other => "",
        };
        format!("{}{kind}", self.labels.with_module(place.function))
    }

    /// The rows of those who ended the waits of a place. Shares are of the place.
    fn wakers(&self, place: &WaitingPlace, table: &mut Table) {
        let share = |time_ns: u64| time_ns as f64 / place.time_ns.max(1) as f64;
        let (large, small): (Vec<_>, Vec<_>) =
            place.wakers.iter().partition(|waker| share(waker.time_ns) >= SMALL);
        let (large, small) = match small[..] {
            [only] => (large.into_iter().chain([only]).collect(), Vec::new()),
            _ => (large, small),
        };
        let mut row = |name: String, waits: u64, time_ns: u64| {
            table.row(cells(share(time_ns), waits, time_ns), format!("    {name}"), 0.0);
        };
        for waker in large {
            row(self.waker(waker), waker.waits, waker.time_ns);
        }
        if !small.is_empty() {
            let sum = |of: fn(&Waker) -> u64| small.iter().map(|waker| of(waker)).sum();
            let name = format!("{} others", small.len());
            row(name, sum(|waker| waker.waits), sum(|waker| waker.time_ns));
        }
        let (waits, time_ns) = place.unknown;
        if waits > 0 || time_ns > 0 {
            row("not known".to_owned(), waits, time_ns);
        }
    }

    fn waker(&self, waker: &Waker) -> String {
        let through =
            waker.through.map_or(String::new(), |through| format!(": {}", self.labels.name(through)));
        match (waker.kind, waker.function) {
            (WakerKind::Thread | WakerKind::SoftInterrupt, None) if waker.threads.is_empty() => {
                "a thread outside of the selected part".to_owned()
            }
            (WakerKind::Thread, Some(function)) => match &*self.labels.name(function) {
                WakerKind::END_OF_THREAD => format!("the end of {}", self.threads(waker)),
                name if waker.threads.is_empty() => format!("the {}", name.trim_matches(['[', ']'])),
                name => format!("{name} in {}", self.threads(waker)),
            },
            (WakerKind::Thread, None) => format!("{}, stack not kept", self.threads(waker)),
            (WakerKind::SoftInterrupt, _) => format!("a soft interrupt in {}", self.threads(waker)),
            (WakerKind::Interrupt, _) => format!("an interrupt{through}"),
            (WakerKind::KernelThread, function) => self.other(function, "a thread of the kernel"),
            (WakerKind::Program, function) => self.other(function, "another program"),
        }
    }

    /// A waker that is none of the program, by the name that stands for it.
    fn other(&self, function: Option<treering_profile::FunctionId>, otherwise: &str) -> String {
        function.map_or(otherwise.to_owned(), |function| {
            self.labels.name(function).trim_matches(['[', ']']).to_owned()
        })
    }

    /// The thread by its name, or how many they are.
    fn threads(&self, waker: &Waker) -> String {
        let mut names: Vec<&str> =
            waker.threads.iter().map(|thread| &*self.profile.threads[thread.index()].name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        match (names[..].first(), names.len(), count) {
            (Some(name), 1, 1) => format!("thread {}", printable(name)),
            (Some(name), 1, _) => format!("{count} threads {}", printable(name)),
            _ => format!("{count} threads"),
        }
    }
}
