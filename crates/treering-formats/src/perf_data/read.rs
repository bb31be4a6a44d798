//! Makes a profile of a `perf.data` file.

use std::collections::HashMap;

use treering_profile::{Function, FunctionKind, ModuleKind, Profile, ThreadId};

use crate::binary::{Binaries, Kernel, Mappings, NoBinaries, Place, module};
use crate::budget::{Budget, OverBudget};
use crate::gzip::unzip;
use crate::import::Import;
use crate::label::text_of;
use crate::perf_data::event::Event;
use crate::perf_data::file::{Fields, Parts, Record, kind, parse};
use crate::perf_data::record::{Context, Mapped, Sample, time_of};
use crate::perf_script::kind_of;
use crate::sampled_event::{SampledEvent, name_metrics, note_missing_callers};
use crate::{Problem, ReadError, ReadReport};

/// Reads a `perf.data` file without the binaries that its addresses are in: there is one function for each.
///
/// # Errors
/// When it is damaged, holds no samples, or is no such file.
pub fn read(bytes: &[u8]) -> Result<(Profile, ReadReport), ReadError> {
    read_with(bytes, &mut NoBinaries)
}

/// Reads a `perf.data` file. Functions are addresses of the binaries that are known.
///
/// Every event becomes two metrics, as in the output of perf script: what its samples stand for, and their
/// number. Threads are told by process, thread and name.
///
/// # Errors
/// When it is damaged, holds no samples, or is no such file.
pub fn read_with(bytes: &[u8], binaries: &mut dyn Binaries) -> Result<(Profile, ReadReport), ReadError> {
    read_budgeted(bytes, Budget::new(bytes.len()), binaries)
}

/// Whether samples have copies of the stack, or records of branches, from which callers are yet to be found.
pub fn needs_unwinding(bytes: &[u8]) -> bool {
    let Ok(bytes) = unzip(bytes) else { return false };
    parse(&bytes).is_ok_and(|parts| parts.events.iter().any(Event::needs_unwinding))
}

pub(crate) fn read_within(bytes: &[u8], budget: Budget) -> Result<(Profile, ReadReport), ReadError> {
    read_budgeted(bytes, budget, &mut NoBinaries)
}

fn read_budgeted(
    bytes: &[u8],
    mut budget: Budget,
    binaries: &mut dyn Binaries,
) -> Result<(Profile, ReadReport), ReadError> {
    let bytes = unzip(bytes)?;
    let mut parts = parse(&bytes)?;
    let decompressed = parts.decompressed(&bytes, &mut budget)?;
    let mut ordered = Vec::new();
    let mut is_cut = false;
    for mut records in [parts.records(&bytes), parts.records_of(&decompressed)] {
        while let Some(record) = records.next_record()? {
            if record.kind < kind::FIRST_OF_PERF {
                ordered.push(record);
            } else {
                parts.has_traces |= record.kind == kind::AUXTRACE;
                parts.add_header_record(record).map_err(|problem| record.error(problem))?;
            }
        }
        is_cut |= records.is_cut;
    }
    if parts.events.is_empty() {
        return Err(Problem::Empty("events").into());
    }
    parts.unfinished |= is_cut;
    // Processors have buffers of their own: only times tell what came first. What has none comes before all.
    ordered.sort_by_cached_key(|record| time_of(*record, event_of(&parts, *record).1, parts.big_endian));
    let mut reader = Reader::new(&parts, binaries, budget);
    for record in ordered {
        reader.record(record).map_err(|problem| record.error(problem))?;
    }
    reader.finish()
}

/// The event of a record: the first one if it names none.
fn event_of<'a>(parts: &'a Parts, record: Record<'_>) -> (usize, &'a Event) {
    let first = &parts.events[0];
    if record.kind != kind::SAMPLE || parts.events.len() == 1 {
        return (0, first);
    }
    let id = first.id_at().and_then(|at| Fields::new(record.body, parts.big_endian).from(at)?.u64());
    let at = id.and_then(|id| parts.by_id.get(&id).copied()).unwrap_or(0);
    (at, &parts.events[at])
}

/// Records and samples of which something is not known.
#[derive(Default)]
struct Losses {
    damaged: u64,
    stacks: u64,
    unknown: u64,
    kernel: u64,
    guests: u64,
    nameless: HashMap<String, u64>,
}

