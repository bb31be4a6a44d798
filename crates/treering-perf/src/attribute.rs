//! The attributes of an event: which samples the kernel takes, and which fields it writes in each record.

use crate::event::{Event, Modes, Nature};
use crate::registers;
use crate::sys::abi;

/// The fields of a sample besides its place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    /// How many bytes of the user stack to copy; 0 for none.
    pub(crate) stack_bytes: u32,
    /// Whether the kernel's mode may be sampled, and its frames shown.
    pub(crate) kernel: bool,
    /// Whether to note when threads leave and enter a processor.
    pub(crate) switches: bool,
    /// Whether to add the record of a tracepoint.
    pub(crate) raw: bool,
    /// After how many samples the recorder is woken.
    pub(crate) wake_after: u32,
}

/// After how many samples to wake the recorder, so that it wakes some 100 times a second and a
/// ring is never more than a quarter full when it does.
///
/// Each waking costs the program an interrupt or two, and the recorder a look at all rings: waking
/// for each of 1000 samples a second cost programs 3 to 8 %, and 250 times a second cost the
/// recorder half as much again as 100 times. New intervals are drawn when it wakes, so up to
/// 100 Hz each is drawn by itself, and at 1 kHz ten in a row are equal. They are as unbiased, and
/// those of one group are no more alike: intervals of all lengths between half and one and a half
/// of the mean move equally far through whatever repeats itself as often as the mean, or oftener.
pub(crate) fn wake_after(frequency: f64, ring_bytes: usize, stack_bytes: u32) -> u32 {
    let quarter = ring_bytes / 4 / (stack_bytes as usize + BESIDE_STACK);
    ((frequency / 100.0).round() as u32).clamp(1, 16).min((quarter as u32).max(1))
}

/// How much of a sample is not stack: registers, and the addresses of calls in the kernel.
const BESIDE_STACK: usize = 512;

/// How an event becomes samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A sample for this many counts, on average; jittered or not.
    Period(u64),
    /// The kernel adapts the period to reach this many samples a second.
    Frequency(u64),
}

impl Pace {
    /// The counts between samples, where we set them.
    pub(crate) fn period(self) -> Option<u64> {
        match self {
            Self::Period(period) => Some(period),
            Self::Frequency(_) => None,
        }
    }
}

/// The fields of samples, in the order in which [`decode`](crate::record::decode) reads them; see [`states_period`].
const FIELDS: u64 = abi::PERF_SAMPLE_IDENTIFIER as u64
    | abi::PERF_SAMPLE_IP as u64
    | abi::PERF_SAMPLE_TID as u64
    | abi::PERF_SAMPLE_TIME as u64
    | abi::PERF_SAMPLE_STREAM_ID as u64
    | abi::PERF_SAMPLE_CPU as u64
    | abi::PERF_SAMPLE_PERIOD as u64
    | abi::PERF_SAMPLE_CALLCHAIN as u64;

/// The fields of samples that carry a copy of the stack.
const STACK_FIELDS: u64 = abi::PERF_SAMPLE_REGS_USER as u64 | abi::PERF_SAMPLE_STACK_USER as u64;

/// Builds the attribute of an event that starts disabled and is inherited by children.
///
/// The event that `tracks` also reports mappings, names, forks and exits.
pub(crate) fn attribute(event: &Event, pace: Pace, contents: Contents, tracks: bool) -> abi::perf_event_attr {
    let (type_, config) = (event.kind, event.config);
    let mut attribute = abi::perf_event_attr { type_, config, ..Default::default() };
    attribute.__bindgen_anon_3.config1 = event.config1;
    attribute.__bindgen_anon_4.config2 = event.config2;
    set_pace(&mut attribute, pace);
    attribute.sample_type = FIELDS;
    if !states_period(event, pace) {
        attribute.sample_type &= !u64::from(abi::PERF_SAMPLE_PERIOD);
    }
    attribute.read_format = abi::PERF_FORMAT_TOTAL_TIME_RUNNING.into();
    if contents.stack_bytes > 0 {
        attribute.sample_type |= STACK_FIELDS;
        attribute.sample_regs_user = registers::MASK;
        attribute.sample_stack_user = contents.stack_bytes;
    }
    if contents.raw {
        attribute.sample_type |= u64::from(abi::PERF_SAMPLE_RAW);
    }
    attribute.set_disabled(1);
    attribute.set_inherit(1);
    // The count of each thread that inherits the event is reported when the thread ends.
    attribute.set_inherit_stat(pace.period().is_some_and(|period| period > 1).into());
    attribute.set_exclude_hv(1);
    attribute.set_exclude_kernel(u64::from(!contents.kernel || event.modes == Modes::User));
    attribute.set_exclude_user(u64::from(event.modes == Modes::Kernel));
    attribute.set_exclude_callchain_kernel(u64::from(!contents.kernel));
    attribute.set_precise_ip(event.precise.into());
    attribute.set_sample_id_all(1);
    attribute.set_use_clockid(1);
    attribute.clockid = libc::CLOCK_MONOTONIC;
    attribute.__bindgen_anon_2.wakeup_events = contents.wake_after;
    if tracks {
        attribute.set_mmap(1);
        attribute.set_mmap2(1);
        attribute.set_comm(1);
        attribute.set_comm_exec(1);
        attribute.set_task(1);
        attribute.set_context_switch(contents.switches.into());
    }
    attribute
}

