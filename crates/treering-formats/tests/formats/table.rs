//! The parts of a format that are not in its folder: pages and fuzz targets.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use treering_formats::Format;

fn text(path: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_format_has_a_page_that_the_lists_name() {
    let (list, summary) = (text("docs/formats/README.md"), text("docs/SUMMARY.md"));
    for format in Format::ALL {
        let page = format!("{format}.md");
        assert!(text(&format!("docs/formats/{page}")).starts_with("# "), "{page}");
        assert!(summary.contains(&format!("(formats/{page})")), "docs/SUMMARY.md lacks {page}");
        let row = list.lines().find(|row| row.starts_with(&format!("| [{page}]({page}) |")));
        let row = row.unwrap_or_else(|| panic!("docs/formats/README.md lacks {page}"));
        // The live file is written by the runtime.
        let written = format.is_written() || format == Format::Live;
        let said = if written { "| reads and writes |" } else { "| reads |" };
        assert!(row.ends_with(said), "{row}");
    }
}

#[test]
fn every_format_has_a_fuzz_target() {
    let manifest = text("fuzz/Cargo.toml");
    for format in Format::ALL {
        let target = format.as_str().replace('-', "_");
        assert!(manifest.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml lacks {target}");
        assert!(text(&format!("fuzz/fuzz_targets/{target}.rs")).contains("fuzz_target!"), "{target}");
    }
}

#[test]
fn no_two_formats_have_the_same_name() {
    let names: BTreeSet<_> = Format::ALL.map(Format::as_str).into();
    let titles: BTreeSet<_> = Format::ALL.map(Format::title).into();
    assert_eq!((names.len(), titles.len()), (Format::ALL.len(), Format::ALL.len()));
}

#[test]
fn formats_offered_for_export_can_be_written() {
    for format in Format::ALL {
        assert!(format.export_help().is_none() || format.is_written(), "{format}");
        assert!(format.import_help().is_some() || format.is_own(), "{format}");
    }
}

/// Formats in wide use that are not read are named, with advice.
#[test]
fn files_that_are_not_read_are_named_with_what_to_do() {
    let mut etl = vec![0; 0x60];
    etl[..4].copy_from_slice(&0x1_0000_u32.to_le_bytes());
    etl[0x48..0x4c].copy_from_slice(&[2, 0, 2, 0xc0]);
    let perfetto = [b"\x0a\x04\x40\x01\x50\x02".as_slice(), b"\x0a\x02\x50\x01"].concat();
    for (bytes, name, advice) in [
        (&b"memray\0\x0b"[..], "a recording of memray", "stacks.folded"),
        (b"v 10400 2\nX ./a\nI 1000\n", "a file of heaptrack", "heaptrack_print -f FILE"),
        (b"FLR\0\0\x02", "Flight Recorder", "jfr print --stack-depth 512"),
        (b"Nettrace\x14\0", "nettrace", "dotnet-trace convert"),
        (&etl, "(ETL)", "Speedscope"),
        (&perfetto, "Perfetto", "traceconv json"),
        (b"tr\xfdP\x01", "Tracy", "tracy-csvexport"),
        (b"NYTProf 5 0\n", "NYTProf", "nytprofcg"),
        (b"\x04\x08{\x0d:", "stackprof", "--json"),
        (b"rbspy02\n{", "rbspy", "-f collapsed"),
        (b"Measure Mode: wall_time\nThread ID: 1\n", "ruby-prof", "call_tree"),
        (b"/* CTF 1.8 */\n", "LTTng", "babeltrace2"),
        (b"\x17\x08\x44tracing", "trace-cmd", "perf"),
        (b"# tracer: function\n#\n", "ftrace", "perf"),
        (b"Analysis of sampling a (pid 7) every 1 millisecond\nCall graph:\n", "macOS", "stackcollapse-sample.awk"),
        (b"@[\n    f+1\n]: 12\n", "bpftrace", "stackcollapse-bpftrace.pl"),
        (b"    libc.so.1`read+0x15\n    a`main+0x2\n   12\n", "dtrace", "stackcollapse.pl"),
        (b"File: a\nType: cpu\nShowing nodes accounting for 1s\n      flat  flat%   sum%        cum   cum%\n", "pprof", "-proto"),
        (b"        12 function calls in 0.1 seconds\n\n   ncalls  tottime\n", "pstats", "cProfile -o"),
        (b"sample.interval=20000\n\"f\" \"g\"\n", "Rprof", "write_pprof"),
        (b"\tMon Jan 1 Time and Allocation Profiling Report  (Final)\n", "GHC", "ghc-prof-flamegraph"),
        (b"desc: --x\ncmd: a\ntime_unit: i\n", "Massif", "ms_print"),
        (b"{\"dhatFileVersion\":2}", "DHAT", "dh_view.html"),
        (b"{\n  \"recording\": {\n    \"events\": [{\n \"type\": \"jdk.ExecutionSample\"", "--json", "jfr print --stack-depth"),
        (b"<?xml version=\"1.0\"?>\n<recording x=\"y\"><event type=\"jdk.CPULoad\">", "--xml", "jfr print --stack-depth"),
    ] {
        let foreign = treering_formats::detect_foreign(bytes).unwrap_or_else(|| panic!("{}", bytes.escape_ascii()));
        assert!(foreign.to_string().contains(name), "{foreign}, not {name}");
        let told = foreign.advice("FILE", "FILE").unwrap_or_default();
        assert!(told.contains(advice), "{foreign}: {told}");
        assert!(treering_formats::read_any(bytes).is_err(), "{foreign}");
    }
    // A text within a command has other quotes than a word of one.
    let rprof = treering_formats::detect_foreign(b"sample.interval=20000\n\"f\" \"g\"\n").unwrap();
    let told = rprof.advice("a b.out", "'a b.out'").unwrap();
    assert!(told.contains("read_rprof(\"a b.out\")"), "{told}");
    // Of its own formats, none is read compressed.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&common::fixture("trg/small.trg")).unwrap();
    let refused = treering_formats::read_any(&packed.finish().unwrap()).unwrap_err().to_string();
    assert!(refused.contains("no profile that is read without unpacking it"), "{refused}");
    for (file, name) in [
        ("a.trace/", "Instruments"),
        ("/x/run.nsys-rep", "Nsight"),
        ("a.dtp", "dotTrace"),
        ("r001hs.vtune", "VTune"),
        ("test.1.er", "gprofng"),
        ("mon.out", "prof"),
    ] {
        let foreign = treering_formats::Foreign::by_file_name(file).unwrap();
        assert!(foreign.to_string().contains(name), "{file}: {foreign}");
    }
}
