//! Recording: from records of the kernel to a profile.

mod unseen;
mod wakers;

use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use treering_profile::{
    Frame, Function, LostSamples, Metric, MetricId, ModuleId, ModuleKind, NodeId, Profile, RecursionRule,
    Run, RunId, StatedAddress, Timeline, Unit,
};

use crate::address_space::{Cut, End};
use crate::blocked::{Blocked, unknown_function};
use crate::cut::Cuts;
use crate::description::{add_metrics, describe};
use crate::error::RecordError;
use crate::event::Nature;
use crate::lost::Bursts;
use crate::options::{Options, Target};
use crate::process::{Processes, named_module};
use crate::record::{Record, Sample, decode};
use crate::recording::{Finish, JitProcess, Observer, Recording, RunningChild};
use crate::rights::Rights;
use crate::session::{Plan, Purpose, Session, Subject};
use crate::stream::Stream;
use crate::sys::{
    Child, Interrupts, ProcessHandle, Reading, monotonic_ns, poll, process_exists, raise_file_limit,
    send_signal,
};
use crate::thread_sampling::ThreadSampling;
use crate::waking::{Ended, Refusal, Tracepoint, Wakers};

/// Records a program from its start or a process from now on, until it ends, the time is up or
/// the user interrupts.
///
/// SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU end a recording and not this process. A program that we launched is to
/// end by them too, and is recorded until it has: the terminal sends its signals to it as well, and a
/// signal that another process sent to us alone is passed on. A second one ends the program by
/// SIGTERM, a third by SIGKILL.
///
/// # Errors
/// When nothing could be recorded; see [`RecordError`]. A program that cannot be sampled is not
/// run.
pub fn record(options: &Options, observer: &mut dyn Observer) -> Result<Recording, RecordError> {
    raise_file_limit();
    let interrupts = Interrupts::block().map_err(system("receiving signals"))?;
    let mut started = Started::new(options)?;
    let mut recorder = Recorder::new(options, started.session, &started.command, started.pid);
    if let Target::Attach(pid) = options.target {
        recorder.processes.adopt(&mut recorder.profile, pid);
        recorder.session.enable().map_err(system("starting the events"))?;
    }
    if let Some(child) = &mut started.child {
        let program = options.target.name();
        recorder.session.enable_machine().map_err(system("starting the events"))?;
        child.release().map_err(|source| RecordError::CannotRun { program, source })?;
    }
    let mut watch = Watch {
        handle: started.handle,
        pid: started.pid,
        interrupts,
        launched: started.child.is_some(),
        interrupted: 0,
    };
    let ended = recorder.run(&mut watch, options.duration, observer)?;
    recorder.finish(started.child, ended, observer)
}

/// The target with events open on it.
struct Started {
    pid: u32,
    handle: ProcessHandle,
    /// The program, if we launch it.
    child: Option<Child>,
    session: Session,
    command: Vec<String>,
}

impl Started {
    fn new(options: &Options) -> Result<Self, RecordError> {
        let target = options.target.name();
        let plan = plan(options);
        let (pid, (session, child), command) = match &options.target {
            Target::Launch(command) => {
                let (session, child) =
                    Session::open(&plan, Subject::Command(command, &options.environment), &target)?;
                let pid = child.as_ref().map_or(0, Child::pid);
                let words = command.iter().map(|word| word.to_string_lossy().into_owned());
                (pid, (session, child), words.collect())
            }
            Target::Attach(pid) => {
                if !process_exists(*pid) {
                    return Err(RecordError::NoProcess(*pid));
                }
                let tids = treering_proc::threads(*pid);
                (
                    *pid,
                    Session::open(&plan, Subject::Threads(&tids), &target)?,
                    treering_proc::command_line(*pid),
                )
            }
        };
        let handle = ProcessHandle::open(pid).map_err(|_| RecordError::NoProcess(pid))?;
        Ok(Self { pid, handle, child, session, command })
    }
}

