//! A profile's tree, costs and losses after symbolising.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use treering_profile::{
    Arc, Frame, Function, FunctionId, FunctionKind, Line, LineId, Metric, MetricId, Module, ModuleKind,
    NodeId, Profile, RecursionRule, StatedAddress, ThreadId, Unit,
};
use treering_symbols::{JitTable, Options, Problem, Symbolised, jitdump, perf_map, symbolise};

/// A profile of one thread whose stacks are addresses.
struct Recording {
    profile: Profile,
    thread: ThreadId,
    time: MetricId,
    samples: MetricId,
}

impl Recording {
    fn new(rule: RecursionRule) -> Self {
        let mut profile = Profile::new(rule);
        let samples = profile.add_metric(Metric::exact("samples", Unit::Count));
        let time = profile.add_metric(Metric::sampled("cpu-clock", Unit::Nanoseconds, samples, Some(1000)));
        let thread = profile.add_single_thread("demo");
        Self { profile, thread, time, samples }
    }

    fn module(&mut self, path: &str, kind: ModuleKind, build_id: &[u8]) -> treering_profile::ModuleId {
        let path = self.profile.strings.intern(path);
        self.profile.modules.intern(Module { path, build_id: build_id.into(), kind })
    }

    fn address(&mut self, module: treering_profile::ModuleId, address: u64) -> FunctionId {
        self.profile.functions.intern(Function::at_address(Some(module), StatedAddress(address)))
    }

    /// Adds a stack of functions, outermost first, seen in `count` samples.
    fn add(&mut self, stack: &[FunctionId], count: u64) {
        let frames: Vec<Frame> = stack.iter().copied().map(Frame::new).collect();
        let weights = [(self.samples, count), (self.time, 1000 * count)];
        self.profile.add_stack(self.thread, &frames, None, &weights);
    }

    fn symbolise(&self, options: &Options<'_>) -> Symbolised {
        let symbolised = symbolise(&self.profile, options, &mut |_| {});
        symbolised.profile.validate().expect("what is made out of a valid profile is valid");
        for (metric, _) in self.profile.metrics() {
            assert_eq!(symbolised.profile.run_cost(metric), self.profile.run_cost(metric));
        }
        symbolised
    }
}

/// The tree as text: a line for each node, with its call site, self cost in samples and lines.
fn show(profile: &Profile) -> String {
    let mut text = String::new();
    let lines = |line: LineId| {
        let line = profile.lines[line];
        format!("{}:{}", profile.strings[line.file].rsplit('/').next().unwrap_or_default(), line.line)
    };
    for node in profile.tree.nodes() {
        let Some(_) = profile.tree.parent(node) else { continue };
        let function = &profile.functions[profile.tree.function(node)];
        let depth = profile.tree.path(node).count() - 2;
        let name = &profile.strings[function.name];
        let site =
            profile.tree.call_site(node).map(|site| format!(" from {}", lines(site))).unwrap_or_default();
        let cost = profile.tree.self_cost(MetricId::new(0), node);
        let spent = profile.line_costs.iter().filter(|c| c.node == node && c.metric == MetricId::new(0));
        let spent: String = spent.map(|cost| format!(" {}={}", lines(cost.line), cost.cost)).collect();
        text.push_str(&format!(
            "{}{} {name}{site} {cost}{spent}\n",
            "  ".repeat(depth),
            function.kind.as_str()
        ));
    }
    text
}

fn check(recording: &Recording, options: &Options<'_>, expected: Expect) -> Symbolised {
    let symbolised = recording.symbolise(options);
    expected.assert_eq(&show(&symbolised.profile));
    symbolised
}

const MAP: &str = "1000 100 outer\n2000 100 inner\n";

fn with_map(text: &str) -> Options<'static> {
    Options {
        jit: vec![("[jit 7]".into(), JitTable::from_perf_map(perf_map::parse(text)))],
        ..Options::default()
    }
}

