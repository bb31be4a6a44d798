//! The output of perf script.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufReader, Read};

use common::{canonical, fixture};
use treering_formats::{Format, detect, perf_script, read_any};
use treering_profile::{FunctionKind, NodeId, Profile, Unit};

fn read(text: &str) -> Profile {
    perf_script::read(text.as_bytes()).unwrap().0
}

/// The names from the outermost function to that of a node, without the root.
fn names(profile: &Profile, node: NodeId) -> Vec<String> {
    let functions = profile.tree.path(node).map(|node| profile.functions[profile.tree.function(node)]);
    let named = functions.filter(|function| function.kind != FunctionKind::Root);
    let mut names: Vec<_> = named.map(|function| profile.strings[function.name].to_owned()).collect();
    names.reverse();
    names
}

/// The cost of each stack.
fn stacks(profile: &Profile, metric: &str) -> BTreeMap<String, u64> {
    let metric = profile.find_metric(metric).unwrap();
    let mut stacks = BTreeMap::new();
    for node in profile.tree.nodes() {
        *stacks.entry(names(profile, node).join(";")).or_default() += profile.tree.self_cost(metric, node);
    }
    stacks.retain(|_, cost| *cost > 0);
    stacks
}

/// The stacks that stackcollapse-perf.pl made of a file, without the name of the thread in front.
fn collapsed(name: &str) -> BTreeMap<String, u64> {
    let text = String::from_utf8(fixture(&format!("perf-script/{name}"))).unwrap();
    let mut stacks = BTreeMap::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *stacks.entry(stack.split_once(';').unwrap().1.to_owned()).or_default() +=
            weight.parse::<u64>().unwrap();
    }
    stacks
}

#[test]
fn stacks_and_weights_are_those_that_flamegraph_finds() {
    let read = |name: &str| perf_script::read(&fixture(&format!("perf-script/{name}"))).unwrap().0;
    assert_eq!(stacks(&read("chains.txt"), "cpu-clock"), collapsed("chains.folded"));
    let events = read("events.txt");
    assert_eq!(stacks(&events, "cpu-clock/period=10000000/"), collapsed("events.cpu-clock.folded"));
    assert_eq!(stacks(&events, "page-faults/period=5/"), collapsed("events.page-faults.folded"));
    assert_eq!(stacks(&events, "sched:sched_switch"), collapsed("events.sched_switch.folded"));
}

#[test]
fn all_layouts_of_one_recording_hold_the_same_functions() {
    let read = |name: &str| perf_script::read(&fixture(&format!("perf-script/{name}"))).unwrap().0;
    let [chains, lines, bare] = ["chains.txt", "lines.txt", "bare.txt"].map(read);
    assert_eq!(stacks(&chains, "cpu-clock"), stacks(&lines, "cpu-clock"));
    // perf itself counted them.
    let samples = chains.find_metric("samples").unwrap();
    let text = String::from_utf8(fixture("perf-script/chains.txt")).unwrap();
    assert_eq!(chains.run_cost(samples), text.matches("cpu-clock:").count() as u64);
    assert_eq!(stacks(&bare, "samples"), stacks(&chains, "samples"));
}

#[test]
fn inlined_functions_threads_modules_and_the_command_are_kept() {
    let (lines, report) = perf_script::read(&fixture("perf-script/lines.txt")).unwrap();
    assert!(report.is_complete(), "{report:?}");
    let function = |name: &str| {
        let mut all = lines.functions.entries().iter();
        *all.find(|function| &lines.strings[function.name] == name).unwrap()
    };
    let path = |name| &lines.strings[lines.modules[function(name).module.unwrap()].path];
    assert_eq!(
        [function("poly").kind, function("solve").kind],
        [FunctionKind::Inlined, FunctionKind::Native]
    );
    assert_eq!([path("poly"), path("solve")], ["/tmp/mix/mix"; 2]);
    assert_eq!(function("do_syscall_64").kind, FunctionKind::Kernel);
    let threads: Vec<_> = lines.threads.iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(threads, ["mix", "my worker 7"]);
    assert_eq!((lines.processes.len(), lines.processes[0].name.as_str()), (1, "mix"));
    assert_eq!(lines.processes[0].pid, lines.threads[0].tid);
    let command = lines.runs[0].command.join(" ");
    assert!(
        command.ends_with("perf record -e cpu-clock -F 97 --call-graph dwarf,4096 -o dwarf.data ./mix"),
        "{command}"
    );
    let time = &lines.metrics[lines.find_metric("cpu-clock").unwrap().index()];
    assert_eq!((time.unit, time.sampling.as_ref().unwrap().period), (Unit::Nanoseconds, Some(10_309_278)));
}

