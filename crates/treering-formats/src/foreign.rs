//! Files of other tools that tell plainly what they are: formats that are read, and many that are not.

mod named;
mod shape;

use std::borrow::Cow;
use std::fmt;

use crate::gzip::GZIP;
use crate::label::without_mark;
use crate::{Format, detect, gprof, perf_script};

pub use named::Named;

/// A sort of file of another tool. [`format`](Foreign::format) tells which of them are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// A file of `perf record`.
    PerfData,
    /// The output of `perf script`.
    PerfScript,
    /// The output of `gprof`.
    GprofText,
    /// A dump of Python's `cProfile`.
    Pstats,
    /// Profiles of OpenTelemetry, as protobuf.
    Otlp,
    /// Profiles of OpenTelemetry, as JSON.
    OtlpJson,
    /// A file of Speedscope.
    Speedscope,
    /// A file of the Firefox Profiler or samply.
    Firefox,
    /// Trace events, as Chrome and Perfetto show.
    ChromeTrace,
    /// JSON of pyinstrument.
    Pyinstrument,
    /// JSON of Ruby's stackprof.
    Stackprof,
    /// A profile of V8: Node's `--cpu-prof`, Chrome's developer tools.
    CpuProfile,
    /// An answer of SWI-Prolog's `profile_data/1`, as JSON.
    SwiProfileJson,
    /// Heap profiles of gperftools, before pprof's protobuf.
    LegacyHeap,
    /// Gzip data that holds something unknown.
    Gzip,
    /// Another sort, which is not read.
    Named(&'static Named),
}

impl Foreign {
    /// The format that it is read as; nothing for sorts that are not read.
    pub fn format(self) -> Option<Format> {
        Format::of_sort(self)
    }

    /// Advice for a file of this sort, which is not read; nothing if there is none. `word` is the file as a word of a
    /// command, with quotes where a shell needs them.
    pub fn advice(self, file: &str, word: &str) -> Option<String> {
        let advice = match self {
            Self::Gzip => "unpack it first: gzip -dk {file}",
            Self::Named(named) => named.advice,
            _ => "",
        };
        (!advice.is_empty()).then(|| advice.replace("{file}", word).replace("{text}", &format!("{file:?}")))
    }

    /// The sort of a file or folder by its name, for those whose content does not tell it.
    pub fn by_file_name(name: &str) -> Option<Self> {
        Named::by_file_name(name).map(Self::Named)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerfData => "a perf.data file",
            Self::PerfScript => "the output of perf script",
            Self::GprofText => "the output of gprof",
            Self::Pstats => "a profile of Python's cProfile (pstats)",
            Self::Otlp => "a profile of OpenTelemetry (OTLP)",
            Self::OtlpJson => "a profile of OpenTelemetry (OTLP) as JSON",
            Self::Speedscope => "JSON of Speedscope",
            Self::Firefox => "JSON of the Firefox Profiler",
            Self::ChromeTrace => "JSON of trace events, as Chrome and Perfetto show them",
            Self::Pyinstrument => "JSON of pyinstrument",
            Self::Stackprof => "JSON of Ruby's stackprof",
            Self::CpuProfile => "JSON of V8 (.cpuprofile)",
            Self::SwiProfileJson => "SWI-Prolog's profile_data as JSON",
            Self::LegacyHeap => "a heap profile of gperftools",
            Self::Gzip => "compressed with gzip, and no profile that is read without unpacking it",
            Self::Named(named) => named.name,
        })
    }
}

/// The first bytes of files of a sort that is read.
const MAGICS: [(&[u8], Foreign); 10] = [
    (b"PERFILE2", Foreign::PerfData),
    (b"2ELIFREP", Foreign::PerfData),
    (b"PERFFILE", Foreign::PerfData),
    // A dictionary of Python's marshal whose first key is a tuple of three.
    (b"{(\x03\0\0\0", Foreign::Pstats),
    (b"\xfb(\x03\0\0\0", Foreign::Pstats),
    (b"{)\x03", Foreign::Pstats),
    (b"\xfb)\x03", Foreign::Pstats),
    (b"{\xa9\x03", Foreign::Pstats),
    (b"\xfb\xa9\x03", Foreign::Pstats),
    (&GZIP, Foreign::Gzip),
];

/// The sort of a file by its first bytes, for sorts that are read.
pub(crate) fn by_magic(bytes: &[u8]) -> Option<Foreign> {
    MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, foreign)| *foreign)
}

/// The sort of a file that is not read, by its content.
pub(crate) fn by_name(bytes: &[u8]) -> Option<Foreign> {
    Named::by_content(bytes, &text_start(bytes)).map(Foreign::Named)
}

/// The start of a file as text.
fn text_start(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(detect::looked_at(without_mark(bytes)))
}

