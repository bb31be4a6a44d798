//! Reads the output of perf script.

use std::collections::HashMap;
use std::io::{self, BufRead};

use treering_profile::{
    Function, FunctionKind, Line, LineId, Module, ModuleId, ModuleKind, Process, ProcessId, Profile, ThreadId,
};

use crate::budget::Budget;
use crate::import::Import;
use crate::label::{file_name, module_kind, text_of, without_mark};
use crate::perf_script::header::{Header, Start};
use crate::perf_script::line;
use crate::sampled_event::{MOST_EVENTS, SampledEvent, name_metrics, note_missing_callers, too_many_events};
use crate::{Problem, ReadError, ReadReport};

/// How long a line may be; names of functions of C++ have some ten thousand bytes.
pub(crate) const LONGEST_LINE: u64 = 1 << 20;

/// The command whose output has all that is read.
const FIELDS: &str = "perf script -F comm,pid,tid,time,event,period,ip,sym,dso";

/// Reads the output of perf script from memory; see [`read_from`].
///
/// # Errors
/// When there are no samples, or a line is not text of perf.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_from(bytes)
}

/// Reads the output of perf script, line by line.
///
/// Every event becomes two metrics: what its samples stand for, named as the event, if periods are
/// printed, and their number, `samples`, or `EVENT samples` where there are several events. Threads are
/// told by process, thread and name. A line that perf's source lines name is the call site of the next
/// inner frame; the innermost frame's gets the costs. Names of functions that are not known become one
/// for each file, in brackets.
///
/// # Errors
/// When there are no samples, a line is not text of perf, or the input fails.
pub fn read_from(input: impl BufRead) -> Result<(Profile, ReadReport), ReadError> {
    let mut lines = Lines { input, text: Vec::new(), number: 0, offset: 0, next: 0 };
    let mut reader = Reader::new();
    while lines.advance()? {
        reader.line(&lines.text).map_err(|problem| lines.error(problem))?;
    }
    reader.finish(!lines.text.ends_with(b"\n"))
}

/// The lines of the input, one at a time.
struct Lines<R> {
    input: R,
    text: Vec<u8>,
    number: u64,
    offset: u64,
    next: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line; whether there was one. At the end the last one stays.
    fn advance(&mut self) -> Result<bool, ReadError> {
        if self.input.fill_buf().map_err(|error| error.to_string()).is_ok_and(<[u8]>::is_empty) {
            return Ok(false);
        }
        self.text.clear();
        (self.number, self.offset) = (self.number + 1, self.next);
        let mut limited = io::Read::take(&mut self.input, LONGEST_LINE + 1);
        let length = limited.read_until(b'\n', &mut self.text);
        let length = length.map_err(|error| self.error(Problem::Input(error.to_string())))? as u64;
        self.next += length;
        if self.number == 1 {
            let mark = self.text.len() - without_mark(&self.text).len();
            self.text.drain(..mark);
        }
        if length > LONGEST_LINE {
            return Err(
                self.error(format!("it is longer than {LONGEST_LINE} bytes, as no line of perf script is"))
            );
        }
        Ok(length > 0)
    }

    fn error(&self, problem: impl Into<Problem>) -> ReadError {
        ReadError::at_line(self.number, self.offset, problem)
    }
}

/// A frame of the sample that is being read.
struct Place {
    function: Function,
    address: u64,
    line: Option<LineId>,
    inlined: bool,
}

/// The sample that is being read.
#[derive(Default)]
struct Sample {
    thread: Option<ThreadId>,
    /// The names of the thread and the event, which are made when the first frame follows.
    names: [Vec<u8>; 2],
    /// The place of its event; nothing where the event is not printed.
    event: Option<usize>,
    period: Option<u64>,
    time_ns: Option<u64>,
    /// Whether what follows may be the first line of another one rather than a frame.
    closed: bool,
}

type ThreadKey = (Option<u32>, Option<u32>, Box<[u8]>);

