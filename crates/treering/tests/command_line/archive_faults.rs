//! A fleet of real recordings, with faults planted on some of its hosts: questions name these, and nothing on clean hosts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use treering_testing::programs::installed;

use crate::archive::{add, of_kept};
use crate::archive_query::{asked, engines};
use crate::session::Session;
use crate::skip;

/// A program of the fleet on a host, in an environment.
struct Placed {
    host: String,
    project: &'static str,
    environment: Vec<String>,
    program: Vec<String>,
}

impl Placed {
    /// Records it, with its waits, and adds the profile.
    fn add(&self, session: &Session, run: usize) {
        let file = format!("{}-{}-{run}.trg", self.host, self.project);
        let mut all = vec!["record", "-q", "--off-cpu", "-o", &file, "--", "env"];
        all.extend(self.environment.iter().chain(&self.program).map(String::as_str));
        session.output(&all);
        add(session, &["--host", &self.host, "--project", self.project], &[&file]);
    }
}

fn compile(session: &Session, source: &str, output: &str, options: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command_line/programs").join(source);
    let output = session.path(output);
    std::fs::create_dir_all(output.parent().expect("a folder")).expect("it can be made");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-g", "-o"]).arg(output).arg(source).args(options);
    assert!(compiler.status().expect("the compiler is installed").success());
}

/// Keys that are all in one bucket of a hash of Perl that has this seed.
const COLLIDING: &str = "use Hash::Util 'hash_value';
for (my ($i, $n) = (0, 0); $n < 600; $i++) { if ((hash_value(\"k$i\") & 0xfff) == 0) { print \"k$i\"; $n++ } }";

const LOOK_UP: &str =
    "open my $file, '<', 'keys'; my @keys = <$file>; chomp @keys; my %known; keys(%known) = 4096;
for my $round (1 .. 600) { $known{$_}++ for @keys }";

const SEED: [&str; 2] = ["PERL_HASH_SEED=0x1234", "PERL_PERTURB_KEYS=0"];

/// A Perl whose hash seed can be chosen, and the keys for it.
fn perl(session: &Session) -> Option<PathBuf> {
    let Some(perl) = installed("perl") else {
        skip("perl is not installed, whose hash seed is a planted fault");
        return None;
    };
    let mut command = Command::new(&perl);
    command.args(["-le", COLLIDING]).envs(SEED.map(|set| set.split_once('=').expect("a variable")));
    let keys = command.output().expect("perl runs");
    if !keys.status.success() {
        skip("perl has no Hash::Util, which finds keys for a hash seed");
        return None;
    }
    std::fs::write(session.path("keys"), keys.stdout).expect("it can be written");
    Some(perl)
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// The hosts that a question names, and their functions.
fn named(session: &Session, engine: &str, question: &[&str]) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim_matches('"').to_owned();
    let rows = asked(session, engine, &[&["--named"], question, &["--limit", "1000"]].concat());
    rows.iter().map(|row| (text(&row["host"]), text(&row["name"]))).collect()
}

#[test]
fn planted_faults_of_real_recordings_are_named_and_nothing_on_clean_hosts() {
    let engines = engines();
    if engines.is_empty() {
        return;
    }
    let session = Session::new();
    compile(&session, "checksum.c", "new/libchecksum.so", &["-shared", "-fPIC"]);
    compile(&session, "checksum.c", "old/libchecksum.so", &["-shared", "-fPIC", "-DOLD"]);
    compile(&session, "slow_disk.c", "new/slow_disk.so", &["-shared", "-fPIC", "-ldl"]);
    let new = session.path("new").display().to_string();
    compile(&session, "archiver.c", "archiver", &["-L", &new, "-lchecksum"]);
    std::fs::write(session.path("text"), b"some text\n".repeat(20_000)).expect("it can be written");
    let archiver = |host: &str, environment: &[&str]| Placed {
        host: host.to_owned(),
        project: "archiver",
        environment: texts(environment),
        program: texts(&["./archiver", "text"]),
    };
    let perl = perl(&session);
    let looking_up = |host: &str, environment: &[&str]| {
        perl.as_ref().map(|perl| Placed {
            host: host.to_owned(),
            project: "perl",
            environment: texts(environment),
            program: texts(&[&perl.display().to_string(), "-e", LOOK_UP]),
        })
    };
    let library = format!("LD_LIBRARY_PATH={new}");
    for host in (1..=6).map(|host| format!("clean-{host}")) {
        for run in 0..2 {
            archiver(&host, &[&library]).add(&session, run);
            looking_up(&host, &[]).iter().for_each(|placed| placed.add(&session, run));
        }
    }
    of_kept(&session, "compact", &[]);
    const WAITS: &[&str] = &["hosts", "--metric", "off-cpu"];
    for &engine in &engines {
        for question in [&["outliers"][..], &["hosts"], WAITS] {
            assert_eq!(named(&session, engine, question), BTreeSet::new(), "{engine} {question:?}");
        }
    }

    // By its name, as paths end at spaces there.
    let disk = "LD_PRELOAD=slow_disk.so";
    let old = format!("LD_LIBRARY_PATH={}", session.path("old").display());
    for run in 0..3 {
        archiver("slow-disk", &[&library, disk]).add(&session, run);
        archiver("old-library", &[&old]).add(&session, run);
        looking_up("hash-seed", &SEED).iter().for_each(|placed| placed.add(&session, run));
    }
    of_kept(&session, "compact", &[]);
    for &engine in &engines {
        let found = |question: &[&str], host: &str, function: &str| {
            let named = named(&session, engine, question);
            assert!(
                named.contains(&(host.to_owned(), function.to_owned())),
                "{engine} {question:?} {named:?}"
            );
            let is_clean = |(host, _): &(String, String)| host.starts_with("clean");
            assert!(!named.iter().any(is_clean), "{engine} {question:?} {named:?}");
        };
        found(WAITS, "slow-disk", "take");
        found(&["outliers"], "old-library", "checksum");
        if perl.is_some() {
            found(&["hosts"], "hash-seed", "Perl_hv_common");
        }
    }
}
