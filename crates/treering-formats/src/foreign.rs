//! Files of other tools that tell plainly what they are: formats that are read, and many that are not.

use std::fmt;

use crate::Format;
use crate::gzip::GZIP;

/// A sort of file of another tool. [`format`](Foreign::format) tells which of them are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Foreign {
    /// What `perf record` writes.
    PerfData,
    /// What `perf script` prints.
    PerfScript,
    /// What `gprof` prints.
    GprofText,
    /// What Java's Flight Recorder writes.
    Jfr,
    /// A heap dump of Java.
    Hprof,
    /// What Python's `cProfile` writes.
    Pstats,
    /// A pickled Python object.
    Pickle,
    /// Profiles of OpenTelemetry, as protobuf.
    Otlp,
    /// Profiles of OpenTelemetry, as JSON.
    OtlpJson,
    /// What Speedscope saves.
    Speedscope,
    /// What the Firefox Profiler and samply save.
    Firefox,
    /// Trace events, as Chrome and Perfetto show.
    ChromeTrace,
    /// What V8 writes: Node's `--cpu-prof`, Chrome's developer tools.
    CpuProfile,
    /// What V8 writes of memory.
    HeapProfile,
    /// What Valgrind's DHAT writes.
    Dhat,
    /// What SWI-Prolog's `profile_data/1` gives, as JSON.
    SwiProfileJson,
    /// What Ruby's stackprof writes.
    Stackprof,
    /// A report of Treering.
    TreeringJson,
    /// Other JSON.
    Json,
    /// What Valgrind's Massif writes.
    Massif,
    /// What heaptrack writes.
    Heaptrack,
    /// Heap profiles of gperftools, before pprof's protobuf.
    LegacyHeap,
    /// Text of gperftools and Go, before pprof's protobuf.
    LegacyText,
    /// An execution trace of Go.
    GoTrace,
    /// What Xcode's Instruments exports.
    Xctrace,
    /// A picture, as `flamegraph.pl` makes it.
    Svg,
    /// A page or other markup.
    Markup,
    /// A program or library.
    Elf,
    /// A database, as Nsight Systems and others write it.
    Sqlite,
    /// Gzip data that holds something unknown.
    Gzip,
    /// Zstandard data.
    Zstd,
    /// Data of xz.
    Xz,
    /// Data of bzip2.
    Bzip2,
    /// Data of lz4.
    Lz4,
    /// A zip archive.
    Zip,
    /// Text in UTF-16, as some shells of Windows write it.
    Utf16,
}

impl Foreign {
    /// The format that it is read as; nothing for sorts that are not read.
    pub fn format(self) -> Option<Format> {
        Format::of_sort(self)
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerfData => "a perf.data file",
            Self::PerfScript => "the output of perf script",
            Self::GprofText => "the output of gprof",
            Self::Jfr => "a recording of Java's Flight Recorder (JFR)",
            Self::Hprof => "a heap dump of Java (HPROF)",
            Self::Pstats => "a profile of Python's cProfile (pstats)",
            Self::Pickle => "a Python pickle",
            Self::Otlp => "a profile of OpenTelemetry (OTLP)",
            Self::OtlpJson => "a profile of OpenTelemetry (OTLP) as JSON",
            Self::Speedscope => "JSON of Speedscope",
            Self::Firefox => "JSON of the Firefox Profiler",
            Self::ChromeTrace => "JSON of trace events, as Chrome and Perfetto show them",
            Self::CpuProfile => "JSON of V8 (.cpuprofile)",
            Self::HeapProfile => "JSON of V8 about memory (.heapprofile or .heapsnapshot)",
            Self::Dhat => "JSON of Valgrind's DHAT",
            Self::SwiProfileJson => "SWI-Prolog's profile_data as JSON",
            Self::Stackprof => "JSON of Ruby's stackprof",
            Self::TreeringJson => "a report of Treering as JSON",
            Self::Json => "JSON",
            Self::Massif => "a file of Valgrind's Massif",
            Self::Heaptrack => "a file of heaptrack",
            Self::LegacyHeap => "a heap profile of gperftools",
            Self::LegacyText => "a text profile of gperftools or Go",
            Self::GoTrace => "an execution trace of Go",
            Self::Xctrace => "XML of Xcode's Instruments",
            Self::Svg => "an SVG picture",
            Self::Markup => "HTML or XML",
            Self::Elf => "a program or library",
            Self::Sqlite => "an SQLite database",
            Self::Gzip => "compressed with gzip and holds no profile that is known",
            Self::Zstd => "compressed with zstd",
            Self::Xz => "compressed with xz",
            Self::Bzip2 => "compressed with bzip2",
            Self::Lz4 => "compressed with lz4",
            Self::Zip => "a zip archive",
            Self::Utf16 => "text in UTF-16",
        })
    }
}

