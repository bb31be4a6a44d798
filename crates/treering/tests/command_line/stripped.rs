//! Stacks of stripped programs under `treering record`, which end at a known first frame.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use treering_profile::Profile;

use crate::skip;

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

const C: &str = "#include <stdio.h>
__attribute__((noinline)) double spin(long n) { volatile double x = 0; for (long i = 0; i < n; i++) x += i * 0.5; return x; }
__attribute__((noinline)) double mid(long n) { return spin(n) + 1; }
int main() { double s = 0; for (int i = 0; i < 10; i++) s += mid(8000000); printf(\"%f\\n\", s); return 0; }
";

/// All work is in threads.
const THREADS: &str = "#include <pthread.h>
#include <stdio.h>
__attribute__((noinline)) double spin(long n) { volatile double x = 0; for (long i = 0; i < n; i++) x += i * 0.5; return x; }
__attribute__((noinline)) double mid(long n) { return spin(n) + 1; }
void *work(void *p) { double s = 0; for (int i = 0; i < 5; i++) s += mid(8000000); *(double *)p = s; return 0; }
int main() { pthread_t t[2]; double s[2]; for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, &s[i]);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0); printf(\"%f\\n\", s[0] + s[1]); return 0; }
";

const GO: &str = "package main
import \"fmt\"
//go:noinline
func spin(n int) float64 { x := 0.0; for i := 0; i < n; i++ { x += float64(i) * 0.5 }; return x }
//go:noinline
func mid(n int) float64 { return spin(n) + 1 }
func main() { s := 0.0; for i := 0; i < 10; i++ { s += mid(15000000) }; fmt.Println(s) }
";

fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stripped").join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Records a program; nothing where the kernel allows no counters.
fn record(folder: &Path, program: &str) -> Option<Profile> {
    let mut command = Command::new(TREERING);
    command.args(["record", "-q", "-o", "out.trg", "--"]).arg(format!("./{program}"));
    let output = command.current_dir(folder).stdin(Stdio::null()).output().expect("treering runs");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if errors.contains("cannot sample") {
        skip("the kernel allows no sampling");
        return None;
    }
    assert!(output.status.success(), "{errors}");
    let bytes = std::fs::read(folder.join("out.trg")).expect("the profile was written");
    Some(treering_formats::read_any(&bytes).expect("it can be read").1)
}

/// A few stacks may be cut in passing, at the start and the end of the program.
fn check_whole(profile: &Profile, program: &str) {
    let losses = &profile.metadata.losses;
    assert!(losses.samples > 20, "{program}: {} samples", losses.samples);
    let cut = losses.truncated_stacks;
    assert!(cut * 10 <= losses.samples, "{program}: {cut} of {} stacks are cut short", losses.samples);
}

/// Records a program of musl, stripped, linked dynamically and statically.
fn check_musl(test: &str, source: &str) {
    if Command::new("musl-gcc").arg("--version").output().is_err() {
        return skip("there is no musl-gcc");
    }
    let folder = folder(test);
    std::fs::write(folder.join("work.c"), source).expect("the program can be written");
    for (program, option) in [("dynamic", "-pie"), ("static", "-static")] {
        let built = Command::new("musl-gcc")
            .args(["-O1", "-fno-optimize-sibling-calls", "-pthread", "-s", option, "work.c", "-o", program])
            .current_dir(&folder)
            .status();
        assert!(built.expect("musl-gcc runs").success());
        let Some(profile) = record(&folder, program) else { return };
        check_whole(&profile, program);
    }
}

#[test]
fn stacks_of_musl_programs_end_where_main_is_called() {
    check_musl("musl", C);
}

#[test]
fn stacks_of_musl_threads_end_where_their_functions_are_called() {
    check_musl("musl-threads", THREADS);
}

#[test]
fn stacks_of_stripped_go_programs_have_names_and_end_where_goroutines_do() {
    if Command::new("go").arg("version").output().is_err() {
        return skip("there is no go");
    }
    let folder = folder("go");
    std::fs::write(folder.join("work.go"), GO).expect("the program can be written");
    let built = Command::new("go")
        .args(["build", "-ldflags=-s -w", "-o", "work", "work.go"])
        .env("GO111MODULE", "off")
        .env("GOCACHE", folder.join("cache"))
        .current_dir(&folder)
        .output()
        .expect("go runs");
    if !built.status.success() {
        return skip(&format!("go cannot build: {}", String::from_utf8_lossy(&built.stderr)));
    }
    if let Some(profile) = record(&folder, "work") {
        check_whole(&profile, "work");
        let losses = &profile.metadata.losses;
        assert!(losses.unresolved_samples * 20 <= losses.samples, "{losses:?}");
        let names: Vec<&str> =
            profile.functions.iter().filter_map(|(_, of)| profile.strings.get(of.name)).collect();
        for name in ["main.main", "main.mid", "main.spin"] {
            assert!(names.contains(&name), "{name} is missing: {names:?}");
        }
    }
}