/// The sort of a text file, of which `start` is the beginning and `bytes` the whole.
pub(crate) fn by_text(start: &str, bytes: &[u8]) -> Option<Foreign> {
    let text = start.trim_start();
    match text.as_bytes().first()? {
        b'{' | b'[' if is_json(text) => return Some(json(bytes)),
        b'<' if is_markup(text) => return Some(by_name(bytes).unwrap_or(Foreign::Named(&named::MARKUP))),
        _ => {}
    }
    if gprof::is_text(text) {
        return Some(Foreign::GprofText);
    }
    if text.starts_with("heap profile:") {
        return Some(Foreign::LegacyHeap);
    }
    by_name(bytes).or_else(|| is_perf_script(start).then_some(Foreign::PerfScript))
}

/// Whether a brace or bracket is followed by what may follow it in JSON. `[kernel];a 1` is none.
fn is_json(text: &str) -> bool {
    let next = text[1..].trim_start().bytes().next();
    let object = text.starts_with('{') && matches!(next, Some(b'"' | b'}'));
    object || text.starts_with('[') && matches!(next, Some(b'{' | b'[' | b'"' | b']' | b'0'..=b'9'))
}

/// How much of a JSON file is looked at, at its start and at its end: writers order keys as they like.
const JSON_LOOK: usize = 64 << 10;

/// The tool that wrote the JSON, by the keys that only it writes.
fn json(bytes: &[u8]) -> Foreign {
    /// Keys of what is read.
    const READ: [(&[&str], Foreign); 9] = [
        (&["speedscope.app/file-format-schema"], Foreign::Speedscope),
        (&["\"resourceProfiles\""], Foreign::OtlpJson),
        (&["\"resource_profiles\""], Foreign::OtlpJson),
        (&["\"ticks_self\"", "\"ticks_siblings\""], Foreign::SwiProfileJson),
        (&["\"root_frame\"", "\"sample_count\""], Foreign::Pyinstrument),
        (&["\"missed_samples\"", "\"frames\"", "\"interval\""], Foreign::Stackprof),
        (&["\"gc_samples\"", "\"frames\"", "\"interval\""], Foreign::Stackprof),
        (&["\"preprocessedProfileVersion\""], Foreign::Firefox),
        (&["\"stackTable\"", "\"frameTable\""], Foreign::Firefox),
    ];
    /// Keys of what is read, which others have as well: traces may hold the samples of V8.
    const SHARED: [(&[&str], Foreign); 4] = [
        (&["\"traceEvents\""], Foreign::ChromeTrace),
        (&["\"ph\"", "\"ts\""], Foreign::ChromeTrace),
        (&["\"callFrame\"", "\"nodes\""], Foreign::CpuProfile),
        // Up to Node 10.
        (&["\"head\"", "\"functionName\"", "\"samples\""], Foreign::CpuProfile),
    ];
    let (head, tail) = bytes.split_at(bytes.len().min(JSON_LOOK));
    let tail = &tail[tail.len().saturating_sub(JSON_LOOK)..];
    let [head, tail] = [head, tail].map(String::from_utf8_lossy);
    let has = |key: &str| head.contains(key) || tail.contains(key);
    let of = |keys: &[(&[&str], Foreign)]| {
        keys.iter().find(|(keys, _)| keys.iter().all(|key| has(key))).map(|(_, foreign)| *foreign)
    };
    let named = || Named::by_keys(has).map(Foreign::Named);
    of(&READ).or_else(named).or_else(|| of(&SHARED)).unwrap_or(Foreign::Named(&named::JSON))
}

/// Whether `<` begins a tag, rather than a name such as `<T as Trait>::f`.
fn is_markup(text: &str) -> bool {
    const TAGS: [&str; 7] = ["<!doctype", "<html", "<?xml", "<svg", "<head", "<!--", "<trace-"];
    let start: String = text.chars().take(9).collect::<String>().to_ascii_lowercase();
    TAGS.iter().any(|tag| start.starts_with(tag))
}

/// Whether there are samples of perf: a line that says whose sample it is, when and of which event, or frames on lines
/// of their own that have an address and an offset or a file. Its header says so as well.
fn is_perf_script(text: &str) -> bool {
    let lines = || text.lines().filter(|line| !line.starts_with('#'));
    let has_header = text.starts_with("# ========") && text.contains("\n# captured on");
    has_header
        || lines().any(perf_script::is_sample)
        || perf_script::are_frames(lines())
        || perf_script::are_lone_samples(lines())
}

/// Whether protobuf bytes are profiles of OpenTelemetry: resources with scopes, where pprof has the
/// two numbers of a sample type.
pub(crate) fn is_otlp(bytes: &[u8]) -> bool {
    let text = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    text(b"service.name") || text(b"telemetry.sdk") || text(b"process.executable.name")
}
