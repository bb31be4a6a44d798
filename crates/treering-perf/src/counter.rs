//! One event that is counted, on all threads of a target.

use std::io;

use crate::counting::EventCount;
use crate::event::{Event as EventName, Modes};
use crate::sys::{CounterReading, Event, abi};

/// Why an event was not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Absence {
    /// The processor or the kernel has no such counter.
    NotSupported,
    /// The kernel does not let this user count it.
    NotPermitted,
    /// It occurs in the kernel alone, and was asked for in user mode alone: the kernel would say 0.
    InKernelOnly,
}

/// An event that is counted, or why it is not.
#[derive(Debug)]
pub(crate) struct Counter {
    /// One for every thread that it was to be opened on; nothing for those that had ended.
    events: Vec<Option<Event>>,
    absence: Option<Absence>,
    /// Whether the kernel counts it in user mode alone, though it was asked for in both.
    pub(crate) is_user_only: bool,
    /// Whether it starts and stops with the leader of its group.
    follows: bool,
}

impl Counter {
    /// Opens the events of a group on threads. An event that cannot be counted leaves the group; if it is the leader, the
    /// next one leads.
    ///
    /// # Errors
    /// When no more files can be opened.
    pub(crate) fn open_group(group: &[EventName], tids: &[u32], on_exec: bool) -> io::Result<Vec<Self>> {
        let mut counters: Vec<Self> = Vec::new();
        for event in group {
            let leader = counters.iter().position(|counter| counter.absence.is_none());
            let opened = Self::open(event, tids, on_exec, leader.map(|leader| &counters[leader]))?;
            counters.push(opened);
        }
        Ok(counters)
    }

    /// Whether the kernel does not let this user count it.
    pub(crate) fn is_denied(&self) -> bool {
        self.absence == Some(Absence::NotPermitted)
    }

    fn open(event: &EventName, tids: &[u32], on_exec: bool, leader: Option<&Self>) -> io::Result<Self> {
        let modes: &[Modes] = match event.modes {
            Modes::Any => &[Modes::Any, Modes::User],
            Modes::User => &[Modes::User],
            Modes::Kernel => &[Modes::Kernel],
        };
        let mut absence = Absence::NotSupported;
        for &mode in modes {
            if mode == Modes::User && event.occurs_in_kernel_only() {
                let asked = event.modes == Modes::User;
                absence = if asked { Absence::InKernelOnly } else { Absence::NotPermitted };
                continue;
            }
            match Self::open_on_threads(attribute(event, mode, on_exec, leader.is_some()), tids, leader) {
                Ok(events) => {
                    let is_user_only = mode == Modes::User && event.modes == Modes::Any;
                    return Ok(Self { events, absence: None, is_user_only, follows: leader.is_some() });
                }
                Err(error) => absence = absence_for(error)?,
            }
        }
        Ok(Self { events: Vec::new(), absence: Some(absence), is_user_only: false, follows: false })
    }

    fn open_on_threads(
        mut attribute: abi::perf_event_attr,
        tids: &[u32],
        leader: Option<&Self>,
    ) -> io::Result<Vec<Option<Event>>> {
        let open = |(at, &tid): (usize, &u32)| {
            let of_thread = leader.map(|leader| leader.events[at].as_ref());
            if of_thread.is_some_and(|leader| leader.is_none()) {
                return Ok(None);
            }
            match Event::open_in_group(&mut attribute, tid, u32::MAX, of_thread.flatten()) {
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
                opened => opened.map(Some),
            }
        };
        tids.iter().enumerate().map(open).collect()
    }

    /// Whether it is counted.
    pub(crate) fn is_counted(&self) -> bool {
        self.absence.is_none()
    }

    /// Starts counting.
    pub(crate) fn enable(&self) -> io::Result<()> {
        if self.follows { Ok(()) } else { self.events.iter().flatten().try_for_each(Event::enable) }
    }

    /// Stops counting. Where that fails, a little too much is counted.
    pub(crate) fn disable(&self) {
        self.events.iter().flatten().for_each(|event| _ = event.disable());
    }

    /// Its count so far.
    pub(crate) fn read(&self) -> io::Result<EventCount> {
        if let Some(absence) = self.absence {
            return Ok(EventCount::Absent(absence));
        }
        let mut sum = CounterReading::default();
        for event in self.events.iter().flatten() {
            let reading = event.read_counter()?;
            sum.count += reading.count;
            sum.enabled_ns += reading.enabled_ns;
            sum.running_ns += reading.running_ns;
        }
        Ok(EventCount::Counted(sum))
    }
}

/// The attribute of an event that only counts, in a thread and all that it makes.
fn attribute(event: &EventName, mode: Modes, on_exec: bool, follows: bool) -> abi::perf_event_attr {
    let (type_, config) = (event.kind, event.config);
    let mut attribute = abi::perf_event_attr { type_, config, ..Default::default() };
    attribute.__bindgen_anon_3.config1 = event.config1;
    attribute.__bindgen_anon_4.config2 = event.config2;
    attribute.read_format =
        u64::from(abi::PERF_FORMAT_TOTAL_TIME_ENABLED | abi::PERF_FORMAT_TOTAL_TIME_RUNNING);
    attribute.set_inherit(1);
    attribute.set_exclude_kernel(u64::from(mode == Modes::User));
    attribute.set_exclude_hv(u64::from(mode == Modes::User));
    attribute.set_exclude_user(u64::from(mode == Modes::Kernel));
    // A member counts when its leader does.
    attribute.set_disabled(u64::from(!follows));
    attribute.set_enable_on_exec(u64::from(on_exec && !follows));
    attribute
}

/// The meaning of a refusal to open an event. That too many files are open is no property of the event.
fn absence_for(error: io::Error) -> io::Result<Absence> {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Err(error),
        Some(libc::EACCES | libc::EPERM) => Ok(Absence::NotPermitted),
        _ => Ok(Absence::NotSupported),
    }
}
