//! Debug information that an earlier run decompressed.
#![expect(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::fmt::Write as _;
use std::fs::{File, FileTimes, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use treering_cache::Cache;
use treering_profile::{
    Frame, Function, Metric, MetricId, Module, ModuleKind, NodeId, Profile, RecursionRule, StatedAddress,
    Unit,
};
use treering_symbols::{Options, symbolise};

/// A program with compressed debug information, and a cache.
struct Case {
    folder: PathBuf,
    program: PathBuf,
    build_id: Vec<u8>,
    cache: Cache,
    /// The addresses of some functions.
    addresses: Vec<u64>,
}

const UNITS: usize = 40;

const COMPRESSED: [&str; 4] = ["gcc", "-g", "-gz=zlib", "-Wl,--compress-debug-sections=zlib"];

impl Case {
    /// Nothing where there is no gcc, which is said.
    fn new(name: &str) -> Option<Self> {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target directory can be written");
        let program = folder.join("program");
        if !build(&folder, &program, "function", &COMPRESSED) {
            eprintln!("skipped: there is no gcc that compresses debug information");
            return None;
        }
        Some(Self::of(folder, program))
    }

    /// The case of a program that was built, in a folder of its own.
    fn of(folder: PathBuf, program: PathBuf) -> Self {
        let bytes = std::fs::read(&program).expect("the program is there");
        let object = object::File::parse(&*bytes).expect("it is an ELF file");
        let build_id = object.build_id().expect("its notes").expect("a build-id").to_vec();
        let is_wanted = |name: &str| name.starts_with("function_3_") || name.starts_with("function_17_");
        let functions = object.symbols().filter(|symbol| symbol.name().is_ok_and(is_wanted));
        let mut addresses: Vec<u64> = functions.map(|symbol| symbol.address() + 1).collect();
        addresses.sort_unstable();
        assert_eq!(addresses.len(), 200);
        let cache = Cache::open(&folder.join("cache")).expect("a cache");
        Self { folder, program, build_id, cache, addresses }
    }

    /// A program with debug information that is not compressed, and without a table of the code that units describe.
    /// Nothing where no compiler makes one, which is said.
    fn without_table(name: &str, compiler: &str, options: &[&str]) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("kept-{}-table-{name}-{compiler}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the target directory can be written");
        let program = folder.join("program");
        let command = [&[compiler, "-g", "-gz=none"], options].concat();
        let strip = ["-R", ".debug_aranges"];
        let stripped = || Command::new("objcopy").args(strip).arg(&program).output();
        if !build(&folder, &program, "function", &command)
            || !stripped().is_ok_and(|made| made.status.success())
        {
            eprintln!("skipped: {compiler} or objcopy is missing");
            return None;
        }
        Some(Self::of(folder, program))
    }

    /// Functions with their lines.
    fn names(&self, cache: Option<&Cache>) -> Vec<String> {
        let mut profile = Profile::new(RecursionRule::Full);
        profile.add_metric(Metric::exact("samples", Unit::Count));
        let thread = profile.add_single_thread("demo");
        let path = profile.strings.intern(self.program.to_str().expect("our path is text"));
        let build_id = self.build_id.clone().into();
        let module = profile.modules.intern(Module { path, build_id, kind: ModuleKind::Elf });
        for &address in &self.addresses {
            let at = Function::at_address(Some(module), StatedAddress(address));
            let frame = Frame::new(profile.functions.intern(at));
            profile.add_stack(thread, &[frame], None, &[(MetricId::new(0), 1)]);
        }
        let named = symbolise(&profile, &Options { cache, ..Options::default() }, &mut |_| {}).profile;
        let function = |node: NodeId| &named.functions[named.tree.function(node)];
        let described = |node| {
            let function = function(node);
            format!("{} {}:{}", &named.strings[function.name], &named.strings[function.file], function.line)
        };
        let mut names: Vec<String> = named.tree.nodes().skip(1).map(described).collect();
        names.sort();
        names
    }

    /// The file in the cache.
    fn kept(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(self.folder.join("cache")).expect("the cache");
        let mut files = files.map(|file| file.expect("an entry").path());
        let kept = files.next();
        assert_eq!(files.next(), None);
        kept
    }

    /// Overwrites the compressed sections, so that nothing can be read from them any more.
    fn overwrite_sections(&self) {
        let bytes = std::fs::read(&self.program).expect("the program is there");
        let object = object::File::parse(&*bytes).expect("it is an ELF file");
        let file = OpenOptions::new().write(true).open(&self.program).expect("our own file");
        let modified = file.metadata().and_then(|found| found.modified()).expect("its time");
        for section in
            object.sections().filter(|section| section.name().is_ok_and(|name| name.contains("debug_")))
        {
            let (start, length) = section.file_range().expect("it is in the file");
            // Behind the header, which states that it is compressed.
            let garbage = vec![0xff; length.saturating_sub(24) as usize];
            file.write_all_at(&garbage, start + 24).expect("our own file");
        }
        file.set_times(FileTimes::new().set_modified(modified)).expect("our own file");
    }

    /// Overwrites all units but those that are wanted by their numbers, and returns how long the section is.
    fn overwrite_units(&self, is_wanted: impl Fn(usize) -> bool) -> u64 {
        let bytes = std::fs::read(&self.program).expect("the program is there");
        let object = object::File::parse(&*bytes).expect("it is an ELF file");
        let (start, length) =
            object.section_by_name(".debug_info").and_then(|info| info.file_range()).expect("it has");
        let info = &bytes[start as usize..][..length as usize];
        let file = OpenOptions::new().write(true).open(&self.program).expect("our own file");
        let modified = file.metadata().and_then(|found| found.modified()).expect("its time");
        let (mut at, mut units) = (0, 0);
        while at < info.len() {
            let end = at + 4 + u32::from_le_bytes(info[at..][..4].try_into().expect("four bytes")) as usize;
            if !is_wanted(units) {
                file.write_all_at(&vec![0xff; end - at], start + at as u64).expect("our own file");
            }
            units += 1;
            at = end;
        }
        assert!(units >= UNITS);
        file.set_times(FileTimes::new().set_modified(modified)).expect("our own file");
        length
    }
}

