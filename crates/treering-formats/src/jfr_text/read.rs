//! Reads what `jfr print` prints.

use treering_profile::{FunctionKind, Metric, MetricId, Profile, Unit};

use crate::budget::Budget;
use crate::import::Import;
use crate::{Problem, ReadError, ReadReport};

/// The event whose samples are counted as `samples`.
const EXECUTION: &str = "jdk.ExecutionSample";

/// How many kinds of events there may be.
const MOST_KINDS: usize = 128;

/// Reads what `jfr print` prints.
///
/// Each kind of event that has stack traces is a metric of its own, the number of events: `samples` for
/// `jdk.ExecutionSample`, else named as the event. Traces that `jfr` cut are counted as cut.
///
/// # Errors
/// When there are no events with stack traces.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    let kinds = Vec::new();
    let mut reader = Reader { import: Import::new(budget), kinds, event: None, in_trace: false, without: 0 };
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = reader.import.text(line);
        reader.line(line.trim_end())?;
    }
    let Reader { mut import, event, without, .. } = reader;
    if import.profile.threads.is_empty() {
        return Err(Problem::Empty("events with a stack trace").into());
    }
    import.report.unfinished = event.is_some();
    import.note_count("events without a stack trace are not read", without);
    let cut = import.profile.metadata.losses.truncated_stacks;
    import.note_if(
        cut > 0,
        &format!("stack traces are cut: {cut}; jfr print --stack-depth 512 prints all frames"),
    );
    import.finish("Java Flight Recorder")
}

/// The event that is being read.
#[derive(Default)]
struct Event {
    kind: String,
    thread: String,
    /// Name and line, the innermost first.
    frames: Vec<(String, u32)>,
    has_trace: bool,
    is_cut: bool,
}

struct Reader {
    import: Import,
    kinds: Vec<(String, MetricId)>,
    event: Option<Event>,
    in_trace: bool,
    without: u64,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), ReadError> {
        let Some(event) = &mut self.event else {
            self.event = line
                .strip_suffix(" {")
                .map(|kind| Event { kind: kind.trim().to_owned(), ..Event::default() });
            return Ok(());
        };
        let text = line.trim();
        if self.in_trace {
            match text {
                "]" => self.in_trace = false,
                "..." => event.is_cut = true,
                _ if text.is_empty() => {}
                _ => event.frames.push(frame(text)),
            }
        } else if line == "}" {
            self.end()?;
        } else if let Some(trace) = text.strip_prefix("stackTrace = ") {
            event.has_trace = trace == "[";
            self.in_trace = trace == "[";
        } else if let Some(thread) =
            text.strip_prefix("sampledThread = ").or_else(|| text.strip_prefix("eventThread = "))
        {
            thread.clone_into(&mut event.thread);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), ReadError> {
        let Some(event) = self.event.take() else { return Ok(()) };
        if !event.has_trace {
            self.without += 1;
            return Ok(());
        }
        let metric = self.metric(&event.kind)?;
        let (name, tid) = thread(&event.thread);
        let thread = self.import.thread(0, tid, name);
        self.import.begin();
        for (name, line) in event.frames.iter().rev() {
            // The file is not printed; that of the class is as good, so that lines of two classes stay apart.
            let class =
                name.split('(').next().and_then(|name| name.rsplit_once('.')).map_or("", |(class, _)| class);
            self.import.frame(name, class, *line, FunctionKind::Jit);
        }
        let losses = &mut self.import.profile.metadata.losses;
        losses.samples += 1;
        losses.truncated_stacks += u64::from(event.is_cut);
        self.import.add(thread, &[(metric, 1)])?;
        Ok(())
    }

    fn metric(&mut self, kind: &str) -> Result<MetricId, ReadError> {
        if let Some((_, metric)) = self.kinds.iter().find(|(known, _)| known == kind) {
            return Ok(*metric);
        }
        if self.kinds.len() == MOST_KINDS {
            let text = format!("there are more types of events than the {MOST_KINDS} that can be read");
            return Err(Problem::unsupported(text).into());
        }
        let name = if kind == EXECUTION { "samples" } else { kind };
        let metric = self.import.profile.add_metric(Metric::exact(name, Unit::Count));
        self.kinds.push((kind.to_owned(), metric));
        Ok(metric)
    }
}

/// `Main.work(int) line: 12`, which may end with the type of the frame.
fn frame(text: &str) -> (String, u32) {
    let (name, line) = text.rsplit_once(" line:").unwrap_or((text, ""));
    let line = line.split_whitespace().next().and_then(|line| line.parse().ok()).unwrap_or(0);
    (name.trim().to_owned(), line)
}

/// `"main" (javaThreadId = 1)`.
fn thread(text: &str) -> (&str, u32) {
    let name = text.split('"').nth(1).unwrap_or(text);
    let number =
        text.rsplit_once("javaThreadId = ").and_then(|(_, number)| number.trim_end_matches(')').parse().ok());
    (name, number.unwrap_or(0))
}
