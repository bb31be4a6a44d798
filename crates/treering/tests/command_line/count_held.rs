//! `treering count --cpu` and `--fixed`: the program sees the same surroundings in every run and on every machine.

use std::process::Command;

use crate::session::{Outcome, Session, program, treering, words};
use crate::skip;

/// Whether this machine has a level, as the C compiler's library sees it.
fn has(level: &str) -> bool {
    match level {
        "x86-64-v2" => std::arch::is_x86_feature_detected!("sse4.2"),
        "x86-64-v3" => std::arch::is_x86_feature_detected!("avx2"),
        _ => std::arch::is_x86_feature_detected!("avx512vl"),
    }
}

const LEVELS: [&str; 3] = ["x86-64-v2", "x86-64-v3", "x86-64-v4"];

fn compile(session: &Session, name: &str, source: &str, options: &[&str]) -> std::path::PathBuf {
    let (file, to) = (session.path(&format!("{name}.c")), session.path(name));
    std::fs::write(&file, source).expect("it can be written");
    let made = Command::new("cc").args(options).arg(&file).arg("-o").arg(&to).status();
    assert!(made.expect("the compiler is installed").success());
    to
}

fn count(session: &Session, options: &[&str], command: &[std::ffi::OsString]) -> Outcome {
    let all = [words(&["count"]), words(options), words(&["--"]), command.to_vec()].concat();
    session.run(&all)
}

/// Runs `treering` with a command before it, and with the signals that a [`Session`] gives it.
fn run_under(session: &Session, start: &[std::ffi::OsString]) -> Outcome {
    let mut command = Command::new("/usr/bin/env");
    command
        .arg("--default-signal")
        .args(start)
        .current_dir(session.path(""))
        .env("XDG_CACHE_HOME", session.path("cache"));
    Outcome::of(command.output().expect("the command runs"))
}

