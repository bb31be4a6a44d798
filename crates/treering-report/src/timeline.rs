//! The course of a run, as text.

use treering_analysis::{Basis, ThreadCourse, TimeCourse};
use treering_profile::{Profile, Unit};

use crate::function::Labels;
use crate::header::header_lines;
use crate::name;
use crate::number::{cost, duration, whole_cost};
use crate::printable::printable_profile;
use crate::style::Style;

/// The widths of the names of threads, and of what stands behind the cells.
const NAME: usize = 11;
const BEHIND: usize = 11;
/// How many cells a line of 80 characters has.
const CELLS: usize = 56;
/// How many threads have a line of their own.
const THREADS: usize = 10;

const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '%'];

/// How many cells [`timeline_text`] shows.
pub fn timeline_cells(style: &Style) -> usize {
    style.width.map_or(CELLS, |width| width.saturating_sub(NAME + 2 + BEHIND).max(10))
}

/// The cost of all threads and of each over time, and the hottest function of each part. Below a thread that waited: `/`
/// where it did for locks, `:` where no processor was free, and `~` for input and output, most of the time.
///
/// `course` is of the metric of `basis` in `profile`. Without `unicode` the cells are of ASCII.
pub fn timeline_text(
    profile: &Profile,
    course: &TimeCourse,
    basis: &Basis,
    style: &Style,
    unicode: bool,
) -> String {
    let profile = &*printable_profile(profile);
    let listing = Listing { profile, course, basis, signs: if unicode { BLOCKS } else { ASCII } };
    let mut text = header_lines(profile, basis, style);
    text.push('\n');
    listing.lines().iter().for_each(|line| {
        text += line.trim_end();
        text.push('\n');
    });
    text
}

struct Listing<'a> {
    profile: &'a Profile,
    course: &'a TimeCourse,
    basis: &'a Basis,
    signs: [char; 9],
}

