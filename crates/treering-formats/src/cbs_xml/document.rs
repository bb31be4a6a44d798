//! The elements of a report, one after the other.

use std::borrow::Cow;
use std::fmt::Display;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::budget::Budget;
use crate::{Problem, ReadError};

/// The contents of a report.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Elements of the summary and what they hold, such as `name` and `date`.
    pub(super) summary: Vec<(String, String)>,
    pub(super) parameters: Vec<(String, String)>,
    pub(super) results: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
    pub(super) timer: Option<Timer>,
    pub(super) plots: Vec<Plot>,
}

/// The call graph.
#[derive(Debug, Default)]
pub(super) struct Timer {
    /// `cpu` or `wall`; CBS does not say it.
    pub(super) base: Option<String>,
    pub(super) stopped: bool,
    pub(super) total: Times,
    pub(super) tasks: Vec<Task>,
    pub(super) calls: Vec<Call>,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) self_cost: Times,
    /// Where it ends.
    pub(super) offset: usize,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) source: u64,
    pub(super) target: u64,
    pub(super) count: u64,
    /// The total of the callee that its callers add up to.
    pub(super) total: Option<Times>,
}

/// Milliseconds and percent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    pub(super) cpu: f64,
    pub(super) wall: f64,
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) charge: f64,
}

/// A point of the memory plot.
#[derive(Debug, Default)]
pub(super) struct Plot {
    pub(super) time_ms: f64,
    pub(super) memory: u64,
    pub(super) resident: u64,
    pub(super) task: String,
    pub(super) description: String,
}

/// Reads the elements.
pub(super) fn parse(file: &str, budget: &mut Budget) -> Result<Document, ReadError> {
    let mut parser = Parser { file, at: 0, open: Vec::new(), document: Document::default(), budget };
    parser.all()?;
    match parser.open.is_empty() {
        true => Ok(parser.document),
        false => Err(ReadError::at_byte(file.len(), Problem::CutShort)),
    }
}

struct Parser<'a, 'b> {
    file: &'a str,
    /// Behind the last element that was read.
    at: usize,
    /// The names of the elements that are open.
    open: Vec<String>,
    document: Document,
    budget: &'b mut Budget,
}

/// Elements may be in each other so deeply; a report has six levels.
const DEEPEST: usize = 64;

impl Parser<'_, '_> {
    fn error(&self, problem: impl Into<Problem>) -> ReadError {
        ReadError::at_byte(self.at, problem)
    }

    fn all(&mut self) -> Result<(), ReadError> {
        let file = self.file;
        let (mut reader, mut start) = (reader(file), 0);
        loop {
            let event = reader.read_event().map_err(|error| {
                let offset = start + reader.error_position() as usize;
                // All that it calls so are elements without an end.
                let is_cut = matches!(error, quick_xml::Error::Syntax(_));
                let problem = if is_cut { Problem::CutShort } else { no_xml(error) };
                ReadError::at_byte(offset, problem)
            })?;
            self.at = start + reader.buffer_position() as usize;
            match event {
                Event::Eof => return Ok(()),
                Event::Start(tag) => {
                    let name = self.element(&tag)?;
                    if is_text(self.parent(), &name) {
                        // CBS escapes nothing, so that what is in it may look like elements.
                        self.text(&name)?;
                        start = self.at;
                        reader = self::reader(&file[start..]);
                    } else {
                        self.open.push(name);
                    }
                }
                Event::Empty(tag) => {
                    self.element(&tag)?;
                }
                Event::End(tag) => self.end(tag.name().into_inner())?,
                _ => {}
            }
        }
    }

    fn parent(&self) -> Option<&str> {
        self.open.last().map(String::as_str)
    }

    /// The end of an element. CBS ends `componentlist` as `componentList`.
    fn end(&mut self, name: &str) -> Result<(), ReadError> {
        match self.open.pop() {
            Some(open) if open.eq_ignore_ascii_case(name) => Ok(()),
            Some(open) => Err(self.error(no_xml(format_args!("</{name}> where <{open}> is open")))),
            None => Err(self.error(no_xml(format_args!("</{name}> where no element is open")))),
        }
    }

    /// Reads the text of an element, up to its end.
    fn text(&mut self, name: &str) -> Result<(), ReadError> {
        let end = format!("</{name}>");
        let rest = &self.file[self.at..];
        let length = rest.find(&end);
        let length = length.ok_or_else(|| ReadError::at_byte(self.file.len(), Problem::CutShort))?;
        let text = unescaped(&rest[..length]);
        self.at += length + end.len();
        match self.parent() {
            Some("plot") => self.plot(name, text),
            Some("notes") => {
                self.document.notes.push(text);
                Ok(())
            }
            _ => {
                self.document.summary.push((name.to_owned(), text));
                Ok(())
            }
        }
    }

