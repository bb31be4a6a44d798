//! The library in front of programs: those that count with it, and those that must not notice.
#![allow(clippy::print_stderr, reason = "a test says what it skipped")]

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use treering_events::{Header, Node, View};
use treering_runtime::{Options, scope};
use treering_testing::programs::preload;

/// The library, built once for all tests.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("library");
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--release",
                "--offline",
                "--package",
                "treering-malloc",
                "--target-dir",
            ])
            .arg(&target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.is_ok_and(|status| status.success()), "the library cannot be built");
        target.join("release/libtreering_malloc.so")
    })
}

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("the directory");
    directory
}

/// Runs one of the scripts below in a process of its own, with the library in front.
fn run_script(name: &str) {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", &format!("scripts::{name}"), "--ignored", "--nocapture"]);
    let output = preload(&mut command, library()).current_dir(directory(name)).output();
    let output = output.expect("the program runs");
    assert!(
        output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

macro_rules! run {
    ($($(#[$about:meta])* $name:ident)*) => { $(
        $(#[$about])*
        #[test]
        fn $name() {
            run_script(stringify!($name));
        }
    )* };
}

run! {
    every_function_is_counted_to_the_byte
    blocks_are_as_large_and_as_aligned_as_was_asked_for
    frees_in_other_threads_are_counted_apart
    resizing_keeps_the_content_of_a_block
    impossible_sizes_are_refused
    a_child_leaves_the_numbers_of_its_parent_alone
    sixty_four_threads_lose_no_byte
    rust_s_own_allocator_is_not_counted_twice
    blocks_that_are_older_than_the_recording_are_let_go
}

/// Run by the tests above, in processes that have the library in front.
mod scripts {
    use super::*;

    fn record() -> PathBuf {
        let path = PathBuf::from("live.trg");
        treering_runtime::set_profiler(Options { output: Some(path.clone()), ..Options::default() });
        path
    }

    fn header(path: &Path) -> Header {
        let bytes = std::fs::read(path).expect("the live file");
        *View::new(&bytes).expect("a live file").header()
    }

    /// The sums over all nodes of a function.
    fn node(path: &Path, name: &str) -> Node {
        let bytes = std::fs::read(path).expect("the live file");
        let view = View::new(&bytes).expect("a live file");
        let (_, function) = view
            .functions()
            .find(|(_, known)| view.text(known.name) == name.as_bytes())
            .expect("the function");
        let mut sum = Node::default();
        for (_, thread) in view.threads() {
            let root = view.node(thread.root).expect("a root");
            for (_, node) in view.children(&root).filter(|(_, node)| node.function == function.id) {
                sum.allocations += node.allocations;
                sum.allocated += node.allocated;
                sum.live += node.live;
                sum.peak += node.peak;
                sum.freed_elsewhere += node.freed_elsewhere;
            }
        }
        sum
    }

    unsafe extern "C" {
        fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void;
        fn valloc(size: usize) -> *mut c_void;
        fn pvalloc(size: usize) -> *mut c_void;
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn every_function_is_counted_to_the_byte() {
        let path = record();
        {
            scope!("script");
            // SAFETY: blocks are given back once.
            unsafe {
                let mut placed = std::ptr::null_mut();
                assert_eq!(libc::posix_memalign(&raw mut placed, 64, 600), 0);
                let blocks = [
                    libc::malloc(100),
                    libc::calloc(10, 20),
                    libc::realloc(libc::malloc(1), 300),
                    reallocarray(std::ptr::null_mut(), 4, 100),
                    libc::memalign(32, 500),
                    placed,
                    libc::aligned_alloc(16, 704),
                    valloc(800),
                    pvalloc(900),
                    libc::malloc(0),
                ];
                assert!(blocks.iter().all(|block| !block.is_null()));
                blocks.into_iter().rev().for_each(|block| libc::free(block));
                libc::free(std::ptr::null_mut());
                libc::free(libc::realloc(libc::malloc(50), 0));
            }
        }
        let found = node(&path, "script");
        let sum = 100 + 200 + 300 + 400 + 500 + 600 + 704 + 800 + 900;
        assert_eq!((found.allocations, found.allocated), (12, sum + 1 + 50));
        assert_eq!((found.live, found.peak, found.freed_elsewhere), (0, sum as i64, 0));
        assert_ne!(header(&path).flags & treering_events::flag::MEMORY, 0);
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn blocks_are_as_large_and_as_aligned_as_was_asked_for() {
        let _path = record();
        scope!("script");
        for power in 3..=12 {
            for size in [0, 1, 8, 24, 25, 100, 4096, 200_000, 3 << 20] {
                // SAFETY: each block is used up to what may be used of it, and given back.
                unsafe {
                    let block = libc::memalign(1 << power, size);
                    assert_eq!(block as usize % (1 << power), 0);
                    let usable = libc::malloc_usable_size(block);
                    assert!(usable >= size);
                    // All that may be used can be written to without harm to the tail.
                    block.cast::<u8>().write_bytes(0xFF, usable);
                    assert_eq!(libc::malloc_usable_size(block), usable);
                    libc::free(block);
                    let zeros = libc::calloc(size.max(1), 1).cast::<u8>();
                    assert!((0..size).all(|at| *zeros.add(at) == 0));
                    libc::free(zeros.cast());
                }
            }
        }
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn frees_in_other_threads_are_counted_apart() {
        let path = record();
        let block = {
            scope!("script");
            // SAFETY: the block is given back below.
            unsafe { libc::malloc(1000) as usize }
        };
        // SAFETY: the block was allocated above, and has no other owner.
        std::thread::spawn(move || unsafe { libc::free(block as *mut c_void) }).join().expect("the thread");
        let found = node(&path, "script");
        assert_eq!((found.live, found.freed_elsewhere, found.peak), (1000, 1000, 1000));
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn resizing_keeps_the_content_of_a_block() {
        let path = record();
        {
            scope!("script");
            // SAFETY: the block is used within its size.
            unsafe {
                let mut block = libc::malloc(10).cast::<u8>();
                block.write_bytes(7, 10);
                for size in [11, 24, 25, 1000, 300_000, 5_000_000, 40_000, 33, 10] {
                    block = libc::realloc(block.cast(), size).cast();
                    assert!((0..10).all(|at| *block.add(at) == 7));
                }
                // Too large: the block stays as it was, and is still counted.
                assert!(libc::realloc(block.cast(), usize::MAX / 4).is_null());
                assert!((0..10).all(|at| *block.add(at) == 7));
                libc::free(block.cast());
            }
        }
        let found = node(&path, "script");
        assert_eq!((found.allocations, found.live, found.freed_elsewhere), (10, 0, 0));
        assert_eq!(found.peak, 5_000_000);
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn impossible_sizes_are_refused() {
        let path = record();
        {
            scope!("script");
            // SAFETY: nothing is given.
            unsafe {
                let huge = std::hint::black_box(usize::MAX - 3);
                let refused = |block: *mut c_void| {
                    assert!(block.is_null());
                    assert_eq!(*libc::__errno_location(), libc::ENOMEM);
                    *libc::__errno_location() = 0;
                };
                refused(libc::malloc(huge));
                refused(libc::calloc(huge, 2));
                refused(reallocarray(std::ptr::null_mut(), huge, 16));
                refused(libc::memalign(64, huge));
                refused(libc::malloc(isize::MAX as usize - 8));
                let mut place = std::ptr::null_mut();
                assert_eq!(libc::posix_memalign(&raw mut place, 64, huge), libc::ENOMEM);
                assert_eq!(libc::posix_memalign(&raw mut place, 3, 8), libc::EINVAL);
            }
        }
        assert_eq!(node(&path, "script").allocations, 0);
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn a_child_leaves_the_numbers_of_its_parent_alone() {
        let path = record();
        // SAFETY: the child only allocates, frees and ends.
        let block = unsafe {
            scope!("script");
            let block = libc::malloc(5000);
            let child = libc::fork();
            if child == 0 {
                libc::free(block);
                (0..100).for_each(|_| libc::free(libc::malloc(64)));
                libc::free(libc::realloc(libc::malloc(77), 7000));
                libc::_exit(3);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert_eq!(libc::WEXITSTATUS(status), 3);
            block
        };
        let found = node(&path, "script");
        assert_eq!((found.allocations, found.live, found.peak, found.freed_elsewhere), (1, 5000, 5000, 0));
        // SAFETY: the parent's block.
        unsafe { libc::free(block) };
        assert_eq!((node(&path, "script").live, node(&path, "script").freed_elsewhere), (0, 0));
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn sixty_four_threads_lose_no_byte() {
        let path = record();
        let blocks = std::sync::Mutex::new(Vec::<usize>::new());
        std::thread::scope(|threads| {
            for number in 0..64_usize {
                let blocks = &blocks;
                threads.spawn(move || {
                    for turn in 0..2000 {
                        let size = 1 + (number * 31 + turn * 17) % 700;
                        let block = {
                            scope!("script");
                            // SAFETY: the block is given back by this thread or another.
                            unsafe { libc::malloc(size) as usize }
                        };
                        // Every other block goes to another thread.
                        let mut blocks = blocks.lock().expect("the lock");
                        let given = if turn % 2 == 0 { block } else { blocks.pop().unwrap_or(block) };
                        if given != block {
                            blocks.insert(0, block);
                        } else if turn % 4 == 0 {
                            blocks.push(block);
                            continue;
                        }
                        // SAFETY: the block has no other owner any more.
                        unsafe { libc::free(given as *mut c_void) };
                    }
                });
            }
        });
        // SAFETY: the blocks were allocated by the threads, which have ended and left them here.
        blocks
            .into_inner()
            .expect("the lock")
            .into_iter()
            .for_each(|block| unsafe { libc::free(block as *mut c_void) });
        let found = node(&path, "script");
        assert_eq!(found.allocations, 64 * 2000);
        let expected =
            (0..64).flat_map(|number| (0..2000).map(move |turn| 1 + (number * 31 + turn * 17) % 700));
        assert_eq!(found.allocated, expected.sum::<u64>());
        assert_eq!(found.live - found.freed_elsewhere as i64, 0);
        assert!(found.freed_elsewhere > 0);
    }

    #[global_allocator]
    static ALLOCATOR: treering_runtime::Allocator = treering_runtime::Allocator::new();

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn rust_s_own_allocator_is_not_counted_twice() {
        let path = record();
        {
            scope!("script");
            std::hint::black_box(Box::new([0_u8; 1000]));
        }
        let found = node(&path, "script");
        assert_eq!((found.allocations, found.allocated, found.live), (1, 1000, 0));
    }

    #[test]
    #[ignore = "run by another test, with the library in front"]
    fn blocks_that_are_older_than_the_recording_are_let_go() {
        // The standard library has allocated before; what it frees in the scope is not ours.
        let before: Vec<String> = std::env::args().collect();
        let path = record();
        {
            scope!("script");
            drop(before);
        }
        let found = node(&path, "script");
        assert_eq!((found.allocations, found.live, found.freed_elsewhere), (0, 0, 0));
    }
}

/// A program that needs no runtime says the same with the library in front and without it.
fn says_the_same(command: &[&str]) {
    let run = |preloaded: bool| -> Option<Output> {
        let mut run = Command::new(command[0]);
        run.args(&command[1..]).current_dir(env!("CARGO_MANIFEST_DIR"));
        if preloaded {
            preload(&mut run, library());
        }
        run.output().ok()
    };
    let Some(plain) = run(false).filter(|plain| plain.status.success()) else {
        eprintln!("skipped: {} does not run here", command[0]);
        return;
    };
    let with = run(true).expect("it ran before");
    assert_eq!(with.status, plain.status, "{}", String::from_utf8_lossy(&with.stderr));
    assert_eq!(with.stdout, plain.stdout);
    assert_eq!(String::from_utf8_lossy(&with.stderr), String::from_utf8_lossy(&plain.stderr));
}

#[test]
fn shells_compilers_and_interpreters_do_not_notice() {
    says_the_same(&["bash", "-c", "for i in 1 2 3; do echo $(seq $i | sort -r | head -1); done"]);
    says_the_same(&[
        "python3",
        "-c",
        "import json,threading; print(json.dumps(sorted(str(i) for i in range(5000))))",
    ]);
    says_the_same(&["python3", "-c", "import subprocess; print(subprocess.check_output(['echo','a']))"]);
    says_the_same(&["gcc", "-dumpspecs"]);
    says_the_same(&["git", "log", "--oneline", "-5"]);
    says_the_same(&["sh", "-c", "printf 'int main(){return 0;}' | gcc -O2 -x c - -o /dev/null && echo done"]);
}

const OWN_MALLOC: &str = r#"
    #include <stddef.h>
    #include <stdio.h>
    #include <string.h>
    static char room[1 << 22];
    static size_t used;
    void *malloc(size_t size) { used = (used + 31) & ~15ul; size_t at = used; used += size; return room + at; }
    void free(void *block) { (void)block; }
    void *calloc(size_t count, size_t size) { return memset(malloc(count * size), 0, count * size); }
    void *realloc(void *block, size_t size) {
        void *fresh = malloc(size);
        if (block) memmove(fresh, block, size);
        return fresh;
    }
    int main(void) {
        char *block = malloc(10);
        printf("%d\n", block >= room && block < room + sizeof room);
        free(realloc(block, 100));
        return 0;
    }
"#;

const LIBRARIES: &str = r#"
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    int main(void) {
        for (int turn = 0; turn < 50; turn++) {
            void *library = dlopen("libm.so.6", RTLD_NOW);
            double (*cosine)(double) = (double (*)(double))dlsym(library, "cos");
            if (cosine(0) != 1) return 1;
            free(malloc(turn * 1000));
            dlclose(library);
            if (dlopen("no such library", RTLD_NOW) || !dlerror()) return 2;
        }
        puts("fine");
        return 0;
    }
"#;

/// Brings a runtime that records nothing, but late.
const LATE: &str = r#"
    #include <dlfcn.h>
    #include <malloc.h>
    #include <stdint.h>
    #include <stdio.h>
    #include <string.h>
    #include <stdlib.h>
    /* malloc is declared as one that never calls back, so the compiler would keep these. */
    static volatile uint64_t zero, counted, bytes;
    static void *thread(void) { return 0; }
    static void outside(uint64_t size) { counted++; bytes += size; }
    struct runtime {
        uint64_t version; intptr_t thread_word; void *(*thread)(void);
        volatile void *state, *base, *generation; void (*outside)(uint64_t);
    } runtime = {2, 0, thread, &zero, &zero, &zero, outside};
    int main(void) {
        void *older[100];
        for (int at = 0; at < 100; at++) {
            older[at] = malloc(at * 100);
            memset(older[at], at, malloc_usable_size(older[at]));
        }
        int (*attach)(struct runtime *) = (int (*)(struct runtime *))dlsym(RTLD_DEFAULT, "treering_malloc_attach");
        if (attach) {
            if (!(attach(&runtime) & 1) || (attach(&runtime) & 1)) return 1;
            counted = bytes = 0;
            char *block = malloc(100);
            if (counted != 1 || bytes != 100) return 2;
            memset(block, 255, malloc_usable_size(block));
            block = realloc(block, 50);
            if (counted != 2 || bytes != 150) return 3;
            free(block);
        }
        for (int at = 0; at < 100; at++) {
            size_t usable = malloc_usable_size(older[at]);
            for (size_t byte = 0; byte < usable; byte++)
                if (((unsigned char *)older[at])[byte] != at) return 4;
            if (at % 2) older[at] = realloc(older[at], at * 200);
            free(older[at]);
        }
        puts("fine");
        return 0;
    }
"#;

#[test]
fn a_runtime_that_comes_late_finds_blocks_that_are_not_its_own() {
    match compiled("late", LATE) {
        Some(program) => says_the_same(&[&program]),
        None => eprintln!("skipped: there is no C compiler"),
    }
}

fn compiled(name: &str, source: &str) -> Option<String> {
    let directory = directory(name);
    let (text, program) = (directory.join("program.c"), directory.join("program"));
    std::fs::write(&text, source).expect("the source");
    let made =
        Command::new("cc").args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&text).arg("-ldl").status();
    made.is_ok_and(|status| status.success()).then(|| program.to_string_lossy().into_owned())
}

#[test]
fn a_program_with_its_own_malloc_keeps_it() {
    match compiled("own_malloc", OWN_MALLOC) {
        Some(program) => says_the_same(&[&program]),
        None => eprintln!("skipped: there is no C compiler"),
    }
}

#[test]
fn libraries_come_and_go() {
    match compiled("libraries", LIBRARIES) {
        Some(program) => says_the_same(&[&program]),
        None => eprintln!("skipped: there is no C compiler"),
    }
}
