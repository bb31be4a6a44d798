//! The list of formats, and the facts about each.

use std::fmt;
use std::io::{self, Write};

use treering_profile::{MetricId, Profile};

use crate::budget::Budget;
use crate::detect::{detect, unrecognised};
use crate::gzip::unzip;
use crate::label::without_mark;
use crate::{Dropped, Error, Foreign, ReadError, ReadReport};

macro_rules! declare_format {
    ($($(#[$doc:meta])* $format:ident in $module:ident,)*) => {
        /// A file format that is read; [`is_written`](Format::is_written) tells which are written too.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: [Self; [$(Self::$format),*].len()] = [$(Self::$format),*];

            const fn description(self) -> &'static Description {
                match self {
                    $(Self::$format => &crate::$module::DESCRIPTION,)*
                }
            }
        }
    };
}

// The name in Rust, and the module, which has a `DESCRIPTION`. The order is that of messages and of the command line. A
// new format is added here; everything else is in its folder, and tests name the pages that lack it.
declare_format! {
    /// Treering's own.
    Trg in trg,
    /// The file of an instrumented program while it runs.
    Live in live,
    /// Stacks as lines of text, for flame graphs.
    Folded in folded,
    /// Gzip-compressed protobuf.
    Pprof in pprof,
    /// Profiles of OpenTelemetry.
    Otlp in otlp,
    /// Valgrind's Callgrind.
    Callgrind in callgrind,
    /// Files of `perf record`.
    PerfData in perf_data,
    /// The output of `perf script`.
    PerfScript in perf_script,
    /// Files of programs compiled with `-pg`.
    Gmon in gmon,
    /// Files of gperftools.
    Gperftools in gperftools,
    /// The output of GNU gprof.
    Gprof in gprof,
    /// Files of the pack for SWI-Prolog.
    Prolog in prolog,
    /// The answers of SWI-Prolog's `profile_data/1`.
    SwiProfile in swi_profile,
    /// Speedscope's JSON.
    Speedscope in speedscope,
    /// V8's profile of processor time.
    CpuProfile in cpuprofile,
    /// V8's log of ticks.
    V8Log in v8_log,
    /// Trace events of Chrome.
    ChromeTrace in chrome_trace,
    /// Dumps of Python's cProfile.
    Pstats in pstats,
    /// The Firefox Profiler's processed profiles.
    Firefox in firefox,
    /// Profiles of Python programs by pyinstrument.
    Pyinstrument in pyinstrument,
    /// Profiles of Ruby's stackprof.
    Stackprof in stackprof,
    /// Text of `jfr print`, from recordings of Java.
    JfrText in jfr_text,
    /// Profiles of Python programs by Austin.
    Austin in austin,
    /// XML of benchmarks.
    CbsXml in cbs_xml,
    /// The result of Octave's `profile ("info")`.
    Octave in octave,
}

/// Reads a file within a budget of memory.
type ReadFile = fn(&[u8], Budget) -> Result<(Profile, ReadReport), ReadError>;

/// How a file is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    /// By a function that gets the file decompressed.
    Unzipped(ReadFile),
    /// By a function that gets the file as it is.
    AsItIs(ReadFile),
}

/// The facts about a format. Each module of a format has one.
#[derive(Debug)]
pub(crate) struct Description {
    /// Its name on the command line, and the name of its page in `docs/formats`.
    pub(crate) name: &'static str,
    /// The usual end of names of its files, without the dot, if that is not its name.
    pub(crate) extension: Option<&'static str>,
    /// The name of its files in a list of formats.
    pub(crate) title: &'static str,
    /// The words for it in the help of `treering import`, if its files can be imported.
    pub(crate) import: Option<&'static str>,
    /// The words for it in the help of `treering export`, if it is offered there.
    pub(crate) export: Option<&'static str>,
    /// Whether only Treering writes it.
    pub(crate) is_own: bool,
    /// Whether arcs have total costs of their own in its files, which may contradict the costs of functions.
    pub(crate) states_arcs: bool,
    /// The sorts of files that are of this format.
    pub(crate) sorts: &'static [Foreign],
    /// Whether a file that begins like this is of this format, if its first bytes say so. A compressed
    /// file of another tool is decompressed for this.
    pub(crate) begins: fn(&[u8]) -> bool,
    /// Whether a file that begins like this says that Treering wrote it.
    pub(crate) says_ours: fn(&[u8]) -> bool,
    /// How it is read.
    pub(crate) reading: Reading,
    /// How it is written.
    pub(crate) writing: Writing,
}

