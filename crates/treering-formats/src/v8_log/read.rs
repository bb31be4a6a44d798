//! Reads logs of V8.

use std::borrow::Cow;

use treering_profile::{Function, FunctionKind, Metric, MetricId, Profile, ThreadId, Unit};

use super::code_map::CodeMap;
use super::function::function;
use super::line::{fields, number};
use crate::binary::{Binaries, Mappings, NoBinaries, Place};
use crate::budget::Budget;
use crate::gzip::unzip;
use crate::import::Import;
use crate::perf_script::kind_of;
use crate::text_line::text_lines;
use crate::{Problem, ReadError, ReadReport};

/// Reads a log without the binaries that some of its addresses are in.
///
/// The metrics are `samples`, and `time`, the interval for each of them.
///
/// # Errors
/// When it is damaged or has no ticks.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_with(bytes, &mut NoBinaries)
}

/// Reads a log. Functions that V8 did not make are addresses of the binaries that are known.
///
/// # Errors
/// When it is damaged or has no ticks.
pub fn read_with(bytes: &[u8], binaries: &mut dyn Binaries) -> Result<(Profile, ReadReport), ReadError> {
    read_within(bytes, binaries, Budget::new(bytes.len()))
}

/// The same with a limit to the memory that the profile may take.
pub(super) fn read_within(
    bytes: &[u8],
    binaries: &mut dyn Binaries,
    budget: Budget,
) -> Result<(Profile, ReadReport), ReadError> {
    let bytes = unzip(bytes)?;
    let mut reader = Reader::new(budget, binaries);
    // A tick may come before the line that tells the interval.
    if let Some(begin) = text_lines(&bytes).find(|line| line.bytes.starts_with(b"profiler,begin,")) {
        reader.line(&String::from_utf8_lossy(begin.bytes)).map_err(|problem| begin.error(problem))?;
    }
    let mut lines = text_lines(&bytes).peekable();
    while let Some(line) = lines.next() {
        match reader.line(&String::from_utf8_lossy(line.bytes)) {
            Ok(()) => {}
            // The last line of a program that was stopped may be cut.
            Err(Problem::Malformed(_)) if lines.peek().is_none() => reader.ended = false,
            Err(problem) => return Err(line.error(problem)),
        }
    }
    reader.finish()
}

/// The state of V8 in which it collects garbage.
const COLLECTS_GARBAGE: u64 = 1;

/// The first version of V8 that writes names without quotes.
const WITHOUT_QUOTES: (u64, u64) = (6, 5);

struct Reader<'a> {
    import: Import,
    binaries: &'a mut dyn Binaries,
    thread: ThreadId,
    samples: MetricId,
    /// The metric of time, and how long the interval is.
    time: Option<(MetricId, u64)>,
    quoted: bool,
    code: CodeMap,
    mappings: Mappings,
    /// Whether sampling was ended in an orderly way.
    ended: bool,
}

impl<'a> Reader<'a> {
    fn new(budget: Budget, binaries: &'a mut dyn Binaries) -> Self {
        let mut import = Import::new(budget);
        let thread = import.thread(0, 0, "");
        let samples = import.profile.add_metric(Metric::exact("samples", Unit::Count));
        let (code, mappings) = (CodeMap::default(), Mappings::default());
        Self { import, binaries, thread, samples, time: None, quoted: false, code, mappings, ended: false }
    }

    fn line(&mut self, line: &str) -> Result<(), Problem> {
        let fields = fields(line.trim_end_matches('\r'), self.quoted);
        let numbers = |at: usize| fields.get(at).and_then(|field| number(field));
        match fields[0].as_ref() {
            "v8-version" => {
                let version = numbers(1).zip(numbers(2));
                self.quoted = version.is_some_and(|version| version < WITHOUT_QUOTES);
                self.import.profile.metadata.version =
                    fields.iter().skip(1).take(4).map(Cow::as_ref).collect::<Vec<_>>().join(".");
            }
            "profiler" => self.profiler(&fields),
            "shared-library" => {
                let (start, end) = numbers(2).zip(numbers(3)).ok_or("a shared library has no addresses")?;
                self.map(&fields[1], start, end);
            }
            "code-creation" => self.code_creation(&fields)?,
            "code-move" => {
                let (from, to) = numbers(1).zip(numbers(2)).ok_or("moved code has no addresses")?;
                self.code.move_to(from, to);
            }
            "code-delete" => {
                self.code.delete(numbers(1).ok_or("deleted code has no address")?);
            }
            "tick" => self.tick(&fields)?,
            _ => {}
        }
        Ok(())
    }