struct Reader {
    import: Import,
    threads: HashMap<ThreadKey, ThreadId>,
    processes: HashMap<(u32, Box<[u8]>), ProcessId>,
    events: Vec<SampledEvent>,
    functions: HashMap<Box<[u8]>, Box<[Function]>>,
    sample: Option<Sample>,
    /// The frames of the sample, the innermost first.
    frames: Vec<Place>,
    key: Vec<u8>,
    /// From how many line costs on they are joined.
    compact_at: usize,
    placeless: u64,
    skipped: u64,
    /// Whether there were events without frames, or addresses without names, that are no samples by themselves.
    incomplete: bool,
    /// Whether samples have frames on lines of their own, and so end with an empty line.
    chains: bool,
    /// Whether a sample was followed by another at once, so that its line is all that there is of each.
    lone_lines: bool,
    texts: bool,
    one_number: bool,
}

impl Reader {
    fn new() -> Self {
        Self {
            // The length of the input is not known. It is read line by line, and each node has bytes of its own in it.
            import: Import::new(Budget::new(usize::MAX)),
            threads: HashMap::new(),
            processes: HashMap::new(),
            events: Vec::new(),
            functions: HashMap::new(),
            sample: None,
            frames: Vec::new(),
            key: Vec::new(),
            compact_at: 1 << 20,
            placeless: 0,
            skipped: 0,
            incomplete: false,
            chains: false,
            lone_lines: false,
            texts: false,
            one_number: false,
        }
    }

    fn line(&mut self, text: &[u8]) -> Result<(), Problem> {
        let text = text.trim_ascii_end();
        if text.is_empty() {
            self.chains |= !self.frames.is_empty();
            return self.end_sample();
        }
        if self.is_frame(text) {
            if let Some(frame) = line::Frame::parse(text) {
                return self.frame(&frame);
            }
            if let Some((file, number, inlined)) = line::source_line(text)
                && let Some(place) = self.frames.last_mut()
            {
                place.inlined |= inlined;
                place.line = source_line(&mut self.import.profile, file, number);
                return Ok(());
            }
        }
        match Start::parse(text) {
            Some(Start::Sample(header)) if header.is_certain || self.may_begin(text) => self.begin(&header),
            Some(Start::Record { lost }) => {
                self.end_sample()?;
                let losses = &mut self.import.profile.metadata.losses;
                losses.lost_samples = losses.lost_samples.saturating_add(lost);
                Ok(())
            }
            _ if text.starts_with(b"#") => {
                self.comment(text);
                Ok(())
            }
            _ => self.other(text),
        }
    }

    /// Whether a line that only looks like a sample's first one may be that: sources among frames look so as well.
    fn may_begin(&self, text: &[u8]) -> bool {
        !text.starts_with(b"#") && self.sample.as_ref().is_none_or(|sample| sample.closed)
    }

    /// Whether a line may only be a frame, or the source line of one.
    fn is_frame(&self, text: &[u8]) -> bool {
        let Some(sample) = &self.sample else { return false };
        text.starts_with(b"\t")
            || !sample.closed && text.starts_with(b" ")
            || !self.frames.is_empty() && text.starts_with(b"  ") && line::source_line(text).is_some()
    }

    /// A line that is no sample's first one: a frame that is not indented or has no line above it, a
    /// thread's name and nothing else, or nothing that is known.
    fn other(&mut self, text: &[u8]) -> Result<(), Problem> {
        let address = line::Frame::parse(text);
        self.incomplete |= address.is_some();
        if let Some(frame) = address.filter(|frame| frame.symbol.len() + frame.module.len() > 0) {
            if self.sample.is_none() {
                self.begin(&Header::default())?;
            }
            return self.frame(&frame);
        }
        if self.sample.is_some() || text.starts_with(b" ") || text.starts_with(b"\t") {
            self.skipped += 1;
            return Ok(());
        }
        self.begin(&Header { comm: text, ..Header::default() })
    }

