//! The wakers that make waiting threads ready: the tracepoint `sched:sched_waking`, where the kernel allows it.
//!
//! It fires in the context of the waker, which may be a thread of the program, any other thread, or an interrupt. Events of the
//! program's threads bring the stacks of those that wake; those of the processors, cheap and without a stack, also see all
//! others: interrupts while nothing runs, threads of the kernel, other programs, and threads that end, whose own events are gone
//! by then. The kernel has a way to hand a waking to the events of the woken thread (`__perf_task` in
//! `include/trace/events/sched.h`), which would need no events of processors, but not all kernels do: Linux 6.18 does not.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;

use treering_profile::{ThreadId, WakerKind};

use crate::event::Event;
use crate::record::Sample;

/// How much of the waker's stack is copied: stacks that end waits are seldom deep.
pub(crate) const STACK_BYTES: u32 = 8 << 10;

/// The size of a ring for stacks of wakers, apart from those of samples: neither takes the other's room. Where it is full, the
/// kernel copies no stack, so that very frequent wakings cost less.
pub(crate) const RING_OF_STACKS: usize = 1 << 19;

/// After how many of them the recorder wakes: at a quarter of a ring.
pub(crate) const WAKE_AFTER_STACKS: u32 = 14;

/// The size of a ring for wakings of all kinds.
pub(crate) const RING_BYTES: usize = 1 << 17;

/// After how many of them the recorder wakes: at about a quarter of a ring.
pub(crate) const WAKE_AFTER: u32 = 160;

/// How many frames of the kernel a waking of any kind has. An interrupt has more of its own than these, so none is of what it
/// interrupted.
pub(crate) const FRAMES: u16 = 6;

/// The tracepoint on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tracepoint {
    pub(crate) event: Event,
    pub(crate) layout: Layout,
}

/// Where the fields that we read stand in the tracepoint's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The number of the woken thread.
    woken: Field,
    /// The context of the waker.
    flags: Field,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
}

/// A waking, as the tracepoint states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Woken {
    pub(crate) tid: u32,
    /// Whether an interrupt woke it, whatever ran.
    pub(crate) in_interrupt: bool,
    /// Whether a soft interrupt did.
    pub(crate) in_soft_interrupt: bool,
}

/// Why wakers are not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// This user may not read the description of the tracepoint.
    Unreadable,
    /// There is no such description.
    NoTracefs,
    /// The description is not understood.
    Unknown,
    /// The kernel does not allow this user tracepoints.
    NotPermitted {
        paranoid: Option<i32>,
    },
    /// Numbers of threads that the kernel states are not those of this container.
    Container,
    /// The kernel is left out.
    UserOnly,
    Other(String),
}

impl Tracepoint {
    /// The tracepoint, by its description in tracefs.
    pub(crate) fn find() -> Result<Self, Refusal> {
        if !has_all_processes() {
            return Err(Refusal::Container);
        }
        let mut refusal = Refusal::NoTracefs;
        for root in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            match std::fs::read_to_string(Path::new(root).join("events/sched/sched_waking/format")) {
                Ok(format) => return Self::parse(&format).ok_or(Refusal::Unknown),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refusal = Refusal::Unreadable;
                }
                Err(_) => {}
            }
        }
        Err(refusal)
    }

    fn parse(format: &str) -> Option<Self> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
        let layout =
            Layout { woken: Field::parse(format, "pid")?, flags: Field::parse(format, "common_flags")? };
        Some(Self { event: Event::tracepoint("sched:sched_waking", id), layout })
    }
}

impl Field {
    /// A field by its line, such as `field:pid_t pid; offset:24; size:4; signed:1;`.
    fn parse(format: &str, name: &str) -> Option<Self> {
        let mut fields = format.lines().filter_map(|line| line.trim().strip_prefix("field:"));
        let line = fields.find(|line| {
            let declared = line.split(';').next().unwrap_or_default();
            declared.rsplit(' ').next() == Some(name)
        })?;
        let number = |key: &str| {
            let mut parts = line.split(';').filter_map(|part| part.trim().strip_prefix(key));
            parts.next()?.parse::<usize>().ok()
        };
        let field = Self { offset: number("offset:")?, size: number("size:")? };
        (field.size <= 8).then_some(field)
    }