/// What files of a sort begin with.
const MAGICS: [(&[u8], Foreign); 20] = [
    (b"PERFILE2", Foreign::PerfData),
    (b"2ELIFREP", Foreign::PerfData),
    (b"PERFFILE", Foreign::PerfData),
    (b"FLR\0", Foreign::Jfr),
    (b"JAVA PROFILE 1.0", Foreign::Hprof),
    (b"\x7fELF", Foreign::Elf),
    (b"\x28\xb5\x2f\xfd", Foreign::Zstd),
    (b"\xfd7zXZ\0", Foreign::Xz),
    (b"\x04\x22\x4d\x18", Foreign::Lz4),
    (b"PK\x03\x04", Foreign::Zip),
    (b"SQLite format 3\0", Foreign::Sqlite),
    // A dictionary of Python's marshal whose first key is a tuple of three.
    (b"{(\x03\0\0\0", Foreign::Pstats),
    (b"\xfb(\x03\0\0\0", Foreign::Pstats),
    (b"{)\x03", Foreign::Pstats),
    (b"\xfb)\x03", Foreign::Pstats),
    (b"{\xa9\x03", Foreign::Pstats),
    (b"\xfb\xa9\x03", Foreign::Pstats),
    (b"\x80\x04\x95", Foreign::Pickle),
    (b"\x80\x05\x95", Foreign::Pickle),
    (&GZIP, Foreign::Gzip),
];

/// The sort of a file by its first bytes.
pub(crate) fn by_magic(bytes: &[u8]) -> Option<Foreign> {
    if let Some((_, foreign)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(*foreign);
    }
    if bytes.starts_with(b"BZh") && bytes.get(4..10) == Some(b"1AY&SY") {
        return Some(Foreign::Bzip2);
    }
    if bytes.starts_with(b"go 1.") && bytes[..bytes.len().min(16)].windows(6).any(|at| at == b" trace") {
        return Some(Foreign::GoTrace);
    }
    is_utf16(bytes).then_some(Foreign::Utf16)
}

/// The mark of UTF-16, or every other byte of Latin text.
fn is_utf16(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(b"\xff\xfe").or_else(|| bytes.strip_prefix(b"\xfe\xff"));
    let pairs = rest.unwrap_or_default().chunks_exact(2).take(32);
    let zeros = pairs.clone().filter(|pair| pair[0] == 0 || pair[1] == 0).count();
    pairs.len() > 0 && zeros * 2 >= pairs.len()
}

/// The sort of a text file, of which `start` is the beginning and `bytes` the whole.
pub(crate) fn by_text(start: &str, bytes: &[u8]) -> Option<Foreign> {
    let text = start.trim_start();
    match text.as_bytes().first()? {
        b'{' | b'[' if is_json(text) => return Some(json(bytes)),
        b'<' if is_markup(text) => return Some(markup(text)),
        _ => {}
    }
    let begins = |starts: &[&str]| starts.iter().any(|start| text.starts_with(start));
    if begins(&["Flat profile:", "Call graph", "flat profile:"]) || text.contains("Each sample counts as") {
        return Some(Foreign::GprofText);
    }
    if text.starts_with("desc:") && text.contains("\ntime_unit:") {
        return Some(Foreign::Massif);
    }
    if begins(&["heap profile:"]) {
        return Some(Foreign::LegacyHeap);
    }
    if begins(&["--- contention", "--- heapz", "--- growthz", "goroutine profile:"]) {
        return Some(Foreign::LegacyText);
    }
    if is_heaptrack(text) {
        return Some(Foreign::Heaptrack);
    }
    is_perf_script(text).then_some(Foreign::PerfScript)
}

/// Whether a brace or bracket is followed by what may follow it in JSON. `[kernel];a 1` is none.
fn is_json(text: &str) -> bool {
    let next = text[1..].trim_start().bytes().next();
    let object = text.starts_with('{') && matches!(next, Some(b'"' | b'}'));
    object || text.starts_with('[') && matches!(next, Some(b'{' | b'[' | b'"' | b']' | b'0'..=b'9'))
}