fn jit_recording(rule: RecursionRule, stacks: &[(&[u64], u64)]) -> Recording {
    let mut recording = Recording::new(rule);
    let module = recording.module("[jit 7]", ModuleKind::Jit, &[]);
    for (stack, count) in stacks {
        let stack: Vec<FunctionId> =
            stack.iter().map(|&address| recording.address(module, address)).collect();
        recording.add(&stack, *count);
    }
    recording
}

#[test]
fn costs_stay_known_by_address_where_addresses_are_exact() {
    let stacks: [(&[u64], u64); 4] =
        [(&[0x1001, 0x2001], 2), (&[0x1050, 0x2001], 3), (&[0x1077], 4), (&[0x1001, 0x2004], 1)];
    let mut recording = jit_recording(RecursionRule::Full, &stacks);
    let kept = |recording: &Recording, exact_addresses: bool| {
        let options = Options { exact_addresses, ..with_map(MAP) };
        let profile = recording.symbolise(&options).profile;
        let rows = profile.address_costs.iter().filter(|row| row.metric == recording.samples);
        let name = |function: FunctionId| &profile.strings[profile.functions[function].name];
        let rows = rows.map(|row| {
            assert_eq!(row.function, row.holder);
            format!("{} {:#x} {} {}", row.thread.raw(), row.address.0, name(row.function), row.cost)
        });
        rows.collect::<Vec<_>>()
    };
    let expected = ["0 0x1077 outer 4", "0 0x2001 inner 5", "0 0x2004 inner 1"];
    assert_eq!(kept(&recording, true), expected);
    assert_eq!(kept(&recording, false), [""; 0]);
    // The start of a function whose calls were counted is not where its time passed.
    let node = recording.profile.tree.nodes().last().expect("there are stacks");
    recording.profile.tree.add_calls(node, 7, 0);
    assert_eq!(kept(&recording, true), expected[..2]);
}