    fn read(self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.get(self.offset..self.offset.checked_add(self.size)?)?;
        let mut number = [0; 8];
        number[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }
}

/// The bits of a context (`enum trace_flag_type` in `include/linux/trace_events.h`).
const IN_INTERRUPT: u64 = 0x08 | 0x40;
const IN_SOFT_INTERRUPT: u64 = 0x10;

impl Layout {
    /// The waking that a sample states.
    pub(crate) fn read(self, sample: &Sample) -> Option<Woken> {
        let raw = sample.raw?;
        let flags = self.flags.read(raw)?;
        Some(Woken {
            tid: u32::try_from(self.woken.read(raw)?).ok()?,
            in_interrupt: flags & IN_INTERRUPT != 0,
            in_soft_interrupt: flags & IN_SOFT_INTERRUPT != 0,
        })
    }
}

/// Whether this process is in the first namespace of processes, whose numbers tracepoints state (`PROC_PID_INIT_INO`).
fn has_all_processes() -> bool {
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    namespace.is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

impl Refusal {
    /// The kernel's answer to an attempt to open the events.
    pub(crate) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => {
                let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
                Self::NotPermitted { paranoid: text.ok().and_then(|text| text.trim().parse().ok()) }
            }
            _ => Self::Other(error.to_string()),
        }
    }
}

/// As a note in the profile.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("who ended waits is not recorded: ")?;
        const READABLE: &str = "sudo mount -o remount,mode=750,gid=$(id -g) /sys/kernel/tracing";
        const PERMITTED: &str = "sudo sysctl kernel.perf_event_paranoid=-1";
        match self {
            Self::Unreadable => write!(
                f,
                "this user may not read /sys/kernel/tracing; record as root, or allow it: {READABLE}; {PERMITTED}"
            ),
            Self::NoTracefs => f.write_str(
                "the kernel's tracepoints are not to be seen: sudo mount -t tracefs nodev /sys/kernel/tracing",
            ),
            Self::Unknown => f.write_str("the kernel describes sched:sched_waking in an unknown way"),
            Self::NotPermitted { paranoid } => {
                let is = paranoid.map_or(String::new(), |paranoid| format!(" is {paranoid} and"));
                write!(
                    f,
                    "the kernel allows this user no tracepoints (perf_event_paranoid{is} must be -1); record as root, or \
                     allow it: {PERMITTED}"
                )
            }
            Self::Container => f.write_str(
                "the kernel states threads by their numbers outside of this container; record outside of it",
            ),
            Self::UserOnly => f.write_str("the kernel is left out (--user-only)"),
            Self::Other(error) => f.write_str(error),
        }
    }
}

/// The state of recording wakers: how many stacks may be unwound now, and the names of those that are not the program's.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    stacks: Pace,
    wakings: Pace,
    /// When the wakings of the whole machine became too many to be looked at, in nanoseconds of the kernel's clock.
    pub(crate) gave_up_ns: Option<u64>,
    /// Until when no stacks are taken, by the kernel's clock, if they are not.
    pub(crate) paused_until_ns: Option<u64>,
    /// How many were lost.
    pub(crate) lost: u64,
    /// By thread that is none of the program's: whether it is the kernel's, and its name.
    names: HashMap<u32, (bool, String)>,
    /// Threads of the program that have ended: the roots of their trees, and their names. They wake those that wait for them.
    ended: HashMap<u32, Ended>,
}

/// A thread of the program that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Where it is in the profile, if it is.
    pub(crate) thread: Option<ThreadId>,
    /// The name of its program.
    pub(crate) name: String,
}

/// A count in the present piece of time.
#[derive(Debug, Default)]
struct Pace {
    since_ns: u64,
    count: u32,
}

