//! The data of a profile: functions, metrics, threads and the calling context tree.
//!
//! Every collector and every importer ends here, every analysis and every exporter starts here.
//! A [`Profile`] is built in one of three ways:
//!
//! - from call events and a clock, with [`CallRecorder`];
//! - from stacks with weights, with [`Profile::add_stack`];
//! - from arcs only (gprof, callgrind), with [`Profile::add_arc`] and one node a function.
//!
//! Collectors that count every execution state addresses in [`CodeCounts`] beside the tree.
//!
//! This crate does no I/O, reads no clock and no environment, and prints nothing: time comes in
//! as data. It knows neither file formats nor how totals are presented.
//!
//! ```
//! use treering_profile::{Frame, Function, Metric, Profile, RecursionRule, Unit};
//!
//! let mut profile = Profile::new(RecursionRule::Full);
//! let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
//! let thread = profile.add_single_thread("demo");
//! let name = profile.strings.intern("main");
//! let main = profile.functions.intern(Function::named(name));
//! let node = profile.add_stack(thread, &[Frame::new(main)], None, &[(samples, 3)]);
//! assert_eq!(profile.tree.self_cost(samples, node), 3);
//! assert_eq!(profile.run_cost(samples), 3);
//! ```
#![forbid(unsafe_code)]

mod activation;
mod address;
mod address_cost;
mod arc;
mod code;
mod collapse;
mod detail;
mod ended_waits;
mod event;
mod function;
mod id;
mod intern;
mod line;
mod memory;
mod merge;
mod metadata;
mod metric;
mod module;
mod node_table;
mod part;
mod piece;
mod point;
mod port;
mod profile;
mod recursion;
mod sample_counter;
mod segment;
mod stack;
mod stated_code;
mod thread;
mod timeline;
mod tree;

pub use activation::{Activations, SizeCost};
pub use address::{FileOffset, RuntimeAddress, StatedAddress};
pub use address_cost::AddressCost;
pub use arc::Arc;
pub use code::{
    BasicBlock, BlockExecutions, BranchCount, BranchKind, CodeAddress, CodeBytes, CodeCounts, CodeLine,
    CodeSpace, Lengths, ModelledCount, ModelledEvent, OfThread, PartialCount, ThreadRows, TranslatedBlock,
    Uncounted, UncountedReason,
};
pub use ended_waits::{EndedWaits, WakerKind, Waking};
pub use event::{CallRecorder, EventError};
pub use function::{Function, FunctionKind};
pub use id::{
    BlockId, CodeSpaceId, FunctionId, LineId, MetricId, ModuleId, NodeId, ProcessId, RunId, StringId,
    ThreadId,
};
pub use intern::{Interner, StringTable};
pub use line::{Line, LineCost, Source};
pub use memory::NodeMemory;
pub use merge::{merge, merge_runs};
pub use metadata::{Benchmark, CallBias, Losses, Metadata, Note};
pub use metric::{Metric, Sampling, Unit, Weights};
pub use module::{Module, ModuleKind};
pub use node_table::NodeTable;
pub use part::NoPart;
pub use piece::Piece;
pub use point::Point;
pub use port::Ports;
pub use profile::{InvalidProfile, Profile};
pub use recursion::RecursionRule;
pub use segment::{Segment, SegmentMap};
pub use stack::Frame;
pub use stated_code::{IdleBlock, StatedCode, StatedFunction, StatedLine};
pub use thread::{Process, Run, Thread};
pub use timeline::{Life, LostSamples, Mark, MarkKind, TimeCost, Timeline, Wait, WaitKind, Waits};
pub use tree::Tree;
pub use treering_events::{ActivationStatistics, character, pluralize};
