//! Statistical sampling of Linux programs with `perf_event_open(2)`.
//!
//! [`record`] launches a program or attaches to a process, follows its threads and children,
//! unwinds the stack of every sample at once and adds it to a profile, so that memory and file
//! grow with the program's size and not with its running time.
//!
//! It names no functions: they are addresses here (see [`FunctionKind::Address`](treering_profile::FunctionKind)),
//! and `treering-symbols` names them once the program has ended. It writes, formats and prints nothing.
//!
//! Programs for x86-64 and i386, on x86-64 only.
//!
//! ```no_run
//! use treering_perf::{Options, Target, record};
//!
//! let target = Target::Launch(vec!["sleep".into(), "1".into()]);
//! let recording = record(&Options::new(target), &mut |_: &treering_profile::Profile| ()).unwrap();
//! println!("{} samples", recording.profile.metadata.losses.samples);
//! ```
#![deny(unsafe_code)]

mod address_space;
mod attribute;
mod binary;
mod blocked;
mod call_frame;
mod counter;
mod counting;
mod cut;
mod description;
mod ending;
mod error;
mod event;
mod function_range;
mod generated_code;
mod goroutine;
mod interval_distribution;
mod jitter;
mod landmark;
mod lost;
mod options;
mod process;
mod record;
mod recorder;
mod recording;
mod registers;
mod rights;
mod rule;
mod session;
mod stack_copy;
mod step;
mod stream;
#[expect(unsafe_code, reason = "system calls")]
mod sys;
mod thread_counts;
mod thread_sampling;
mod waking;
mod walk;
mod way_out;

pub use counter::Absence;
pub use counting::{CountOptions, CountedRun, EventCount, EventCounts, count_events};
pub use error::{Denial, RecordError};
pub use event::{Event, UnknownEvent, names};
pub use options::{Options, Target};
pub use recorder::record;
pub use recording::{Finish, JitProcess, Observer, Recording, RunningChild};
pub use rights::Uncounted;
pub use sys::{CounterReading, Usage};
pub use thread_counts::ThreadCounts;
