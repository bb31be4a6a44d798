//! Options of a recording.

use std::ffi::OsString;
use std::time::Duration;

use crate::event::Event;

/// Options of a recording. [`Options::new`] gives what most users want.
#[derive(Clone, Debug)]
pub struct Options {
    /// The program or process.
    pub target: Target,
    /// Samples per second of processor time.
    pub frequency: f64,
    /// Counts between two samples, in place of a frequency.
    pub period: Option<u64>,
    /// Whether intervals are drawn at random. Fixed ones can be in step with the program.
    pub jitter: bool,
    /// The events; none for hardware cycles, or the kernel's timer where there are none.
    pub events: Vec<Event>,
    /// How many bytes of the stack are copied with each sample; rounded to a multiple of 8 and
    /// at most 65,528. 0 to follow frame pointers only; nothing for as many as there is room for.
    pub stack_bytes: Option<u32>,
    /// Whether kernel frames are wanted; where not permitted they are left out in any case.
    pub kernel: bool,
    /// Whether to measure how long threads were blocked, and where.
    pub off_cpu: bool,
    /// Whether to keep when costs arose.
    pub time: bool,
    /// When to stop; nothing for the end of the program.
    pub duration: Option<Duration>,
    /// From which intervals are drawn.
    pub seed: u64,
    /// Variables that a launched program has in its environment besides ours, or in their place.
    pub environment: Vec<(OsString, OsString)>,
}

/// The program or process to record.
#[derive(Clone, Debug)]
pub enum Target {
    /// A command and its arguments, looked up in `PATH`.
    Launch(Vec<OsString>),
    /// A process that runs already, by its number.
    Attach(u32),
}

/// The largest copy of a stack that the kernel makes.
pub(crate) const LARGEST_STACK: u32 = 65_528;

impl Options {
    /// 1000 samples a second at random intervals, stacks as large as there is room for, kernel frames where allowed.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            frequency: 1000.0,
            period: None,
            jitter: true,
            events: Vec::new(),
            stack_bytes: None,
            kernel: true,
            off_cpu: false,
            time: true,
            duration: None,
            seed: fastrand::u64(..),
            environment: Vec::new(),
        }
    }

    /// The size of the copied stack that the kernel accepts.
    pub(crate) fn accepted_stack_bytes(&self) -> Option<u32> {
        self.stack_bytes.map(|bytes| bytes.min(LARGEST_STACK).next_multiple_of(8))
    }
}

impl Target {
    /// How it is called in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Launch(command) => {
                command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Self::Attach(pid) => format!("process {pid}"),
        }
    }
}
