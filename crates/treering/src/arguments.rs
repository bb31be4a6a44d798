//! The arguments that all subcommands are chosen by; each subcommand defines its own.

use std::time::Duration;

use clap::{Parser, Subcommand};
use treering_archive::Moment;

use crate::command;
use crate::terminal::Colour;

/// A call-graph profiler: where did the cost go, and who asked for it?
#[derive(Debug, Parser)]
#[command(name = "treering", version, max_term_width = 100)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    #[arg(help_heading = "On a terminal")]
    pub color: Colour,
    /// Do not show long reports through a pager, which is TREERING_PAGER, PAGER or else less
    #[arg(long, global = true, help_heading = "On a terminal")]
    pub no_pager: bool,
}

/// The subcommands; each says what it is in its own file.
#[derive(Debug, Subcommand)]
pub enum Command {
    Record(command::record::Record),
    Count(command::count::Count),
    Stat(command::stat::Stat),
    Gprof(command::gprof::Gprof),
    Octave(command::octave::Octave),
    Prolog(command::prolog::Prolog),
    Report(command::report::Report),
    Diff(command::diff::Diff),
    Compare(command::compare::Compare),
    Bench(command::bench::Bench),
    Archive(command::archive::Archive),
    Query(command::query::Query),
    View(command::view::View),
    Watch(command::watch::Watch),
    Export(command::export::Export),
    Import(command::import::Import),
    Dump(command::dump::Dump),
    Merge(command::merge::Merge),
    Completions(command::completions::Completions),
    Man(command::man::Man),
}

/// Reads a day, as in 2026-11-27.
pub fn day(text: &str) -> Result<String, String> {
    let is_day = text.len() == "2026-11-27".len() && format!("{text}T00:00:00Z").parse::<Moment>().is_ok();
    if is_day { Ok(text.to_owned()) } else { Err("write a day as 2026-11-27".to_owned()) }
}

/// Whether a change is beyond a limit, both as parts of the base. A change that equals the limit in decimals is not,
/// however both are rounded.
pub fn is_beyond(change: f64, limit: f64) -> bool {
    change > limit + (1.0 + limit.abs()) * 4.0 * f64::EPSILON
}

/// Reads a duration, in seconds; more than none.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("must be more than 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn a_change_of_the_limit_itself_is_not_beyond_it() {
        for tenths in 1..=2000_u32 {
            let limit = (f64::from(tenths) / 10.0) / 100.0;
            let change = |more: u32| f64::from(tenths + more) / 1000.0;
            assert!(!is_beyond(change(0), limit) && is_beyond(change(1), limit), "{tenths}");
            assert!(!is_beyond(f64::from(1000 + tenths) / 1000.0 - 1.0, limit), "{tenths}");
        }
        assert!(is_beyond(f64::INFINITY, 0.0) && !is_beyond(1.0, f64::INFINITY));
    }

    #[test]
    fn days_are_read_as_they_are_compared() {
        assert_eq!(day("2026-11-09").as_deref(), Ok("2026-11-09"));
        for text in ["2026-11-9", "1.11.2026", "2026-13-01", "", "2026-11-27T00"] {
            assert!(day(text).is_err(), "{text}");
        }
    }

    /// `cargo xtask docs` writes the page anew, by this test.
    #[test]
    fn command_line_reference_is_current() {
        let mut page = "<!-- Made from --help by `cargo xtask docs`. -->\n\n# Command line\n".to_owned();
        page += &section("treering", &help(&[]));
        for subcommand in Arguments::command().get_subcommands() {
            let name = subcommand.get_name();
            page += &section(&format!("treering {name}"), &help(&[name]));
            for below in subcommand.get_subcommands() {
                let below = below.get_name();
                page += &section(&format!("treering {name} {below}"), &help(&[name, below]));
            }
        }
        expect_file!["../../../docs/cli.md"].assert_eq(&page);
    }

    #[test]
    fn sentences_of_help_are_broken_by_the_terminal_alone() {
        // Lines that were broken by hand were broken again, and left single words on a line.
        let first_level = Arguments::command();
        let commands = first_level.get_subcommands().flat_map(|one| one.get_subcommands().chain([one]));
        for command in commands {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for (line, next) in text.lines().zip(text.lines().skip(1)) {
                let goes_on = !line.starts_with(' ') && next.starts_with(|first: char| first.is_lowercase());
                assert!(!goes_on, "{}: {line}\n{next}", command.get_name());
            }
        }
    }

    /// The text of `--help` on a terminal of a hundred columns.
    fn help(subcommand: &[&str]) -> String {
        let words = [&["treering"], subcommand, &["--help"]].concat();
        let asked = Arguments::command().term_width(100).try_get_matches_from(words);
        asked.expect_err("help is asked for").to_string()
    }

    fn section(heading: &str, help: &str) -> String {
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        format!("\n## {heading}\n```text\n{}\n```\n", lines.join("\n").trim_end())
    }
}
