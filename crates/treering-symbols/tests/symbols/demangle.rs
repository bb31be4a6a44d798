//! Names of large C++ libraries, compared with what binutils make of them.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(clippy::print_stdout, reason = "tests say when they skip")]

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use object::{Object as _, ObjectSymbol as _};
use treering_symbols::{demangle, demangle_fully};

/// Where large C++ libraries and programs may be.
const FILES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/liboctinterp.so.10",
    "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
    "/usr/bin/cmake",
];

/// The mangled names of functions of C++ in a file.
fn mangled(path: &PathBuf) -> BTreeSet<String> {
    let Ok(bytes) = std::fs::read(path) else { return BTreeSet::new() };
    let object = object::File::parse(&*bytes).unwrap();
    let symbols = object.symbols().chain(object.dynamic_symbols());
    let names = symbols.filter_map(|symbol| symbol.name().ok());
    let names = names.map(|name| name.split('@').next().unwrap_or(name));
    names.filter(|name| name.starts_with("_Z")).map(str::to_owned).collect()
}

/// The names as `c++filt` demangles them.
fn filtered(names: &[String], options: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("c++filt");
    command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut filter = command.spawn().ok()?;
    let mut input = filter.stdin.take().unwrap();
    let text = names.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = filter.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn every_name_that_others_read_is_read() {
    let names: BTreeSet<String> = FILES.iter().flat_map(|file| mangled(&PathBuf::from(file))).collect();
    let names: Vec<String> = names.into_iter().collect();
    let Some(theirs) = filtered(&names, &[]).filter(|_| !names.is_empty()) else {
        println!("skipped: c++filt or a C++ library is missing");
        return;
    };
    let left =
        |(name, theirs): &(&String, &String)| demangle(name).starts_with("_Z") && !theirs.starts_with("_Z");
    let left: Vec<_> = names.iter().zip(&theirs).filter(left).collect();
    assert!(left.is_empty(), "{} of {}: {:#?}", left.len(), names.len(), &left[..left.len().min(5)]);
}

#[test]
fn full_names_are_those_of_others() {
    let names: Vec<String> = mangled(&PathBuf::from(FILES[0]))
        .into_iter()
        // Tables, and stubs that correct `this`, have descriptions in place of names, each its own.
        .filter(|name| !name.starts_with("_ZT"))
        .collect();
    let Some(theirs) = filtered(&names, &[]).filter(|_| !names.is_empty()) else {
        println!("skipped: c++filt or libstdc++ is missing");
        return;
    };
    // Both write short names for some templates, but not in the same places.
    let short = [
        ("std::basic_string<char,std::char_traits<char>,std::allocator<char>>", "std::string"),
        ("std::basic_istream<char,std::char_traits<char>>", "std::istream"),
        ("std::basic_ostream<char,std::char_traits<char>>", "std::ostream"),
        ("std::basic_iostream<char,std::char_traits<char>>", "std::iostream"),
        ("std::string::string", "std::string::basic_string"),
        ("std::string::~string", "std::string::~basic_string"),
        ("std::basic_streambuf<char,std::char_traits<char>>", "std::streambuf"),
        ("std::istream::istream", "std::istream::basic_istream"),
        ("std::istream::~istream", "std::istream::~basic_istream"),
        ("std::ostream::ostream", "std::ostream::basic_ostream"),
        ("std::ostream::~ostream", "std::ostream::~basic_ostream"),
        ("std::iostream::iostream", "std::iostream::basic_iostream"),
        ("std::iostream::~iostream", "std::iostream::~basic_iostream"),
    ];
    let alike = |name: &str| {
        short.iter().fold(name.replace(' ', ""), |name, (long, short)| name.replace(long, short))
    };
    let differ: Vec<_> = names
        .iter()
        .zip(&theirs)
        .map(|(name, theirs)| (alike(&demangle_fully(name)), alike(theirs)))
        .filter(|(ours, theirs)| ours != theirs)
        .collect();
    for (ours, theirs) in differ.iter().take(12) {
        println!("{ours}\n  {theirs}");
    }
    // They differ in references to a class within another, in numbers as template arguments, and in the parameters
    // of constructors that are templates.
    assert!(differ.len() * 100 < names.len(), "{} of {}", differ.len(), names.len());
}
