//! A program that does one thing after another that is hard on a profiler; the tests say which.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a program for tests")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use treering_runtime::{instrument, scope};

unsafe extern "C" {
    fn treering_task_start_named(name: *const std::ffi::c_char, length: usize);
    fn treering_task_stop();
    fn treering_leave(token: u64);
    fn treering_enter(id: u32) -> u64;
    fn treering_task(name: *const std::ffi::c_char) -> u32;
}

fn main() {
    // Keeps the C interface in the program.
    black_box(treering_runtime::Options::default());
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    match arguments[1].as_str() {
        "count-aloud" => count_aloud(&arguments[2]),
        "threads" => threads(number(2), number(3)),
        "short-threads" => (0..number(2)).for_each(|_| std::thread::spawn(short).join().unwrap()),
        "panics" => panics(number(2)),
        "fork" => fork(number(2)),
        "fork-elsewhere" => fork_elsewhere(&arguments[2]),
        "fork-late" => fork_late(number(2)),
        "fork-exec" => fork_exec(number(2)),
        "exec" => exec(number(2)),
        "deep" => deep(number(2)),
        "alternating" => alternating(number(2)),
        "hungry" => hungry(number(2)),
        "no-descriptors" => no_descriptors(),
        "many-functions" => many_functions(number(2)),
        "unlink" => unlink(&arguments[2]),
        "across-threads" => across_threads(),
        "unbalanced" => unbalanced(),
        "signals" => signals(number(2)),
        "two-copies" => two_copies(&arguments[2]),
        "switch" => switch(),
        "exit-inside" => exit_inside(),
        "children" => children(number(2)),
        "leaves" => leaves(number(2), number(3)),
        other => panic!("no such probe: {other}"),
    }
    println!("done");
}

#[inline(never)]
fn leaf() {
    scope!("leaf");
    black_box(());
}

#[inline(never)]
fn short() {
    scope!("short");
    leaf();
}

/// Counts every enter that has returned in a file that survives, function by function.
fn count_aloud(path: &str) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut state = u64::from(std::process::id());
    // SAFETY: the file has room for the numbers, and only the test reads them.
    let counts = unsafe {
        use std::os::fd::AsRawFd as _;
        let mapped = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(mapped, libc::MAP_FAILED);
        &*mapped.cast::<[AtomicU64; 4]>()
    };
    let said = |at: usize| counts[at].store(counts[at].load(Ordering::Relaxed) + 1, Ordering::Release);
    loop {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        scope!("a");
        said(0);
        for _ in 0..state >> 62 {
            scope!("b");
            said(1);
            if state >> 40 & 1 == 0 {
                scope!("c");
                said(2);
            }
            scope!("d");
            said(3);
        }
    }
}