/// Compiles many units, each with functions of its own, by a command that lacks inputs and outputs.
fn build(folder: &Path, program: &Path, function: &str, command: &[&str]) -> bool {
    let mut sources = Vec::new();
    for unit in 0..UNITS {
        let mut text = String::new();
        for at in 0..100 {
            let _ = writeln!(
                text,
                "struct type_{at} {{ long first_{at}; char *second_{at}[{at} + 1]; }};\n\
                 long {function}_{unit}_{at}(struct type_{at} *at, long n) {{ return at->first_{at} * n; }}"
            );
        }
        let source = folder.join(format!("unit_{unit}.c"));
        std::fs::write(&source, text).expect("the folder can be written");
        sources.push(source);
    }
    let main = folder.join("main.c");
    std::fs::write(&main, "int main(void) { return 0; }").expect("the folder can be written");
    let options = ["-O1", "-Wl,--build-id", "-o"];
    let (compiler, more) = command.split_first().expect("a compiler");
    let made =
        Command::new(compiler).args(more).args(options).arg(program).arg(&main).args(&sources).output();
    made.is_ok_and(|made| made.status.success())
}

#[test]
fn the_second_run_decompresses_nothing() {
    let Some(case) = Case::new("second") else { return };
    let expected = case.names(None);
    assert!(expected.iter().all(|name| name.contains("unit_") && !name.ends_with(":0")), "{expected:?}");
    assert_eq!(case.names(Some(&case.cache)), expected);
    let kept = case.kept().expect("sections are kept");
    assert_eq!(kept.metadata().expect("it is there").mode() & 0o7777, 0o600);
    case.overwrite_sections();
    assert_ne!(case.names(None), expected, "the sections are unreadable");
    assert_eq!(case.names(Some(&case.cache)), expected);
}

#[test]
fn only_units_that_hold_addresses_are_read() {
    let Some(case) = Case::new("units") else { return };
    let expected = case.names(Some(&case.cache));
    let kept = case.kept().expect("sections are kept");
    let bytes = std::fs::read(&case.program).expect("the program is there");
    let object = object::File::parse(&*bytes).expect("it is an ELF file");
    let info = object.section_by_name(".debug_info").expect("debug information");
    let info = info.uncompressed_data().expect("it can be decompressed").into_owned();
    let mut starts = vec![0];
    while *starts.last().expect("one") < info.len() {
        let at = *starts.last().expect("one");
        let length = u32::from_le_bytes(info[at..at + 4].try_into().expect("four bytes"));
        starts.push(at + 4 + length as usize);
    }
    assert!(starts.len() > UNITS && info.len() > 8192 * UNITS, "{} bytes, {starts:?}", info.len());
    let whole = std::fs::read(&kept).expect("it is there");
    let first = whole.chunks(4096).position(|block| block == &info[..4096]).expect("it is kept") * 4096;
    let file = OpenOptions::new().write(true).open(&kept).expect("our own file");
    // The first unit is that of `main`.
    for unit in [9, 12, 25, 35] {
        let middle = first + usize::midpoint(starts[unit + 1], starts[unit + 2]);
        file.write_all_at(&[!whole[middle]], middle as u64).expect("our own file");
    }
    case.overwrite_sections();
    assert_eq!(case.names(Some(&case.cache)), expected);
}

