//! Files that are recognised and not read: their names, how they are told from others, and what to do with them.

use super::shape;

/// A sort of file that is recognised and not read.
#[derive(Debug)]
pub struct Named {
    /// Its description, as the object of "it is".
    pub(super) name: &'static str,
    /// Advice for the user, with `{file}` for the file as a word of a command and `{text}` for it as a text in double
    /// quotes; empty if there is none.
    pub(super) advice: &'static str,
    /// It begins with one of these, if there are any.
    begins: &'static [&'static [u8]],
    /// Its start holds all of these.
    holds: &'static [&'static str],
    /// It is JSON that holds all of these keys, at its start or at its end.
    keys: &'static [&'static str],
    /// Another sign of it.
    shape: Option<fn(&[u8]) -> bool>,
    /// The endings of the names of such files, where the content does not tell it.
    endings: &'static [&'static str],
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

impl Named {
    const fn new(name: &'static str, advice: &'static str) -> Self {
        Self { name, advice, begins: &[], holds: &[], keys: &[], shape: None, endings: &[] }
    }

    const fn begins(self, begins: &'static [&'static [u8]]) -> Self {
        Self { begins, ..self }
    }

    const fn holds(self, holds: &'static [&'static str]) -> Self {
        Self { holds, ..self }
    }

    const fn keys(self, keys: &'static [&'static str]) -> Self {
        Self { keys, ..self }
    }

    const fn shape(self, shape: fn(&[u8]) -> bool) -> Self {
        Self { shape: Some(shape), ..self }
    }

    const fn endings(self, endings: &'static [&'static str]) -> Self {
        Self { endings, ..self }
    }

    /// Whether a file with this content is of this sort; `start` is its start as text.
    fn is(&self, bytes: &[u8], start: &str) -> bool {
        let tells = !self.begins.is_empty() || !self.holds.is_empty() || self.shape.is_some();
        let trimmed = start.trim_start().as_bytes();
        let begins = |with: &&[u8]| bytes.starts_with(with) || trimmed.starts_with(with);
        tells
            && (self.begins.is_empty() || self.begins.iter().any(begins))
            && self.holds.iter().all(|text| start.contains(text))
            && self.shape.is_none_or(|is| is(bytes))
    }

    /// The sort of a file by its content.
    pub(super) fn by_content(bytes: &[u8], start: &str) -> Option<&'static Self> {
        NAMED.iter().find(|named| named.is(bytes, start))
    }

    /// The sort of a JSON file, of which `has` tells whether it holds a key.
    pub(super) fn by_keys(has: impl Fn(&str) -> bool) -> Option<&'static Self> {
        NAMED.iter().find(|named| !named.keys.is_empty() && named.keys.iter().all(|key| has(key)))
    }

    /// The sort of a file or folder by its name.
    pub(super) fn by_file_name(name: &str) -> Option<&'static Self> {
        let name = name.trim_end_matches('/').to_ascii_lowercase();
        NAMED.iter().find(|named| named.endings.iter().any(|ending| name.ends_with(ending)))
    }
}

/// Any other JSON.
pub(super) static JSON: Named = Named::new("JSON", "");

/// Any other markup.
pub(super) static MARKUP: Named = Named::new("HTML or XML", "");

