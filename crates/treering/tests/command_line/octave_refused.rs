//! Octaves that are not as expected: refused, with nothing changed in them.
//!
//! The interpreter's library is copied and doctored, so that Octave itself still runs on it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::octave::octave;

const TREERING: &str = env!("CARGO_BIN_EXE_treering");

/// A library in the ELF of x86-64, by the places in its bytes.
struct Library {
    bytes: Vec<u8>,
    strings: (usize, usize),
    symbols: (usize, usize),
    relocations: (usize, usize),
}

/// R_X86_64_64 and R_X86_64_RELATIVE.
const ABSOLUTE: u64 = 1;
const RELATIVE: u64 = 8;

impl Library {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("the library of the interpreter");
        let mut library = Self { bytes, strings: (0, 0), symbols: (0, 0), relocations: (0, 0) };
        let headers = library.word(0x28) as usize;
        let count = library.word(0x3C) as u16;
        for at in (0..usize::from(count)).map(|number| headers + number * 64) {
            let (place, size) = (library.word(at + 24) as usize, library.word(at + 32) as usize);
            let is_loaded = library.word(at + 8) & 2 != 0;
            match library.word(at + 4) as u32 {
                3 if is_loaded => library.strings = (place, size),
                11 => library.symbols = (place, size),
                // The first table; the second is that of the procedure linkage.
                4 if library.relocations == (0, 0) => library.relocations = (place, size),
                _ => {}
            }
        }
        library
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    fn set(&mut self, at: usize, word: u64) {
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// Number and address of a symbol.
    fn symbol(&self, name: &str) -> (u64, u64) {
        let name = [name.as_bytes(), b"\0"].concat();
        let (start, size) = self.symbols;
        let found = (start..start + size).step_by(24).find(|&at| {
            let text = self.strings.0 + self.word(at) as u32 as usize;
            self.bytes[text..].starts_with(&name)
        });
        let at = found.expect("the symbol is in the library");
        (((at - start) / 24) as u64, self.word(at + 8))
    }

    /// Where the relocations are that fill words with the address of a symbol.
    fn relocations_of(&self, name: &str) -> Vec<usize> {
        let info = self.symbol(name).0 << 32 | ABSOLUTE;
        let (start, size) = self.relocations;
        (start..start + size).step_by(24).filter(|&at| self.word(at + 8) == info).collect()
    }

    /// Gives a symbol another name of the same length and the same hash, by which the loader finds
    /// it: a byte that is one more stands for 33 in the byte behind it (Bernstein's hash).
    fn rename(&mut self, name: &str, at: usize) {
        let whole = [b"\0", name.as_bytes(), b"\0"].concat();
        let (start, size) = self.strings;
        let place = self.bytes[start..start + size].windows(whole.len()).position(|part| part == whole);
        let place = start + place.expect("the name is in the library") + 1 + at;
        self.bytes[place] += 1;
        self.bytes[place + 1] -= 33;
    }

    /// Has the library call a function of its own directly, as when linked with `-Bsymbolic`.
    fn bind(&mut self, name: &str) {
        let address = self.symbol(name).1;
        for at in self.relocations_of(name) {
            self.set(at + 8, RELATIVE);
            self.set(at + 16, address);
        }
    }

    /// Swaps a virtual function with the one behind it in its table.
    fn swap(&mut self, name: &str) {
        let at = self.relocations_of(name)[0];
        let (place, info) = (self.word(at), self.word(at + 8));
        let (start, size) = self.relocations;
        let next = (start..start + size).step_by(24).find(|&other| self.word(other) == place + 8);
        let next = next.expect("a function behind it");
        let other = self.word(next + 8);
        self.set(at + 8, other);
        self.set(next + 8, info);
    }
}

/// Switches on, runs a function, and waits to be looked at.
const SCRIPT: &str = r"1;
function r = fib (n)
  if (n < 2) r = n; else r = fib (n - 1) + fib (n - 2); end
end
try
  __treering__ ('on', argv (){:});
catch e
  disp (e.message);
end
printf ('fib %d\n', fib (10));
fflush (stdout);
fgetl (stdin);
";

/// How many words in the interpreter's library lead into ours, in a process of that number.
fn words_of_ours(pid: u32) -> usize {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("it is ours");
    let ranges = |part: &str| -> Vec<(u64, u64)> {
        let lines = maps.lines().filter(|line| line.contains(part) && !line.contains("r-xp"));
        let number = |text: &str| u64::from_str_radix(text, 16).expect("an address");
        let range = |line: &str| line.split([' ', '-']).take(2).map(number).collect::<Vec<_>>();
        lines.map(range).map(|ends| (ends[0], ends[1])).collect()
    };
    let ours = ranges("__treering__.mex");
    let start = ours.iter().map(|range| range.0).min().expect("the library is loaded");
    let end = ours.iter().map(|range| range.1).max().expect("the library is loaded");
    let count = |(from, to): (u64, u64)| {
        let mut bytes = vec![0; (to - from) as usize];
        memory.read_exact_at(&mut bytes, from).expect("it is mapped");
        let words =
            bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        words.filter(|word| (start..end).contains(word)).count()
    };
    ranges("liboctinterp").into_iter().map(count).sum()
}

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder).env("LD_BIND_NOW", "1").args(arguments);
    command.current_dir(folder).stdin(Stdio::null()).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The library of the interpreter that is installed.