fn plan(options: &Options) -> Plan {
    Plan {
        events: options.events.clone(),
        frequency: options.frequency,
        period: options.period,
        jitter: options.jitter,
        stack_bytes: options.accepted_stack_bytes(),
        off_cpu: options.off_cpu,
        wakings: if options.off_cpu { Tracepoint::find() } else { Err(Refusal::UserOnly) },
        kernel: options.kernel,
        seed: options.seed,
        on_exec: matches!(options.target, Target::Launch(_)),
    }
}

/// The conditions that can end a recording.
struct Watch {
    handle: ProcessHandle,
    pid: u32,
    interrupts: Interrupts,
    launched: bool,
    /// How many signals came.
    interrupted: u32,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    ProgramEnded,
    TimeIsUp,
    Interrupted,
}

/// Makes a profile of the kernel's records.
struct Recorder {
    profile: Profile,
    run: RunId,
    session: Session,
    processes: Processes,
    /// For every event of the session: its cost and the count of its samples.
    metrics: Vec<(MetricId, MetricId)>,
    blocked: Option<Blocked>,
    wakers: Wakers,
    /// For every event of the session: the threads that inherited it, where it is not noted each
    /// time that it occurs.
    threads: Vec<Option<ThreadSampling>>,
    kernel_module: Option<ModuleId>,
    cuts: Cuts,
    bursts: Bursts,
    rights: Rights,
    /// The program, if we launched it.
    launched: Option<OsString>,
    /// How many frames the kernel follows at most, and how many of the stacks that were cut short have
    /// as many.
    longest_chain: usize,
    at_longest_chain: u64,
    /// Whether a longer copy would have led further in any of these.
    copy_helps: bool,
    /// When it began, by the clock of the samples.
    start_ns: u64,
    /// When the thread that ended last did so, since then.
    last_end_ns: Option<u64>,
    stack: Vec<u64>,
    frames: Vec<Frame>,
}

/// The threads with an event, if its samples stand for more than themselves. It was opened on the threads `own`.
fn thread_sampling(session: &Session, at: usize, own: &[(u32, u32)]) -> Option<ThreadSampling> {
    let sampled = &session.events[at];
    let mean = sampled.pace.period().filter(|&period| period > 1)?;
    let is_time = sampled.event.nature() == Nature::Clock;
    Some(ThreadSampling::new(
        session.interval_distribution(at),
        mean,
        session.counts_what_it_samples(at),
        is_time,
        own,
    ))
}

/// How often the profile so far is shown to the observer.
const CHECKPOINT: Duration = Duration::from_secs(1);

/// How long after its time a record may become visible; a copy of a stack takes some microseconds.
const SETTLE_NS: u64 = 200_000;