#[test]
fn functions_of_two_names_are_not_inlined_into_their_callers() {
    // Those of the C library were in the program, as its frames follow theirs.
    for name in ["chains.txt", "lines.txt"] {
        let profile = read_any(&fixture(&format!("perf-script/{name}"))).unwrap().1;
        let functions = |name: &str| {
            let all = profile.functions.entries().iter();
            let named = all.filter(|function| &profile.strings[function.name] == name);
            named
                .map(|function| (format!("{:?}", function.kind), function.module.is_some()))
                .collect::<BTreeSet<_>>()
        };
        let expected = BTreeSet::from([("Native".to_owned(), false), ("Inlined".to_owned(), false)]);
        assert_eq!(functions("__GI___libc_read"), expected, "{name}");
        assert_eq!(functions("poly"), BTreeSet::from([("Inlined".to_owned(), true)]), "{name}");
    }
}

#[test]
fn lines_of_frames_are_call_sites_and_the_innermost_has_the_costs() {
    let profile = read(
        "a 1/1 1.000000: 7 cycles:\n\t10 f+0x1\n  x.c:3 (inlined)\n\t10 g+0x1 (/a)\n  x.c:9\n\t20 main+0x5 (/a)\n  y.c:5\n\n",
    );
    let line = |line: treering_profile::LineId| {
        let line = profile.lines.entries()[line.index()];
        format!("{}:{}", &profile.strings[line.file], line.line)
    };
    let sites: Vec<_> = profile.tree.nodes().map(|node| profile.tree.call_site(node).map(line)).collect();
    assert_eq!(sites, [None, None, Some("y.c:5".to_owned()), Some("x.c:9".to_owned())]);
    let costs: Vec<_> = profile.line_costs.iter().map(|cost| (line(cost.line), cost.cost)).collect();
    assert_eq!(costs, [("x.c:3".to_owned(), 7), ("x.c:3".to_owned(), 1)]);
}

#[test]
fn samples_without_call_chains_are_one_frame_each() {
    let (flat, report) = perf_script::read(&fixture("perf-script/flat.txt")).unwrap();
    let text = String::from_utf8(fixture("perf-script/flat.txt")).unwrap();
    let samples = flat.find_metric("samples").unwrap();
    assert_eq!(flat.run_cost(samples), text.matches(" cpu-clock: ").count() as u64);
    let solve = text.lines().filter(|line| line.contains("solve+")).count() as u64;
    assert_eq!(stacks(&flat, "samples")["solve"], solve);
    let line = flat.lines.entries().iter().find(|line| line.line == 7).unwrap();
    assert_eq!(&flat.strings[line.file], "mix.c");
    // Other records between the samples are neither samples nor unknown lines.
    assert!(report.notes.iter().all(|note| !note.contains("passed over")), "{report:?}");
    let lacks_callers = |profile: &Profile| {
        format!("{:?}", profile.metadata.notes).contains("no sample of cpu-clock has a caller")
    };
    assert!(lacks_callers(&flat));
    assert!(!lacks_callers(&perf_script::read(&fixture("perf-script/chains.txt")).unwrap().0));
}

/// Their events were added up, and the names of events were taken for those of threads.
#[test]
fn events_of_lines_without_numbers_stay_apart() {
    let chain = |start: &str| format!("{start}: \n\t1217 a (/x)\n\n");
    let faults_and_clock = ["page-faults", "page-faults", "cpu-clock"];
    for before in ["w ", "", "tmux: server  ", "w         58 ", "my worker 7 "] {
        let text: String = faults_and_clock.map(|event| chain(&format!("{before}{event}"))).concat();
        let profile = read(&text);
        let cost = |metric: &str| profile.find_metric(metric).map(|metric| profile.run_cost(metric));
        assert_eq!(
            (cost("page-faults samples"), cost("cpu-clock samples")),
            (Some(2), Some(1)),
            "{before:?}"
        );
        assert_eq!(cost("page-faults"), before.contains("58").then_some(116), "{before:?}");
        let name = before.trim().trim_end_matches("58").trim_end();
        assert_eq!(
            profile.threads.iter().map(|thread| (thread.tid, &*thread.name)).collect::<Vec<_>>(),
            [(0, name)]
        );
    }
    let flat: String = faults_and_clock.map(|event| format!("      w {event}:  1217 a (/x)\n")).concat();
    let (profile, report) = perf_script::read(flat.as_bytes()).unwrap();
    assert_eq!(profile.run_cost(profile.find_metric("page-faults samples").unwrap()), 2);
    assert!(!report.unfinished && profile.threads.len() == 1, "{report:?}");
}