/// Leaves in `threads` threads, `calls` times each: timed always, now and then and never, one with calls of its own
/// and one that panics.
fn leaves(threads: u64, calls: u64) {
    #[instrument(leaf, timed_one_in = 16, name = "sampled")]
    fn sampled(turn: u64) {
        black_box(turn);
    }
    fn wait(time: std::time::Duration) {
        let begun = std::time::Instant::now();
        while begun.elapsed() < time {
            black_box(());
        }
    }
    let work = move || {
        scope!("parent");
        for turn in 0..calls {
            sampled(turn);
            treering_runtime::leaf!("never", timed_one_in = 0);
        }
        for _ in 0..100 {
            treering_runtime::leaf!("waits");
            wait(std::time::Duration::from_micros(50));
        }
        for _ in 0..3 {
            treering_runtime::leaf!("branches");
            leaf();
        }
        let panics = || {
            treering_runtime::leaf!("panics");
            panic!("as intended");
        };
        assert!(std::panic::catch_unwind(panics).is_err());
    };
    std::panic::set_hook(Box::new(|_| {}));
    let threads: Vec<_> = (0..threads).map(|_| std::thread::spawn(work)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn threads(count: u64, calls: u64) {
    let work = move |thread: u64| {
        for turn in 0..calls {
            scope!("outer");
            for _ in 0..turn % 3 {
                leaf();
            }
            if turn % 5 == thread % 5 {
                short();
            }
        }
    };
    let threads: Vec<_> = (0..count).map(|thread| std::thread::spawn(move || work(thread))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

fn panics(count: u64) {
    std::panic::set_hook(Box::new(|_| {}));
    fn fails(depth: u64) {
        scope!("fails");
        leaf();
        if depth == 0 {
            panic!("as intended");
        }
        scope!("between");
        fails(depth - 1);
    }
    for turn in 0..count {
        scope!("catches");
        assert!(std::panic::catch_unwind(|| fails(turn % 4)).is_err());
        leaf();
    }
}

fn fork(calls: u64) {
    scope!("before");
    (0..calls).for_each(|_| leaf());
    // SAFETY: this program has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        {
            scope!("in child");
            (0..calls * 2).for_each(|_| leaf());
        }
        return;
    }
    {
        scope!("in parent");
        (0..calls * 3).for_each(|_| leaf());
    }
    let mut status = 0;
    // SAFETY: waits for a child of ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
}

/// Parent and child go to another directory, one after the other.
fn fork_elsewhere(directory: &str) {
    scope!("before");
    // SAFETY: this program has one thread.
    let child = unsafe { libc::fork() };
    if child == 0 {
        std::env::set_current_dir(directory).unwrap();
        scope!("in child");
        leaf();
        return;
    }
    let mut status = 0;
    // SAFETY: waits for a child of ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    std::env::set_current_dir(directory).unwrap();
    leaf();
}

static GONE_ON: [std::sync::atomic::AtomicI32; 2] = [const { std::sync::atomic::AtomicI32::new(0) }; 2];

unsafe extern "C" fn wait_in_child() {
    let mut byte = 0_u8;
    // SAFETY: the byte is there; the pipe is open.
    unsafe { libc::read(GONE_ON[0].load(Ordering::Relaxed), (&raw mut byte).cast(), 1) };
}

/// A fork after which the child does nothing, not even in its handlers, before the parent has left
/// what was open and entered something else.
fn fork_late(calls: u64) {
    let mut ends = [0; 2];
    // SAFETY: there is room for two numbers, and the handler stays.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        (0..2).for_each(|at| GONE_ON[at].store(ends[at], Ordering::Relaxed));
        // Handlers of children are called in the order in which they were set.
        assert_eq!(libc::pthread_atfork(None, None, Some(wait_in_child)), 0);
    }
    scope!("before");
    let child = {
        scope!("forks");
        // SAFETY: this program has one thread.
        unsafe { libc::fork() }
    };
    if child == 0 {
        scope!("in child");
        (0..calls).for_each(|_| leaf());
        return;
    }
    scope!("in parent");
    leaf();
    let mut status = 0;
    // SAFETY: the byte is there; waits for a child of ours.
    unsafe {
        assert_eq!(libc::write(ends[1], [1_u8].as_ptr().cast(), 1), 1);
        libc::waitpid(child, &raw mut status, 0);
    }
    assert_eq!(status, 0);
}

fn fork_exec(calls: u64) {
    (0..calls).for_each(|_| leaf());
    for _ in 0..3 {
        assert!(std::process::Command::new("true").status().unwrap().success());
        // SAFETY: this program has one thread; the child calls nothing but exec.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::execl(c"/bin/true".as_ptr(), c"true".as_ptr(), std::ptr::null::<i8>());
                libc::_exit(127);
            }
            let mut status = 0;
            libc::waitpid(child, &raw mut status, 0);
            assert_eq!(status, 0);
        }
    }
    (0..calls).for_each(|_| leaf());
}

fn exec(calls: u64) {
    use std::os::unix::process::CommandExt as _;
    (0..calls).for_each(|_| leaf());
    let error =
        std::process::Command::new(std::env::current_exe().unwrap()).args(["threads", "1", "10"]).exec();
    panic!("{error}");
}

fn start(name: &std::ffi::CStr) {
    // SAFETY: the text lives.
    unsafe { treering_task_start_named(name.as_ptr(), name.count_bytes()) };
}

fn stop() {
    // SAFETY: it has no requirements.
    unsafe { treering_task_stop() };
}

fn deep(depth: u64) {
    (0..depth).for_each(|_| start(c"deep"));
    leaf();
    (0..depth).for_each(|_| stop());
    leaf();
}

fn alternating(depth: u64) {
    (0..depth).for_each(|at| start(if at % 2 == 0 { c"even" } else { c"odd" }));
    (0..depth).for_each(|_| stop());
}