struct Reader<'a> {
    parts: &'a Parts,
    binaries: &'a mut dyn Binaries,
    import: Import,
    /// By event of the file; made when its first sample comes.
    sampled: Vec<Option<usize>>,
    events: Vec<SampledEvent>,
    spaces: HashMap<u32, Mappings>,
    kernel: Option<Place>,
    modules: Mappings,
    names: HashMap<u32, Box<[u8]>>,
    threads: HashMap<(u32, u32, Box<[u8]>), ThreadId>,
    unknown: Function,
    guest: Function,
    losses: Losses,
}

impl<'a> Reader<'a> {
    fn new(parts: &'a Parts, binaries: &'a mut dyn Binaries, budget: Budget) -> Self {
        let mut import = Import::new(budget);
        let profile = &mut import.profile;
        profile.runs[0].command = parts.command.iter().map(|word| text_of(word).into_owned()).collect();
        for (key, value) in &parts.machine {
            profile.metadata.machine.insert((*key).to_owned(), text_of(value).into_owned());
        }
        let mut nameless = |name: &str| Function {
            kind: FunctionKind::Unresolved,
            ..Function::named(profile.strings.intern(name))
        };
        let (unknown, guest) = (nameless("[unknown]"), nameless("[guest]"));
        Self {
            parts,
            binaries,
            import,
            sampled: vec![None; parts.events.len()],
            events: Vec::new(),
            spaces: HashMap::new(),
            kernel: None,
            modules: Mappings::default(),
            names: HashMap::new(),
            threads: HashMap::new(),
            unknown,
            guest,
            losses: Losses::default(),
        }
    }

    fn record(&mut self, record: Record<'_>) -> Result<(), Problem> {
        let mut fields = Fields::new(record.body, self.parts.big_endian);
        let losses = &mut self.import.profile.metadata.losses;
        let is_whole = match record.kind {
            kind::SAMPLE => self.sample(record)?,
            kind::MMAP | kind::MMAP2 => match Mapped::parse(record, self.parts.big_endian) {
                Some(mapped) => Some(self.map(&mapped)?),
                None => None,
            },
            kind::COMM => self.name(record),
            kind::FORK => self.fork(&mut fields).transpose()?,
            kind::LOST => fields.u64().and_then(|_| fields.u64()).map(|lost| {
                losses.lost_samples = losses.lost_samples.saturating_add(lost);
            }),
            kind::LOST_SAMPLES => fields.u64().map(|lost| {
                losses.lost_samples = losses.lost_samples.saturating_add(lost);
            }),
            kind::THROTTLE => {
                losses.throttled += 1;
                Some(())
            }
            _ => Some(()),
        };
        self.losses.damaged += u64::from(is_whole.is_none());
        Ok(())
    }

    fn name(&mut self, record: Record<'_>) -> Option<()> {
        const EXEC: u16 = 1 << 13;
        let mut fields = Fields::new(record.body, self.parts.big_endian);
        let (process, thread) = (fields.u32()?, fields.u32()?);
        if record.misc & EXEC != 0 {
            self.spaces.remove(&process);
        }
        // The kernel has 16 bytes for a name.
        const LONGEST: usize = 255;
        let name = fields.text();
        self.names.insert(thread, name[..name.len().min(LONGEST)].into());
        Some(())
    }

    /// A forked process has the mappings of its parent, and a new thread has its maker's name.
    fn fork(&mut self, fields: &mut Fields<'_>) -> Option<Result<(), OverBudget>> {
        let (process, parent) = (fields.u32()?, fields.u32()?);
        let (thread, maker) = (fields.u32()?, fields.u32()?);
        if let Some(name) = self.names.get(&maker).cloned() {
            self.names.insert(thread, name);
        }
        if process != parent
            && let Some(space) = self.spaces.get(&parent)
        {
            const EACH: u64 = 100;
            if let Err(over) = self.import.budget.bytes(space.len() as u64 * EACH) {
                return Some(Err(over));
            }
            self.spaces.insert(process, space.clone());
        }
        Some(Ok(()))
    }

