//! The command line of Treering: reads arguments, calls the library crates, prints.
//!
//! One file for each subcommand, under `command/`. Costs are computed in the libraries; here, only the counts of `gprof` are put
//! together (`calls.rs`), and the model of a cache is completed by this machine's (`command/count/model.rs`).
#![forbid(unsafe_code)]
#![allow(unreachable_pub, reason = "in a program nothing can be reached from outside")]

#[macro_use]
mod tell;

mod arguments;
mod binaries;
mod cache;
mod calls;
mod ci_files;
mod command;
mod companion;
mod count_folder;
mod coverage;
mod ending;
mod failure;
mod full_files;
mod generated_names;
mod git;
mod gmon;
mod hint;
mod interpreted;
mod interpreter;
mod kernel_symbols;
mod library;
mod live;
mod marks;
mod metric;
mod name_cache;
mod nameless;
mod naming;
mod open;
mod output;
mod output_name;
mod page;
mod pager;
mod perf_data;
mod png;
mod relay;
mod screen;
mod selected;
mod small_stack;
mod source_file;
mod stream;
mod terminal;
mod wake;
mod watched;
mod word;
mod working;

use std::process::ExitCode;

use clap::Parser as _;

use crate::arguments::Arguments;
use crate::failure::Failure;

fn main() -> ExitCode {
    treering_proc::keep_ended_children();
    output_name::note_begin();
    full_files::expect();
    if let Some(failure) = small_stack::refuse() {
        return failure.print();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(told) => return tell_usage(&told),
    };
    terminal::set_colour(arguments.color);
    if arguments.no_pager {
        pager::refuse();
    }
    let status = match command::run(arguments.command) {
        Ok(status) => status,
        Err(failure) => failure.print(),
    };
    ending::end_alike();
    status
}

/// Prints help, a version or a mistake in the arguments.
fn tell_usage(told: &clap::Error) -> ExitCode {
    match told.print() {
        Err(error) if !told.use_stderr() && error.kind() != std::io::ErrorKind::BrokenPipe => {
            Failure::new(format_args!("cannot write to standard output: {error}")).print()
        }
        _ => ExitCode::from(told.exit_code() as u8),
    }
}