impl Pace {
    /// Counts one more; tells whether there were at most so many in this piece of time.
    fn allows(&mut self, time_ns: u64, most: u32) -> bool {
        if time_ns.saturating_sub(self.since_ns) >= PIECE_NS {
            (self.since_ns, self.count) = (time_ns, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}

const PIECE_NS: u64 = 100_000_000;

/// The stacks of wakers that are unwound in a piece of time: 2000 a second take some percent of a processor.
const MOST_STACKS: u32 = 200;

/// The wakings of the machine in a piece of time: 200,000 a second take a tenth of a processor.
const MOST_WAKINGS: u32 = 20_000;

/// The most names to remember.
const MOST_NAMES: usize = 1 << 16;

impl Wakers {
    /// Whether another stack may be unwound at a time; counts it.
    pub(crate) fn may_unwind(&mut self, time_ns: u64) -> bool {
        self.stacks.allows(time_ns, MOST_STACKS)
    }

    /// When stacks may be unwound again, after as many as may be were.
    pub(crate) fn next_piece_ns(&self) -> u64 {
        self.stacks.since_ns + PIECE_NS
    }

    /// Whether there are too many wakings on the machine, from now on; counts one.
    pub(crate) fn gives_up(&mut self, time_ns: u64) -> bool {
        let gives_up = self.gave_up_ns.is_none() && !self.wakings.allows(time_ns, MOST_WAKINGS);
        if gives_up {
            self.gave_up_ns = Some(time_ns);
        }
        gives_up
    }

    /// A thread of the program has ended.
    pub(crate) fn exit(&mut self, tid: u32, ended: Ended) {
        if self.ended.len() >= MOST_NAMES {
            self.ended.clear();
        }
        self.ended.insert(tid, ended);
    }

    /// A thread was made, perhaps with a number that another one had.
    pub(crate) fn fork(&mut self, tid: u32) {
        self.ended.remove(&tid);
        self.names.remove(&tid);
    }

    /// The thread of the program of that number, if it has ended.
    pub(crate) fn ended(&self, tid: u32) -> Option<&Ended> {
        self.ended.get(&tid)
    }

    /// The kind and the name of a waker that is no thread of the program.
    pub(crate) fn outside(&mut self, tid: u32, woken: &Woken) -> (WakerKind, String) {
        if woken.in_interrupt || woken.in_soft_interrupt || tid == 0 {
            return (WakerKind::Interrupt, "[an interrupt]".to_owned());
        }
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        let (is_kernel, name) = self.names.entry(tid).or_insert_with(|| {
            (treering_proc::is_of_kernel(tid).unwrap_or(false), treering_proc::thread_name(tid))
        });
        match (*is_kernel, name.is_empty()) {
            // Behind the first slash stands the work that a thread of the kernel does just now.
            (true, _) => {
                let name = name.split('/').next().unwrap_or(name);
                (WakerKind::KernelThread, format!("[thread {name} of the kernel]"))
            }
            (false, true) => (WakerKind::Program, "[another program]".to_owned()),
            (false, false) => (WakerKind::Program, format!("[another program: {name}]")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a kernel would state it with its fields in another order.
    const FORMAT: &str = "name: sched_waking
ID: 375
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:unsigned char common_flags;	offset:3;	size:1;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:pid_t pid;	offset:8;	size:4;	signed:1;
	field:char comm[16];	offset:12;	size:16;	signed:0;
";

    #[test]
    fn the_kernels_description_tells_where_fields_stand() {
        let found = Tracepoint::parse(FORMAT).expect("it is described");
        assert_eq!(found.event, Event::tracepoint("sched:sched_waking", 375));
        let field = |offset, size| Field { offset, size };
        assert_eq!(found.layout, Layout { woken: field(8, 4), flags: field(3, 1) });
        let mut raw = [0_u8; 28];
        raw[3] = 0x19;
        raw[8..12].copy_from_slice(&4711_u32.to_le_bytes());
        assert_eq!(found.layout.woken.read(&raw), Some(4711));
        assert_eq!(found.layout.flags.read(&raw), Some(0x19));
        assert_eq!(found.layout.woken.read(&raw[..11]), None);
    }

    #[test]
    fn a_description_without_a_field_is_refused() {
        for missing in ["ID: 375", "common_flags", "field:pid_t pid"] {
            assert_eq!(Tracepoint::parse(&FORMAT.replace(missing, "other")), None, "{missing}");
        }
    }

    #[test]
    fn stacks_are_unwound_at_a_bounded_rate() {
        let mut wakers = Wakers::default();
        let mut unwound = |time_ns| (0..500).filter(|_| wakers.may_unwind(time_ns)).count();
        assert_eq!([10, 20, PIECE_NS + 10, 2 * PIECE_NS + 10].map(&mut unwound), [200, 0, 200, 200]);
        assert_eq!(wakers.next_piece_ns(), 3 * PIECE_NS + 10);
    }

    #[test]
    fn wakings_of_a_very_busy_machine_are_given_up_once() {
        let mut wakers = Wakers::default();
        let mut gave_up = |time_ns, count| (0..count).filter(|_| wakers.gives_up(time_ns)).count();
        assert_eq!(gave_up(10, MOST_WAKINGS), 0);
        assert_eq!(gave_up(PIECE_NS + 10, MOST_WAKINGS), 0);
        assert_eq!(gave_up(PIECE_NS + 20, 5), 1);
        assert_eq!(gave_up(2 * PIECE_NS + 20, 2 * MOST_WAKINGS), 0);
        assert_eq!(wakers.gave_up_ns, Some(PIECE_NS + 20));
    }
}