    fn map(&mut self, mapped: &Mapped<'_>) -> Result<(), OverBudget> {
        let path = text_of(mapped.path).into_owned();
        let listed = self.parts.build_ids.get(mapped.path);
        let build_id = mapped.build_id.or(listed.map(Vec::as_slice)).unwrap_or_default();
        let (start, end) = (mapped.start, mapped.end);
        if mapped.of_kernel {
            self.map_kernel(&path, build_id, (start, end, mapped.offset));
            return Ok(());
        }
        if !mapped.is_code {
            return Ok(());
        }
        let place = match kind_of(&path) {
            // Code that was made there, whose names are in a file that is named after the process.
            _ if is_memory(&path) => {
                let name = format!("[jit {}]", mapped.process);
                Place::Stated {
                    module: module(&mut self.import.profile, &name, &[], ModuleKind::Jit),
                    bias: 0,
                }
            }
            kind if kind != ModuleKind::Elf => {
                Place::nameless(&mut self.import.profile, &path, build_id, kind)
            }
            _ => Place::of_binary(
                &mut self.import.profile,
                self.binaries,
                (&path, build_id),
                (start, end, mapped.offset),
            ),
        };
        self.spaces.entry(mapped.process).or_default().map(start, end, place);
        Ok(())
    }

    /// The kernel itself, which tells the address of one of its symbols, or a module of it.
    fn map_kernel(&mut self, path: &str, build_id: &[u8], (start, end, offset): (u64, u64, u64)) {
        let symbol = path.strip_prefix("[kernel.kallsyms]");
        let listed = self.parts.build_ids.get(b"[kernel.kallsyms]".as_slice());
        let build_id = if build_id.is_empty() { listed.map_or(&[][..], Vec::as_slice) } else { build_id };
        let path = if symbol.is_some() { crate::label::KERNEL } else { path };
        let nameless = Place::nameless(&mut self.import.profile, path, &[], ModuleKind::Kernel);
        let Some(symbol) = symbol else {
            // Where modules lie is known with the kernel.
            let place = match self.kernel {
                Some(known @ Place::Stated { .. }) => known,
                _ => nameless,
            };
            self.modules.map(start, end, place);
            return;
        };
        let kernel = Kernel { build_id: build_id.to_vec(), symbol: symbol.to_owned(), address: offset };
        let place = match (self.binaries.is_running_kernel(&kernel), nameless) {
            (true, Place::Nameless(Function { module: Some(module), .. })) => {
                Place::Stated { module, bias: 0 }
            }
            _ => nameless,
        };
        self.kernel = Some(place);
    }

    /// Adds a sample; nothing if its record is damaged.
    fn sample(&mut self, record: Record<'_>) -> Result<Option<()>, OverBudget> {
        let (at, event) = event_of(self.parts, record);
        let Some(sample) = Sample::parse(record, event, self.parts.big_endian) else { return Ok(None) };
        let thread = self.thread(sample.process, sample.thread);
        let context = Context::of_misc(record.misc);
        self.fill_stack(&sample, context);
        self.losses.stacks += u64::from(event.needs_unwinding());
        let place = match self.sampled[at] {
            Some(place) => place,
            None => {
                let name = event.name();
                self.events.push(SampledEvent::new(&mut self.import.profile, name.as_bytes(), sample.period));
                *self.sampled[at].insert(self.events.len() - 1)
            }
        };
        let weights = self.events[place].weights(&mut self.import.profile, sample.period);
        self.import.profile.metadata.losses.samples += 1;
        let time = time_of(record, event, self.parts.big_endian);
        self.import.add_sample(thread, &weights, time)?;
        Ok(Some(()))
    }

    fn thread(&mut self, process: u32, thread: u32) -> ThreadId {
        let name = self.names.get(&thread).or_else(|| self.names.get(&process)).cloned().unwrap_or_default();
        let key = (process, thread, name);
        if let Some(&known) = self.threads.get(&key) {
            return known;
        }
        let text = text_of(&key.2).into_owned();
        let id = self.import.process(process, &text);
        // The main thread has the name of the process.
        if process == thread {
            text.clone_into(&mut self.import.profile.processes[id.index()].name);
        }
        let added = self.import.profile.add_thread(id, thread, text);
        self.threads.insert(key, added);
        added
    }