    fn plot(&mut self, name: &str, text: String) -> Result<(), ReadError> {
        let at = self.at;
        let bad = |name| ReadError::at_byte(at, no_number(name, &text));
        let Some(plot) = self.document.plots.last_mut() else { return Ok(()) };
        match name {
            "time" => plot.time_ms = text.trim().parse().map_err(|_| bad("time"))?,
            "memory" => plot.memory = text.trim().parse().map_err(|_| bad("memory"))?,
            "memory_rss" => plot.resident = text.trim().parse().map_err(|_| bad("resident memory"))?,
            "task" => plot.task = text,
            _ => plot.description = text,
        }
        Ok(())
    }

    /// Reads the start of an element; gives its name.
    fn element(&mut self, tag: &BytesStart<'_>) -> Result<String, ReadError> {
        const NUMBERS: usize = 16;
        self.budget.numbers(1, NUMBERS).map_err(|over| ReadError::at_byte(self.at, over))?;
        if self.open.len() == DEEPEST {
            return Err(self.error(Problem::TooDeep));
        }
        let name = tag.name().into_inner().to_owned();
        let attributes = Attributes { tag, offset: self.at };
        let document = &mut self.document;
        match name.as_str() {
            "parameter" => document.parameters.push((attributes.text("name")?, attributes.text("value")?)),
            "result" => document.results.push((attributes.text("name")?, attributes.text("value")?)),
            "plot" => document.plots.push(Plot::default()),
            "timer" => {
                let stopped = attributes.find("stopped")?.is_none_or(|stopped| stopped != "false");
                let base = attributes.find("base")?;
                document.timer = Some(Timer { base, stopped, ..Timer::default() });
            }
            _ => {
                let parent = self.open.last().map(String::as_str);
                if let Some(timer) = &mut document.timer {
                    timer.element(parent, &name, &attributes)?;
                }
            }
        }
        Ok(name)
    }
}

impl Timer {
    fn element(
        &mut self,
        parent: Option<&str>,
        name: &str,
        attributes: &Attributes<'_>,
    ) -> Result<(), ReadError> {
        match (parent, name) {
            (Some("taskList"), "task") => self.tasks.push(Task {
                id: attributes.count("id")?,
                name: attributes.text("name")?,
                self_cost: Times::default(),
                offset: attributes.offset,
            }),
            (_, "call") => self.calls.push(Call {
                source: attributes.count("source")?,
                target: attributes.count("target")?,
                count: attributes.count("count")?,
                total: None,
            }),
            (Some(parent @ ("timer" | "task" | "call")), "time") => {
                let times = attributes.times()?;
                let kind = attributes.text("name")?;
                match (parent, kind.as_str(), self.tasks.last_mut(), self.calls.last_mut()) {
                    ("timer", "total", ..) => self.total = times,
                    ("task", "self", Some(task), _) => task.self_cost = times,
                    // `fromCaller` comes after `total`; CBS has none.
                    ("call", "total" | "fromCaller", _, Some(call)) => call.total = Some(times),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn no_xml(error: impl Display) -> Problem {
    format!("it is no XML: {error}").into()
}

fn no_number(name: &str, text: &str) -> Problem {
    format!("the element before it has `{text}` for the {name}, and a number is expected").into()
}

fn reader(text: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    reader
}

/// Whether an element holds text and no elements.
fn is_text(parent: Option<&str>, name: &str) -> bool {
    match parent {
        Some("bench") => {
            matches!(name, "name" | "date" | "hostname" | "cpuinfo" | "meminfo" | "time" | "description")
        }
        Some("notes") => name == "note",
        Some("plot") => matches!(name, "time" | "memory" | "memory_rss" | "task" | "description"),
        _ => false,
    }
}

/// The text of an element or attribute; as it stands where it is not escaped as XML is.
fn unescaped(text: &str) -> String {
    quick_xml::escape::unescape(text).map_or_else(|_| text.to_owned(), Cow::into_owned)
}

/// The attributes of an element.
struct Attributes<'a> {
    tag: &'a BytesStart<'a>,
    /// Where it ends.
    offset: usize,
}

impl Attributes<'_> {
    fn find(&self, name: &str) -> Result<Option<String>, ReadError> {
        for attribute in self.tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| ReadError::at_byte(self.offset, no_xml(error)))?;
            if attribute.key.into_inner() == name {
                return Ok(Some(unescaped(&attribute.value)));
            }
        }
        Ok(None)
    }

    fn text(&self, name: &'static str) -> Result<String, ReadError> {
        let text = self.find(name)?;
        text.ok_or_else(|| ReadError::at_byte(self.offset, format!("the element before it has no {name}")))
    }

    fn count(&self, name: &'static str) -> Result<u64, ReadError> {
        let text = self.text(name)?;
        text.parse().map_err(|_| ReadError::at_byte(self.offset, no_number(name, &text)))
    }

    fn times(&self) -> Result<Times, ReadError> {
        let number = |name: &'static str| {
            let Some(text) = self.find(name)? else { return Ok(0.0) };
            text.parse().map_err(|_| ReadError::at_byte(self.offset, no_number(name, &text)))
        };
        Ok(Times {
            cpu: number("cpu")?,
            wall: number("wall")?,
            user: number("user")?,
            system: number("system")?,
            charge: number("charge")?,
        })
    }
}