    fn begin(&mut self, header: &Header<'_>) -> Result<(), Problem> {
        self.lone_lines |=
            self.sample.as_ref().is_some_and(|sample| sample.thread.is_some() && !sample.closed)
                && self.frames.is_empty();
        self.end_sample()?;
        self.texts |= header.has_text;
        self.one_number |= header.tid.is_some() && header.pid.is_none();
        // A line that is no sample unless frames follow must not make a thread or an event.
        let is_certain = header.is_certain && (!header.event.is_empty() || header.tid.is_some());
        let has_event = is_certain && !header.event.is_empty();
        let event = if has_event { Some(self.event(header)?) } else { None };
        let closed = header.frame.is_some() || header.has_text;
        let thread = is_certain.then(|| self.thread(header));
        let names =
            if is_certain { Default::default() } else { [header.comm, header.event].map(<[u8]>::to_vec) };
        self.sample =
            Some(Sample { thread, names, event, period: header.period, time_ns: header.time_ns, closed });
        header.frame.map_or(Ok(()), |frame| self.frame(&frame))
    }

    fn event(&mut self, header: &Header<'_>) -> Result<usize, Problem> {
        // Mostly there is one, or they alternate.
        if let Some(at) = self.events.iter().position(|event| event.name == header.event) {
            return Ok(at);
        }
        if self.events.len() == MOST_EVENTS {
            return Err(too_many_events());
        }
        self.events.push(SampledEvent::new(&mut self.import.profile, header.event, header.period));
        Ok(self.events.len() - 1)
    }

    fn thread(&mut self, header: &Header<'_>) -> ThreadId {
        let key = (header.pid, header.tid, Box::from(header.comm));
        if let Some(&thread) = self.threads.get(&key) {
            return thread;
        }
        let comm = self.import.text(header.comm).into_owned();
        let process = self.process(header, &comm);
        let thread = self.import.profile.add_thread(process, header.tid.unwrap_or(0), comm);
        self.threads.insert(key, thread);
        thread
    }

    /// The process of a thread; one for each name where its number is not printed.
    fn process(&mut self, header: &Header<'_>, comm: &str) -> ProcessId {
        let key = match header.pid {
            Some(pid) => (pid, Box::from(&b""[..])),
            None => (0, Box::from(header.comm)),
        };
        let run = self.import.run;
        let profile = &mut self.import.profile;
        let pid = key.0;
        let add = || profile.add_process(Process { run, pid, name: comm.to_owned() });
        let process = *self.processes.entry(key).or_insert_with(add);
        // The main thread has the name of the process.
        if header.pid.is_some() && header.pid == header.tid {
            comm.clone_into(&mut self.import.profile.processes[process.index()].name);
        }
        process
    }

    fn frame(&mut self, frame: &line::Frame<'_>) -> Result<(), Problem> {
        if let Some(mut sample) = self.sample.take_if(|sample| sample.thread.is_none()) {
            let [comm, event] = &sample.names;
            let header = Header { comm, event, period: sample.period, ..Header::default() };
            sample.thread = Some(self.thread(&header));
            sample.event = if event.is_empty() { None } else { Some(self.event(&header)?) };
            self.sample = Some(sample);
        }
        self.key.clear();
        self.key.extend_from_slice(frame.symbol);
        self.key.push(0);
        self.key.extend_from_slice(frame.module);
        if !self.functions.contains_key(self.key.as_slice()) {
            let functions = self.functions_of(frame);
            self.functions.insert(self.key.as_slice().into(), functions);
        }
        let functions = &self.functions[self.key.as_slice()];
        // All but the outermost of several were inlined into it; the innermost comes first here.
        let outermost = functions.len() - 1;
        let places = functions.iter().enumerate().map(|(at, &function)| Place {
            function,
            address: frame.address,
            line: None,
            inlined: frame.inlined || at < outermost,
        });
        self.frames.extend(places);
        Ok(())
    }

