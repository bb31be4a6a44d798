//! Debug information that is compressed, split, shared, kept in other files, or missing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use treering_symbols::{Options, Problem};

use super::binutils::{self, Symbols};
use super::check;
use super::frame::{resolve, unresolved};
use super::program::{Program, compile_in, directory, missing, run_in, succeeds_in};

const OPTIMISED: &str = "-O2";

/// A directory with a build of the C++ program, `plain`, that has everything in one file.
fn with_plain(name: &str, version: &str) -> Option<(PathBuf, PathBuf)> {
    if missing(&["g++", "addr2line", "nm", "objcopy"]) {
        return None;
    }
    let directory = directory(name);
    let plain = build(&directory, "plain", &["-g", version]);
    Some((directory, plain))
}

fn build(directory: &Path, output: &str, arguments: &[&str]) -> PathBuf {
    let mut all = vec![OPTIMISED];
    all.extend(arguments);
    compile_in(directory, output, "g++", Program::Cpp, &all)
}

fn options_with(debug_directory: &Path) -> Options<'static> {
    Options { debug_directories: vec![debug_directory.into()], ..Options::default() }
}

/// Separates the debug information of `plain` into `debug`, and makes `stripped` without it.
fn separate(directory: &Path, stripped: &str, debug: &str) -> PathBuf {
    run_in(directory, "objcopy", &["--only-keep-debug", "plain", debug]);
    run_in(directory, "objcopy", &["--strip-all", "plain", stripped]);
    directory.join(stripped)
}

#[test]
fn compressed_sections_agree() {
    let Some((directory, plain)) = with_plain("compressed", "-gdwarf-5") else { return };
    for method in ["zlib-gabi", "zlib-gnu", "zstd"] {
        let argument = format!("--compress-debug-sections={method}");
        let arguments = [argument.as_str(), "plain", method];
        let done = succeeds_in(&directory, "objcopy", &arguments)
            || succeeds_in(&directory, "llvm-objcopy", &arguments);
        if done {
            check(&directory.join(method), &plain, &Options::default());
        }
    }
}

#[test]
fn types_in_sections_of_their_own_agree() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let Some((directory, plain)) = with_plain(&format!("types{version}"), version) else { return };
        let subject = build(&directory, "types", &["-g", version, "-fdebug-types-section"]);
        check(&subject, &plain, &Options::default());
    }
}

#[test]
fn split_units_agree() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let Some((directory, plain)) = with_plain(&format!("split{version}"), version) else { return };
        let subject = build(&directory, "split", &["-g", version, "-gsplit-dwarf"]);
        check(&subject, &plain, &Options::default());
    }
}

#[test]
fn split_units_beside_a_binary_that_was_moved_agree() {
    let Some((directory, plain)) = with_plain("moved", "-gdwarf-5") else { return };
    let built_in = directory.join("built");
    fs::create_dir(&built_in).expect("the directory is writable");
    let subject = compile_in(
        &built_in,
        "split",
        "g++",
        Program::Cpp,
        &[
            OPTIMISED,
            "-g",
            "-gsplit-dwarf",
            &format!("-fdebug-prefix-map={}={}", built_in.display(), directory.display()),
        ],
    );
    check(&subject, &plain, &Options::default());
}

#[test]
fn packaged_split_units_agree() {
    for (version, tool) in [("-gdwarf-4", "dwp"), ("-gdwarf-5", "llvm-dwp")] {
        let Some((directory, plain)) = with_plain(&format!("packaged{version}"), version) else { return };
        let subject = build(&directory, "split", &["-g", version, "-gsplit-dwarf"]);
        if succeeds_in(&directory, tool, &["-e", "split", "-o", "split.dwp"]) {
            remove_parts(&directory);
            check(&subject, &plain, &Options::default());
        }
    }
}

fn remove_parts(directory: &Path) {
    for entry in fs::read_dir(directory).expect("it exists").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "dwo") {
            fs::remove_file(entry.path()).expect("it is ours");
        }
    }
}

#[test]
fn a_missing_split_unit_is_said_and_symbols_and_lines_remain() {
    let Some((directory, plain)) = with_plain("lost", "-gdwarf-5") else { return };
    let subject = build(&directory, "split", &["-g", "-gsplit-dwarf"]);
    remove_parts(&directory);
    let addresses = Symbols::of(&plain).addresses();
    let resolved = resolve(&subject, &addresses, &Options::default());
    assert!(
        matches!(resolved.report.problems[..], [Problem::MissingPart { .. }]),
        "{:?}",
        resolved.report.problems
    );
    assert_eq!(resolved.report.named, addresses.len());
    assert!(resolved.report.with_line * 10 > addresses.len() * 8, "{} lines", resolved.report.with_line);
}

#[test]
fn a_debug_file_is_found_by_its_link_wherever_it_may_be() {
    let Some((directory, plain)) = with_plain("link", "-gdwarf-5") else { return };
    let subject = separate(&directory, "stripped", "program.debug");
    run_in(
        &directory,
        "objcopy",
        &["--remove-section=.note.gnu.build-id", "--add-gnu-debuglink=program.debug", "stripped"],
    );
    let central = directory.join("central");
    let inside = directory.strip_prefix("/").expect("the path is absolute");
    let places = [directory.clone(), directory.join(".debug"), central.join(inside)];
    let mut at = directory.join("program.debug");
    for place in places {
        fs::create_dir_all(&place).expect("the directory is writable");
        let next = place.join("program.debug");
        fs::rename(&at, &next).expect("the directory is writable");
        at = next;
        let resolved = check(&subject, &plain, &options_with(&central));
        assert_eq!(resolved.report.debug_file.as_ref(), Some(&at));
    }
}