    /// The frames of a sample, from the outermost to the innermost.
    fn fill_stack(&mut self, sample: &Sample<'_>, mut context: Context) {
        let mut frames = Vec::new();
        // The first address after a mark is where the processor was, the others are where calls return to.
        let mut returns = false;
        let mut chain = sample.chain;
        while let Some(entry) = chain.as_mut().and_then(Fields::u64) {
            if let Some(mark) = Context::of_mark(entry) {
                (context, returns) = (mark, false);
                continue;
            }
            frames.push(self.function(sample.process, entry.wrapping_sub(u64::from(returns)), context));
            returns = true;
        }
        if frames.is_empty()
            && let Some(ip) = sample.ip
        {
            frames.push(self.function(sample.process, ip, context));
        }
        self.count_losses(frames.first().copied());
        self.import.begin();
        frames.into_iter().rev().for_each(|function| self.import.function(function, 0));
    }

    fn function(&mut self, process: u32, address: u64, context: Context) -> Function {
        let place = match context {
            Context::User => self.spaces.get(&process).and_then(|space| space.find(address)),
            Context::Kernel => self.modules.find(address).or(self.kernel),
            Context::Elsewhere => return self.guest,
        };
        match (place, context) {
            (Some(place), _) => place.function(address),
            (None, Context::Kernel) => {
                let kernel =
                    Place::nameless(&mut self.import.profile, crate::label::KERNEL, &[], ModuleKind::Kernel);
                self.kernel.insert(kernel).function(address)
            }
            (None, _) => self.unknown,
        }
    }

    fn count_losses(&mut self, innermost: Option<Function>) {
        let Some(function) = innermost.filter(|function| function.kind == FunctionKind::Unresolved) else {
            self.losses.unknown += u64::from(innermost.is_none());
            return;
        };
        self.import.profile.metadata.losses.unresolved_samples += 1;
        let Some(module) = function.module.map(|module| &self.import.profile.modules[module]) else {
            let counter =
                if function == self.guest { &mut self.losses.guests } else { &mut self.losses.unknown };
            *counter += 1;
            return;
        };
        if module.kind == ModuleKind::Kernel {
            self.losses.kernel += 1;
            return;
        }
        *self.losses.nameless.entry(self.import.profile.strings[module.path].to_owned()).or_default() += 1;
    }

    fn finish(mut self) -> Result<(Profile, ReadReport), ReadError> {
        let import = &mut self.import;
        if import.profile.metadata.losses.samples == 0 {
            return Err(Problem::Empty("samples").into());
        }
        import.report.unfinished = self.parts.unfinished;
        self.losses.note(import);
        import.note_if(
            self.parts.events.iter().any(Event::reads_group),
            "samples of the first event of a group have the values of the others with them, which are not kept",
        );
        import.note_if(self.parts.has_traces, "data of processor traces (AUX) is not read");
        import.report.notes.extend(name_metrics(&mut import.profile, &self.events));
        if self.losses.stacks == 0 {
            note_missing_callers(&mut import.profile);
        }
        self.import.finish("perf record")
    }
}

impl Losses {
    fn note(&self, import: &mut Import) {
        for (count, text) in [
            (self.damaged, "records are too short for their contents and were left out"),
            (
                self.stacks,
                "samples have a copy of the stack or a record of branches instead of callers, which is not unwound, so \
                 callers in the program are missing; perf script unwinds it",
            ),
            (
                self.kernel,
                "samples in the kernel have no names, as it is not the one that runs here or its symbols are hidden; \
                 perf script on the machine of the recording has them",
            ),
            (self.guests, "samples in guests or hosts of virtual machines have no names"),
            (self.unknown, "samples are in no file that was mapped"),
        ] {
            import.note_count(text, count);
        }
        let mut nameless: Vec<_> = self.nameless.iter().collect();
        nameless.sort_by_key(|(path, count)| (std::cmp::Reverse(**count), (*path).clone()));
        const SHOWN: usize = 5;
        for (path, count) in nameless.iter().take(SHOWN) {
            import.note_count(
                &format!("samples in {path} have no names, as it is not here as it was then"),
                **count,
            );
        }
        let more: u64 = nameless.iter().skip(SHOWN).map(|(_, count)| **count).sum();
        import.note_count("samples in other files without names", more);
    }
}

/// Whether a path is a name for memory without a file, in which code was made: `perf` looks for its names by process.
fn is_memory(path: &str) -> bool {
    const BEGINNINGS: [&str; 5] = ["/dev/zero", "/anon_hugepage", "/memfd:", "/SYSV", "[anon:"];
    path == "//anon" || BEGINNINGS.iter().any(|beginning| path.starts_with(beginning))
}