impl Recorder {
    fn new(options: &Options, session: Session, command: &[String], pid: u32) -> Self {
        let mut profile = Profile::new(RecursionRule::Full);
        profile.timeline = options.time.then(Timeline::new);
        let start_ns = monotonic_ns();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = profile.add_run(Run {
            command: command.to_vec(),
            start_unix_ns: now.as_nanos() as u64,
            ..Run::default()
        });
        let metrics = add_metrics(&mut profile, &session);
        let blocked = options.off_cpu.then(|| {
            let time = profile.add_metric(Metric::exact("off-cpu", Unit::Nanoseconds));
            Blocked::new(time, profile.add_metric(Metric::exact("waits", Unit::Count)), start_ns)
        });
        describe(&mut profile, options, &session);
        let own: Vec<(u32, u32)> = session.own_threads().into_iter().map(|tid| (pid, tid)).collect();
        let threads = (0..session.events.len()).map(|at| thread_sampling(&session, at, &own)).collect();
        Self {
            profile,
            run,
            session,
            processes: Processes::default(),
            metrics,
            blocked,
            wakers: Wakers::default(),
            threads,
            kernel_module: None,
            cuts: Cuts::default(),
            bursts: Bursts::default(),
            rights: Rights::default(),
            launched: match &options.target {
                Target::Launch(command) => command.first().cloned(),
                Target::Attach(_) => None,
            },
            longest_chain: longest_chain(),
            at_longest_chain: 0,
            copy_helps: false,
            start_ns,
            last_end_ns: None,
            stack: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Records until something ends it.
    fn run(
        &mut self,
        watch: &mut Watch,
        duration: Option<Duration>,
        observer: &mut dyn Observer,
    ) -> Result<Reason, RecordError> {
        let mut fds = vec![watch.handle.raw(), watch.interrupts.raw()];
        fds.extend(self.session.stream.descriptors());
        let mut ready = Vec::new();
        let mut next_checkpoint = CHECKPOINT;
        loop {
            let until = next_checkpoint.min(duration.unwrap_or(Duration::MAX));
            let patience = until.saturating_sub(self.elapsed()).min(self.session.patience());
            let paused = self.wakers.paused_until_ns;
            let patience = paused.map_or(patience, |until| {
                patience.min(Duration::from_nanos(until.saturating_sub(monotonic_ns())))
            });
            poll(&fds, patience, &mut ready).map_err(system("waiting for samples"))?;
            self.session.look();
            let read_later = self.cuts.read_later();
            self.take(monotonic_ns().saturating_sub(SETTLE_NS));
            self.session.reads_stacks = self.cuts.read_later() > read_later;
            if self.wakers.paused_until_ns.is_some_and(|until| monotonic_ns() >= until) {
                self.wakers.paused_until_ns = None;
                self.session.set_stacks(true);
            }
            self.session.short_lives = self.threads.iter().flatten().any(ThreadSampling::live_shortly);
            if ready[1] && watch.end_by_signals(observer) {
                return Ok(Reason::Interrupted);
            }
            if ready[0] {
                return Ok(Reason::ProgramEnded);
            }
            if duration.is_some_and(|duration| self.elapsed() >= duration) {
                return Ok(Reason::TimeIsUp);
            }
            if self.elapsed() >= next_checkpoint {
                self.checkpoint(observer);
                next_checkpoint = self.elapsed() + CHECKPOINT;
            }
        }
    }

    fn checkpoint(&mut self, observer: &mut dyn Observer) {
        self.processes.write_names(&mut self.profile);
        let elapsed = self.elapsed().as_nanos() as u64;
        self.profile.runs[self.run.index()].duration_ns = elapsed;
        if let Some(timeline) = &mut self.profile.timeline {
            timeline.extend_to(elapsed);
        }
        observer.checkpoint(&self.profile);
    }

    /// Takes records up to the time `horizon` into the profile.
    fn take(&mut self, horizon: u64) {
        let mut stream = std::mem::replace(&mut self.session.stream, Stream::new());
        stream.take(horizon, |record| {
            let record = decode(record, |event| self.session.extent(event));
            self.add(record);
        });
        self.session.stream = stream;
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Sample(sample) => self.add_sample(&sample),
            Record::Mapped(mapped) => {
                self.rights.mapped(mapped.pid);
                self.processes.map(&mut self.profile, &mapped);
            }
            Record::Named { pid, tid, name, exec, time } => {
                let name = String::from_utf8_lossy(name).into_owned();
                if exec {
                    self.processes.exec(pid, self.since_start(time));
                    self.rights.executed(pid, &name);
                    self.threads.iter_mut().flatten().for_each(|threads| threads.exec(pid));
                }
                self.processes.name(pid, tid, name);
                if exec {
                    self.processes.mark_exec(&mut self.profile, pid);
                }
            }
            Record::Forked { pid, parent_pid, tid, parent_tid, time } => {
                self.processes.fork(pid, parent_pid, tid, self.since_start(time));
                self.wakers.fork(tid);
                self.threads.iter_mut().flatten().for_each(|threads| threads.fork(pid, tid, parent_tid));
            }
            Record::Counted { tid, event, count, running_ns } => {
                if let Some(index) = self.session.sampled(event)
                    && let Some(threads) = &mut self.threads[index]
                {
                    threads.count(tid, self.session.use_of(index, Reading { count, running_ns }));
                }
            }
            Record::Exited { pid, tid, time } => {
                let name = self.processes.name_of(pid).unwrap_or_default();
                self.threads.iter_mut().flatten().for_each(|threads| threads.exit(tid, name));
                if self.session.wakings.is_ok() {
                    let thread = self.processes.known_thread(pid, tid);
                    self.wakers.exit(tid, Ended { thread, name: name.to_owned() });
                }
                let time = self.since_start(time);
                self.last_end_ns = self.last_end_ns.max(Some(time));
                self.processes.exit(&mut self.profile, pid, tid, time);
                if let Some(blocked) = &mut self.blocked {
                    blocked.exit(tid);
                }
            }
            Record::Lost { event, samples, .. } if self.session.is_of_wakings(event) => {
                self.wakers.lost += samples;
            }
            Record::Lost { samples, time, .. } => {
                let losses = &mut self.profile.metadata.losses;
                losses.lost_samples += samples;
                self.bursts.add(samples, losses.samples, self.session.turn());
                let time_ns = self.since_start(time);
                if let Some(timeline) = &mut self.profile.timeline {
                    timeline.losses.push(LostSamples { time_ns, samples });
                }
            }
            Record::Throttled { event } if self.session.is_of_wakings(event) => {}
            Record::Throttled { .. } => self.profile.metadata.losses.throttled += 1,
            Record::Switched { pid, tid, time, out, preempted } => {
                self.add_switch(pid, tid, time, out, preempted);
            }
            Record::Other => {}
        }
    }

    /// A time of the kernel's clock, since the recording began.
    fn since_start(&self, time: u64) -> u64 {
        time.saturating_sub(self.start_ns)
    }

    fn add_sample(&mut self, sample: &Sample) {
        let Some(index) = self.session.sampled(sample.event) else { return };
        let purpose = self.session.events[index].purpose;
        match purpose {
            Purpose::Wakers => return self.add_waker(sample),
            Purpose::Wakings => return self.add_waking(sample),
            Purpose::Costs | Purpose::Blocks => {}
        }
        let node = self.add_stack(sample);
        if purpose == Purpose::Blocks {
            if let Some(blocked) = &mut self.blocked {
                blocked.blocks(sample.tid, node);
            }
            return;
        }
        let (cost, count) = self.metrics[index];
        let weight = self.weight(index, sample, node);
        self.profile.tree.add_self_cost(cost, node, weight);
        self.profile.tree.add_self_cost(count, node, 1);
        let time = self.since_start(sample.time);
        if let Some(timeline) = &mut self.profile.timeline {
            timeline.add(time, count, (node, None), 1);
        }
        self.profile.metadata.losses.samples += 1;
        if let Some(blocked) = &mut self.blocked {
            blocked.ran(sample.tid, node);
        }
    }

    /// The weight of a sample of the stack that ends in `node`, in the unit of its event.
    ///
    /// Where intervals are drawn again after each sample or every few, it is the interval that the sample ends: so the costs of
    /// a function that runs for many intervals add up to its time, however long one was in force. An inherited event keeps the
    /// one interval that was drawn for its thread.
    fn weight(&mut self, index: usize, sample: &Sample, node: NodeId) -> u64 {
        let Some(threads) = &mut self.threads[index] else { return sample.period };
        let (pid, tid) = (sample.pid, sample.tid);
        let thread = self.processes.thread(&mut self.profile, self.run, pid, tid);
        let weight = match self.session.own_thread(sample.event, sample.stream) {
            Some(own) => {
                let interval = self.session.own_interval(sample.event, sample.time);
                threads.own_sample(own, interval, thread)
            }
            None => threads.sample((pid, tid), sample.stream, sample.period, thread),
        };
        threads.weighed(node, weight);
        weight
    }

    /// Adds the stack of a sample to the tree; returns its innermost node.
    fn add_stack(&mut self, sample: &Sample) -> NodeId {
        let thread = self.processes.thread(&mut self.profile, self.run, sample.pid, sample.tid);
        let space = self.processes.space(sample.pid);
        let mut stack = std::mem::take(&mut self.stack);
        let has_user = sample.stack.is_some() || sample.chain.user().next().is_some();
        let end = if has_user {
            space.unwind(sample, &mut stack)
        } else {
            stack.clear();
            End::Complete
        };
        self.frames.clear();
        match end {
            End::Complete => {}
            End::Uncertain(uncertainty) => self.cuts.count_uncertain(uncertainty),
            End::Cut(cut) => {
                self.cuts.count(cut, space);
                self.profile.metadata.losses.truncated_stacks += 1;
                let frames = sample.chain.user().count() + sample.chain.kernel().count();
                if frames >= self.longest_chain {
                    self.at_longest_chain += 1;
                    self.copy_helps |= cut == Cut::BeyondCopy;
                }
                let function = unknown_function(&mut self.profile, "[truncated stack]");
                self.frames.push(Frame::new(function));
            }
        }
        for &address in stack.iter().rev() {
            self.frames.push(Frame::new(space.function(&mut self.profile, address)));
        }
        self.stack = stack;
        self.add_kernel_frames(sample);
        self.profile.add_stack(thread, &self.frames, None, &[])
    }

    fn add_kernel_frames(&mut self, sample: &Sample) {
        let kernel: Vec<u64> = sample.chain.kernel().collect();
        let last = kernel.len().saturating_sub(1);
        for (at, &address) in kernel.iter().rev().enumerate() {
            let within_call = if at == last { address } else { address.wrapping_sub(1) };
            let profile = &mut self.profile;
            let module = *self
                .kernel_module
                .get_or_insert_with(|| named_module(profile, "[kernel]", ModuleKind::Kernel));
            let function = Function::at_address(Some(module), StatedAddress(within_call));
            self.frames.push(Frame::new(profile.functions.intern(function)));
        }
    }

    fn add_switch(&mut self, pid: u32, tid: u32, time: u64, out: bool, preempted: bool) {
        let Some(blocked) = &mut self.blocked else { return };
        match (out, preempted) {
            (true, _) => blocked.leave(pid, tid, time, preempted),
            (false, _) => {
                let thread = self.processes.thread(&mut self.profile, self.run, pid, tid);
                let root = self.profile.threads[thread.index()].root;
                blocked.enter(&mut self.profile, tid, time, root);
            }
        }
    }

    /// Reads the remaining records, and completes the profile.
    fn finish(
        mut self,
        child: Option<Child>,
        reason: Reason,
        observer: &mut dyn Observer,
    ) -> Result<Recording, RecordError> {
        self.session.disable().map_err(system("stopping the events"))?;
        let elapsed = self.elapsed();
        self.threads.iter_mut().flatten().for_each(ThreadSampling::count_running);
        self.session.look();
        self.take(u64::MAX);
        let counted = self.session.processor_time();
        self.processes.write_names(&mut self.profile);
        self.charge_waits(self.start_ns + elapsed.as_nanos() as u64);
        self.processes.write_lives(&mut self.profile);
        if let Some(program) = self.launched.as_ref().filter(|_| self.profile.metadata.losses.samples == 0) {
            self.rights.note_unseen(program);
        }
        let length_ns = self.length_ns(reason, elapsed.as_nanos() as u64);
        if let Some(timeline) = &mut self.profile.timeline {
            // A loss may be noticed when the program has ended.
            timeline.losses.iter_mut().for_each(|lost| lost.time_ns = lost.time_ns.min(length_ns));
            timeline.end_at(length_ns);
        }
        self.note_wakers();
        self.cuts.note(&mut self.profile, self.session.stack_bytes);
        self.processes.note_of_unopened().into_iter().for_each(|note| self.profile.metadata.note(note));
        self.session.note_of_rows().into_iter().for_each(|note| self.profile.metadata.note(note));
        self.rights.note(&mut self.profile);
        let (finish, cpu) = match (child, reason) {
            (Some(child), Reason::ProgramEnded) => {
                let ended = child.wait().map_err(system("waiting for the program"))?;
                // This time leaves out processes that nothing waited for, and the events leave out work
                // outside of programs.
                let used = ended.cpu.as_nanos() as u64;
                (Finish::of(ended), Some(used.max(counted.unwrap_or(0))))
            }
            (Some(child), _) => (Finish::Running(RunningChild(child)), counted),
            (None, _) => (Finish::Detached, counted),
        };
        let run = &mut self.profile.runs[self.run.index()];
        run.duration_ns = length_ns;
        run.cpu_ns = cpu;
        run.end = finish.describe();
        self.note_survivors(reason);
        self.note_longest_chain();
        if self.profile.metadata.losses.lost_samples > 0 {
            self.note_missing();
        }
        observer.checkpoint(&self.profile);
        self.scale_costs();
        let jit = self.processes.with_jit.drain().map(|(pid, files)| JitProcess {
            module: format!("[jit {pid}]"),
            folder: files.folder,
            inner_pid: files.inner_pid,
            owners: files.owners,
            started_unix_ns: files.started_unix_ns,
            dumps: files.dumps,
        });
        let jit = jit.collect();
        let hidden_files = self.processes.take_hidden_files();
        Ok(Recording { profile: self.profile, finish, start_ns: self.start_ns, hidden_files, jit })
    }

    /// How long it has recorded, by the clock of the samples.
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.start_ns))
    }

    /// How long the run took. The recorder learns late that the program has ended, as it has samples to read before: where all
    /// of it has ended, the run took until then. Of a program that may not be watched it does not learn the end at all.
    fn length_ns(&self, reason: Reason, elapsed_ns: u64) -> u64 {
        let has_ended = reason == Reason::ProgramEnded
            && self.processes.running().next().is_none()
            && !self.rights.hide_any();
        self.last_end_ns.filter(|_| has_ended).map_or(elapsed_ns, |end| end.min(elapsed_ns))
    }

    /// Charges threads that wait still with their wait up to the end of the recording.
    fn charge_waits(&mut self, end_ns: u64) {
        let waiting = self.blocked.as_ref().map(Blocked::waiting).unwrap_or_default();
        for (pid, tid) in self.processes.threads_among(&waiting) {
            self.add_switch(pid, tid, end_ns, false, false);
        }
    }
}

impl Watch {
    /// Deals with signals that came; tells whether the recording is over.
    fn end_by_signals(&mut self, observer: &mut dyn Observer) -> bool {
        while let Some((signal, by_process)) = self.interrupts.next() {
            if !self.launched {
                return true;
            }
            match self.interrupted {
                0 if by_process => send_signal(self.pid, signal),
                0 => {}
                1 => send_signal(self.pid, libc::SIGTERM),
                _ => send_signal(self.pid, libc::SIGKILL),
            }
            self.interrupted += 1;
            observer.interrupted();
        }
        false
    }
}

fn system(doing: &'static str) -> impl FnOnce(std::io::Error) -> RecordError {
    move |source| RecordError::System { doing, source }
}

/// How many frames the kernel follows at most along frame pointers.
fn longest_chain() -> usize {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_stack").unwrap_or_default();
    text.trim().parse().unwrap_or(127)
}