fn interpreter(folder: &Path) -> PathBuf {
    let script = "maps = strsplit (fileread ('/proc/self/maps'), char (10)); puts (maps{find (! cellfun (@isempty, strfind (maps, 'liboctinterp')), 1)});";
    let line = text(&run(folder, "octave-cli", &["--norc", "--eval", script]).stdout);
    let start = line.find('/').expect("the interpreter is a library of its own");
    PathBuf::from(line[start..].trim_end())
}

/// Octave's answer with a doctored library, to `on` with some options; and how many words of it
/// lead into ours then.
fn on_doctored(folder: &Path, options: &[&str], doctor: impl FnOnce(&mut Library)) -> (String, usize) {
    std::fs::write(folder.join("test_script.m"), SCRIPT).expect("written");
    let path = interpreter(folder);
    let mut library = Library::read(&path);
    doctor(&mut library);
    // The name by which it is asked for ends with the first number.
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let short = name.split('.').take(3).collect::<Vec<_>>().join(".");
    std::fs::write(folder.join(&short), &library.bytes).expect("written");
    let mut command = Command::new("octave-cli");
    command.env("LD_LIBRARY_PATH", folder).env("LD_BIND_NOW", "1").current_dir(folder);
    command.args(["--norc", "test_script.m"]).args(options);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut said = Vec::new();
    while said.last().is_none_or(|line: &String| line != "fib 55") {
        said.push(lines.next().unwrap_or_else(|| panic!("{said:?}")).expect("text"));
    }
    let words = words_of_ours(child.id());
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success(), "{said:?}");
    (said.join("\n"), words)
}

/// Refused, with these words, and with no word of Octave changed.
fn refused(folder: &Path, options: &[&str], words: &str, doctor: impl FnOnce(&mut Library)) {
    let (said, changed) = on_doctored(folder, options, doctor);
    assert!(said.contains("this Octave cannot be profiled: ") && said.contains(words), "{said}");
    assert!(said.contains("nothing was changed in it") && changed == 0, "{changed} changed: {said}");
    let script = folder.join("plain.m");
    std::fs::write(&script, "x = 1;\n").expect("written");
    if options.is_empty() {
        let ours = run(folder, TREERING, &["octave", "plain.m"]);
        let said = text(&ours.stderr);
        assert!(!ours.status.success(), "{said}");
        assert!(said.contains(words) && said.contains("hint: Treering knows Octave"), "{said}");
    }
}

const EXECUTE: &str =
    "_ZN6octave14tree_evaluator21execute_user_functionER20octave_user_functioniRK17octave_value_list";
const BUILTIN: &str = "_ZN14octave_builtin7executeERN6octave14tree_evaluatorEiRK17octave_value_list";
const NAME: &str = "_ZNK20octave_user_function13profiler_nameB5cxx11Ev";
const STATEMENT: &str = "_ZN6octave14tree_evaluator15visit_statementERNS_14tree_statementE";

#[test]
fn words_of_ours_are_found_where_nothing_was_doctored() {
    let Some(folder) = octave("refused_not") else { return };
    let (said, changed) = on_doctored(&folder, &[], |_| {});
    // Two for functions and scripts, four in tables of builtins and compiled files, and those of
    // functions that come and go.
    assert!(said == "fib 55" && changed >= 6, "{changed} changed: {said}");
}

#[test]
fn an_octave_without_a_function_of_ours_is_refused() {
    let Some(folder) = octave("refused_name") else { return };
    let at = EXECUTE.find("ex").expect("the bytes that are changed");
    refused(&folder, &[], &format!("{EXECUTE} is not exported by"), |library| library.rename(EXECUTE, at));
}

#[test]
fn an_octave_that_calls_itself_directly_is_refused() {
    let Some(folder) = octave("refused_slot") else { return };
    refused(&folder, &[], &format!("{BUILTIN} is not called through any slot"), |library| {
        library.bind(BUILTIN);
    });
}

#[test]
fn an_octave_with_other_virtual_functions_is_refused() {
    let Some(folder) = octave("refused_table") else { return };
    refused(&folder, &[], "is not found among the virtual functions", |library| library.swap(NAME));
}

#[test]
fn a_symbol_that_one_option_needs_is_missed_only_with_it() {
    let Some(folder) = octave("refused_option") else { return };
    let doctor = |library: &mut Library| library.bind(STATEMENT);
    refused(&folder, &["-lines"], &format!("{STATEMENT} is not called through any slot"), doctor);
    let (said, changed) = on_doctored(&folder, &["-args"], doctor);
    assert!(said == "fib 55" && changed >= 6, "{changed} changed: {said}");
}
