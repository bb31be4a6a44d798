//! Reads files of Austin: what both of its formats have in common.

use treering_profile::{FunctionKind, Metric, MetricId, Profile, Unit};

use crate::austin::{MAGIC, mojo, text};
use crate::budget::Budget;
use crate::import::Import;
use crate::read_error::LARGE_TIME;
use crate::{Problem, ReadError, ReadReport};

/// Reads a file of Austin.
///
/// The metrics are those of its mode: `time`, in wall or CPU mode; `memory` allocated and `freed`; all of them and
/// `cpu time` in full mode, and `samples` always. Threads are told by process and number, lines are call sites.
///
/// # Errors
/// When it is damaged or has no samples.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let mut reader = Reader::new(budget);
    match bytes.starts_with(MAGIC) {
        true => mojo::read(bytes, &mut reader)?,
        false => text::read(bytes, &mut reader)?,
    }
    reader.finish()
}

/// The contents of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amounts {
    /// Microseconds.
    pub(super) time: Option<u64>,
    /// Whether the thread waited, where that is told.
    pub(super) idle: Option<bool>,
    /// Bytes; below 0 if more was freed.
    pub(super) memory: Option<i64>,
}

pub(super) struct Reader {
    pub(super) import: Import,
    samples: MetricId,
    time: Option<MetricId>,
    cpu: Option<MetricId>,
    memory: Option<[MetricId; 2]>,
}

impl Reader {
    fn new(budget: Budget) -> Self {
        let mut import = Import::new(budget);
        let samples = import.profile.add_metric(Metric::exact("samples", Unit::Count));
        Self { import, samples, time: None, cpu: None, memory: None }
    }

    /// The header of the file.
    pub(super) fn metadata(&mut self, key: &str, value: &str) {
        match key {
            "austin" => self.import.profile.metadata.version = value.to_owned(),
            "python" | "mode" | "interval" | "sampling" => {
                let parameters = &mut self.import.profile.metadata.parameters;
                parameters.insert(key.to_owned(), value.to_owned());
            }
            "duration" => {
                let ns = value.parse::<u64>().unwrap_or(0).saturating_mul(1000);
                let run = self.import.run.index();
                self.import.profile.runs[run].duration_ns = ns;
            }
            _ => {}
        }
    }

    /// Whether the file says that it is of a mode.
    pub(super) fn is_mode(&self, mode: &str) -> bool {
        self.import.profile.metadata.parameters.get("mode").is_some_and(|known| known == mode)
    }

    /// Adds a frame, which may stand for no function of the program.
    pub(super) fn frame(&mut self, name: &str, file: &str, line: u32) {
        let kind = if file.is_empty() { FunctionKind::Builtin } else { FunctionKind::Interpreted };
        self.import.frame(name, file, line, kind);
    }

    /// Ends a sample of a thread.
    pub(super) fn sample(&mut self, pid: u32, thread: &str, amounts: Amounts) -> Result<(), Problem> {
        let tid = thread.rsplit(':').next().unwrap_or(thread);
        let tid = tid.parse().unwrap_or(0);
        let thread = self.import.thread(pid, tid, &format!("thread {thread}"));
        let mut weights = vec![(self.samples, 1)];
        let profile = &mut self.import.profile;
        let samples = self.samples;
        let mut of_time = |name| profile.add_metric(Metric::sampled(name, Unit::Nanoseconds, samples, None));
        if let Some(time) = amounts.time {
            let ns = time.checked_mul(1000).ok_or(LARGE_TIME)?;
            weights.push((*self.time.get_or_insert_with(|| of_time("time")), ns));
            if let Some(idle) = amounts.idle {
                weights
                    .push((*self.cpu.get_or_insert_with(|| of_time("cpu time")), if idle { 0 } else { ns }));
            }
        }
        if let Some(memory) = amounts.memory {
            let add = || ["memory", "freed"].map(|name| profile.add_metric(Metric::exact(name, Unit::Bytes)));
            let [allocated, freed] = *self.memory.get_or_insert_with(add);
            let metric = if memory < 0 { freed } else { allocated };
            weights.push((metric, memory.unsigned_abs()));
        }
        self.import.profile.metadata.losses.samples += 1;
        self.import.add(thread, &weights)?;
        Ok(())
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        if self.import.profile.threads.is_empty() {
            return Err(Problem::Empty("samples").into());
        }
        if let (Some([allocated, _]), None) = (self.memory, self.time) {
            self.import.set_default_metric(allocated);
        }
        self.import.finish("austin")
    }
}