/// The instructions that the summary states.
fn instructions(outcome: &Outcome) -> u64 {
    let line = outcome.stderr.lines().find(|line| line.contains("instructions executed"));
    let line = line.unwrap_or_else(|| panic!("the instructions are stated: {outcome:#?}"));
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

#[test]
fn the_dynamic_linker_and_the_compilers_library_see_the_chosen_level() {
    let source = r#"
        #include <stdio.h>
        #include <cpuid.h>
        int main(void) {
            unsigned a, b, c, d;
            __builtin_cpu_init();
            __cpuid_count(0, 0, a, b, c, d);
            printf("%d%d%d aes %d rdrand %d highest %u\n", !!__builtin_cpu_supports("sse4.2"),
                !!__builtin_cpu_supports("avx2"), !!__builtin_cpu_supports("avx512vl"),
                !!__builtin_cpu_supports("aes"), !!__builtin_cpu_supports("rdrnd"), a);
        }"#;
    let session = Session::new();
    let path = compile(&session, "sees", source, &["-O1"]);
    for (at, level) in LEVELS.into_iter().enumerate() {
        if !has(level) {
            skip(&format!("this machine is not {level}"));
            continue;
        }
        let outcome = count(&session, &["--cpu", level, "-o", "sees.trg"], &program(&path, &[]));
        let supports = ["100", "110", "111"][at];
        assert_eq!(outcome.stdout, format!("{supports} aes 0 rdrand 0 highest 13\n"), "{outcome:#?}");
        assert!(outcome.stderr.contains(&format!("held: the processor, as {level}")), "{outcome:#?}");
        let report = session.run(&words(&["report", "sees.trg"]));
        assert!(report.stdout.contains(&format!("held: the processor, as {level}")), "{report:#?}");

        // The dynamic linker lists the levels whose libraries it would load.
        let linker = words(&["/lib64/ld-linux-x86-64.so.2", "--help"]);
        let outcome = count(&session, &["--cpu", level, "-o", "linker.trg"], &linker);
        for (other, name) in LEVELS.into_iter().enumerate() {
            let Some(line) = outcome.stdout.lines().find(|line| line.trim_start().starts_with(name)) else {
                skip("this dynamic linker lists no levels");
                break;
            };
            assert_eq!(line.contains("supported"), other <= at, "{level}: {outcome:#?}");
        }
    }
}

#[test]
fn instructions_beyond_the_level_are_named_with_their_number() {
    let source = r#"
        #include <immintrin.h>
        #include <stdlib.h>
        __attribute__((target("aes"))) static __m128i mixed(int n) {
            __m128i a = {1, 2}, b = {3, 4};
            for (int i = 0; i < n; i++) a = _mm_aesenc_si128(a, b);
            return a;
        }
        int main(int count, char **words) {
            if (count > 1) {
                volatile long kept = mixed(atoi(words[1]))[0];
                (void)kept;
            }
        }"#;
    let session = Session::new();
    if !std::arch::is_x86_feature_detected!("aes") || !has("x86-64-v2") {
        skip("this machine has no AES");
        return;
    }
    let path = compile(&session, "unasked", source, &["-O1"]);
    let run = |arguments: &[&str]| count(&session, &["--cpu", "x86-64-v2"], &program(&path, arguments));
    let named = run(&["1234"]);
    assert!(named.stderr.contains("not held: 1234 executed instructions need AES"), "{named:#?}");
    assert!(!run(&[]).stderr.contains("not held"), "the code is there, and is not executed");
}

#[test]
fn registers_and_results_survive_the_answers() {
    // All registers that the instructions do not write keep their values, in a loop and behind calls, with and without
    // a tree; `xsave` with a full mask writes no more than the room that the processor was said to need.
    let source = r#"
        #include <cpuid.h>
        #include <stdio.h>
        #include <string.h>
        #include <stdint.h>
        __attribute__((noinline, target("xsave"))) static int saves(void) {
            unsigned a, size, c, d;
            if (!__get_cpuid_count(13, 0, &a, &size, &c, &d) || !size) return 0;
            static unsigned char room[1 << 14] __attribute__((aligned(64)));
            memset(room, 0, sizeof room);
            memset(room + size, 0x5a, sizeof room - size);
            __builtin_ia32_xsave64(room, -1);
            for (unsigned at = size; at < sizeof room; at++) if (room[at] != 0x5a) return 1;
            return 0;
        }
        int main(void) {
            uint64_t kept = 0;
            for (int i = 0; i < 100; i++) {
                uint64_t a = 1, b = 7, c = 0, d = 9, si = 11 + i, di = 13, r8 = 17, r11 = 19;
                register uint64_t r15 __asm__("r15") = 23;
                __asm__ volatile("mov %[r8], %%r8; mov %[r11], %%r11; stc; cpuid; setc %%al; movzbl %%al, %%eax\n"
                    "add %%r8, %%rax; add %%r11, %%rax"
                    : "+a"(a), "+b"(b), "+c"(c), "+d"(d), "+S"(si), "+D"(di), "+r"(r15)
                    : [r8] "m"(r8), [r11] "m"(r11) : "r8", "r11", "cc");
                kept += a + si + di + r15 + (b >> 32) + (c >> 32) + (d >> 32);
            }
            printf("%lu %d\n", kept, saves());
        }"#;
    let session = Session::new();
    let path = compile(&session, "kept", source, &["-O1"]);
    for level in LEVELS.into_iter().filter(|level| has(level)) {
        for options in
            [&["--cpu", level][..], &["--cpu", level, "--tree"], &["--cpu", level, "--model", "cache"]]
        {
            let outcome = count(&session, options, &program(&path, &[]));
            // By hand: 1 + 17 + 19, 11 to 110, 13 and 23 in each of 100 rounds.
            let expected: u64 = (0..100).map(|round| 37 + 11 + round + 13 + 23).sum();
            assert_eq!(outcome.stdout, format!("{expected} 0\n"), "{options:?}: {outcome:#?}");
        }
    }
}

#[test]
fn a_level_changes_the_code_that_the_c_library_chooses() {
    let source = r#"
        #include <string.h>
        int main(void) {
            static char from[1 << 16], to[1 << 16];
            memset(from, 1, sizeof from);
            for (int i = 0; i < 200; i++) { memcpy(to, from, sizeof to); __asm__ volatile("" ::: "memory"); }
            return to[5] != 1;
        }"#;
    let session = Session::new();
    let path = compile(&session, "copies", source, &["-O1"]);
    let levels: Vec<_> = LEVELS.into_iter().filter(|level| has(level)).collect();
    let run = |level| count(&session, &["--fixed", "--cpu", level], &program(&path, &[]));
    let counts: Vec<_> = levels.iter().map(|level| instructions(&run(level))).collect();
    let again: Vec<_> = levels.iter().map(|level| instructions(&run(level))).collect();
    assert_eq!(counts, again);
    if let [v2, v3, ..] = counts[..] {
        assert!(v2 > v3, "registers are half as long: {counts:?}");
        // Copied by instructions, and not by one `rep movsb`: 13 MB in registers of 32 bytes.
        assert!(v3 > 200 * 65_536 / 64, "{counts:?}");
    }
}

#[test]
fn a_level_that_this_machine_has_not_is_refused() {
    let session = Session::new();
    if has("x86-64-v4") {
        skip("this machine has every level");
    } else {
        let outcome = count(&session, &["--cpu", "x86-64-v4"], &words(&["true"]));
        assert_ne!(outcome.shell_status(), 0, "{outcome:#?}");
        assert!(outcome.stderr.contains("this processor is not x86-64-v4: it has no "), "{outcome:#?}");
    }
    let outcome = count(&session, &["--cpu", "x86-64-v9"], &words(&["true"]));
    assert_eq!(outcome.shell_status(), 2, "{outcome:#?}");
}

/// A command under `sh` with another environment and another limit of the stack.
fn elsewhere(session: &Session, options: &[&str], command: &[std::ffi::OsString]) -> Outcome {
    let count = [words(&["count"]), words(options), words(&["--"]), command.to_vec()].concat();
    let script = "ulimit -S -s 4096; export ONE_MORE=xxxxxxxxxxxxxxxxxxxxx AND_ANOTHER=y; exec \"$@\"";
    let start = [words(&["sh", "-c", script, "sh"]), vec![treering().into()], count].concat();
    run_under(session, &start)
}

/// Two runs of a command whose instructions and output must be equal.
fn check_held(session: &Session, options: &[&str], command: &[std::ffi::OsString]) -> Outcome {
    let options = [&["--fixed"], options].concat();
    let (first, second) = (count(session, &options, command), elsewhere(session, &options, command));
    assert_eq!(instructions(&first), instructions(&second), "{command:?}: {first:#?}{second:#?}");
    assert_eq!(first.stdout, second.stdout, "{command:?}");
    first
}

const DEPENDS: &str = r#"
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/auxv.h>
    #include <sys/random.h>
    #include <sys/time.h>
    #include <sys/wait.h>
    #include <time.h>
    #include <unistd.h>
    #include <x86intrin.h>
    static volatile unsigned long sink;
    /* As many instructions as its argument says. */
    static void spend(unsigned long n) { for (n %= 100000; n; n--) sink += n; }
    static unsigned long of(const void *bytes, size_t length) {
        unsigned long sum = 0;
        for (size_t i = 0; i < length; i++) sum = sum * 31 + ((const unsigned char *)bytes)[i];
        return sum;
    }
    int main(int count, char **words, char **environment) {
        unsigned char bytes[32];
        struct timeval day;
        struct timespec up, used;
        for (; *environment; environment++) spend(of(*environment, strlen(*environment)));
        spend(of((void *)getauxval(AT_RANDOM), 16));
        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return 1;
        spend(of(bytes, sizeof bytes));
        FILE *file = fopen("/dev/urandom", "rb");
        if (!file || fread(bytes, sizeof bytes, 1, file) != 1) return 2;
        spend(of(bytes, sizeof bytes));
        gettimeofday(&day, 0);
        clock_gettime(CLOCK_MONOTONIC, &up);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        spend(day.tv_sec + day.tv_usec + up.tv_nsec + used.tv_nsec + time(0) + __rdtsc());
        void *stack = &bytes, *heap = malloc(1);
        spend((unsigned long)stack >> 4);
        spend((unsigned long)heap >> 4);
        /* Children have other random numbers than their parents. */
        unsigned long own = 0, others[2] = {0, 0};
        int pipes[2];
        if (pipe(pipes)) return 3;
        for (int i = 0; i < 2; i++) {
            pid_t child = fork();
            if (!child) {
                unsigned long drawn;
                getrandom(&drawn, sizeof drawn, 0);
                return write(pipes[1], &drawn, sizeof drawn) != sizeof drawn;
            }
            waitpid(child, 0, 0);
            if (read(pipes[0], &others[i], sizeof others[i]) != sizeof others[i]) return 4;
        }
        getrandom(&own, sizeof own, 0);
        printf("%d %d %d %lx\n", own != others[0], own != others[1], others[0] != others[1], sink);
        return 0;
    }"#;

#[test]
fn counts_do_not_depend_on_time_random_numbers_environment_and_stack() {
    let session = Session::new();
    let path = compile(&session, "depends", DEPENDS, &["-O1"]);
    for options in [&[][..], &["--tree"]] {
        let outcome = check_held(&session, options, &program(&path, &[]));
        assert!(outcome.stdout.starts_with("1 1 1 "), "{outcome:#?}");
        assert!(outcome.stderr.contains("held: addresses, the time"), "{outcome:#?}");
        assert!(outcome.stderr.contains("keys made in this run are no secret"), "{outcome:#?}");
    }
    // Without that, they do: the test would notice.
    let [first, second] = [(); 2].map(|()| instructions(&count(&session, &[], &program(&path, &[]))));
    assert_ne!(first, second);
}

#[test]
fn interpreters_and_compilers_count_the_same_twice() {
    let session = Session::new();
    let source = session.path("source.c");
    std::fs::write(&source, "int twice(int x) { return 2 * x; }\n").expect("it can be written");
    let source = source.to_str().expect("a plain path");
    let commands: [(&str, &[&str]); 4] = [
        (
            "python3",
            &[
                "-I",
                "-c",
                "import random, time; print(random.random(), time.time(), hash('a'), {str(i) for i in range(9)})",
            ],
        ),
        (
            "lua",
            &[
                "-e",
                "local t = {} for i = 1, 99 do t['k' .. i] = i end for k in pairs(t) do print(k, os.time()) end",
            ],
        ),
        ("perl", &["-e", "my %h = map { $_ => 1 } 1 .. 99; print join(' ', keys %h), time"]),
        ("gcc", &["-O2", "-S", "-o", "/dev/null", source]),
    ];
    for (name, arguments) in commands {
        // Interpreters may be found through scripts, which depend on the numbers of processes.
        let itself = match name {
            "python3" => "python3 -c 'import sys; print(sys.executable)'".to_owned(),
            _ => format!("command -v {name}"),
        };
        let found = Command::new("sh").args(["-c", &itself]).output().expect("sh runs");
        if !found.status.success() {
            skip(&format!("{name} is not installed"));
            continue;
        }
        let path = String::from_utf8(found.stdout).expect("a plain path");
        // The first run of a day sets the dates of the files that it reads, and Python looks at them.
        let read = Command::new(path.trim()).args(arguments).output().expect("it runs");
        assert!(read.status.success(), "{name}: {read:?}");
        check_held(&session, &[], &words(&[&[path.trim()], arguments].concat()));
    }
}

#[test]
fn a_held_clock_goes_on_by_being_read_and_by_waiting() {
    let source = r#"
        #include <errno.h>
        #include <poll.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <time.h>
        #include <x86intrin.h>
        static long at(clockid_t clock) {
            struct timespec t;
            clock_gettime(clock, &t);
            return t.tv_sec * 1000000000 + t.tv_nsec;
        }
        static struct timespec after(clockid_t clock, long nanoseconds) {
            long t = at(clock) + nanoseconds;
            return (struct timespec){t / 1000000000, t % 1000000000};
        }
        int main(void) {
            const long part = 30000000;
            /* By reading. */
            long from = at(CLOCK_MONOTONIC);
            while (at(CLOCK_MONOTONIC) < from + part) {}
            unsigned long long ticks = __rdtsc();
            while (__rdtsc() < ticks + part) {}
            /* By waiting for a time. */
            from = at(CLOCK_MONOTONIC);
            struct timespec t = {0, part};
            nanosleep(&t, 0);
            poll(0, 0, 30);
            printf("%d ", at(CLOCK_MONOTONIC) - from >= 2 * part);
            /* By waiting until a time. */
            t = after(CLOCK_MONOTONIC, part);
            from = at(CLOCK_MONOTONIC);
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
            printf("%d ", at(CLOCK_MONOTONIC) >= t.tv_sec * 1000000000 + t.tv_nsec);
            pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
            t = after(CLOCK_REALTIME, part);
            int rounds = 0, result;
            pthread_mutex_lock(&mutex);
            do rounds++; while (!(result = pthread_cond_timedwait(&condition, &mutex, &t)));
            printf("%d %d ", result == ETIMEDOUT, rounds);
            time_t now = time(0);
            struct tm day;
            gmtime_r(&now, &day);
            printf("%d-%d-%d\n", day.tm_year + 1900, day.tm_mon + 1, day.tm_mday);
        }"#;
    let session = Session::new();
    let path = compile(&session, "waits", source, &["-O1", "-pthread"]);
    let outcome = check_held(&session, &[], &program(&path, &[]));
    assert_eq!(outcome.stdout, "1 1 1 1 2026-1-1\n", "{outcome:#?}");
}

#[test]
fn only_well_known_and_named_variables_are_passed() {
    let session = Session::new();
    let seen = |options: &[&str]| {
        let start = words(&["env", "MINE=1", "LC_ALL=C", "OTHER=2"]);
        let count = [words(&["count", "-q"]), words(options), words(&["--", "env"])].concat();
        let outcome = run_under(&session, &[start, vec![treering().into()], count].concat());
        let seen =
            ["MINE=1", "LC_ALL=C", "OTHER=2"].map(|line| outcome.stdout.lines().any(|other| other == line));
        let names: Vec<_> = outcome.stdout.lines().filter_map(|line| line.split('=').next()).collect();
        (seen, names.is_sorted())
    };
    assert_eq!(seen(&["--fixed"]), ([false, true, false], true));
    assert_eq!(seen(&["--fixed=MINE"]), ([true, true, false], true));
    assert_eq!(seen(&["--fixed=MINE,OTHER"]), ([true; 3], true));
    assert_eq!(seen(&[]).0, [true; 3]);
}

#[test]
fn threads_and_signals_are_named_as_not_held() {
    let session = Session::new();
    let source = r#"
        #include <pthread.h>
        #include <signal.h>
        static volatile int caught;
        static void note(int signal) { caught = signal; }
        static void *nothing(void *unused) { return unused; }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, nothing, 0);
            pthread_join(thread, 0);
            signal(SIGUSR1, note);
            raise(SIGUSR1);
            return caught != SIGUSR1;
        }"#;
    let path = compile(&session, "both", source, &["-O1", "-pthread"]);
    let outcome = count(&session, &["--fixed"], &program(&path, &[]));
    assert_eq!(outcome.shell_status(), 0, "{outcome:#?}");
    for note in ["not held: the order in which its 2 threads ran", "not held: the time of 1 signal"] {
        assert!(outcome.stderr.contains(note), "{outcome:#?}");
    }
    assert!(!count(&session, &[], &program(&path, &[])).stderr.contains("held"), "nothing was to be held");
}