#[test]
fn a_damaged_file_is_not_used_and_made_anew() {
    let Some(case) = Case::new("damaged") else { return };
    let expected = case.names(Some(&case.cache));
    let kept = case.kept().expect("sections are kept");
    let whole = std::fs::read(&kept).expect("it is there");
    let mut changed = whole.clone();
    changed.iter_mut().skip(5000).step_by(100).for_each(|byte| *byte ^= 0x55);
    for damaged in [Vec::new(), b"not ours".to_vec(), whole[..whole.len() / 2].to_vec(), changed] {
        std::fs::write(&kept, &damaged).expect("our own file");
        assert_eq!(case.names(Some(&case.cache)), expected);
        assert_eq!(case.names(Some(&case.cache)), expected);
        assert_eq!(std::fs::read(&kept).expect("it is there"), whole);
    }
}

#[test]
fn a_program_that_was_built_again_gets_no_old_names() {
    let Some(case) = Case::new("again") else { return };
    let old = case.names(Some(&case.cache));
    assert!(old[0].starts_with("function_"), "{old:?}");
    // Other names at the same addresses of the same path, with the old build-id put into the new file.
    assert!(build(&case.folder, &case.program, "procedur", &COMPRESSED));
    let bytes = std::fs::read(&case.program).expect("the program is there");
    let object = object::File::parse(&*bytes).expect("it is an ELF file");
    let note = object.build_id().expect("its notes").expect("a build-id").to_vec();
    let at = bytes.windows(note.len()).position(|window| window == note).expect("it is in the file");
    let file = File::options().write(true).open(&case.program).expect("our own file");
    file.write_all_at(&case.build_id, at as u64).expect("our own file");
    let new = case.names(Some(&case.cache));
    assert!(new.iter().all(|name| name.starts_with("procedur_")), "{new:?}");
    assert_eq!(case.names(None), new);
}

#[test]
fn runs_at_the_same_time_keep_the_same_sections() {
    let Some(case) = Case::new("together") else { return };
    let expected = case.names(None);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..8).map(|_| scope.spawn(|| case.names(Some(&case.cache)))).collect();
        running.into_iter().for_each(|run| assert_eq!(run.join().expect("no panic"), expected));
    });
    assert!(case.kept().is_some());
    case.overwrite_sections();
    assert_eq!(case.names(Some(&case.cache)), expected);
}

/// Compilers other than gcc and rustc write no table of the code that units describe.
#[test]
fn the_second_run_reads_only_the_units_that_hold_addresses_where_no_table_names_them() {
    // Functions in sections of their own have ranges in a list.
    let kinds: [(&str, &str, &[&str]); 3] = [
        ("one", "clang", &["-gdwarf-5"]),
        ("lists", "clang", &["-gdwarf-5", "-ffunction-sections"]),
        ("four", "gcc", &["-gdwarf-4", "-ffunction-sections"]),
    ];
    for (name, compiler, options) in kinds {
        let Some(case) = Case::without_table(name, compiler, options) else { continue };
        // The source has a function on every second line.
        let stated = |unit, at| format!("function_{unit}_{at} unit_{unit}.c:{}", 2 * at + 2);
        let mut expected: Vec<String> =
            [3, 17].into_iter().flat_map(|unit| (0..100).map(move |at| stated(unit, at))).collect();
        expected.sort();
        let names = |cache: Option<&Cache>| {
            let folder = format!("{}/", case.folder.display());
            case.names(cache).iter().map(|name| name.replace(&folder, "")).collect::<Vec<_>>()
        };
        assert_eq!(names(None), expected, "{compiler} {options:?}");
        assert_eq!(names(Some(&case.cache)), expected, "{compiler} {options:?}");
        let kept = case.kept().expect("an index is kept");
        // The first unit is that of `main`.
        let info_length = case.overwrite_units(|unit| [3 + 1, 17 + 1].contains(&unit));
        let kept_length = kept.metadata().expect("it is there").len();
        assert!(kept_length < info_length / 10, "{kept_length} for {info_length}");
        assert_eq!(names(Some(&case.cache)), expected, "{compiler} {options:?}");
        assert_ne!(names(None), expected, "the other units are unreadable");
    }
}