    /// The functions that a frame names, the innermost first: agents for Java put `->` between a method
    /// and those that were inlined into it.
    fn functions_of(&mut self, frame: &line::Frame<'_>) -> Box<[Function]> {
        let module = self.module(frame.module);
        let kind = match module.map(|module| self.import.profile.modules[module].kind) {
            Some(ModuleKind::Kernel) => FunctionKind::Kernel,
            Some(ModuleKind::Jit) => FunctionKind::Jit,
            _ => FunctionKind::Native,
        };
        if frame.symbol.is_empty() {
            return [self.unresolved(module)].into();
        }
        let name = self.import.text(frame.symbol);
        let parts: Vec<&str> = match kind {
            FunctionKind::Jit if name.starts_with('L') => {
                name.split("->").filter(|part| !part.is_empty()).collect()
            }
            _ => vec![&name],
        };
        let mut function = |name: &str| Function {
            module,
            kind,
            ..Function::named(self.import.profile.strings.intern(name))
        };
        match parts.is_empty() {
            true => [function(&name)].into(),
            false => parts.into_iter().rev().map(function).collect(),
        }
    }

    fn module(&mut self, path: &[u8]) -> Option<ModuleId> {
        if path.is_empty() {
            return None;
        }
        let text = self.import.text(path);
        let kind = kind_of(&text);
        let path = self.import.profile.strings.intern(&text);
        Some(self.import.profile.modules.intern(Module { path, build_id: Box::default(), kind }))
    }

    /// The function that stands for all of a file that have no name.
    fn unresolved(&mut self, module: Option<ModuleId>) -> Function {
        let path = module
            .map(|module| self.import.profile.strings[self.import.profile.modules[module].path].to_owned());
        let name = match path {
            Some(path) => format!("[{}]", file_name(&path).trim_start_matches('[').trim_end_matches(']')),
            None => "[unknown]".to_owned(),
        };
        let name = self.import.profile.strings.intern(&name);
        Function { module, kind: FunctionKind::Unresolved, ..Function::named(name) }
    }

    /// Adds the sample that was read to the profile.
    fn end_sample(&mut self) -> Result<(), Problem> {
        let Some(sample) = self.sample.take() else { return Ok(()) };
        let Some(thread) = sample.thread else {
            self.skipped += 1;
            self.incomplete |= !sample.names[1].is_empty();
            return Ok(());
        };
        let event = match sample.event {
            Some(event) => event,
            None => self.event(&Header { period: sample.period, ..Header::default() })?,
        };
        self.fill_stack();
        let losses = &mut self.import.profile.metadata.losses;
        losses.samples += 1;
        self.placeless += u64::from(self.frames.is_empty());
        let innermost = self.frames.first().map(|place| place.function.kind);
        losses.unresolved_samples += u64::from(innermost == Some(FunctionKind::Unresolved));
        let weights = self.events[event].weights(&mut self.import.profile, sample.period);
        self.import.add_sample(thread, &weights, sample.time_ns)?;
        self.frames.clear();
        if self.import.profile.line_costs.len() >= self.compact_at {
            self.import.profile.compact_line_costs();
            self.compact_at = (2 * self.import.profile.line_costs.len()).max(1 << 20);
        }
        Ok(())
    }

    /// The frames from the outermost to the innermost. Inlined functions are in the file of the function
    /// they were inlined into, which has their address; perf does not print it.
    ///
    /// The outermost of an address is never inlined. perf marks it so where debug information has another name for it
    /// than the table of symbols, and does not print its file then either.
    fn fill_stack(&mut self) {
        self.import.begin();
        let (mut module, mut address) = (None, None);
        for place in self.frames.iter().rev() {
            let mut function = place.function;
            if place.inlined && address == Some(place.address) {
                function = Function { kind: FunctionKind::Inlined, module, ..function };
            }
            (module, address) = (function.module, Some(place.address));
            let function = self.import.profile.functions.intern(function);
            self.import.push(function, place.line);
        }
    }