impl Listing<'_> {
    fn lines(&self) -> Vec<String> {
        let course = self.course;
        let all = course.all();
        let most = course.threads.iter().flat_map(|thread| &thread.costs).copied().max();
        let of_threads = self.scale(most, 1);
        let of_all = self.scale(all.iter().copied().max(), course.threads.len());
        let mut lines = vec![self.axis()];
        lines.extend(self.marks());
        lines.push(self.row("all", &all, of_all));
        for thread in course.threads.iter().take(THREADS) {
            let name = &self.profile.threads[thread.thread.index()].name;
            lines.push(self.row(name, &thread.costs, of_threads));
            lines.extend(self.waits(thread));
        }
        let others = course.threads.get(THREADS..).unwrap_or_default();
        if !others.is_empty() {
            let sum = |cell: usize| others.iter().map(|thread| thread.costs[cell]).sum();
            let sums: Vec<u64> = (0..course.cells).map(sum).collect();
            lines.push(self.row(&format!("{} more", others.len()), &sums, of_all));
        }
        lines.push(self.hottest());
        lines.push(format!(
            "a full cell: {} of a thread, {} of all; a cell is {}",
            self.shown_scale(of_threads),
            self.shown_scale(of_all),
            duration(course.cell_ns())
        ));
        lines
    }

    fn is_time(&self) -> bool {
        self.profile.metrics[self.basis.metric.index()].unit == Unit::Nanoseconds
    }

    /// The cost that fills a cell: of times a whole number of processors or a part of one, else the largest.
    ///
    /// Each of `threads` has one processor at most: more is by the chance of sampling.
    fn scale(&self, most: Option<u64>, threads: usize) -> f64 {
        let most = most.unwrap_or(0) as f64;
        let cell = self.course.cell_ns();
        match self.is_time() {
            true => {
                let parts = [0.1, 0.25, 0.5].into_iter().find(|part| most <= part * cell);
                parts.unwrap_or_else(|| (most / cell).ceil().clamp(1.0, threads.max(1) as f64)) * cell
            }
            false => most.max(1.0),
        }
    }

    fn shown_scale(&self, scale: f64) -> String {
        let unit = self.profile.metrics[self.basis.metric.index()].unit;
        match self.is_time() {
            true => {
                let processors = scale / self.course.cell_ns();
                format!("{processors} processor{}", if processors > 1.0 { "s" } else { "" })
            }
            false => cost(unit, scale),
        }
    }

    fn axis(&self) -> String {
        let times = &self.course.times;
        let start = if times.start == 0 { "0 s".to_owned() } else { duration(times.start as f64) };
        let end = duration(times.end as f64);
        let between = self.course.cells.saturating_sub(start.len() + end.len());
        format!("{:<NAME$}  {start}{:between$}{end}", "time", "")
    }

    /// The marks of the part, each from the cell on in which it is; one whose name has no room is a sign.
    fn marks(&self) -> Option<String> {
        let times = &self.course.times;
        let marks = &self.profile.timeline.as_ref()?.marks;
        let cell = |time: u64| ((time - times.start) as f64 / self.course.cell_ns()) as usize;
        let mut shown: Vec<(usize, &str)> = marks
            .iter()
            .filter(|mark| times.contains(&mark.time_ns))
            .map(|mark| (cell(mark.time_ns).min(self.course.cells - 1), &self.profile.strings[mark.name]))
            .collect();
        // Processes that begin to run the same program at about the same time have one.
        shown.dedup();
        let mut line = String::new();
        let mut used = 0;
        for (at, &(start, text)) in shown.iter().enumerate() {
            // Of several in a cell there is one sign.
            if start < used {
                continue;
            }
            let next = shown[at + 1..].iter().map(|&(next, _)| next).find(|&next| next > start);
            let room = next.unwrap_or(self.course.cells) - start;
            line.extend(std::iter::repeat_n(' ', start - used));
            let flag = if self.signs == BLOCKS { '┆' } else { '!' };
            let alone = shown[at + 1..].first().is_none_or(|&(next, _)| next > start);
            let name = if alone { beginning(text, room - 1) } else { "" };
            line.push(flag);
            line += name;
            used = start + 1 + unicode_width::UnicodeWidthStr::width(name);
        }
        (!shown.is_empty()).then(|| format!("{:<NAME$}  {line}", "marks"))
    }

    fn row(&self, name: &str, costs: &[u64], scale: f64) -> String {
        let sign = |&cost: &u64| {
            let eighths = (cost as f64 / scale * 8.0).round().min(8.0) as usize;
            self.signs[if cost > 0 { eighths.max(1) } else { 0 }]
        };
        let cells: String = costs.iter().map(sign).collect();
        let unit = self.profile.metrics[self.basis.metric.index()].unit;
        format!("{}  {cells} {}", padded(name, NAME), whole_cost(unit, costs.iter().sum::<u64>()))
    }

    /// The reason for which a thread waited in most of each cell, if there is any such cell.
    fn waits(&self, thread: &ThreadCourse) -> Option<String> {
        let half = self.course.cell_ns() / 2.0;
        let sign = |cell: usize| {
            let kinds = [('/', &thread.locked), (':', &thread.ready), ('~', &thread.input_output)];
            let most = kinds.into_iter().max_by_key(|(_, times)| times[cell]);
            most.filter(|(_, times)| times[cell] as f64 >= half).map_or(' ', |(sign, _)| sign)
        };
        let signs: String = (0..self.course.cells).map(sign).collect();
        (!signs.trim().is_empty()).then(|| format!("{:NAME$}  {signs}", ""))
    }

    fn hottest(&self) -> String {
        let labels = Labels::of(self.profile);
        let mut cells = String::new();
        let mut at = 0;
        for (range, function) in &self.course.hottest {
            cells.extend(std::iter::repeat_n(' ', range.start - at));
            let name = labels.name(*function);
            let room = range.len().saturating_sub(1);
            let short = if self.signs == BLOCKS { "·" } else { "." };
            cells += &match name.chars().count() <= room {
                true => format!("{name:<room$} "),
                false if room >= 6 => format!("{} ", padded(&name, room)),
                false => short.repeat(range.len()),
            };
            at = range.end;
        }
        format!("{:<NAME$}  {cells}", "hottest")
    }
}

/// As much of a name as so many columns have room for.
fn beginning(text: &str, width: usize) -> &str {
    let mut used = 0;
    let fits = |(_, character): &(usize, char)| {
        used += unicode_width::UnicodeWidthChar::width(*character).unwrap_or(0);
        used <= width
    };
    let end = text.char_indices().take_while(fits).last();
    end.map_or("", |(at, character)| &text[..at + character.len_utf8()])
}

/// A name in exactly so many columns.
fn padded(text: &str, width: usize) -> String {
    let text = name::cut(text, width);
    let columns = unicode_width::UnicodeWidthStr::width(text.as_str());
    format!("{text}{:1$}", "", width.saturating_sub(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_marks_end_where_their_room_does() {
        for (text, width, expected) in [
            ("simulate", 4, "simu"),
            ("load", 4, "load"),
            ("load", 9, "load"),
            ("load", 0, ""),
            ("表の表", 5, "表の"),
            ("", 3, ""),
        ] {
            assert_eq!(beginning(text, width), expected, "{text} in {width}");
        }
    }
}