/// Each unit has a copy of such a function; the linker keeps one, which all of them describe.
#[test]
fn one_unit_is_read_for_a_function_that_many_have() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{}-shared", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target directory can be written");
    let program = folder.join("program");
    let mut sources = Vec::new();
    for unit in 0..UNITS {
        let mut text = String::from(
            "template <class T> __attribute__((noinline)) T function_3_(T n) { return n * 3; }\n",
        );
        for at in 0..150 {
            let _ = writeln!(
                text,
                "struct t_{at} {{ long a; char *b[{at} + 1]; }}; long of_{unit}_{at}(t_{at} *p) {{ return p->a; }}"
            );
        }
        let _ = writeln!(text, "long use_{unit}(long n) {{ return function_3_(n); }}");
        if unit == 0 {
            text += "int main() { return function_3_(0); }\n";
        }
        let source = folder.join(format!("unit_{unit}.cc"));
        std::fs::write(&source, text).expect("the folder can be written");
        sources.push(source);
    }
    let mut command = Command::new("clang++");
    command.args(["-g", "-O1", "-Wl,--build-id", "-o"]).arg(&program).args(&sources);
    if !command.output().is_ok_and(|built| built.status.success()) {
        eprintln!("skipped: there is no clang++");
        return;
    }
    let bytes = std::fs::read(&program).expect("the program is there");
    let object = object::File::parse(&*bytes).expect("it is an ELF file");
    let build_id = object.build_id().expect("its notes").expect("a build-id").to_vec();
    let is_wanted = |name: &str| name.contains("function_3_");
    let functions = object.symbols().filter(|symbol| symbol.name().is_ok_and(is_wanted));
    let addresses: Vec<u64> = functions.map(|symbol| symbol.address() + 1).collect();
    assert!(!addresses.is_empty());
    let cache = Cache::open(&folder.join("cache")).expect("a cache");
    let case = Case { folder, program, build_id, cache, addresses };
    let expected = case.names(Some(&case.cache));
    assert!(expected[0].contains("function_3_") && expected[0].ends_with("unit_0.cc:1"), "{expected:?}");
    case.overwrite_units(|unit| unit == 0);
    assert_eq!(case.names(Some(&case.cache)), expected);
}

/// Go compresses debug information, gives programs no build-id, and functions that are inlined have their names in the
/// units that they come from.
#[test]
fn of_a_go_program_only_the_units_are_read_that_hold_addresses_or_inlined_functions() {
    const SOURCE: &str = "package main\nimport (\"encoding/json\"; \"fmt\"; \"sync\")\nvar lock sync.Mutex\n\
        //go:noinline\nfunc function_3_(n int) int { lock.Lock(); defer lock.Unlock(); return n * 3 }\n\
        func main() { text, _ := json.Marshal(function_3_(1)); fmt.Println(string(text)) }\n";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kept-{}-go", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the target directory can be written");
    std::fs::write(folder.join("main.go"), SOURCE).expect("the folder can be written");
    let mut command = Command::new("go");
    command.args(["build", "-o", "program", "main.go"]).current_dir(&folder).env("GO111MODULE", "off");
    if !command.output().is_ok_and(|built| built.status.success()) {
        eprintln!("skipped: there is no Go that builds a program");
        return;
    }
    let program = folder.join("program");
    // A file that was changed just now is not kept.
    let changed = std::fs::metadata(&program).expect("it is there").ctime();
    while SystemTime::UNIX_EPOCH.elapsed().is_ok_and(|now| now.as_secs().cast_signed() < changed + 5) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let bytes = std::fs::read(&program).expect("the program is there");
    let object = object::File::parse(&*bytes).expect("it is an ELF file");
    let start = object.symbols().find(|symbol| symbol.name() == Ok("main.function_3_"));
    let start = start.expect("it is not inlined");
    let addresses = (start.address()..start.address() + start.size()).collect();
    let cache = Cache::open(&folder.join("cache")).expect("a cache");
    let case = Case { folder, program, build_id: Vec::new(), cache, addresses };
    let expected = case.names(None);
    assert!(expected.iter().any(|name| name.contains("(*Mutex).Lock")), "{expected:?}");
    assert_eq!(case.names(Some(&case.cache)), expected);
    let kept = case.kept().expect("sections are kept").metadata().expect("it is there").len();
    let read = || -> u64 {
        let counted = std::fs::read_to_string("/proc/thread-self/io").expect("Linux counts");
        counted
            .lines()
            .find_map(|line| line.strip_prefix("rchar: "))
            .expect("it does")
            .parse()
            .expect("a number")
    };
    let before = read();
    assert_eq!(case.names(Some(&case.cache)), expected);
    let read = read() - before;
    assert!(read < kept, "{read} bytes were read, of {kept} that are kept");
}