/// Every sort, in the order in which they are tried. Where two fit, the first is meant.
static NAMED: &[Named] = &[
    // Java, Android, .NET.
    Named::new(
        "a recording of Java's Flight Recorder (JFR)",
        "print its samples: jfr print --stack-depth 512 --events jdk.ExecutionSample {file} > samples.txt, or fold it: jfrconv \
         --cpu {file} stacks.collapsed, which comes with async-profiler",
    )
    .begins(&[b"FLR\0"]),
    Named::new(
        "what jfr print --json wrote",
        "print text of its samples instead: jfr print --stack-depth 512 --events jdk.ExecutionSample RECORDING.jfr > samples.txt",
    )
    .keys(&["\"recording\"", "\"events\"", "\"jdk."]),
    Named::new(
        "what jfr print --xml wrote",
        "print text of its samples instead: jfr print --stack-depth 512 --events jdk.ExecutionSample RECORDING.jfr > samples.txt",
    )
    .begins(&[b"<?xml"])
    .holds(&["<recording", "<event type=\"jdk."]),
    Named::new("a heap dump of Java (HPROF)", "Treering does not read it; to look at it: Eclipse MAT or VisualVM")
        .begins(&[b"JAVA PROFILE 1.0"]),
    Named::new("a thread dump of Java", "record samples instead: asprof -d 10 -o collapsed -f stacks.folded PID")
        .holds(&["Full thread dump "]),
    Named::new(
        "a method trace of Android",
        "record with simpleperf instead: simpleperf report-sample --protobuf, or open it in Android Studio",
    )
    .begins(&[b"SLOW", b"*version\n"]),
    Named::new("a trace of .NET (nettrace)", "convert it: dotnet-trace convert --format Speedscope {file}")
        .begins(&[b"Nettrace"])
        .endings(&[".nettrace"]),
    Named::new(
        "a trace of Windows (ETL)",
        "convert it: PerfView's Speedscope export, or xperf -i {file} -o dump.txt; Treering reads Speedscope's JSON",
    )
    .shape(shape::is_etl)
    .endings(&[".etl", ".etlx"]),
    Named::new("a snapshot of dotTrace", "Treering does not read it; to look at it: dotTrace, or its Reporter.exe for XML")
        .endings(&[".dtp", ".dtt", ".dtl"]),
    Named::new("a session of Visual Studio", "Treering does not read it; to look at it: Visual Studio")
        .endings(&[".diagsession", ".vsp", ".vspx"]),
    Named::new("a snapshot of JProfiler", "export it: jpexport {file} CallTree tree.xml; Treering does not read it")
        .endings(&[".jps"]),
    Named::new("a snapshot of YourKit or VisualVM", "Treering does not read it; to look at it: the tool that wrote it")
        .endings(&[".snapshot", ".nps", ".apps"]),
    // Python.
    Named::new(
        "a Python pickle",
        "Treering does not know this kind of profile; save folded stacks or pprof instead",
    )
    .begins(&[b"\x80\x04\x95", b"\x80\x05\x95"]),
    Named::new(
        "a recording of memray",
        "fold it: python3 -c 'import memray,sys; [print(\";\".join(f\"{f[0]} ({f[1]}:{f[2]})\" for f in \
         reversed(r.stack_trace())), r.size) for r in \
         memray.FileReader(sys.argv[1]).get_high_watermark_allocation_records()]' {file} > stacks.folded",
    )
    .begins(&[b"memray\0"]),
    Named::new("a report of pstats", "give the file that cProfile wrote: python3 -m cProfile -o profile.pstats PROGRAM.py")
        .holds(&[" function calls", " seconds\n", "ncalls"]),
    Named::new("a report of line_profiler", "Treering does not read it; record with: python3 -m cProfile -o profile.pstats")
        .begins(&[b"Timer unit: "]),
    Named::new("a report of pyinstrument", "have it write JSON: pyinstrument -r json -o profile.json PROGRAM.py")
        .holds(&["Recorded: ", "Samples: ", "CPU time: "]),
    Named::new("points over time of memory_profiler", "Treering does not read it; to look at it: mprof plot {file}")
        .begins(&[b"CMDLINE "])
        .holds(&["\nMEM "]),
    Named::new("JSON of Scalene", "Treering does not read it; to look at it: scalene view {file}")
        .keys(&["\"elapsed_time_sec\"", "\"n_cpu_percent_python\""]),
    // Ruby, Perl, PHP, R, Haskell, Erlang.
    Named::new("a dump of Ruby's stackprof", "convert it: stackprof --json {file} > stackprof.json")
        .begins(&[b"\x04\x08{"]),
    Named::new("a recording of rbspy", "fold it: rbspy report -f collapsed -i {file} -o stacks.folded")
        .begins(&[b"rbspy0"]),
    Named::new("a report of ruby-prof", "have it write callgrind: ruby-prof -p call_tree PROGRAM.rb")
        .begins(&[b"Measure Mode: "]),
    Named::new("a profile of Perl's NYTProf", "convert it: nytprofcg --file {file} --out nytprof.callgrind")
        .begins(&[b"NYTProf "]),
    Named::new("a profile of Perl's DProf", "record with Devel::NYTProf instead, and convert it: nytprofcg")
        .begins(&[b"#fOrTyTwO"]),
    Named::new("a trace of Xdebug", "have it profile instead: php -d xdebug.mode=profile, which writes callgrind")
        .begins(&[b"TRACE START ["])
        ,
    Named::new("a trace of Xdebug", "have it profile instead: php -d xdebug.mode=profile, which writes callgrind")
        .holds(&["File format: ", "TRACE START ["]),
    Named::new("a profile of Blackfire", "Treering does not read it; to look at it: blackfire.io")
        .begins(&[b"file-format: Blackfire"]),
    Named::new("JSON of XHProf or Tideways", "record with Xdebug or Excimer instead: they write callgrind and folded stacks")
        .keys(&["\"main()\"", "==>", "\"wt\""]),
    Named::new("serialized data of XHProf", "record with Xdebug or Excimer instead: they write callgrind and folded stacks")
        .begins(&[b"a:"])
        .holds(&["\"main()\"", "\"wt\""]),
    Named::new(
        "a profile of R (Rprof)",
        "convert it in R: profile::write_pprof(profile::read_rprof({text}), \"profile.pb.gz\")",
    )
    .holds(&["sample.interval="]),
    Named::new("a report of GHC's cost centres", "fold it: ghc-prof-flamegraph {file}, or run with +RTS -l and hs-speedscope")
        .holds(&["Time and Allocation Profiling Report"]),
    Named::new("JSON of GHC's cost centres", "Treering does not read it; to look at it: https://speedscope.app")
        .keys(&["\"cost_centres\"", "\"rts_arguments\""]),
    Named::new("a heap profile of GHC", "Treering does not read it; to look at it: hp2pretty {file}")
        .begins(&[b"JOB \""]),
    Named::new("an event log of GHC", "convert it: hs-speedscope {file}, which writes Speedscope's JSON")
        .begins(&[b"hdrb"])
        .endings(&[".eventlog"]),
    Named::new("an analysis of Erlang's fprof", "convert it: erlgrind {file}, which writes callgrind")
        .holds(&["{analysis_options,"]),
    // Go.
    Named::new(
        "a text profile of gperftools or Go",
        "convert it: go tool pprof -proto -output profile.pb.gz PROGRAM {file}",
    )
    .begins(&[b"--- contention", b"--- heapz", b"--- growthz", b"goroutine profile:"]),
    Named::new(
        "an execution trace of Go",
        "take the profile out of it: go tool trace -pprof=sched {file} > profile.pb.gz",
    )
    .shape(shape::is_go_trace),
    Named::new("what pprof prints", "name the profile that it was made of, or write that: go tool pprof -proto")
        .shape(shape::is_pprof_text),
    // Valgrind, heaps, code coverage.
    Named::new("a file of Valgrind's Massif", "Treering does not read it; to look at it: ms_print, which comes with Valgrind")
        .begins(&[b"desc:"])
        .holds(&["\ntime_unit:"]),
    Named::new("JSON of Valgrind's DHAT", "Treering does not read it; to look at it: dh_view.html, which comes with Valgrind")
        .keys(&["\"dhatFileVersion\""]),
    Named::new("what callgrind_annotate or cg_annotate prints", "name the file that it was made of: callgrind.out.PID")
        .holds(&["Profile data file '"]),
    Named::new("a file of heaptrack", "fold it: heaptrack_print -f {file} -F stacks.folded").shape(shape::is_heaptrack),
    Named::new("a raw profile of LLVM", "Treering does not read it; to look at it: llvm-profdata show {file}")
        .begins(&[b"\x81rforpl\xff", b"\xfflprofr\x81", b"\xfflprofi\x81"]),
    Named::new("counters of gcov", "have gcov print them: gcov --json-format {file}; Treering does not read it")
        .begins(&[b"adcg", b"gcda", b"oncg", b"gcno"]),
    Named::new("a report of lcov", "Treering writes such reports and does not read them").begins(&[b"TN:"]).holds(&["\nSF:"]),
    // Linux.
    Named::new("the text of ftrace", "record with perf instead: perf record -g, and perf script").shape(shape::is_ftrace),
    Named::new("a recording of trace-cmd", "record with perf instead: perf record -g; to look at it: trace-cmd report {file}")
        .begins(&[b"\x17\x08\x44tracing"]),
    Named::new("a trace in the Common Trace Format (CTF), as LTTng writes it", "Treering does not read it; to look at it: babeltrace2 or Trace Compass")
        .begins(&[b"\xc1\x1f\xfc\xc1", b"\xc1\xfc\x1f\xc1", b"\x57\x1d\xd1\x75", b"/* CTF "]),
    Named::new("what perf report prints", "name the recording that it was made of, perf.data, or what perf script prints")
        .holds(&["# Overhead "]),
    Named::new("what perf stat prints", "it has sums and no functions; record with: treering record")
        .holds(&["Performance counter stats for"]),
    Named::new("what bpftrace prints", "fold it: stackcollapse-bpftrace.pl {file} > stacks.folded").shape(shape::is_bpftrace),
    Named::new("what dtrace prints", "fold it: stackcollapse.pl {file} > stacks.folded").shape(shape::is_dtrace),
    Named::new("stacks that gdb prints", "fold it: stackcollapse-gdb.pl {file} > stacks.folded")
        .holds(&["\nThread ", "\n#0  "]),
    Named::new("a report of OProfile", "record with: treering record, or perf record")
        .begins(&[b"CPU: "])
        .holds(&["Counted "]),
    Named::new("a capture of Sysprof", "Treering does not read it; to look at it: sysprof {file}")
        .begins(&[b"\x5e\x97\xca\xfd"])
        .endings(&[".syscap"]),
    Named::new("data of Hotspot", "name the recording that it was made of: perf.data")
        .begins(&[b"QPERFSTREAM"])
        .endings(&[".perfparser"]),
    Named::new("an experiment of gprofng or Oracle Developer Studio", "print it: gprofng display text -calltree {file}; Treering does not read it")
        .endings(&[".er"]),
    Named::new("a profile of prof (Solaris and System V)", "compile with -pg instead, which writes gmon.out").endings(&["mon.out"]),
    // macOS, viewers, graphics.
    Named::new("XML of Xcode's Instruments", "Treering does not read it; to look at it: https://speedscope.app or Instruments")
        .begins(&[b"<?xml", b"<trace-"])
        .holds(&["<trace-query-result"]),
    Named::new(
        "a trace of Xcode's Instruments",
        "export its samples: xctrace export --input {file} --xpath \
         '//table[@schema=\"time-profile\"]' > samples.xml, and fold them: inferno-collapse-xctrace samples.xml > stacks.folded",
    )
    .endings(&[".trace"]),
    Named::new("what macOS's sample prints", "fold it: stackcollapse-sample.awk {file} > stacks.folded")
        .begins(&[b"Analysis of sampling ", b"Sampling process "]),
    Named::new("a trace of Perfetto", "convert it: traceconv json {file} trace.json")
        .shape(shape::is_perfetto)
        .endings(&[".perfetto-trace", ".pftrace"]),
    Named::new("a trace of Tracy", "print it: tracy-csvexport {file}; Treering does not read it")
        .begins(&[b"tlZ\x04", b"tZst", b"tr\xfdP", b"tracy"])
        .endings(&[".tracy"]),
    Named::new("a trace of Unreal Engine", "Treering does not read it; to look at it: Unreal Insights")
        .begins(&[b"2CRT", b"TRC2"])
        .endings(&[".utrace"]),
    Named::new("a result of VTune", "fold it: vtune -report callstacks -r {file}; Treering does not read it")
        .endings(&[".vtune", ".amplxe", ".advixe"]),
    Named::new("a report of Nsight Systems", "export what it has: nsys stats {file}; Treering does not read it")
        .endings(&[".nsys-rep", ".qdrep", ".ncu-rep", ".nvvp", ".nvprof"]),
    Named::new("data of AMD uProf", "print it: AMDuProfCLI report -i {file}; Treering does not read it")
        .endings(&[".caperf", ".rpd"]),
    Named::new("data of Very Sleepy", "export it as callgrind in its File menu").endings(&[".sleepy"]),
    Named::new("data of Superluminal, PIX or the Unity Profiler", "Treering does not read it; to look at it: the tool that wrote it")
        .endings(&[".sup", ".wpix"]),
    // Large machines.
    Named::new("a profile of TAU", "convert it: tau2profile or pprof of TAU; Treering does not read it")
        .holds(&[" templated_functions"]),
    Named::new("a trace of Paraver", "Treering does not read it; to look at it: wxparaver {file}").begins(&[b"#Paraver"]),
    Named::new("data of Caliper", "fold it: cali-query -q 'SELECT path,sum(time) FORMAT expand' {file}; Treering does not read it")
        .begins(&[b"__rec="]),
    Named::new("a profile of Score-P or Scalasca", "print it: cube_dump {file}; Treering does not read it")
        .endings(&[".cubex", ".cube", ".otf2"]),
    Named::new("a database of HPCToolkit", "Treering does not read it; to look at it: hpcviewer {file}")
        .begins(&[b"HPCPROF", b"HPCRUN", b"HPCTOOLKIT"])
        .endings(&[".hpcrun"]),
    // JSON.
    Named::new(
        "JSON of V8 about memory (.heapprofile or .heapsnapshot)",
        "Treering does not read it; to look at it: Chrome's developer tools or https://speedscope.app",
    )
    .keys(&["\"snapshot\"", "\"node_fields\""]),
    Named::new(
        "JSON of V8 about memory (.heapprofile or .heapsnapshot)",
        "Treering does not read it; to look at it: Chrome's developer tools or https://speedscope.app",
    )
    .keys(&["\"callFrame\"", "\"selfSize\""]),
    Named::new("a report of Treering as JSON", "name the profile that the report was made of").keys(&["\"run_cost\"", "\"view\""]),
    Named::new("JSON of gcov", "Treering does not read it").keys(&["\"gcc_version\"", "\"format_version\""]),
    // Anything else.
    Named::new("an SVG picture", "name the stacks that the picture was made of").begins(&[b"<svg"]),
    Named::new("an SVG picture", "name the stacks that the picture was made of").begins(&[b"<?xml", b"<!DOCTYPE", b"<!--"]).holds(&["<svg"]),
    Named::new("a program or library", "to profile it: treering record -- {file}").begins(&[b"\x7fELF"]),
    Named::new("a program of macOS or Windows", "Treering profiles programs of Linux")
        .begins(&[b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ\x90\0"]),
    Named::new("a core dump of Windows", "it is no profile; Treering does not read it").begins(&[b"MDMP"]),
    Named::new("an SQLite database", "Treering does not read it; to look at it: the tool that wrote it, such as nsys")
        .begins(&[b"SQLite format 3\0"]),
    Named::new("a heaptrack file that is compressed with zstd", "fold it: heaptrack_print -f {file} -F stacks.folded")
        .begins(&[b"\x28\xb5\x2f\xfd"])
        .shape(shape::is_packed_heaptrack),
    Named::new("compressed with zstd", "unpack it first: zstd -dk {file}").begins(&[b"\x28\xb5\x2f\xfd"]),
    Named::new("compressed with xz", "unpack it first: xz -dk {file}").begins(&[b"\xfd7zXZ\0"]),
    Named::new("compressed with bzip2", "unpack it first: bzip2 -dk {file}").shape(shape::is_bzip2),
    Named::new("compressed with lz4", "unpack it first: lz4 -d {file}").begins(&[b"\x04\x22\x4d\x18"]),
    Named::new("a zip archive", "unpack it first: unzip {file}").begins(&[b"PK\x03\x04"]),
    Named::new("a tar archive", "unpack it first: tar xf {file}").shape(|bytes| bytes.get(257..262) == Some(b"ustar")),
    Named::new("a 7z archive", "unpack it first: 7z x {file}").begins(&[b"7z\xbc\xaf\x27\x1c"]),
    Named::new("a PDF document", "").begins(&[b"%PDF-"]),
    Named::new("a picture", "").begins(&[b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8"]),
    Named::new("text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 {file}").shape(shape::is_utf16),
];
