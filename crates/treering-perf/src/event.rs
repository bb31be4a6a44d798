//! Events by the names that `perf` gives them.

use std::io::{self, ErrorKind};
use std::path::Path;

use crate::sys::abi;

/// An event to sample: the counted quantity, and in which modes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name as the user wrote it.
    pub name: String,
    /// The kernel's type of event (`PERF_TYPE_…`).
    pub(crate) kind: u32,
    /// The number of the event within that type.
    pub(crate) config: u64,
    /// Further configuration of some hardware events.
    pub(crate) config1: u64,
    /// Further configuration of some hardware events.
    pub(crate) config2: u64,
    /// The modes of the processor that count.
    pub(crate) modes: Modes,
    /// How much skid is allowed, from 0 (any) to 3 (none).
    pub(crate) precise: u8,
}

/// The modes of the processor that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Modes {
    /// User and kernel, or user alone where the kernel does not permit more.
    #[default]
    Any,
    /// User alone (`:u`).
    User,
    /// Kernel alone (`:k`).
    Kernel,
}

/// The nature of an event's counts, which decides how it is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nature {
    /// A timer that counts nanoseconds.
    Clock,
    /// The processor's clock cycles, nearly as steady as a timer.
    Cycles,
    /// Something the processor counts often and unsteadily.
    Hardware,
    /// Something the kernel counts seldom enough to note every one.
    Occurrence,
}

impl Event {
    /// The processor's clock cycles, the best measure of where a program spends its time.
    pub fn cycles() -> Self {
        Self::new("cycles", abi::PERF_TYPE_HARDWARE, abi::PERF_COUNT_HW_CPU_CYCLES.into())
    }

    /// The kernel's timer, which works where the processor's counters cannot be had.
    pub fn cpu_clock() -> Self {
        Self::new("cpu-clock", abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_CPU_CLOCK.into())
    }

    /// Switches away from a thread, each noted with its stack.
    pub(crate) fn context_switches() -> Self {
        Self::new("context-switches", abi::PERF_TYPE_SOFTWARE, abi::PERF_COUNT_SW_CONTEXT_SWITCHES.into())
    }

    /// A tracepoint, by the number that tracefs gives it.
    pub(crate) fn tracepoint(name: &str, id: u64) -> Self {
        Self::new(name, abi::PERF_TYPE_TRACEPOINT, id)
    }

    /// An event of a unit that this machine lacks: the kernel knows no such kind.
    pub fn lacking(name: &str) -> Self {
        Self::new(name, u32::MAX, 0)
    }

    fn new(name: &str, kind: u32, config: u64) -> Self {
        let name = name.to_owned();
        Self { name, kind, config, config1: 0, config2: 0, modes: Modes::Any, precise: 0 }
    }

    /// The event that `name` stands for: a hardware, software or cache event by its name in
    /// `perf list`, `rHEX` for a raw one, `group:name` for a tracepoint, `unit/term=…/` for one of a
    /// unit in `/sys/bus/event_source/devices`; each may end in `:u`, `:k` or `:p` modifiers.
    ///
    /// # Errors
    /// When there is no such event on this machine.
    pub fn parse(name: &str) -> Result<Self, UnknownEvent> {
        let (base, modifiers) = split_modifiers(name);
        let mut event = named(base)
            .or_else(|| cache_event(base))
            .or_else(|| raw_event(base))
            .map_or_else(|| unit_event(base).transpose(), |event| Some(Ok(event)))
            .unwrap_or_else(|| tracepoint(base))?;
        event.name = base.to_owned();
        event.precise = modifiers.matches('p').count() as u8;
        event.modes = match (modifiers.contains('u'), modifiers.contains('k')) {
            (true, false) => Modes::User,
            (false, true) => Modes::Kernel,
            _ => Modes::Any,
        };
        Ok(event)
    }

    /// Whether it counts nanoseconds.
    pub fn is_time(&self) -> bool {
        self.nature() == Nature::Clock
    }

    /// Whether it never occurs in user mode, so that the kernel counts 0 of it there.
    ///
    /// The kernel takes the place of a switch or a migration to be the scheduler's own (`perf_sw_event_sched`).
    pub(crate) fn occurs_in_kernel_only(&self) -> bool {
        let scheduler = [
            abi::PERF_COUNT_SW_CONTEXT_SWITCHES,
            abi::PERF_COUNT_SW_CPU_MIGRATIONS,
            abi::PERF_COUNT_SW_CGROUP_SWITCHES,
        ];
        self.kind == abi::PERF_TYPE_SOFTWARE && scheduler.map(u64::from).contains(&self.config)
    }

