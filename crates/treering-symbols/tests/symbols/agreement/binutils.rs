//! Addresses as binutils resolve them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::frame::{Frame, Line};
use super::program::run_in;

/// How many addresses of a program are compared, at most.
const MOST: usize = 6000;

/// The functions that have a size in the symbol table, as `nm` prints it.
pub(crate) struct Symbols {
    /// Start, end and name, sorted.
    functions: Vec<(u64, u64, String)>,
}

impl Symbols {
    pub(crate) fn of(program: &Path) -> Self {
        let text =
            run_in(Path::new("/"), "nm", &["--print-size", "--defined-only", &program.to_string_lossy()]);
        let mut functions = Vec::new();
        for line in text.lines() {
            if let [start, size, "t" | "T" | "w" | "W", name] =
                line.split_ascii_whitespace().collect::<Vec<_>>()[..]
            {
                let number = |text| u64::from_str_radix(text, 16).expect("nm prints hexadecimal numbers");
                functions.push((number(start), number(start) + number(size), name.to_owned()));
            }
        }
        functions.sort();
        Self { functions }
    }

    /// The names of the function that holds an address: several for constructors that serve as
    /// one another, and for functions that the linker folded because their code is equal.
    pub(crate) fn names(&self, address: u64) -> Vec<&str> {
        let before = &self.functions[..self.functions.partition_point(|&(start, ..)| start <= address)];
        let holding = before.iter().rev().take(256).filter(|&&(_, end, _)| address < end);
        holding.map(|(_, _, name)| name.as_str()).collect()
    }

    /// Where functions start.
    pub(crate) fn starts(&self, wanted: &[&str]) -> Vec<u64> {
        let start = |name: &&str| self.functions.iter().find(|(_, _, known)| known == name);
        wanted.iter().map(|name| start(name).expect("the program has that function").0).collect()
    }

    /// Addresses all over the functions. Bytes between functions belong to none, and tools attribute them
    /// differently.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        let all = self.functions.iter().flat_map(|&(start, end, _)| (start..end).step_by(3));
        let mut addresses: Vec<u64> = all.collect();
        addresses.sort_unstable();
        addresses.dedup();
        let step = addresses.len().div_ceil(MOST).max(1);
        addresses.into_iter().step_by(step).collect()
    }
}

/// The frames at each address according to `tool`, which is an `addr2line`, innermost first.
pub(crate) fn addr2line(tool: &str, program: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    let mut command = Command::new(tool);
    let mut child = command
        .args(["-a", "-i", "-f", "-e"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("addr2line is installed");
    let input: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut stdin = child.stdin.take().expect("it is piped");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("addr2line ends");
    writer.join().expect("it does not panic").expect("addr2line reads all of its input");
    parse(&String::from_utf8_lossy(&output.stdout))
}

/// The stubs that call library functions, and their names, as `objdump` shows them.
pub(crate) fn stubs(program: &Path) -> Vec<(u64, String)> {
    let text = run_in(Path::new("/"), "objdump", &["-d", &program.to_string_lossy()]);
    let stub = |line: &str| {
        let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
        let address = u64::from_str_radix(address, 16).ok()?;
        name.ends_with("@plt").then(|| (address, name.to_owned()))
    };
    text.lines().filter_map(stub).collect()
}

/// Reads blocks of a line with the address, then for each frame a line with the function and one
/// with file and line.
fn parse(text: &str) -> Vec<Vec<Frame>> {
    let mut all: Vec<Vec<Frame>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            all.push(Vec::new());
            continue;
        }
        let place = lines.next().expect("every function is followed by a place");
        let frames = all.last_mut().expect("an address comes first");
        frames.push(Frame { function: line.to_owned(), line: parse_place(place) });
    }
    all
}

/// Reads `/path/file.c:12 (discriminator 3)`; `?` and 0 stand for what is not known.
fn parse_place(place: &str) -> Option<Line> {
    let place = place.split(" (discriminator").next().unwrap_or(place);
    let (file, line) = place.rsplit_once(':')?;
    let line = line.parse().ok().filter(|&line| line > 0)?;
    (file != "??").then(|| Line { file: normalise(file), line })
}

/// The path without `.` and `..`.
fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}
