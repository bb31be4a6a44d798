//! The process: whether it is profiled, how, and into which file; its start, its forks, its end.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use treering_events::cells::{Setting, Thread};
use treering_events::{Activation, CODE, Header, MAGIC, VERSION, clock, flag, mode, rule};

use crate::filter::Filter;
use crate::options::Options;
use crate::output::{self, Output, OwnFile};
use crate::record::{self, address, node_of};
use crate::store::{self, STORE, Store};
use crate::sys::{self, Held, Lock, Mapped, Whose};
use crate::{arguments, calibrate, compact, course, environment, line, mark, registry, thread};

pub(crate) use crate::c_abi::treering_state as STATE;

/// Nothing is recorded.
pub(crate) const OFF: u32 = 0;
/// The first event decides.
pub(crate) const UNDECIDED: u32 = u32::MAX;
/// Set in the state, but not in the threads' epochs, so that the fast path is not taken.
pub(crate) const SLOW: u32 = 1 << 31;
/// The same for plain flat profiles, which have a path of their own.
pub(crate) const FLAT: u32 = 1 << 30;

static EPOCH: AtomicU32 = AtomicU32::new(0);
static MODE: AtomicU32 = AtomicU32::new(mode::CALL_GRAPH);
static RULE: AtomicU32 = AtomicU32::new(rule::DIRECT);
static DEPTH_LIMIT: AtomicU32 = AtomicU32::new(0);
static FOLDS_DIRECTLY: AtomicBool = AtomicBool::new(false);
/// When recording was switched off last; stays when it is switched on again.
static LAST_OFF: AtomicU64 = AtomicU64::new(0);
static POINTS: AtomicBool = AtomicBool::new(true);
static CPU_TIME: AtomicBool = AtomicBool::new(false);
static COURSE: AtomicBool = AtomicBool::new(false);
/// The least time between two readings of a thread's processor time.
pub(crate) const CPU_INTERVAL_NS: u64 = 100_000;
/// The same in ticks.
static CPU_INTERVAL: AtomicU64 = AtomicU64::new(0);
static FORKED: AtomicBool = AtomicBool::new(false);

/// The values that change seldom. Their lock is taken before that of the store.
static PROCESS: Lock<Process> = Lock::new(Process {
    options: None,
    output: None,
    hooks: false,
    calibrated: None,
    used_before: sys::CpuTime { user_ns: 0, system_ns: 0 },
    open_at_fork: None,
});

struct Process {
    /// Set once they were read from the environment or given by the program.
    options: Option<Options>,
    /// The file of the store in use; none before there is one and after it was finished.
    output: Option<Output>,
    /// Whether the system calls us at forks.
    hooks: bool,
    /// For which mode the cost of an event was measured, with or without processor time and the course of time.
    calibrated: Option<(u32, bool, bool)>,
    /// The processor time that was used before the profile began.
    used_before: sys::CpuTime,
    /// The activations that the forking thread had open, for its first event in the child.
    open_at_fork: Option<OpenAtFork>,
}

pub(crate) fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

pub(crate) fn mode() -> u32 {
    MODE.load(Ordering::Relaxed)
}

pub(crate) fn rule() -> u32 {
    RULE.load(Ordering::Relaxed)
}

/// When recording was switched off last, in ticks; 0 when it never was.
pub(crate) fn last_off() -> u64 {
    LAST_OFF.load(Ordering::Relaxed)
}

pub(crate) fn depth_limit() -> u32 {
    DEPTH_LIMIT.load(Ordering::Relaxed)
}

/// Whether a function that calls itself stays in its node, at any depth.
#[inline(always)]
pub(crate) fn folds_directly() -> bool {
    FOLDS_DIRECTLY.load(Ordering::Relaxed)
}

pub(crate) fn wants_cpu_time() -> bool {
    CPU_TIME.load(Ordering::Relaxed)
}

/// Whether it is kept when time passed.
pub(crate) fn wants_course() -> bool {
    COURSE.load(Ordering::Relaxed)
}

pub(crate) fn cpu_interval() -> u64 {
    CPU_INTERVAL.load(Ordering::Relaxed)
}

pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// How the process is profiled; nothing before that is decided, or when it is not.
pub(crate) fn options() -> Option<Options> {
    lock().options.clone()
}