fn many_functions(count: u64) {
    for round in 0..3 {
        for number in 0..count {
            let name = std::ffi::CString::new(format!("function {}", (number * 7 + round) % count)).unwrap();
            start(&name);
            leaf();
            stop();
        }
    }
}

/// Takes all memory there is in pieces of `bytes`, and ends.
fn hungry(bytes: u64) {
    many_functions(2000);
    // SAFETY: what is allocated is not used.
    while !std::hint::black_box(unsafe { libc::malloc(bytes as usize) }).is_null() {}
    leaf();
}

/// Opens as many files as it may, and ends.
fn no_descriptors() {
    leaf();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        std::mem::forget(file);
    }
    leaf();
}

fn unlink(path: &str) {
    leaf();
    std::fs::remove_file(path).unwrap();
    let names: Vec<_> = (0..5000).map(|at| std::ffi::CString::new(format!("f{at}")).unwrap()).collect();
    for name in &names {
        start(name);
        leaf();
        stop();
    }
}

fn across_threads() {
    // SAFETY: the text lives.
    let token = unsafe { treering_enter(treering_task(c"passed on".as_ptr())) };
    std::thread::spawn(move || {
        leaf();
        // SAFETY: a token may be any number.
        unsafe { treering_leave(token) };
        leaf();
    })
    .join()
    .unwrap();
    leaf();
    // SAFETY: a token may be any number: one that was left already, and one that never was.
    unsafe {
        treering_leave(token);
        treering_leave(token);
        treering_leave(12_345);
    }
}

fn unbalanced() {
    stop();
    start(c"never stopped");
    {
        scope!("scope");
        start(c"started inside");
        leaf();
    }
    stop();
    stop();
    leaf();
}

static TICKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn handle(_: i32) {
    scope!("handler");
    leaf_of_handler();
    TICKS.fetch_add(1, Ordering::Relaxed);
}

#[inline(never)]
fn leaf_of_handler() {
    scope!("leaf of handler");
}

fn signals(milliseconds: u64) {
    let every = libc::timeval { tv_sec: 0, tv_usec: 200 };
    let off = libc::timeval { tv_sec: 0, tv_usec: 0 };
    // The first call of all is made here, where memory may be allocated.
    leaf();
    // SAFETY: the handler does nothing but count and make events.
    unsafe {
        libc::signal(libc::SIGALRM, handle as extern "C" fn(i32) as usize);
        let timer = libc::itimerval { it_interval: every, it_value: every };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    let begun = std::time::Instant::now();
    let mut calls = 1_u64;
    while begun.elapsed().as_millis() < u128::from(milliseconds) {
        for _ in 0..1000 {
            scope!("interrupted");
            leaf();
            calls += 1;
        }
    }
    // SAFETY: the structures live through the calls.
    unsafe {
        let timer = libc::itimerval { it_interval: off, it_value: off };
        libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut());
    }
    println!("{} {calls}", TICKS.load(Ordering::Relaxed));
}

fn two_copies(library: &str) {
    leaf();
    let path = std::ffi::CString::new(library).unwrap();
    // SAFETY: the library is a copy of the runtime, whose functions have these types.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        assert!(!library.is_null());
        let start = libc::dlsym(library, c"treering_task_start_named".as_ptr());
        let stop = libc::dlsym(library, c"treering_task_stop".as_ptr());
        assert!(!start.is_null() && !stop.is_null());
        let start: unsafe extern "C" fn(*const i8, usize) = std::mem::transmute(start);
        let stop: unsafe extern "C" fn() = std::mem::transmute(stop);
        for _ in 0..10 {
            start(c"other copy".as_ptr(), 10);
            leaf();
            stop();
        }
    }
}

fn switch() {
    use treering_runtime::{Options, clear_profiler, set_profiler};
    leaf();
    {
        scope!("open when switched off");
        clear_profiler();
        leaf();
        leaf();
        set_profiler(Options::default());
        leaf();
    }
    leaf();
}

fn exit_inside() {
    scope!("outer");
    scope!("inner");
    leaf();
    std::process::exit(7);
}

/// One caller with many children, each called often, in an order that has no pattern.
fn children(count: u64) {
    let names: Vec<_> = (0..count).map(|at| std::ffi::CString::new(format!("child {at}")).unwrap()).collect();
    let mut state = 1_u64;
    scope!("parent");
    for _ in 0..count * 100 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        start(&names[(state >> 33) as usize % names.len()]);
        stop();
    }
}