#[test]
fn the_real_processor_is_never_asked() {
    // The kernel lets `cpuid` fault where a program wants that: then only answers of the tracer let it go on.
    let source = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        #define SET_CPUID 0x1012
        int main(int count, char **words) {
            static char from[5000], to[5000];
            if (syscall(SYS_arch_prctl, SET_CPUID, atol(words[1]))) return 77;
            /* Libraries that choose by the processor when they are loaded. */
            void *crypto = dlopen("libcrypto.so.3", RTLD_NOW);
            void *standard = dlopen("libstdc++.so.6", RTLD_NOW);
            unsigned char *(*digest)(const void *, size_t, void *) = crypto ? dlsym(crypto, "SHA256") : 0;
            unsigned char bytes[32] = {0};
            memset(from, 'x', sizeof from - 1);
            memcpy(to, from, sizeof to);
            if (digest) digest(to, strlen(to), bytes);
            __builtin_cpu_init();
            printf("%d %d %zu %02x\n", !!__builtin_cpu_supports("avx2"), standard != 0, strlen(to), bytes[0]);
            return 0;
        }"#;
    let session = Session::new();
    let path = compile(&session, "asks", source, &["-O1", "-ldl"]);
    let native = Command::new(&path).arg("0").output().expect("it runs");
    if native.status.code().is_some() {
        skip("this kernel or processor lets no program forbid itself cpuid");
        return;
    }
    for (at, level) in LEVELS.into_iter().enumerate().filter(|(_, level)| has(level)) {
        let run = |allowed| count(&session, &["--fixed", "--cpu", level], &program(&path, &[allowed]));
        let (allowed, forbidden) = (run("1"), run("0"));
        assert_eq!(forbidden.shell_status(), 0, "{forbidden:#?}");
        assert!(forbidden.stdout.starts_with(if at == 0 { "0 " } else { "1 " }), "{forbidden:#?}");
        assert_eq!(instructions(&allowed), instructions(&forbidden), "{allowed:#?}{forbidden:#?}");
        assert_eq!(allowed.stdout, forbidden.stdout);
    }
}
