//! Reads folded stacks.

use treering_profile::{
    Frame, Function, FunctionId, FunctionKind, Metric, MetricId, Profile, RecursionRule, ThreadId, Unit,
};

use crate::ReadReport;
use crate::folded::{Problem, ReadError, SEMICOLON, SUFFIXES};
use crate::label::ROOT;

/// Reads folded stacks as one thread with one metric, `samples`.
///
/// A weight without a stack is charged to the thread itself.
///
/// The weight is what follows the last space; names may hold spaces. Empty lines and lines that
/// start with `#` are passed over. Bytes that are not UTF-8 become replacement characters.
///
/// # Errors
/// At the first line that has no weight.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    let mut reader = Reader::new();
    let (mut offset, mut line) = (0, 0);
    for text in bytes.split(|&byte| byte == b'\n') {
        line += 1;
        reader.line(&String::from_utf8_lossy(text)).map_err(|problem| ReadError { line, offset, problem })?;
        offset += text.len() as u64 + 1;
    }
    let offset = bytes.len() as u64;
    let profile = reader.finish().map_err(|problem| ReadError { line, offset, problem })?;
    Ok((profile, ReadReport::default()))
}

struct Reader {
    profile: Profile,
    samples: MetricId,
    thread: ThreadId,
    stacks: u64,
    frames: Vec<Frame>,
}

impl Reader {
    fn new() -> Self {
        let mut profile = Profile::new(RecursionRule::Full);
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let thread = profile.add_single_thread("");
        Self { profile, samples, thread, stacks: 0, frames: Vec::new() }
    }

    fn line(&mut self, line: &str) -> Result<(), Problem> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let (stack, weight) = line.trim_end().rsplit_once([' ', '\t']).ok_or(Problem::NoWeight)?;
        let weight = weight.parse().map_err(|_| Problem::BadWeight(weight.to_owned()))?;
        self.frames.clear();
        for name in stack.split(';').filter(|_| !stack.is_empty()) {
            if let Some(function) = self.function(name) {
                self.frames.push(Frame::new(function));
            }
        }
        self.profile.add_stack(self.thread, &self.frames, None, &[(self.samples, weight)]);
        self.stacks += 1;
        Ok(())
    }

    /// The function of a name; nothing for the root, which a stack starts below anyway.
    fn function(&mut self, name: &str) -> Option<FunctionId> {
        if name == ROOT {
            return None;
        }
        let suffix = SUFFIXES.iter().find_map(|(suffix, kind)| Some((name.strip_suffix(suffix)?, *kind)));
        let (name, kind) = suffix.unwrap_or((name, FunctionKind::Native));
        let name = self.profile.strings.intern(&name.replace(SEMICOLON, ";"));
        Some(self.profile.functions.intern(Function { kind, ..Function::named(name) }))
    }

    fn finish(mut self) -> Result<Profile, Problem> {
        if self.stacks == 0 {
            return Err(Problem::Empty);
        }
        self.profile.metadata.collector = "folded stacks".to_owned();
        self.profile.validate().map_err(Problem::Invalid)?;
        Ok(self.profile)
    }
}