    /// A line of `--header`, which tells of the recording.
    fn comment(&mut self, text: &[u8]) {
        let text = text_of(text);
        let Some((key, value)) = text.trim_start_matches('#').split_once(':') else { return };
        let value = value.trim();
        let machine = &mut self.import.profile.metadata.machine;
        let mut machine = |key: &str| machine.insert(key.to_owned(), value.to_owned());
        match key.trim() {
            "hostname" => drop(machine("host")),
            "os release" => drop(machine("kernel")),
            "cpudesc" => drop(machine("cpu")),
            "nrcpus online" => drop(machine("cpus")),
            "cmdline" => {
                let command = value.split_whitespace().map(str::to_owned).collect();
                self.import.profile.runs[0].command = command;
            }
            _ => {}
        }
    }

    fn finish(mut self, cut: bool) -> Result<(Profile, ReadReport), ReadError> {
        let in_sample =
            self.sample.as_ref().is_some_and(|sample| self.chains || !sample.closed && !self.lone_lines);
        self.end_sample()?;
        if self.import.profile.metadata.losses.samples == 0 {
            let incomplete = format!("its samples have no addresses with names; {FIELDS} prints them");
            return Err(match self.incomplete {
                true => Problem::missing(incomplete),
                false => Problem::Empty("samples"),
            }
            .into());
        }
        self.import.report.unfinished = cut || in_sample;
        self.add_notes();
        note_missing_callers(&mut self.import.profile);
        self.import.finish("perf script")
    }

    fn add_notes(&mut self) {
        let import = &mut self.import;
        import.note_count("lines that are neither a sample nor a frame were passed over", self.skipped);
        import.report.notes.extend(name_metrics(&mut import.profile, &self.events));
        let all = self.placeless == import.profile.metadata.losses.samples;
        let how = if all { format!(" ({FIELDS} prints frames)") } else { String::new() };
        let placeless = format!("samples have no frames, so they are charged to their threads{how}");
        import.note_count(&placeless, self.placeless);
        import.note_if(
            self.one_number,
            "samples have one number, which is taken as that of the thread; perf script -F +pid tells the processes as \
             well",
        );
        import.note_if(self.texts, "what tracepoints print is not kept");
    }
}

fn source_line(profile: &mut Profile, file: &[u8], number: u32) -> Option<LineId> {
    if number == 0 || matches!(file, b"??" | b"") {
        return None;
    }
    let file = profile.strings.intern(&text_of(file));
    Some(profile.lines.intern(Line { file, line: number }))
}

/// The kind of a module, by perf's name for it.
pub(crate) fn kind_of(path: &str) -> ModuleKind {
    const IN_PROCESSES: [&str; 7] =
        ["[heap]", "[stack]", "[anon]", "[vsyscall]", "[uprobes]", "[vvar]", "[vectors]"];
    let file = file_name(path);
    let module_of_kernel = [".ko", ".ko.gz", ".ko.xz", ".ko.zst"].iter().any(|end| file.ends_with(end));
    match path {
        "[vdso]" => ModuleKind::Vdso,
        "//anon" => ModuleKind::Jit,
        _ if path.starts_with("[JIT]") || path.starts_with("[jit") => ModuleKind::Jit,
        _ if file.starts_with("perf-") && file.ends_with(".map") => ModuleKind::Jit,
        _ if file.starts_with("jitted-") && file.ends_with(".so") => ModuleKind::Jit,
        _ if module_of_kernel || file.starts_with("vmlinux") || path.starts_with("bpf_") => {
            ModuleKind::Kernel
        }
        _ if IN_PROCESSES.contains(&path) => ModuleKind::Other,
        _ if path.starts_with('[') => ModuleKind::Kernel,
        _ => module_kind(path),
    }
}