/// The attribute of an event that no thread inherits, and that tracks nothing but its own samples.
pub(crate) fn of_one_thread(mut attribute: abi::perf_event_attr) -> abi::perf_event_attr {
    attribute.set_inherit(0);
    attribute.set_inherit_stat(0);
    attribute.set_mmap(0);
    attribute.set_mmap2(0);
    attribute.set_comm(0);
    attribute.set_comm_exec(0);
    attribute.set_task(0);
    attribute.set_context_switch(0);
    attribute
}

/// The attribute of an event of all threads, whose samples have at most so many frames, all of the kernel.
pub(crate) fn of_all_threads(attribute: abi::perf_event_attr, frames: u16) -> abi::perf_event_attr {
    let mut attribute = of_one_thread(attribute);
    attribute.set_enable_on_exec(0);
    attribute.set_exclude_callchain_user(1);
    attribute.sample_max_stack = frames;
    attribute
}

/// The attribute of an event that counts nothing and is not inherited.
///
/// When a thread and one that it made follow each other on a processor, the kernel exchanges their
/// events rather than stopping and starting them, provided that all were inherited. The event that
/// we opened would go on in the other thread and die with it. This one forbids that.
pub(crate) fn anchor() -> abi::perf_event_attr {
    let mut attribute = abi::perf_event_attr {
        type_: abi::PERF_TYPE_SOFTWARE,
        config: abi::PERF_COUNT_SW_DUMMY.into(),
        ..Default::default()
    };
    attribute.set_exclude_kernel(1);
    attribute.set_exclude_hv(1);
    attribute
}

/// Whether samples state the counts that they stand for.
///
/// Those of software events and tracepoints do only where each occurrence is noted. The kernel notes each whenever samples
/// state that, whatever the period is (`perf_swevent_event`).
pub(crate) fn states_period(event: &Event, pace: Pace) -> bool {
    event.nature() != Nature::Occurrence || pace == Pace::Period(1)
}

fn set_pace(attribute: &mut abi::perf_event_attr, pace: Pace) {
    match pace {
        Pace::Period(period) => attribute.__bindgen_anon_1.sample_period = period,
        Pace::Frequency(frequency) => {
            attribute.set_freq(1);
            attribute.__bindgen_anon_1.sample_freq = frequency;
        }
    }
}

/// The pace at which to sample an event, for a wanted number of samples a second or, where the
/// user gave one, a number of counts a sample.
pub(crate) fn pace(event: &Event, frequency: f64, period: Option<u64>) -> Pace {
    let a_second = |counts: f64| Pace::Period((counts / frequency).max(1.0) as u64);
    match (period, event.nature()) {
        (Some(period), _) => Pace::Period(period),
        (None, Nature::Clock) => a_second(1e9),
        (None, Nature::Cycles) => a_second(cycles_per_second()),
        (None, Nature::Hardware) => Pace::Frequency(frequency.max(1.0) as u64),
        (None, Nature::Occurrence) => Pace::Period(1),
    }
}

/// The processor's nominal clock, so that cycles are sampled at nearly the wanted rate.
///
/// A fixed period can be jittered by us; one that the kernel adapts cannot. The actual clock only changes the number
/// of samples, not their meaning.
fn cycles_per_second() -> f64 {
    let khz = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/base_frequency")
        .or_else(|_| std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"))
        .ok()
        .and_then(|text| text.trim().parse::<f64>().ok());
    let mhz = || {
        let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
        line.split(':').nth(1)?.trim().parse::<f64>().ok()
    };
    khz.map(|khz| khz * 1e3).or_else(|| mhz().map(|mhz| mhz * 1e6)).unwrap_or(3e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorder_wakes_for_each_sample_of_a_slow_event() {
        let roomy = |frequency| wake_after(frequency, 2 << 20, 32 << 10);
        assert_eq!([1.0, 100.0, 250.0, 1000.0, 1e5].map(roomy), [1, 1, 3, 10, 15]);
    }

    #[test]
    fn the_recorder_wakes_before_a_small_ring_is_full() {
        let small = |stack| wake_after(1000.0, 512 << 10, stack);
        assert_eq!([0, 8 << 10, 32 << 10, 65_528].map(small), [10, 10, 3, 1]);
    }

    #[test]
    fn a_timer_is_sampled_by_period_and_rare_events_one_by_one() {
        assert_eq!(pace(&Event::cpu_clock(), 1000.0, None), Pace::Period(1_000_000));
        assert_eq!(pace(&Event::cpu_clock(), 1000.0, Some(77)), Pace::Period(77));
        let faults = Event::parse("page-faults").expect("a software event");
        assert_eq!(pace(&faults, 1000.0, None), Pace::Period(1));
        let misses = Event::parse("cache-misses").expect("a hardware event");
        assert_eq!(pace(&misses, 1000.0, None), Pace::Frequency(1000));
    }
}