#[test]
fn addresses_of_one_function_in_one_chain_become_one_node() {
    let stacks: [(&[u64], u64); 3] = [(&[0x1001, 0x2001], 2), (&[0x1050, 0x2004], 3), (&[0x1077], 4)];
    check(
        &jit_recording(RecursionRule::Full, &stacks),
        &with_map(MAP),
        expect![[r#"
            jit outer 4
              jit inner 5
        "#]],
    );
}

#[test]
fn the_recursion_rule_folds_functions_that_were_different_addresses() {
    let stacks: [(&[u64], u64); 2] = [(&[0x1001, 0x1002, 0x2001], 2), (&[0x1001, 0x1003, 0x1004, 0x2009], 3)];
    check(
        &jit_recording(RecursionRule::Direct, &stacks),
        &with_map(MAP),
        expect![[r#"
            jit outer 0
              jit inner 5
        "#]],
    );
    check(
        &jit_recording(RecursionRule::Full, &stacks),
        &with_map(MAP),
        expect![[r#"
            jit outer 0
              jit outer 0
                jit inner 2
                jit outer 0
                  jit inner 3
        "#]],
    );
}

#[test]
fn nameless_code_is_counted_in_samples_not_in_other_metrics() {
    let stacks: [(&[u64], u64); 2] = [(&[0x1001, 0x9001], 2), (&[0x9002, 0x1001], 3)];
    let symbolised = check(
        &jit_recording(RecursionRule::Full, &stacks),
        &with_map(MAP),
        expect![[r#"
            jit outer 0
              unresolved [unresolved in jit 7] 2
            unresolved [unresolved in jit 7] 0
              jit outer 3
        "#]],
    );
    assert_eq!(symbolised.profile.metadata.losses.unresolved_samples, 2);
    let report = &symbolised.modules[0];
    assert_eq!((report.addresses, report.named, report.unresolved()), (3, 1, 2));
}

#[test]
fn lines_of_jit_code_are_call_sites_and_line_costs() {
    // A jitdump with `spam` at 0x1000, whose two instructions are on lines 3 and 4 of spam.py.
    let mut bytes = Vec::new();
    let word =
        |bytes: &mut Vec<u8>, values: &[u32]| values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    let long =
        |bytes: &mut Vec<u8>, values: &[u64]| values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
    word(&mut bytes, &[0x4a69_5444, 1, 40, 62, 0, 7]);
    long(&mut bytes, &[0, 0]);
    word(&mut bytes, &[2, 16 + 16 + 2 * (16 + 8)]);
    long(&mut bytes, &[0, 0x1000, 2]);
    for (address, line) in [(0x1000, 3), (0x1010, 4)] {
        long(&mut bytes, &[address]);
        word(&mut bytes, &[line, 0]);
        bytes.extend(b"spam.py\0");
    }
    word(&mut bytes, &[0, 16 + 40 + 5 + 0x20]);
    long(&mut bytes, &[1]);
    word(&mut bytes, &[7, 7]);
    long(&mut bytes, &[0x1000, 0x1000, 0x20, 1]);
    bytes.extend(b"spam\0");
    bytes.extend([0xcc; 0x20]);
    let dump = jitdump::parse(&bytes).expect("it has a header");
    assert_eq!(dump.damage, None);
    let options =
        Options { jit: vec![("[jit 7]".into(), JitTable::from_jitdump(dump))], ..Options::default() };
    let stacks: [(&[u64], u64); 2] = [(&[0x1001, 0x1011], 2), (&[0x1015, 0x1012], 1)];
    check(
        &jit_recording(RecursionRule::Full, &stacks),
        &options,
        expect![[r#"
            jit spam 0
              jit spam from spam.py:3 2 spam.py:4=2
              jit spam from spam.py:4 1 spam.py:4=1
        "#]],
    );
}

#[test]
fn kernel_code_is_named_by_the_list_of_its_symbols() {
    let mut recording = Recording::new(RecursionRule::Full);
    let kernel = recording.module("[kernel]", ModuleKind::Kernel, &[]);
    let stack =
        [0xffff_ffff_8100_0104, 0xffff_ffff_c000_0010].map(|address| recording.address(kernel, address));
    recording.add(&stack, 5);
    let kallsyms = "ffffffff81000100 T do_syscall_64\nffffffffc0000000 t nf_hook\t[nf_tables]\n";
    check(
        &recording,
        &Options { kallsyms: Some(kallsyms.into()), ..Options::default() },
        expect![[r#"
            kernel do_syscall_64 0
              kernel nf_hook [nf_tables] 5
        "#]],
    );
    let hidden = recording.symbolise(&Options::default());
    assert_eq!(hidden.modules[0].problems, [Problem::KernelSymbolsHidden]);
    assert_eq!(hidden.profile.metadata.losses.unresolved_samples, 5);
}

/// Readers count the samples in code of files that are not here, and these counted twice.
#[test]
fn samples_without_a_name_count_once_whoever_finds_that_out() {
    let mut recording = Recording::new(RecursionRule::Full);
    let kernel = recording.module("[kernel]", ModuleKind::Kernel, &[]);
    let address = recording.address(kernel, 0xffff_ffff_8100_0104);
    let name = recording.profile.strings.intern("[gone.so]");
    let gone = Function { kind: FunctionKind::Unresolved, ..Function::named(name) };
    let gone = recording.profile.functions.intern(gone);
    recording.add(&[gone, address], 5);
    recording.add(&[address, gone], 2);
    for counted_before in [0, 2] {
        recording.profile.metadata.losses.unresolved_samples = counted_before;
        let once = recording.symbolise(&Options::default()).profile;
        assert_eq!(once.metadata.losses.unresolved_samples, 7);
        let twice = symbolise(&once, &Options::default(), &mut |_| {}).profile;
        assert_eq!(twice.metadata.losses.unresolved_samples, 7);
    }
    // Samples that no metric counts are known to the reader alone.
    recording.profile.metadata.losses.unresolved_samples = 3;
    assert_eq!(recording.symbolise(&Options::default()).profile.metadata.losses.unresolved_samples, 8);
}

#[test]
fn functions_with_names_their_call_sites_and_lines_stay() {
    let mut recording = jit_recording(RecursionRule::Full, &[]);
    let module = recording.module("[jit 7]", ModuleKind::Jit, &[]);
    let address = recording.address(module, 0x1004);
    let name = recording.profile.strings.intern("spam");
    let spam = Function { kind: FunctionKind::Interpreted, ..Function::named(name) };
    let spam = recording.profile.functions.intern(spam);
    let file = recording.profile.strings.intern("/srv/spam.py");
    let line = recording.profile.lines.intern(Line { file, line: 12 });
    let called = Frame { function: spam, call_site: Some(line) };
    let samples = recording.samples;
    recording.profile.add_stack(
        recording.thread,
        &[Frame::new(address), called],
        Some(line),
        &[(samples, 3)],
    );
    check(
        &recording,
        &with_map(MAP),
        expect![[r#"
            jit outer 0
              interpreted spam from spam.py:12 3 spam.py:12=3
        "#]],
    );
}

#[test]
fn arcs_between_addresses_become_arcs_between_functions() {
    let mut recording = jit_recording(RecursionRule::Full, &[(&[0x1001], 2), (&[0x1009], 3)]);
    let module = recording.module("[jit 7]", ModuleKind::Jit, &[]);
    let time = recording.time;
    for (caller, calls) in [(0x1001, 3), (0x1008, 4)] {
        let (caller, callee) = (recording.address(module, caller), recording.address(module, 0x2000));
        let total_costs = vec![(time, 10 * calls)];
        recording.profile.add_arc(Arc { caller, callee, call_site: None, calls, total_costs });
    }
    let symbolised = check(
        &recording,
        &with_map(MAP),
        expect![[r#"
        jit outer 5
    "#]],
    );
    let profile = &symbolised.profile;
    let name = |function: FunctionId| &profile.strings[profile.functions[function].name];
    let arcs: Vec<_> =
        profile.arcs.iter().map(|arc| (name(arc.caller), name(arc.callee), arc.calls)).collect();
    assert_eq!(arcs, [("outer", "inner", 7)]);
    assert_eq!(profile.arcs[0].total_costs, [(time, 70)]);
}

/// The report on one address of a file at `path`.
fn problems(path: &str, build_id: &[u8], options: &Options<'_>) -> Vec<Problem> {
    let mut recording = Recording::new(RecursionRule::Full);
    let module = recording.module(path, ModuleKind::Elf, build_id);
    let address = recording.address(module, 0x1000);
    recording.add(&[address], 1);
    let symbolised = recording.symbolise(options);
    assert_eq!(symbolised.profile.metadata.losses.unresolved_samples, 1);
    symbolised.modules[0].problems.clone()
}

#[test]
fn a_file_that_cannot_be_used_is_said_and_not_guessed_around() {
    let none = Options::default();
    assert_eq!(
        problems("/nowhere/lib.so", &[], &none),
        [Problem::Missing { path: "/nowhere/lib.so".into() }]
    );
    assert_eq!(
        problems("/nowhere/lib.so (deleted)", &[], &none),
        [Problem::Deleted { path: "/nowhere/lib.so".into() }]
    );
    assert_eq!(problems("/etc/passwd", &[], &none), [Problem::NotAnObject { path: "/etc/passwd".into() }]);
    assert_eq!(problems("/proc", &[], &none), [Problem::NotAnObject { path: "/proc".into() }]);
    let this = std::env::current_exe().expect("it runs");
    let found = problems(&this.to_string_lossy(), &[1, 2, 3], &none);
    let [Problem::OtherBuild { expected, .. }] = &found[..] else { panic!("{found:?}") };
    assert_eq!(expected, "010203");
}

#[test]
fn a_file_is_opened_where_the_options_say() {
    let this = std::env::current_exe().expect("it runs");
    let open = move |path: &Path| -> Option<PathBuf> {
        (path == Path::new("/inside/program")).then(|| this.clone())
    };
    let options = Options { open: &open, ..Options::default() };
    let mut recording = Recording::new(RecursionRule::Full);
    let module = recording.module("/inside/program", ModuleKind::Elf, &[]);
    let start = segment_start(&std::env::current_exe().expect("it runs"));
    let address = recording.address(module, start);
    recording.add(&[address], 1);
    let report = recording.symbolise(&options).modules.remove(0);
    assert_eq!(report.named, 1, "{report:?}");
}

/// An address of code that certainly belongs to a function: the entry point's, 0x20 bytes on.
fn segment_start(program: &Path) -> u64 {
    let bytes = std::fs::read(program).expect("it can be read");
    let entry: [u8; 8] = bytes[24..32].try_into().expect("an ELF header holds the entry point");
    u64::from_le_bytes(entry)
}

#[test]
fn code_that_the_kernel_maps_is_named_by_its_own_symbols() {
    let mut recording = Recording::new(RecursionRule::Full);
    let module = recording.module("[vdso]", ModuleKind::Vdso, &[]);
    let addresses: Vec<_> = (0x600..0x1000).step_by(16).map(|at| recording.address(module, at)).collect();
    for address in addresses {
        recording.add(&[address], 1);
    }
    let symbolised = recording.symbolise(&Options::default());
    let profile = &symbolised.profile;
    let names: Vec<_> = profile.functions.entries().iter().map(|f| &profile.strings[f.name]).collect();
    assert!(names.iter().any(|name| name.contains("clock_gettime") || name.contains("vdso")), "{names:?}");
}

#[test]
fn sources_with_cost_are_embedded_dearest_first_up_to_the_limit() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources");
    let library = directory.join("toolchains/demo/lib/rustlib/src/rust/library/core");
    std::fs::create_dir_all(&library).expect("the target directory is writable");
    std::fs::write(directory.join("dear.c"), "dear").expect("the target directory is writable");
    std::fs::write(directory.join("cheap.c"), "cheap").expect("the target directory is writable");
    std::fs::write(directory.join("binary.c"), [0xff, 0xfe]).expect("the target directory is writable");
    std::fs::write(library.join("lib.rs"), "core").expect("the target directory is writable");
    let mut recording = jit_recording(RecursionRule::Full, &[]);
    let name = recording.profile.strings.intern("f");
    let function = recording.profile.functions.intern(Function::named(name));
    let files = ["dear.c", "cheap.c", "binary.c", "missing.c"].map(|file| directory.join(file));
    let files = files.iter().map(|file| file.to_string_lossy().into_owned());
    let files = files.chain(["/rustc/0123abcd/library/core/lib.rs".to_owned()]);
    for (file, cost) in files.zip([9, 1, 8, 7, 6]) {
        let file = recording.profile.strings.intern(&file);
        let line = recording.profile.lines.intern(Line { file, line: 1 });
        let samples = recording.samples;
        recording.profile.add_stack(
            recording.thread,
            &[Frame::new(function)],
            Some(line),
            &[(samples, cost)],
        );
    }
    let rust_sources = treering_symbols::rust_sources(&directory.join("toolchains"));
    let texts = |source_limit| {
        let options =
            Options { sources: true, source_limit, rust_sources: rust_sources.clone(), ..Options::default() };
        let profile = recording.symbolise(&options).profile;
        profile.sources.iter().map(|source| source.text.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(texts(100), ["dear", "core", "cheap"]);
    assert_eq!(texts(8), ["dear", "core"]);
    assert_eq!(texts(3), [""; 0]);
    std::fs::write(directory.join("toolchains/demo/lib/rustlib/multirust-channel-manifest.toml"), "ffff")
        .expect("the target directory is writable");
    assert_eq!(texts(100), ["dear", "cheap"]);
    std::fs::remove_dir_all(&directory).expect("it is ours");
}

#[test]
fn progress_is_reported_for_each_module_and_at_the_end() {
    let recording = jit_recording(RecursionRule::Full, &[(&[0x1001, 0x2001], 2)]);
    let mut told = Vec::new();
    symbolise(&recording.profile, &with_map(MAP), &mut |progress| {
        told.push((progress.module.to_owned(), progress.done, progress.total));
    });
    assert_eq!(told, [("[jit 7]".to_owned(), 0, 2), (String::new(), 2, 2)]);
    assert_eq!(recording.profile.tree.parent(NodeId::new(1)), Some(NodeId::new(0)));
}