/// Sources among frames, as `-F +srccode` prints them, may end as an event does.
#[test]
fn a_source_that_looks_like_a_sample_begins_none() {
    let profile = read("w cycles:\n\t1217 a (/x)\n  x.c:3\n|3   default:\n\t1218 main (/x)\n\n");
    assert_eq!(stacks(&profile, "samples").into_iter().collect::<Vec<_>>(), [("main;a".to_owned(), 1)]);
    assert_eq!(profile.threads.len(), 1);
}

/// A complete text of lines without frames was said to be cut short.
#[test]
fn samples_without_frames_end_with_their_lines() {
    let text = "mix 7/7 1.000000: cycles:\nmix 7/7 2.000000: cycles:\nmix 7/7 3.000000: cycles:\n";
    let (profile, report) = perf_script::read(text.as_bytes()).unwrap();
    assert_eq!(profile.metadata.losses.samples, 3);
    assert!(!report.unfinished);
    let (_, report) = perf_script::read(&text.as_bytes()[..text.len() - 1]).unwrap();
    assert!(report.unfinished, "the last line is cut");
    let chains = "mix 7/7 1.000000: cycles:\n\t1217 a (/x)\n\nmix 7/7 2.000000: cycles:\n";
    assert!(perf_script::read(chains.as_bytes()).unwrap().1.unfinished, "the last chain is missing");
}

#[test]
fn java_agents_put_inlined_methods_into_one_frame() {
    let profile =
        read("java 7 cycles:\nf0 LCaller;::a->LCallee;::b (/tmp/perf-7.map)\nf1 main (/bin/java)\n\n");
    assert_eq!(stacks(&profile, "samples").into_keys().collect::<Vec<_>>(), ["main;LCaller;::a;LCallee;::b"]);
    let kinds: Vec<_> = profile.functions.entries().iter().skip(1).map(|function| function.kind).collect();
    assert!(kinds.contains(&FunctionKind::Jit) && kinds.contains(&FunctionKind::Inlined), "{kinds:?}");
}

#[test]
fn lost_samples_and_lines_that_cannot_be_used_are_noted() {
    let text = "a 1 1.000000: 7 cycles:\n\t10 f (/a)\n\na 1 1.000000: PERF_RECORD_LOST lost 17\nwhat is this?\n\n\
                a 1 1.000000: 7 cycles:\n\n\
                a 1 1.000000: cycles:\n\t0 [unknown] ([unknown])\n\n";
    let (profile, report) = perf_script::read(text.as_bytes()).unwrap();
    let losses = profile.metadata.losses;
    assert_eq!((losses.samples, losses.lost_samples, losses.unresolved_samples), (3, 17, 1));
    for said in [
        "lines that are neither a sample nor a frame were passed over: 1",
        "samples of cycles have no period, so they cost nothing there: 1",
        "samples have no frames, so they are charged to their threads: 1",
    ] {
        assert!(report.notes.iter().any(|note| note == said), "{said}: {report:?}");
    }
    assert!(!report.unfinished);
    for end in [text.len() - 2, text.len() - 1] {
        assert!(perf_script::read(&text.as_bytes()[..end]).unwrap().1.unfinished);
    }
}

/// `perf script -F comm,event`, `-F ip`, and `-F comm,tid,event`, which tells the threads at least.
#[test]
fn fields_that_are_missing_are_named() {
    let fields = "perf script -F comm,pid,tid,time,event,period,ip,sym,dso prints";
    for text in
        ["     demo cpu-clock: \n     demo cpu-clock: \n", "\n\t            1135\n\n\n\t            1136\n"]
    {
        let error = perf_script::read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, format!("its samples have no addresses with names; {fields} them"));
    }
    let (_, report) =
        perf_script::read(b"     demo 25714 cpu-clock: \n     demo 25714 cpu-clock: \n").unwrap();
    let said = format!("samples have no frames, so they are charged to their threads ({fields} frames): 2");
    assert!(report.notes.contains(&said), "{report:?}");
}

#[test]
fn text_that_is_no_output_of_perf_script_is_an_error() {
    let error = |text: &[u8]| perf_script::read(text).unwrap_err().to_string();
    assert_eq!(error(b""), "it holds no samples");
    assert_eq!(error(b"hello\nworld\n"), "it holds no samples");
    let long = "line 1 at byte 0x0: it is longer than 1048576 bytes, as no line of perf script is";
    assert_eq!(error(&[b'x'; 2 << 20]), long);
    let events: String = (0..200).map(|at| format!("a 1 1.000000: e{at}:\n\n")).collect();
    assert_eq!(
        error(events.as_bytes()),
        "line 257 at byte 0xa12: there are more events than the 128 that can be read"
    );
}

