//! The events that are to be counted.

use treering_perf::Event;
use treering_stat::{Event as Named, Metric, Processor, Unit};

use crate::failure::{Context as _, Failure};

/// The events, by the groups in which they are counted.
#[derive(Clone, Debug)]
pub(super) struct Events {
    /// As the kernel is asked for them.
    pub(super) groups: Vec<Vec<Event>>,
    /// All of them in the same order, as they are shown.
    pub(super) named: Vec<Named>,
}

/// The events where none are asked for. Those of the last line need the processor's counters.
const USUAL: &str = "task-clock,context-switches,cpu-migrations,page-faults,minor-faults,major-faults,\
                     cycles,instructions,branches,branch-misses";

impl Events {
    /// Reads lists of events; the usual ones where there is none.
    pub(super) fn parse(lists: &[String]) -> Result<Self, Failure> {
        let usual = [USUAL.to_owned()];
        let lists = if lists.is_empty() { &usual[..] } else { lists };
        let mut events = Self { groups: Vec::new(), named: Vec::new() };
        for list in lists {
            for part in parts(list)? {
                let names = match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                    Some(group) => parts(group)?,
                    None => vec![part],
                };
                events.add_group(&names)?;
            }
        }
        Ok(events)
    }

    fn add_group(&mut self, names: &[&str]) -> Result<(), Failure> {
        let mut group = Vec::with_capacity(names.len());
        for name in names {
            let event = Event::parse(name).map_err(|unknown| Failure::new(&unknown).hint(&unknown.hint))?;
            let unit = if event.is_time() { Unit::Nanoseconds } else { Unit::Count };
            if !self.named.iter().any(|known| known.name == *name) {
                self.named.push(Named { name: (*name).to_owned(), unit });
                group.push(event);
            }
        }
        if !group.is_empty() {
            self.groups.push(group);
        }
        Ok(())
    }
}

/// The metrics of this machine's processor up to a level.
pub(super) fn top_down(level: u8) -> Result<Vec<Metric>, Failure> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").context("cannot read /proc/cpuinfo")?;
    let processor = Processor::parse(&cpuinfo);
    let threads = std::fs::read_to_string("/sys/devices/system/cpu/smt/active").unwrap_or_default();
    let metrics = processor.as_ref().map(|processor| processor.metrics(level, threads.trim() == "1"));
    match metrics.filter(|metrics| !metrics.is_empty()) {
        Some(metrics) => Ok(metrics),
        None => {
            let which = processor.map_or("this processor".to_owned(), |known| known.to_string());
            Err(Failure::new(format_args!("there is no table of top-down metrics for {which}"))
                .hint("Intel publishes them for its processors with one kind of cores; perf stat --topdown may know others"))
        }
    }
}

/// The events of metrics: those of each are counted at the same times. A machine without counters has none of them.
pub(super) fn groups_of(metrics: &[Metric]) -> Vec<Vec<Event>> {
    let event = |name: &str| Event::parse(name).unwrap_or_else(|_| Event::lacking(name));
    metrics.iter().map(|metric| metric.events().into_iter().map(event).collect()).collect()
}

/// The parts of a list, at its commas: not at those within braces, nor at those between the terms of a unit's event
/// (`cpu/event=0x3c,umask=1/`).
fn parts(list: &str) -> Result<Vec<&str>, Failure> {
    let (mut is_braced, mut is_within_slashes) = (false, false);
    let mut parts = Vec::new();
    let mut begin = 0;
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => is_braced = true,
            '}' => is_braced = false,
            '/' => is_within_slashes = !is_within_slashes,
            ',' if !is_braced && !is_within_slashes => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[begin..]);
    if is_braced {
        return Err(Failure::new(format_args!("the group of events in {list} has no closing brace"))
            .hint("quote it for the shell: -e '{cycles,instructions}'"));
    }
    if parts.iter().any(|part| part.trim().is_empty()) {
        return Err(Failure::new(format_args!("a list of events holds an empty name: {list:?}"))
            .hint("for instance: -e task-clock,page-faults"));
    }
    Ok(parts.into_iter().map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(lists: &[&str]) -> Vec<Vec<String>> {
        let lists: Vec<String> = lists.iter().map(|&list| list.to_owned()).collect();
        let events = Events::parse(&lists).expect("events that exist");
        events.groups.iter().map(|group| group.iter().map(|event| event.name.clone()).collect()).collect()
    }

    #[test]
    fn lists_divide_at_commas_and_groups_stay_together() {
        assert_eq!(
            names(&["task-clock,{cs,page-faults}", "faults"]),
            [vec!["task-clock"], vec!["cs", "page-faults"], vec!["faults"]]
        );
        let of_unit = parts("cpu/event=0x3c,umask=1/,cycles").expect("a list");
        assert_eq!(of_unit, ["cpu/event=0x3c,umask=1/", "cycles"]);
    }

    #[test]
    fn an_event_that_is_named_twice_is_counted_once() {
        assert_eq!(names(&["cs,cs", "{cs,faults}"]), [vec!["cs"], vec!["faults"]]);
    }

    #[test]
    fn lists_that_are_wrong_are_refused_with_a_hint() {
        for list in ["", "cs,", ",cs", "{cs,faults", "{}", "no-such-event"] {
            let refused = Events::parse(&[list.to_owned()]).expect_err(list);
            assert!(format!("{refused:?}").contains("hint"), "{refused:?}");
        }
    }
}