    /// The nature of its counts.
    pub(crate) fn nature(&self) -> Nature {
        let clocks = [abi::PERF_COUNT_SW_CPU_CLOCK, abi::PERF_COUNT_SW_TASK_CLOCK].map(u64::from);
        match self.kind {
            abi::PERF_TYPE_SOFTWARE if clocks.contains(&self.config) => Nature::Clock,
            abi::PERF_TYPE_SOFTWARE | abi::PERF_TYPE_TRACEPOINT | abi::PERF_TYPE_BREAKPOINT => {
                Nature::Occurrence
            }
            abi::PERF_TYPE_HARDWARE if self.config == u64::from(abi::PERF_COUNT_HW_CPU_CYCLES) => {
                Nature::Cycles
            }
            _ => Nature::Hardware,
        }
    }
}

/// The names that stand for one number each, as `perf list` prints them; several names may stand
/// for the same event.
pub fn names() -> impl Iterator<Item = &'static str> {
    HARDWARE.iter().chain(SOFTWARE).map(|(name, _)| *name)
}

const HARDWARE: &[(&str, u32)] = &[
    ("cycles", abi::PERF_COUNT_HW_CPU_CYCLES),
    ("cpu-cycles", abi::PERF_COUNT_HW_CPU_CYCLES),
    ("instructions", abi::PERF_COUNT_HW_INSTRUCTIONS),
    ("cache-references", abi::PERF_COUNT_HW_CACHE_REFERENCES),
    ("cache-misses", abi::PERF_COUNT_HW_CACHE_MISSES),
    ("branches", abi::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-instructions", abi::PERF_COUNT_HW_BRANCH_INSTRUCTIONS),
    ("branch-misses", abi::PERF_COUNT_HW_BRANCH_MISSES),
    ("bus-cycles", abi::PERF_COUNT_HW_BUS_CYCLES),
    ("stalled-cycles-frontend", abi::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    ("idle-cycles-frontend", abi::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND),
    ("stalled-cycles-backend", abi::PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
    ("idle-cycles-backend", abi::PERF_COUNT_HW_STALLED_CYCLES_BACKEND),
    ("ref-cycles", abi::PERF_COUNT_HW_REF_CPU_CYCLES),
];

const SOFTWARE: &[(&str, u32)] = &[
    ("cpu-clock", abi::PERF_COUNT_SW_CPU_CLOCK),
    ("task-clock", abi::PERF_COUNT_SW_TASK_CLOCK),
    ("page-faults", abi::PERF_COUNT_SW_PAGE_FAULTS),
    ("faults", abi::PERF_COUNT_SW_PAGE_FAULTS),
    ("minor-faults", abi::PERF_COUNT_SW_PAGE_FAULTS_MIN),
    ("major-faults", abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ),
    ("context-switches", abi::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cs", abi::PERF_COUNT_SW_CONTEXT_SWITCHES),
    ("cpu-migrations", abi::PERF_COUNT_SW_CPU_MIGRATIONS),
    ("migrations", abi::PERF_COUNT_SW_CPU_MIGRATIONS),
    ("alignment-faults", abi::PERF_COUNT_SW_ALIGNMENT_FAULTS),
    ("emulation-faults", abi::PERF_COUNT_SW_EMULATION_FAULTS),
    ("dummy", abi::PERF_COUNT_SW_DUMMY),
    ("bpf-output", abi::PERF_COUNT_SW_BPF_OUTPUT),
    ("cgroup-switches", abi::PERF_COUNT_SW_CGROUP_SWITCHES),
];

/// The event's name and its modifiers: `cycles:u` is `cycles` and `u`. A tracepoint's colon is
/// not one of modifiers, since no tracepoint is named with these letters alone.
fn split_modifiers(name: &str) -> (&str, &str) {
    match name.rsplit_once(':') {
        Some((base, modifiers)) if modifiers.chars().all(|letter| "ukhpGHPSDIW".contains(letter)) => {
            (base, modifiers)
        }
        _ => (name, ""),
    }
}

fn named(name: &str) -> Option<Event> {
    let of = |table: &[(&str, u32)], kind| {
        let found = table.iter().find(|(known, _)| *known == name)?;
        Some(Event::new(name, kind, found.1.into()))
    };
    of(HARDWARE, abi::PERF_TYPE_HARDWARE).or_else(|| of(SOFTWARE, abi::PERF_TYPE_SOFTWARE))
}

/// A cache event such as `L1-dcache-load-misses`: cache, operation and result in one number
/// (`perf_event_open(2)`, PERF_TYPE_HW_CACHE).
fn cache_event(name: &str) -> Option<Event> {
    const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
    const OPERATIONS: [(&str, u64); 6] =
        [("load", 0), ("loads", 0), ("store", 1), ("stores", 1), ("prefetch", 2), ("prefetches", 2)];
    let cache = CACHES.iter().position(|cache| name.starts_with(cache))?;
    let rest = name[CACHES[cache].len()..].strip_prefix('-')?;
    let (operation, misses) = match rest.strip_suffix("-misses") {
        Some(operation) => (operation, 1),
        None => (rest, 0),
    };
    let (_, operation) = OPERATIONS.iter().find(|(known, _)| *known == operation)?;
    Some(Event::new(name, abi::PERF_TYPE_HW_CACHE, cache as u64 | operation << 8 | misses << 16))
}

fn raw_event(name: &str) -> Option<Event> {
    let config = u64::from_str_radix(name.strip_prefix('r')?, 16).ok()?;
    Some(Event::new(name, abi::PERF_TYPE_RAW, config))
}

/// An event of a unit that the kernel describes in sysfs, such as `cpu/event=0x3c,umask=0/`.
fn unit_event(name: &str) -> Result<Option<Event>, UnknownEvent> {
    let Some((unit, terms)) = name.strip_suffix('/').and_then(|name| name.split_once('/')) else {
        return Ok(None);
    };
    let folder = Path::new("/sys/bus/event_source/devices").join(unit);
    let kind = read_number(&folder.join("type")).ok_or_else(|| UnknownEvent::unit(name, unit))?;
    let mut event = Event::new(name, kind as u32, 0);
    for term in terms.split(',').filter(|term| !term.is_empty()) {
        event.apply_term(&folder, term).ok_or_else(|| UnknownEvent::term(name, term))?;
    }
    Ok(Some(event))
}

impl Event {
    /// Adds `term=value`, a bare `term` (1), or the name of one of the unit's events.
    fn apply_term(&mut self, folder: &Path, term: &str) -> Option<()> {
        if !term.contains('=')
            && let Ok(alias) = std::fs::read_to_string(folder.join("events").join(term))
        {
            return alias.trim().split(',').try_for_each(|term| self.apply_term(folder, term));
        }
        let (term, value) = term.split_once('=').unwrap_or((term, "1"));
        let value = parse_number(value)?;
        let format = std::fs::read_to_string(folder.join("format").join(term));
        match (format, term) {
            (Ok(format), _) => self.set_bits(format.trim(), value),
            (Err(_), "config") => self.set_bits("config:0-63", value),
            (Err(_), "config1") => self.set_bits("config1:0-63", value),
            (Err(_), "config2") => self.set_bits("config2:0-63", value),
            (Err(_), _) => None,
        }
    }

    /// Spreads `value` over the bits that a sysfs format such as `config:0-7,32-35` names.
    fn set_bits(&mut self, format: &str, mut value: u64) -> Option<()> {
        let (field, ranges) = format.split_once(':')?;
        let field = match field {
            "config" => &mut self.config,
            "config1" => &mut self.config1,
            "config2" => &mut self.config2,
            _ => return None,
        };
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            let width = last.checked_sub(first).filter(|_| last < 64)? + 1;
            let mask = u64::MAX >> (64 - width);
            *field |= (value & mask) << first;
            value = value.checked_shr(width).unwrap_or(0);
        }
        Some(())
    }
}

/// A tracepoint such as `sched:sched_switch`, by the number that tracefs gives it.
fn tracepoint(name: &str) -> Result<Event, UnknownEvent> {
    let (group, point) = name.split_once(':').ok_or_else(|| UnknownEvent::name(name))?;
    let mut seen = false;
    for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        let events = Path::new(root).join("events");
        seen |= events.join(group).is_dir();
        if let Some(id) = read_number(&events.join(group).join(point).join("id")) {
            return Ok(Event::tracepoint(name, id));
        }
    }
    let events = std::fs::metadata("/sys/kernel/tracing/events").map(drop);
    Err(UnknownEvent::tracepoint(name, if seen { Ok(()) } else { events }))
}

fn read_number(path: &Path) -> Option<u64> {
    parse_number(std::fs::read_to_string(path).ok()?.trim())
}

fn parse_number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// An event that this machine does not have, with a hint which one the user may have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEvent {
    /// The problem.
    pub message: String,
    /// The remedy.
    pub hint: String,
}

impl UnknownEvent {
    fn name(name: &str) -> Self {
        let near: Vec<_> = names().filter(|known| looks_like(known, name)).collect();
        let hint = match near[..] {
            [] => "perf list shows all; try cpu-clock, cycles, instructions, page-faults".to_owned(),
            _ => format!("did you mean {}?", near.join(" or ")),
        };
        Self { message: format!("there is no event named {name}"), hint }
    }

    fn unit(name: &str, unit: &str) -> Self {
        let message = format!("the event {name} is of the unit {unit}, which this machine lacks");
        Self { message, hint: "ls /sys/bus/event_source/devices shows its units".to_owned() }
    }

    fn term(name: &str, term: &str) -> Self {
        let message = format!("the event {name} has a term that its unit does not know: {term}");
        let hint = "the unit's folder in /sys/bus/event_source/devices lists its terms under format";
        Self { message, hint: hint.to_owned() }
    }

    /// `events` is whether the folder of tracepoints can be seen.
    fn tracepoint(name: &str, events: io::Result<()>) -> Self {
        let missing = format!("there is no tracepoint named {name}");
        let unreadable = format!("cannot look up {name}: this user may not read /sys/kernel/tracing");
        let (message, hint) = match events.map_err(|error| error.kind()) {
            Ok(()) => (missing, "ls /sys/kernel/tracing/events shows the groups of tracepoints"),
            Err(ErrorKind::PermissionDenied) => (
                unreadable,
                "record as root, or allow it: sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing; \
                 sudo sysctl kernel.perf_event_paranoid=-1",
            ),
            Err(_) => (missing, "tracepoints need tracefs: sudo mount -t tracefs nodev /sys/kernel/tracing"),
        };
        Self { message, hint: hint.to_owned() }
    }
}

impl std::fmt::Display for UnknownEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UnknownEvent {}

/// Whether a known name and a mistaken one begin alike, or differ by few letters.
fn looks_like(known: &str, mistaken: &str) -> bool {
    let alike = known.chars().zip(mistaken.chars()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    alike >= 4.min(known.len())
        || known.contains(mistaken) && mistaken.len() >= 3
        || strsim::normalized_damerau_levenshtein(known, &mistaken.to_lowercase()) >= 0.75
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Event {
        Event::parse(name).expect(name)
    }

    #[test]
    fn names_and_their_modifiers_are_told_apart() {
        let event = parse("instructions:up");
        assert_eq!(event.name, "instructions");
        assert_eq!((event.kind, event.config), (0, 1));
        assert_eq!((event.modes, event.precise), (Modes::User, 1));
        assert_eq!(parse("cs").config, parse("context-switches").config);
    }

    #[test]
    fn a_cache_event_is_cache_operation_and_result_in_one_number() {
        let event = parse("LLC-store-misses");
        assert_eq!((event.kind, event.config), (3, 0x1_01_02));
        assert_eq!(parse("L1-dcache-loads").config, 0);
    }

    #[test]
    fn a_raw_event_is_hexadecimal() {
        assert_eq!(parse("r01c4").config, 0x1c4);
        assert_eq!(parse("r01c4").kind, abi::PERF_TYPE_RAW);
    }

    #[test]
    fn the_bits_of_a_term_are_spread_as_its_format_says() {
        let mut event = Event::cycles();
        event.config = 0;
        event.set_bits("config:0-7,32-35", 0xabc).expect("a sound format");
        assert_eq!(event.config, 0xa_0000_00bc);
        assert_eq!(event.set_bits("config:60-70", 1), None);
    }

    #[test]
    fn a_tracepoint_that_may_not_be_looked_up_is_not_called_missing() {
        let about = |events: io::Result<()>| UnknownEvent::tracepoint("sched:sched_switch", events);
        let refused = about(Err(ErrorKind::PermissionDenied.into()));
        assert!(refused.message.contains("may not read") && refused.hint.contains("remount"), "{refused:?}");
        let unmounted = about(Err(ErrorKind::NotFound.into()));
        assert!(unmounted.message.contains("there is no") && unmounted.hint.contains("-t tracefs"));
        assert!(about(Ok(())).hint.starts_with("ls "));
    }

    #[test]
    fn an_unknown_name_brings_names_like_it() {
        let unknown = Event::parse("instruction").expect_err("a singular");
        assert!(unknown.hint.contains("instructions"), "{}", unknown.hint);
        let unknown = Event::parse("brnch-mises").expect_err("two letters are missing");
        assert!(unknown.hint.contains("branch-misses"), "{}", unknown.hint);
        assert!(Event::parse("no-such-thing").is_err());
    }
}