#[test]
fn it_makes_no_difference_how_the_input_is_cut() {
    /// Gives a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);
    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }
    let file = fixture("perf-script/events.txt");
    let whole = canonical(&perf_script::read(&file).unwrap().0);
    for pieces in [1, 7, 4096] {
        let (profile, _) = perf_script::read_from(BufReader::with_capacity(16, Slow(&file, pieces))).unwrap();
        assert_eq!(canonical(&profile), whole, "{pieces}");
    }
}

#[test]
fn it_is_recognised_by_content_compressed_too() {
    for name in ["bare", "chains", "events", "flat", "lines"] {
        let file = fixture(&format!("perf-script/{name}.txt"));
        assert_eq!(read_any(&file).unwrap().0, Format::PerfScript, "{name}");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packed, &file).unwrap();
        let (format, profile, _) = read_any(&packed.finish().unwrap()).unwrap();
        assert_eq!(format, Format::PerfScript);
        assert_eq!(canonical(&profile), canonical(&perf_script::read(&file).unwrap().0));
    }
}

#[test]
fn a_text_that_ends_in_a_sample_says_so() {
    let text = fixture("perf-script/chains.txt");
    assert!(!perf_script::read(&text).unwrap().1.unfinished);
    let lines: Vec<_> = text.split_inclusive(|&byte| byte == b'\n').collect();
    let mut cut = 0;
    for end in 1..lines.len() {
        let Ok((_, report)) = perf_script::read(&lines[..end].concat()) else { continue };
        // A sample ends with an empty line.
        let is_whole = lines[end - 1] == b"\n";
        assert_eq!(report.unfinished, !is_whole, "{end} lines");
        cut += usize::from(!is_whole);
    }
    assert!(cut > 5);
}

/// Text of other tools has white space, numbers and names, too.
#[test]
fn only_what_perf_prints_is_taken_for_it() {
    for text in [
        // pprof -traces.
        &b"File: x\nType: cpu\n-----------+----------\n      1234   main.f\n             main.main (inline)\n"[..],
        b"     1234   main.f (inline)\n     5678   main.main (inline)\n",
        // ftrace.
        b"            bash-1977    [000] .... 17284.993652: sys_close: x\n",
        b"# tracer: function\n#\n          <idle>-0 [001] d..2 1.123456: sched_switch: prev_comm=x\n",
        // nm -C.
        b"0000000000401136 T main\n0000000000401180 T f(int)\n0000000000401190 T g(int)\n",
        b"2026-11-27 10:00:00 1.123456 error\n",
    ] {
        assert_ne!(detect(text), Some(Format::PerfScript), "{}", text.escape_ascii());
    }
    let header = b"# ========\n# captured on    : Fri Nov 27\n# nrcpus online : 2\n# ========\n#\n";
    let error = read_any(header).unwrap_err().to_string();
    assert_eq!(error, "it holds no samples");
    // perf without files, and with blanks for its tabs.
    for text in [
        &b"\t            1217 solve\n\t            10d5 main\n\n"[..],
        b"            1217 solve (/tmp/mix)\n            10d5 main (/tmp/mix)\n\n",
    ] {
        assert_eq!(detect(text), Some(Format::PerfScript), "{}", text.escape_ascii());
    }
}

/// They were one sample with as many callers as there are samples, or not known.
#[test]
fn samples_that_are_a_frame_alone_are_one_each() {
    for (before, rest) in [
        ("", ""),
        ("", " (/tmp/mix)"),
        ("", "+0xa"),
        ("             mix ", ""),
        (" 4624 ", ""),
        (" 4624/4624  ", ""),
        ("cpu-clock: ", ""),
    ] {
        let lines = format!(
            "{before}     55bd9bbcd143 poly{rest}\n{before} ffffffff81f7cc5a [unknown] ([unknown])\n"
        );
        let text = lines.repeat(3);
        let (format, profile, report) = read_any(text.as_bytes()).unwrap();
        assert_eq!((format, report.unfinished), (Format::PerfScript, false), "{text}{report:?}");
        let samples = profile.run_cost(profile.find_metric("samples").unwrap());
        assert_eq!((samples, profile.metadata.losses.unresolved_samples), (6, 3), "{text}");
        assert!(stacks(&profile, "samples").keys().all(|stack| !stack.contains(';')), "{text}");
    }
    let addresses = "\n\t            1143\n\t            11b7\n\n";
    let error = read_any(addresses.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("perf script -F"), "{error}");
}
