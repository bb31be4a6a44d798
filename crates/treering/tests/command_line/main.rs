//! Runs the real `treering` on programs whose costs are known beforehand.
//!
//! One file for each subcommand. Tests compare relations between costs, never durations: the machine may be
//! busy. A test that cannot run here prints a line that starts with `skipped:`.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "tests say what they skipped")]

mod alone;
mod archive;
mod archive_ballista;
mod archive_faults;
mod archive_mistakes;
mod archive_mpi;
mod archive_query;
mod archive_s3;
mod archive_spark;
mod attach;
mod bad_input;
mod bench;
mod bench_import;
mod bench_plot;
mod bench_scale;
mod bench_suite;
mod blocks;
mod compare;
mod completions;
mod count;
mod count_attached;
mod count_held;
mod count_killed;
mod count_sanitized;
mod count_selected;
mod count_suspended;
mod count_unusual;
mod coverage;
mod coverage_files;
mod diff;
mod distrusted;
mod divided;
mod dump;
mod events;
mod export;
mod gmon;
mod gprof;
mod gprof_ends;
mod hard_stacks;
mod hidden_stacks;
mod hostile_memory;
mod import;
mod inherited;
mod instrumented;
mod interpreter_time;
mod interrupted;
mod kept_debug;
mod libraries;
mod man;
mod merge;
mod model;
mod octave;
mod octave_refused;
mod octave_runs;
mod octave_terminal;
mod octave_truth;
mod octave_view;
mod output;
mod pictures;
mod processor_time;
mod profile;
mod prolog;
mod prolog_command;
mod prolog_kernel;
mod prolog_ports;
mod prolog_runs;
mod record;
mod relayed;
mod report;
mod runtime;
mod same_as_perf;
mod sampled_addresses;
mod secure;
mod session;
mod short_lives;
mod stacks;
mod stat;
mod streams;
mod stripped;
mod temporary;
mod terminal;
mod time;
mod totals;
mod view;
mod view_after;
mod view_live;
mod view_odd;
mod view_panes;
mod wakers;
mod watch;

/// Says why a test, or a part of it, did not run.
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}