/// How much of a JSON file is looked at, at its start and at its end: writers order keys as they like.
const JSON_LOOK: usize = 64 << 10;

/// Which tool wrote the JSON, by the keys that only it writes.
fn json(bytes: &[u8]) -> Foreign {
    const KEYS: [(&[&str], Foreign); 15] = [
        (&["speedscope.app/file-format-schema"], Foreign::Speedscope),
        (&["\"resourceProfiles\""], Foreign::OtlpJson),
        (&["\"resource_profiles\""], Foreign::OtlpJson),
        (&["\"ticks_self\"", "\"ticks_siblings\""], Foreign::SwiProfileJson),
        (&["\"dhatFileVersion\""], Foreign::Dhat),
        (&["\"preprocessedProfileVersion\""], Foreign::Firefox),
        (&["\"stackTable\"", "\"frameTable\""], Foreign::Firefox),
        (&["\"snapshot\"", "\"node_fields\""], Foreign::HeapProfile),
        (&["\"callFrame\"", "\"selfSize\""], Foreign::HeapProfile),
        // Traces may hold the samples of V8.
        (&["\"traceEvents\""], Foreign::ChromeTrace),
        (&["\"ph\"", "\"ts\""], Foreign::ChromeTrace),
        (&["\"callFrame\"", "\"nodes\""], Foreign::CpuProfile),
        (&["\"missed_samples\"", "\"frames\""], Foreign::Stackprof),
        (&["\"gc_samples\"", "\"frames\""], Foreign::Stackprof),
        (&["\"run_cost\"", "\"view\""], Foreign::TreeringJson),
    ];
    let (head, tail) = bytes.split_at(bytes.len().min(JSON_LOOK));
    let tail = &tail[tail.len().saturating_sub(JSON_LOOK)..];
    let [head, tail] = [head, tail].map(String::from_utf8_lossy);
    let has = |key: &&str| head.contains(*key) || tail.contains(*key);
    KEYS.iter().find(|(keys, _)| keys.iter().all(has)).map_or(Foreign::Json, |(_, foreign)| *foreign)
}

/// Whether `<` begins a tag, rather than a name such as `<T as Trait>::f`.
fn is_markup(text: &str) -> bool {
    const TAGS: [&str; 7] = ["<!doctype", "<html", "<?xml", "<svg", "<head", "<!--", "<trace-"];
    let start: String = text.chars().take(9).collect::<String>().to_ascii_lowercase();
    TAGS.iter().any(|tag| start.starts_with(tag))
}

fn markup(text: &str) -> Foreign {
    if text.contains("<trace-query-result") {
        return Foreign::Xctrace;
    }
    if text.contains("<svg") { Foreign::Svg } else { Foreign::Markup }
}

/// `v 10400 2` in the first line, `X command` soon after.
fn is_heaptrack(text: &str) -> bool {
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("v "));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_hexdigit()))
        && lines.take(8).any(|line| line.starts_with("X "))
}

/// Whether there are samples of perf: a line with a time and an event, or frames on lines of their
/// own that start with white space and an address.
fn is_perf_script(text: &str) -> bool {
    let is_frame = |line: &str| {
        let address = line.split_whitespace().next().unwrap_or_default();
        let hex = address.len() >= 4 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
        let indented = line.starts_with(['\t', ' ']) || address.len() >= 8 && line.ends_with(')');
        indented && hex && line.split_whitespace().count() > 1
    };
    let frames = text.lines().filter(|line| is_frame(line)).count();
    frames >= 2 || text.lines().filter(|line| is_perf_sample(line)).count() >= 1
}

/// `comm 1234 [000] 1083.917330: 250000 cpu-clock: ...`: a number with six decimals and a colon,
/// and another word with a colon behind it.
fn is_perf_sample(line: &str) -> bool {
    let is_time = |word: &str| {
        let parts = word.strip_suffix(':').and_then(|time| time.split_once('.'));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        parts.is_some_and(|(seconds, decimals)| {
            digits(seconds) && digits(decimals) && matches!(decimals.len(), 6 | 9)
        })
    };
    let mut words = line.split_whitespace();
    words.by_ref().skip(1).any(is_time) && words.any(|word| word.ends_with(':'))
}

/// Whether protobuf bytes are profiles of OpenTelemetry: resources with scopes, where pprof has the
/// two numbers of a sample type.
pub(crate) fn is_otlp(bytes: &[u8]) -> bool {
    let text = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    text(b"service.name") || text(b"telemetry.sdk") || text(b"process.executable.name")
}
