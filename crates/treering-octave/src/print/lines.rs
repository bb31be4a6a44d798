//! The costs of lines, with their text and the functions that they called.

use core::fmt::Write as _;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{label, plural};
use crate::listing::Listing;
use crate::tables::{Line, Tables};

/// Of how many functions lines are printed where nothing else was asked for.
const FUNCTIONS: usize = 10;

/// Functions below this part of the run are left out.
const LEAST_SHARE: f64 = 0.01;

/// The lines of the functions in which most time was spent, lines and their callees together.
pub(super) fn lines(tables: &Tables, listing: &Listing) -> String {
    let mut functions: Vec<(usize, f64)> = (0..tables.functions.len())
        .map(|at| (at, tables.functions[at].total_s))
        .filter(|(at, _)| !tables.lines_of(*at).is_empty())
        .collect();
    functions.sort_by(|a, b| b.1.total_cmp(&a.1));
    let run = tables.run_s();
    let wanted = listing.top.unwrap_or(FUNCTIONS);
    let is_large = |total_s: f64| listing.top.is_some() || super::share(total_s, run) >= LEAST_SHARE;
    let shown = functions.iter().take(wanted).take_while(|(_, total_s)| is_large(*total_s)).count();
    let mut text = String::from("lines: hits, and seconds in the line itself and with what it called\n");
    functions[..shown].iter().for_each(|&(at, _)| of_function(tables, at, &mut text));
    if shown < functions.len() {
        let _ =
            writeln!(text, "\nlines of {} are left out", plural(functions.len() - shown, "other function"));
    }
    text
}

fn of_function(tables: &Tables, at: usize, text: &mut String) {
    let row = &tables.functions[at];
    let _ = writeln!(text, "\n{}  {}", label(tables, at), row.file);
    let _ = writeln!(text, "      hits       self      total   line");
    let source = source(&row.file, tables.start_unix_ns);
    for line in tables.lines_of(at) {
        let Line { hits, self_s } = tables.lines.get(&(at, line)).copied().unwrap_or_default();
        let total_s = tables.line_total_s(at, line);
        let of_line = source.as_ref().and_then(|source| source.get(line as usize - 1));
        let written = format!(
            "{hits:10} {self_s:10.4} {total_s:10.4} {line:6}  {}",
            of_line.map_or("", String::as_str)
        );
        let _ = writeln!(text, "{}", written.trim_end());
        let mut calls: Vec<_> = tables.line_calls.get(&(at, line)).into_iter().flatten().collect();
        calls.sort_by(|a, b| b.1.total_s.total_cmp(&a.1.total_s));
        for (&callee, call) in calls {
            let (total_s, calls) = (call.total_s, plural(call.calls as usize, "call"));
            let _ =
                writeln!(text, "{:21} {total_s:10.4}           -> {}, {calls}", "", label(tables, callee));
        }
    }
}

/// The lines of a file that was not changed since a profile was begun.
fn source(file: &str, start_unix_ns: u64) -> Option<Vec<String>> {
    const LARGEST: u64 = 1 << 24;
    let path = OsStr::from_bytes(file.as_bytes());
    let found = std::fs::metadata(path).ok().filter(|found| found.is_file() && found.len() <= LARGEST)?;
    let start = UNIX_EPOCH + Duration::from_nanos(start_unix_ns);
    if found.modified().unwrap_or_else(|_| SystemTime::now()) > start {
        return None;
    }
    let text = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}