impl Description {
    /// A format that is neither written nor recognised by its first bytes.
    pub(crate) const fn unzipped(name: &'static str, title: &'static str, read: ReadFile) -> Self {
        Self { reading: Reading::Unzipped(read), ..Self::as_it_is(name, title, read) }
    }

    /// The same with a reader that gets files as they are, compressed or not.
    pub(crate) const fn as_it_is(name: &'static str, title: &'static str, read: ReadFile) -> Self {
        Self {
            name,
            extension: None,
            title,
            import: None,
            export: None,
            is_own: false,
            states_arcs: false,
            sorts: &[],
            begins: |_| false,
            says_ours: |_| false,
            reading: Reading::AsItIs(read),
            writing: Writing::Not,
        }
    }
}

/// Writes a profile.
pub type WriteWhole = fn(&Profile, &mut dyn Write) -> io::Result<Dropped>;

/// Writes one metric of a profile.
pub type WriteMetric = fn(&Profile, MetricId, &mut dyn Write) -> io::Result<Dropped>;

/// How files of a format are written.
#[derive(Clone, Copy, Debug)]
pub enum Writing {
    /// They are not.
    Not,
    /// By functions of the format's module, which take more than the profile, or give more.
    Custom {
        /// Whether a file holds one metric only.
        one_metric: bool,
    },
    /// With all metrics.
    Whole {
        /// Writes it.
        write: WriteWhole,
        /// How many bytes that takes about; 0 if it stays small.
        size: fn(&Profile) -> u64,
    },
    /// With one metric.
    OneMetric {
        /// Writes it.
        write: WriteMetric,
        /// How many bytes that takes about; 0 if it stays small.
        size: fn(&Profile, MetricId) -> u64,
    },
}

impl Format {
    /// Whether it can be written, too.
    pub fn is_written(self) -> bool {
        !matches!(self.writing(), Writing::Not)
    }

    /// How it is written.
    pub fn writing(self) -> Writing {
        self.description().writing
    }

    /// Whether a file holds one metric only.
    pub fn holds_one_metric(self) -> bool {
        matches!(self.writing(), Writing::OneMetric { .. } | Writing::Custom { one_metric: true })
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        self.description().name
    }

    /// The usual end of names of its files, without the dot.
    pub fn extension(self) -> &'static str {
        self.description().extension.unwrap_or(self.as_str())
    }

    /// The name of its files in a list of formats.
    pub fn title(self) -> &'static str {
        self.description().title
    }

    /// Whether only Treering writes it.
    pub fn is_own(self) -> bool {
        self.description().is_own
    }

    /// Whether arcs have total costs of their own in its files, which may contradict the costs of functions.
    pub fn states_arcs(self) -> bool {
        self.description().states_arcs
    }

    /// A line on what is imported; nothing for files that need no import.
    pub fn import_help(self) -> Option<&'static str> {
        self.description().import
    }

    /// A line on what it is exported for; nothing if it is not offered.
    pub fn export_help(self) -> Option<&'static str> {
        self.description().export
    }

    /// The format that files of a sort are read as, if they are read.
    pub(crate) fn of_sort(sort: Foreign) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.description().sorts.contains(&sort))
    }

    /// Whether a file that begins like this is of this format, as its first bytes say, behind a mark of UTF-8.
    pub(crate) fn begins(self, start: &[u8]) -> bool {
        (self.description().begins)(without_mark(start))
    }

    /// Whether a file that begins like this says that Treering wrote it.
    pub(crate) fn says_ours(self, start: &[u8]) -> bool {
        (self.description().says_ours)(start)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Reads a file of any format, recognised by its content.
///
/// # Errors
/// When the format is not recognised, is not one that is read, or the file is damaged.
pub fn read_any(bytes: &[u8]) -> Result<(Format, Profile, ReadReport), Error> {
    let Some(format) = detect(bytes) else { return Err(unrecognised(bytes)) };
    let (profile, report) = read_as(format, bytes)?;
    Ok((format, profile, report))
}

/// Reads a file of a known format. Files of other tools may be compressed with gzip.
///
/// # Errors
/// When the file is damaged or of another format.
pub fn read_as(format: Format, bytes: &[u8]) -> Result<(Profile, ReadReport), Error> {
    let budget = Budget::new(bytes.len());
    match format.description().reading {
        Reading::Unzipped(read) => read(&unzip(bytes)?, budget).map_err(|error| error.of(format)),
        Reading::AsItIs(read) => read(bytes, budget).map_err(|error| error.of(format)),
    }
}
