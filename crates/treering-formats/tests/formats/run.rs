//! The run that a profile is of, in formats that have no place of their own for it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use treering_formats::{Dropped, chrome_trace, cpuprofile, firefox, folded, read_any, speedscope};
use treering_profile::{MetricId, Profile, Run};

fn of_runs(runs: usize) -> Profile {
    let mut profile = treering_testing::trace("0 enter main\n 4 leave main");
    profile.runs[0] = Run {
        command: vec!["./a b".to_owned(), "-x".to_owned()],
        start_unix_ns: 1_700_000_000_000_000_123,
        duration_ns: 5_000_000_007,
        ..Run::default()
    };
    for _ in 1..runs {
        profile.add_run(Run::default());
    }
    profile
}

type Writer = fn(&Profile, &mut Vec<u8>) -> std::io::Result<Dropped>;

const KEPT: [Writer; 4] = [
    |profile, file| speedscope::write(profile, file),
    |profile, file| firefox::write(profile, MetricId::new(0), file),
    |profile, file| cpuprofile::write(profile, MetricId::new(0), file),
    |profile, file| chrome_trace::write(profile, MetricId::new(0), file),
];

#[test]
fn the_command_and_its_times_are_read_again() {
    let profile = of_runs(1);
    for write in KEPT {
        let mut file = Vec::new();
        let dropped = write(&profile, &mut file).unwrap();
        let (format, read, _) = read_any(&file).unwrap();
        assert_eq!(read.runs, profile.runs, "{format:?}");
        assert!(!dropped.notes.iter().any(|note| note.contains("runs")), "{format:?}: {dropped:?}");
    }
}

#[test]
fn runs_that_a_format_does_not_tell_apart_are_said() {
    for write in KEPT {
        let dropped = write(&of_runs(2), &mut Vec::new()).unwrap();
        let note = "runs: only the first one's command and times are kept";
        assert!(dropped.notes.iter().any(|said| said == note), "{dropped:?}");
    }
    for (runs, note) in [
        (1, "the command, and how long it ran"),
        (2, "runs, their commands and how long they ran: costs are added up"),
    ] {
        let dropped = folded::write(&of_runs(runs), MetricId::new(0), &mut Vec::new()).unwrap();
        assert!(dropped.notes.iter().any(|said| said == note), "{dropped:?}");
    }
}