#[test]
fn a_debug_file_with_another_checksum_is_not_used() {
    let Some((directory, plain)) = with_plain("checksum", "-gdwarf-5") else { return };
    let subject = separate(&directory, "stripped", "program.debug");
    run_in(
        &directory,
        "objcopy",
        &["--remove-section=.note.gnu.build-id", "--add-gnu-debuglink=program.debug", "stripped"],
    );
    let debug = directory.join("program.debug");
    let mut bytes = fs::read(&debug).expect("it was made just now");
    bytes.push(0);
    fs::write(&debug, bytes).expect("it is ours");
    let resolved = resolve(&subject, &Symbols::of(&plain).addresses(), &options_with(&directory));
    assert_eq!(resolved.report.debug_file, None);
    assert!(resolved.report.problems.contains(&Problem::OtherChecksum { path: debug }));
}

#[test]
fn a_debug_file_is_found_by_build_id() {
    let Some((directory, plain)) = with_plain("buildid", "-gdwarf-5") else { return };
    let plain_with_id = build(&directory, "plain", &["-g", "-Wl,--build-id=0x0123456789abcdef"]);
    assert_eq!(plain, plain_with_id);
    let subject = separate(&directory, "stripped", "program.debug");
    let place = directory.join("debug/.build-id/01");
    fs::create_dir_all(&place).expect("the directory is writable");
    let debug = place.join("23456789abcdef.debug");
    fs::rename(directory.join("program.debug"), &debug).expect("the directory is writable");
    let resolved = check(&subject, &plain, &options_with(&directory.join("debug")));
    assert_eq!(resolved.report.debug_file, Some(debug));
}

#[test]
fn debug_information_shared_by_dwz_agrees() {
    let Some((directory, plain)) = with_plain("dwz", "-gdwarf-4") else { return };
    if missing(&["dwz"]) {
        return;
    }
    for copy in ["first", "second"] {
        fs::copy(&plain, directory.join(copy)).expect("the directory is writable");
        let writable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.join(copy), writable).expect("it is ours");
    }
    run_in(&directory, "dwz", &["-m", "common.debug", "-M", "common.debug", "first", "second"]);
    assert!(directory.join("common.debug").is_file(), "dwz found nothing to share");
    check(&directory.join("first"), &plain, &Options::default());
    fs::remove_file(directory.join("common.debug")).expect("it is ours");
    let addresses = Symbols::of(&plain).addresses();
    let resolved = resolve(&directory.join("first"), &addresses, &Options::default());
    assert!(resolved.report.problems.contains(&Problem::MissingPart { path: "common.debug".into() }));
    assert_eq!(resolved.report.named, addresses.len());
}

#[test]
fn a_stripped_binary_has_functions_by_its_unwind_table() {
    let Some((directory, plain)) = with_plain("stripped", "-gdwarf-5") else { return };
    let subject = separate(&directory, "stripped", "elsewhere.debug");
    let symbols = Symbols::of(&plain);
    let starts = symbols.starts(&["main", "_ZN6shapes4makeEi"]);
    let resolved = resolve(&subject, &starts, &Options::default());
    let names: Vec<&str> = resolved.frames.iter().map(|frames| frames[0].function.as_str()).collect();
    let expected: Vec<String> = starts.iter().map(|start| format!("stripped+{start:#x}")).collect();
    assert_eq!(names, expected);
    assert!(resolved.report.problems.contains(&Problem::NoDebugInformation));
    assert_eq!(resolved.report.unresolved(), starts.len());
    assert_eq!(unresolved(&resolved.profile), starts.len() as u64);
}

#[test]
fn a_compressed_symbol_table_within_the_binary_gives_names() {
    let Some((directory, plain)) = with_plain("miniature", "-gdwarf-5") else { return };
    if missing(&["xz"]) {
        return;
    }
    let subject = separate(&directory, "stripped", "symbols");
    run_in(&directory, "objcopy", &["--strip-debug", "symbols"]);
    run_in(&directory, "xz", &["symbols"]);
    run_in(&directory, "objcopy", &["--add-section", ".gnu_debugdata=symbols.xz", "stripped"]);
    let symbols = Symbols::of(&plain);
    let addresses = symbols.addresses();
    let resolved = resolve(&subject, &addresses, &Options::default());
    for (address, frames) in addresses.iter().zip(&resolved.frames) {
        let names = symbols.names(*address);
        assert!(
            names.contains(&frames[0].function.as_str()),
            "{address:#x} is {} not {names:?}",
            frames[0].function
        );
    }
}

#[test]
fn stubs_of_library_functions_are_named_as_objdump_names_them() {
    if missing(&["gcc", "objdump"]) {
        return;
    }
    for (name, arguments) in [
        ("lazy", &["-O2", "-Wl,-z,lazy"][..]),
        ("now", &["-O2", "-Wl,-z,now"]),
        ("protected", &["-O2", "-fcf-protection", "-Wl,-z,lazy", "-Wl,-z,ibtplt"]),
    ] {
        let directory = directory(&format!("stubs-{name}"));
        let program = compile_in(&directory, "program", "gcc", Program::C, arguments);
        let stubs = binutils::stubs(&program);
        assert!(stubs.len() >= 4, "objdump shows {} stubs", stubs.len());
        let addresses: Vec<u64> = stubs.iter().map(|&(address, _)| address + 3).collect();
        let resolved = resolve(&program, &addresses, &Options::default());
        for ((address, name), frames) in stubs.iter().zip(&resolved.frames) {
            assert_eq!(&frames[0].function, name, "the stub at {address:#x}");
        }
    }
}