/// Sets the file of the next profile.
pub(crate) fn set_output(path: &[u8]) {
    let _quiet = Quiet::begin();
    let path = (!path.is_empty()).then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)));
    let mut process = lock();
    let mut options = process.options.take().or_else(Options::from_environment).unwrap_or_default();
    options.output = path;
    process.options = Some(options);
}

/// Switches points of the memory plot on or off, if the environment does not forbid them.
pub(crate) fn set_points(on: bool) {
    POINTS.store(on, Ordering::Relaxed);
}

/// Whether points of the memory plot are taken.
pub(crate) fn wants_points() -> bool {
    static WANTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    POINTS.load(Ordering::Relaxed) && *WANTED.get_or_init(|| {
        !environment::variable("TREERING_MEMPLOT").is_some_and(|value| value == "off" || value == "0")
    })
}

/// The filter of the functions that are recorded.
pub(crate) fn filter() -> Filter {
    let process = lock();
    process.options.as_ref().map(|options| options.filter.clone()).unwrap_or_default()
}

fn lock() -> Held<'static, Process> {
    PROCESS.hold()
}

/// Keeps events of this thread out while the runtime itself works, which may call what is
/// instrumented, such as an allocator.
pub(crate) struct Quiet(Option<&'static Thread>);

impl Quiet {
    /// In the child of a fork, the child's own file is made first: nothing may be written to that
    /// of its parent.
    pub(crate) fn begin() -> Self {
        let before = sys::current();
        sys::set_current(Some(sys::busy_thread()));
        let is_outermost = !before.is_some_and(sys::is_busy);
        Self(if is_outermost && is_forked() { begin_in_child() } else { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        sys::set_current(self.0);
    }
}

/// Decides at the first event whether the process is profiled, as the environment asks.
pub(crate) fn initialise() {
    if STATE.load(Ordering::Acquire) != UNDECIDED {
        return;
    }
    let mut process = lock();
    if STATE.load(Ordering::Acquire) != UNDECIDED {
        return;
    }
    let given = process.options.take();
    match (Options::from_environment(), given) {
        (None, _) => STATE.store(OFF, Ordering::Release),
        (Some(_), Some(given)) => switch_on(&mut process, given),
        (Some(options), None) => switch_on(&mut process, options),
    }
}

/// Records from now on, as `options` say. A profile that was begun in the same way goes on; one of another
/// kind is finished first.
pub(crate) fn set_profiler(options: Options) {
    let _quiet = Quiet::begin();
    let mut process = lock();
    switch_off();
    if store::header().is_some() && process.output.is_some() && options.mode() != mode() {
        finish_store(&mut process);
    }
    switch_on(&mut process, options);
}

/// Records nothing from now on. Open activations end here.
pub(crate) fn clear_profiler() {
    let _process = lock();
    switch_off();
}

/// Forgets what was recorded, and removes its file.
pub(crate) fn discard() {
    let _quiet = Quiet::begin();
    let mut process = lock();
    switch_off();
    if let Some(output) = process.output.take().filter(|output| output.file.is_some()) {
        // One that is gone already is no problem.
        let _ = std::fs::remove_file(&output.path);
    }
}

/// Leaves the live file as it is, finished, and records nothing more.
pub(crate) fn keep_live() {
    if is_forked() {
        return;
    }
    let _quiet = Quiet::begin();
    let mut process = lock();
    switch_off();
    if process.output.take().is_some() {
        refresh_clock();
        store::set_flag(flag::FINISHED);
    }
}

/// The file that is being written; nothing when there is no profile.
pub(crate) fn output() -> Option<PathBuf> {
    lock().output.as_ref().map(|output| output.path.clone())
}

fn switch_off() {
    switch_off_at(sys::ticks());
}

/// Records nothing more. In the file, activations that are open end at `end`, in ticks.
fn switch_off_at(end: u64) {
    let before = STATE.swap(OFF, Ordering::AcqRel);
    if before != OFF && before != UNDECIDED {
        store::change_header(|header| header.off_ticks.set(end));
        LAST_OFF.store(sys::ticks(), Ordering::Relaxed);
    }
}

fn switch_on(process: &mut Process, options: Options) {
    MODE.store(options.mode(), Ordering::Relaxed);
    RULE.store(options.rule(), Ordering::Relaxed);
    DEPTH_LIMIT.store(options.depth_limit, Ordering::Relaxed);
    let folds_directly = options.rule() == rule::DIRECT && options.depth_limit == 0;
    FOLDS_DIRECTLY.store(folds_directly, Ordering::Relaxed);
    CPU_TIME.store(options.cpu_time, Ordering::Relaxed);
    let keeps_time = options.keeps_time && options.mode() == mode::CALL_GRAPH && options.rule() != rule::SWI_CLASSIC;
    COURSE.store(keeps_time, Ordering::Relaxed);
    let epoch = EPOCH.fetch_add(1, Ordering::Relaxed) + 1;
    if process.output.is_none() && !open_store(process, &options, 0) {
        // Not tried again at the next event.
        STATE.store(OFF, Ordering::Release);
        return;
    }
    store::change_header(|header| {
        header.off_ticks.set(0);
        header.mode.set(options.mode());
        header.rule.set(options.rule());
        header.depth_limit.set(options.depth_limit);
    });
    if options.cpu_time {
        store::set_flag(flag::CPU_TIME);
    }
    if options.counts_exits {
        store::set_flag(flag::EXITS);
    }
    let is_plain = !options.cpu_time && !keeps_time && sys::uses_tsc();
    let path = match options.mode() {
        _ if !is_plain => SLOW,
        mode::FLAT if options.depth_limit != 0 => SLOW,
        mode::FLAT => FLAT,
        _ => 0,
    };
    let sort = (options.mode(), options.cpu_time, keeps_time);
    process.options = Some(options);
    STATE.store(epoch | path, Ordering::Release);
    if process.calibrated != Some(sort) {
        process.calibrated = Some(sort);
        calibrate::calibrate();
    }
}

/// Opens a store of its own for this process; false when there is no memory for one. Functions
/// that are known already keep their numbers.
fn open_store(process: &mut Process, options: &Options, parent_pid: u32) -> bool {
    let started = process_start();
    let output = Output::create(options.output.as_deref(), parent_pid != 0, started);
    if let Some(other) = &output.left_alone {
        let (other, path) = (other.to_string_lossy(), output.path.to_string_lossy());
        sys::complain(&["treering: ", &other, " is no profile and is left alone; the profile is ", &path]);
    }
    if let Some(problem) = &output.problem {
        let path = output.path.to_string_lossy();
        sys::complain(&["treering: cannot write ", &path, ": ", &problem.to_string()]);
    }
    let is_tsc = sys::choose_clock(!options.no_tsc);
    let mut store = STORE.hold();
    let descriptor = output.file.as_ref().and_then(OwnFile::descriptor);
    let opened = if registry::has_room() { store.open(descriptor).ok() } else { None };
    let Some(old) = opened else {
        output.remove();
        sys::complain(&["treering: there is no memory for a profile"]);
        return false;
    };
    let kernels = || std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let command = options.command.clone().unwrap_or_else(kernels);
    process.used_before = sys::cpu_time(Whose::Process);
    write_header(&mut store, &output, is_tsc, started, parent_pid, &command);
    course::forget();
    mark::forget();
    if let Some(old) = old {
        registry::carry_over(&mut store, old);
        line::forget();
    }
    drop(store);
    process.output = Some(output);
    if !process.hooks {
        process.hooks = true;
        for problem in Options::problems_of_environment() {
            sys::complain(&["treering: ", &problem]);
        }
        sys::stay_loaded();
        registry::watch_libraries(!sys::sees_unloading());
        sys::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
    process.calibrated = None;
    measure_clock();
    true
}

fn write_header(store: &mut Store, output: &Output, is_tsc: bool, process_start: u64, parent_pid: u32, command: &[u8]) {
    let (start_ticks, start_raw_ns) = sys::both_clocks();
    let header = Header {
        magic: MAGIC,
        version: VERSION,
        pid: std::process::id(),
        clock: if is_tsc { clock::TSC } else { clock::MONOTONIC },
        start_unix_ns: sys::clock_ns(libc::CLOCK_REALTIME),
        process_start,
        start_ticks,
        start_raw_ns,
        last_ticks: start_ticks,
        last_raw_ns: start_raw_ns,
        ns_per_tick: 1.0 / CODE as f64,
        flags: treering_events::coded_flags(0),
        base_address: store::base() as u64,
        earlier_copies: output.earlier_copies,
        parent_pid,
        command: store.text(command),
        path: store.text(output.path.as_os_str().as_bytes()),
        ..Header::default()
    };
    store::change_header(|written| {
        record::write(written, Header { used_units: written.used_units.get(), ..header });
    });
}

/// A first idea of how long a tick is; it gets better with every later reading.
fn measure_clock() {
    let begun = sys::clock_ns(libc::CLOCK_MONOTONIC_RAW);
    while sys::clock_ns(libc::CLOCK_MONOTONIC_RAW) - begun < 200_000 {
        core::hint::spin_loop();
    }
    refresh_clock();
    let ns_per_tick = Some(ns_per_tick()).filter(|&ns| ns > 0.0).unwrap_or(1.0);
    let interval = CPU_INTERVAL_NS as f64 / ns_per_tick;
    CPU_INTERVAL.store(interval as u64, Ordering::Relaxed);
}

/// When this process began, as `/proc/self/stat` says (proc(5), field 22); 0 when unknown.
fn process_start() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = text.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().nth(19).and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Reads both clocks anew, for a better idea of how long a tick is.
pub(crate) fn refresh_clock() {
    let (ticks, raw) = sys::both_clocks();
    store::change_header(|header| {
        header.last_ticks.set(ticks);
        header.last_raw_ns.set(raw);
        let (passed, raw_passed) = (ticks - header.start_ticks.get(), raw - header.start_raw_ns.get());
        if passed > 0 && header.clock.get() == clock::TSC {
            header.ns_per_tick.set(raw_passed as f64 / passed as f64);
        }
    });
}

/// The best idea so far of how long a tick is; 0 before there is a store.
pub(crate) fn ns_per_tick() -> f64 {
    store::header().map_or(0.0, |header| header.ns_per_tick.get())
}

/// Adds a fact about the run.
pub(crate) fn set(kind: u32, name: &[u8], value: &[u8]) {
    let _quiet = Quiet::begin();
    initialise();
    if store::header().is_none() {
        return;
    }
    let mut store = STORE.hold();
    let (name, value) = (store.text(name), store.text(value));
    let setting = |next| treering_events::Setting { next, kind, name, value, ..treering_events::Setting::default() };
    // Without room there is one fact less.
    let _ = store.add::<Setting>(|header| &header.settings, setting);
}

/// Finishes the profile: puts it in place, and records nothing more until a profiler is set
/// again. False when it could not be written.
pub(crate) fn finish() -> bool {
    let state = STATE.load(Ordering::Acquire);
    if is_forked() || state == UNDECIDED {
        STATE.store(OFF, Ordering::Release);
        return true;
    }
    let _quiet = Quiet::begin();
    let mut process = lock();
    // The calibration belongs to no activation that is open.
    let end = sys::ticks();
    if state != OFF {
        calibrate::calibrate_again();
    }
    switch_off_at(end);
    finish_store(&mut process)
}

fn finish_store(process: &mut Process) -> bool {
    let Some(mut output) = process.output.take() else { return true };
    refresh_clock();
    let (used, before) = (sys::cpu_time(Whose::Process), process.used_before);
    store::change_header(|header| {
        header.user_ns.set(used.user_ns.saturating_sub(before.user_ns));
        header.system_ns.set(used.system_ns.saturating_sub(before.system_ns));
    });
    store::set_flag(flag::FINISHED);
    let told = output.problem.as_ref().map(ToString::to_string);
    if !sys::has_memory(store::size_to_finish()) {
        // An allocation that fails would end the program.
        say_unwritten(&output, "there is no memory to finish it");
        return false;
    }
    let written = match compact::compact(&store::copy()) {
        Some(bytes) => output.replace(&bytes, |_| STORE.hold().leave_file()).map_err(|error| error.to_string()),
        None => Err("the profile is damaged".to_owned()),
    };
    let is_written = written.is_ok();
    if let Err(error) = written
        && told.as_ref() != Some(&error)
    {
        say_unwritten(&output, &error);
    }
    is_written
}

/// Says that there is no finished profile, and what is in the file instead.
fn say_unwritten(output: &Output, error: &str) {
    let path = output.path.to_string_lossy();
    let readable = match STORE.hold().readable() {
        store::Readable::All => "; the recording so far is in the file",
        store::Readable::Beginning => "; the file has the recording up to the time when it could not grow",
        store::Readable::Nothing => "",
    };
    sys::complain(&["treering: cannot write ", &path, ": ", error, readable]);
}

/// The open activations of a thread that forked: the tag and place of its stack, and the activations with
/// the numbers of their functions.
struct OpenAtFork {
    tag: u64,
    stack_address: u64,
    activations: Mapped<OpenActivation>,
}

/// An activation that was open at a fork.
#[derive(Clone, Copy)]
struct OpenActivation {
    activation: Activation,
    function: u32,
}

impl OpenAtFork {
    /// Copies the open activations of the running thread; `None` without memory.
    fn of(thread: &'static Thread) -> Option<Self> {
        let open = &record::stack_of(thread)[1..][..thread::depth(thread) as usize];
        let activations = Mapped::of(open.iter().map(|activation| OpenActivation {
            activation: record::read(activation),
            function: node_of(activation).function.get(),
        }))?;
        let (tag, stack_address) = (thread.private_tag.get(), thread.stack_address.get());
        Some(Self { tag, stack_address, activations })
    }

    /// Opens the activations anew in another store.
    fn reopen(&self, thread: &'static Thread) {
        for open in self.activations.iter() {
            if !thread::inherit(thread, open.function, &open.activation) {
                break;
            }
        }
        // Tokens of the parent's stack lead to the same depth of this one.
        let moved = thread.stack_address.get().wrapping_sub(self.stack_address);
        record::shared(&thread.private_tag).store(self.tag.wrapping_sub(moved), Ordering::Relaxed);
    }
}

/// Open activations are copied before the fork: the records are in a mapping that both share, and the
/// parent may have gone on before the child looks at them.
extern "C" fn before_fork() {
    let mut process = PROCESS.hold();
    let store = STORE.hold();
    if process.output.is_some()
        && !is_forked()
        && let Some(thread) = sys::recorded_thread()
    {
        process.open_at_fork = OpenAtFork::of(thread).or(process.open_at_fork.take());
    }
    store.keep_over_fork();
    process.keep_over_fork();
}

extern "C" fn after_fork_in_parent() {
    STORE.release_after_fork();
    PROCESS.release_after_fork();
    // A child that forks again before its first event still needs what it was given.
    if !is_forked() {
        lock().open_at_fork = None;
    }
}

/// In the child nothing may be written to the parent's file. The open activations are kept; everything else
/// waits for the child's first event, since most children call exec at once.
extern "C" fn after_fork_in_child() {
    STORE.release_after_fork();
    PROCESS.release_after_fork();
    store::retire();
    let state = STATE.load(Ordering::Relaxed);
    if lock().output.is_none() {
        return;
    }
    FORKED.store(true, Ordering::Relaxed);
    EPOCH.fetch_add(1, Ordering::Relaxed);
    if state != OFF {
        STATE.store(EPOCH.load(Ordering::Relaxed) | state & (SLOW | FLAT), Ordering::Relaxed);
    }
    // The record is the parent's, which goes on with it.
    sys::set_current(None);
}

/// At the first event after a fork: a file for the child, with the activations that were open.
/// Events are kept out meanwhile.
pub(crate) fn begin_in_child() -> Option<&'static Thread> {
    let mut process = lock();
    let open = process.open_at_fork.take();
    FORKED.store(false, Ordering::Relaxed);
    // The parent's store is still mapped.
    let parent = store::header().map_or(0, |header| header.pid.get());
    // The parent goes on with its own open file.
    process.output = None;
    let options = process.options.clone().unwrap_or_default();
    if !open_store(&mut process, &options, parent) {
        STATE.store(OFF, Ordering::Release);
        return None;
    }
    store::change_header(|header| {
        header.mode.set(options.mode());
        header.rule.set(options.rule());
    });
    drop(process);
    calibrate::calibrate();
    let thread = thread::attach()?;
    if let Some(open) = open {
        open.reopen(thread);
    }
    Some(thread)
}

/// Writes the reports that were asked for and finishes the profile when the program ends, after its
/// own exit handlers and destructors.
pub(crate) extern "C" fn at_exit() {
    #[cfg(all(target_pointer_width = "64", target_os = "linux"))]
    crate::unseen_plugin::warn();
    arguments::at_exit();
    // There is no caller to report to; a problem was written to standard error.
    let _ = finish();
}

/// The program may change its directory before its first event, and a plug-in may have loaded this
/// library.
pub(crate) extern "C" fn at_start() {
    output::note_directory();
    #[cfg(all(target_pointer_width = "64", target_os = "linux"))]
    crate::unseen_plugin::warn();
}

/// Whether a record is of the store in use, rather than of one that was finished.
pub(crate) fn is_current_store(thread: &Thread) -> bool {
    store::contains(address(thread))
}
