//! Where counts go, and in which form.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use treering_report::printable_lines;
use treering_stat::{
    Exact, Stat, csv, csv_heading, csv_interval, interval_heading, interval_json, interval_text, json, text,
};

use crate::failure::Failure;
use crate::output::cannot_write;
use crate::stream::Stream;
use crate::terminal;

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Csv,
    Json,
}

/// An output. What is written to it is there at once: intervals are read while the program runs.
pub(super) struct Sink {
    form: Form,
    has_intervals: bool,
    /// Whether the heading of the intervals was written.
    is_headed: bool,
    place: Place,
}

enum Place {
    Error,
    Output,
    /// A pipe or a device.
    Stream(Stream),
    /// A file, which is made when there is something to write.
    File(PathBuf, Option<File>),
}

impl Sink {
    pub(super) fn open(output: Option<PathBuf>, form: Form, has_intervals: bool) -> Result<Self, Failure> {
        let place = match output {
            None => Place::Error,
            Some(path) if path == Path::new("-") => Place::Output,
            Some(path) => match Stream::open(&path)? {
                Some(stream) => Place::Stream(stream),
                None if path.is_dir() => {
                    let message = format!("{} is a directory", path.display());
                    return Err(Failure::new(message).hint("name a file after -o"));
                }
                None => Place::File(path, None),
            },
        };
        Ok(Self { form, has_intervals, is_headed: false, place })
    }

    /// Writes exact counts, with a table of at most so many functions.
    pub(super) fn write_exact(&mut self, exact: &Exact<'_>, functions: Option<usize>) -> Result<(), Failure> {
        self.write(&match self.form {
            Form::Text => exact.text(functions),
            Form::Csv => exact.csv(),
            Form::Json => format!("{:#}\n", exact.json()),
        })
    }

    /// Writes one interval, which is the only run of `stat`.
    pub(super) fn write_interval(&mut self, stat: &Stat, from_ns: f64, until_ns: f64) -> Result<(), Failure> {
        let has_heading = std::mem::replace(&mut self.is_headed, true);
        let heading = match self.form {
            _ if has_heading => String::new(),
            Form::Text => interval_heading(&stat.title),
            Form::Csv => csv_heading(true),
            Form::Json => String::new(),
        };
        let lines = match self.form {
            Form::Text => interval_text(stat, until_ns),
            Form::Csv => csv_interval(stat, from_ns, until_ns),
            Form::Json => format!("{}\n", interval_json(stat, from_ns, until_ns)),
        };
        self.write(&(heading + &lines))
    }

    /// Writes the counts of all runs.
    pub(super) fn write_whole(&mut self, stat: &Stat) -> Result<(), Failure> {
        match (self.form, self.has_intervals) {
            (Form::Text, true) => self.write(&format!("\n{}", text(stat))),
            (Form::Text, false) => self.write(&text(stat)),
            // Its intervals add up to it.
            (Form::Csv, true) => Ok(()),
            (Form::Csv, false) => self.write(&(csv_heading(false) + &csv(stat))),
            (Form::Json, true) => self.write(&format!("{}\n", json(stat))),
            (Form::Json, false) => self.write(&format!("{:#}\n", json(stat))),
        }
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        // Programs and events are named as their authors like.
        let text = if self.form == Form::Text { printable_lines(text) } else { text.into() };
        match &mut self.place {
            Place::Error => tell_part!("{text}"),
            Place::Output => terminal::print(&text)?,
            Place::Stream(stream) => stream.write(|to| to.write_all(text.as_bytes()))?,
            Place::File(path, file) => {
                let written = match file {
                    Some(file) => file.write_all(text.as_bytes()),
                    None => {
                        let made = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
                        made.and_then(|made| file.insert(made).write_all(text.as_bytes()))
                    }
                };
                written.map_err(|error| cannot_write(path, &error))?;
            }
        }
        Ok(())
    }
}