    fn profiler(&mut self, fields: &[Cow<'_, str>]) {
        let is = |word: &str| fields.get(1).is_some_and(|field| field == word);
        self.ended = (self.ended || is("end")) && !is("begin");
        let interval = fields.get(2).and_then(|field| number(field)).filter(|&us| us > 0 && is("begin"));
        if let (Some(us), None) = (interval, self.time) {
            let ns = us.saturating_mul(1000);
            let metric = Metric::sampled("time", Unit::Nanoseconds, self.samples, Some(ns));
            self.time = Some((self.import.profile.add_metric(metric), ns));
        }
    }

    /// The start of a library is where the first byte of its file would lie.
    fn map(&mut self, path: &str, start: u64, end: u64) {
        let profile = &mut self.import.profile;
        let place = match path.starts_with('/') {
            true => Place::of_binary(profile, self.binaries, (path, &[]), (start, end, 0)),
            false => Place::nameless(profile, path, &[], kind_of(path)),
        };
        self.mappings.map(start, end, place);
    }

    /// `code-creation,JS,10,93211,0x2f00,128,leaf /a.js:2:14,0x90,~`; before V8 6.5 without a time, the fourth field.
    fn code_creation(&mut self, fields: &[Cow<'_, str>]) -> Result<(), Problem> {
        const CUT: &str = "code has no address, size or name";
        let timed = fields.get(3).is_some_and(|field| !field.starts_with("0x"));
        let rest = fields.get(if timed { 4 } else { 3 }..).ok_or(CUT)?;
        let [start, size, name, ..] = rest else { return Err(CUT.into()) };
        let (start, size) = number(start).zip(number(size)).ok_or(CUT)?;
        // Behind the name are the function that shares the code and the state, for functions of JavaScript only.
        let state = rest.get(4).map(Cow::as_ref);
        let function = function(&mut self.import.profile, &fields[1], name, state);
        self.code.add(start, size, function);
        Ok(())
    }

    /// `tick,PC,TIME,IS_CALLBACK,CALLBACK_OR_TOP_OF_STACK,STATE,STACK...`, the stack from the innermost frame on, each
    /// an address or how far it is from the one before.
    fn tick(&mut self, fields: &[Cow<'_, str>]) -> Result<(), Problem> {
        const CUT: &str = "a tick is cut short";
        let numbers = |at: usize| fields.get(at).and_then(|field| number(field)).ok_or(CUT);
        let (pc, is_callback, other, state) = (numbers(1)?, numbers(3)? != 0, numbers(4)?, numbers(5)?);
        let pc = if is_callback { other } else { pc };
        let mut addresses = vec![pc];
        // A function that has not made its frame yet.
        let has_no_frame = self.code.find(other).is_some_and(|code| code.kind != FunctionKind::Builtin);
        addresses.extend((!is_callback && has_no_frame).then_some(other));
        let mut last = pc;
        for frame in &fields[6..] {
            last = match frame.as_bytes().first() {
                Some(b'o') => {
                    self.import.profile.metadata.losses.truncated_stacks += 1;
                    continue;
                }
                Some(b'+') => last.wrapping_add(hexadecimal(&frame[1..]).ok_or(CUT)?),
                Some(b'-') => last.wrapping_sub(hexadecimal(&frame[1..]).ok_or(CUT)?),
                _ => number(frame).ok_or(CUT)?,
            };
            addresses.push(last);
        }
        self.add(&addresses, state)
    }

    fn add(&mut self, addresses: &[u64], state: u64) -> Result<(), Problem> {
        let innermost = self.function(addresses[0], false);
        let losses = &mut self.import.profile.metadata.losses;
        losses.samples += 1;
        losses.unresolved_samples +=
            u64::from(innermost.is_none_or(|function| function.kind == FunctionKind::Unresolved));
        self.import.begin();
        for &address in addresses[1..].iter().rev() {
            if let Some(function) = self.function(address, true) {
                self.import.function(function, 0);
            }
        }
        if state == COLLECTS_GARBAGE {
            self.import.frame("(garbage collector)", "", 0, FunctionKind::Builtin);
        }
        match innermost {
            Some(function) => self.import.function(function, 0),
            None => self.import.frame("[unknown]", "", 0, FunctionKind::Unresolved),
        }
        let weights: Vec<_> = std::iter::once((self.samples, 1)).chain(self.time).collect();
        self.import.add(self.thread, &weights)?;
        Ok(())
    }

    /// The code at an address, to which a call returns or not.
    fn function(&self, address: u64, returns: bool) -> Option<Function> {
        let address_in_call = address.wrapping_sub(u64::from(returns));
        let of_library = || Some(self.mappings.find(address_in_call)?.function(address_in_call));
        self.code.find(address).or_else(of_library)
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        if self.import.profile.metadata.losses.samples == 0 {
            return Err(Problem::Empty("ticks").into());
        }
        self.import.report.unfinished = !self.ended;
        self.import.note_if(
            self.mappings.len() > 0,
            "it has no build-ids: names of native code are those of the binaries as they are here now",
        );
        self.import.finish("V8")
    }
}

/// A number whose prefix may be missing.
fn hexadecimal(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
}
