//! The stated addresses of code that rustc's linker laid out.
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

use std::path::Path;
use std::process::Command;

use treering_proc::Mapping;
use treering_profile::{FileOffset, RuntimeAddress};
use treering_symbols::segment_map;

/// Prints the runtime address of a function of its own and where its own code is mapped.
const PROGRAM: &str = r#"
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn landmark(value: u64) -> u64 {
    std::hint::black_box(value) + 1
}

fn main() {
    let landmark: extern "C" fn(u64) -> u64 = landmark;
    println!("{:x}", landmark as usize);
    print!("{}", std::fs::read_to_string("/proc/self/maps").unwrap());
}
"#;

fn executable_mapping(maps: &str, path: &Path, address: u64) -> Mapping {
    let mut mappings = maps.lines().filter_map(|line| Mapping::parse(line.as_bytes()));
    let is_ours = |mapping: &Mapping| mapping.is_executable && mapping.path == path;
    mappings
        .find(|mapping| is_ours(mapping) && (mapping.start..mapping.end).contains(&address))
        .expect("its code is mapped")
}

/// Regression: rustc 1.95 links with LLD, which displaces each segment by another page, so that
/// the segment whose file range holds the page offset of the code's mapping is not the code's.
#[test]
fn code_linked_by_rustc_keeps_its_stated_addresses() {
    let tools = ["rustc", "nm"];
    if let Some(missing) = tools.iter().find(|tool| Command::new(tool).arg("--version").output().is_err()) {
        eprintln!("SKIPPED: {missing} is not installed");
        return;
    }
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("segment_trap");
    std::fs::create_dir_all(&directory).expect("the target directory is writable");
    let directory = std::fs::canonicalize(directory).expect("it was made just now");
    for linker in [&[][..], &["-Clink-arg=-fuse-ld=lld"], &["-Clink-arg=-fuse-ld=bfd"]] {
        check(&directory, linker);
    }
}

fn check(directory: &Path, linker: &[&str]) {
    std::fs::write(directory.join("program.rs"), PROGRAM).expect("the directory is writable");
    let mut compiler = Command::new("rustc");
    let compiler = compiler.args(["--edition=2024", "-O", "program.rs"]).args(linker).current_dir(directory);
    if !compiler.output().expect("rustc runs").status.success() {
        eprintln!("SKIPPED: rustc {linker:?} does not work here");
        return;
    }
    let program = directory.join("program");
    let output = Command::new(&program).output().expect("it was compiled just now");
    let text = String::from_utf8(output.stdout).expect("it prints text");
    let (runtime, maps) = text.split_once('\n').expect("the address comes first");
    let runtime = u64::from_str_radix(runtime, 16).expect("it is hexadecimal");
    let mapping = executable_mapping(maps, &program, runtime);

    let segments = segment_map(&program).expect("it is an ELF file");
    let length = mapping.end - mapping.start;
    let bias = segments.bias(RuntimeAddress(mapping.start), FileOffset(mapping.file_offset), length);
    let stated = stated_by_nm(&program, "landmark");
    assert_eq!(bias.map(|bias| runtime.wrapping_sub(bias)), Some(stated), "linked with {linker:?}");
    let offset = FileOffset(runtime - mapping.start + mapping.file_offset);
    assert_eq!(segments.stated(offset).map(|stated| stated.0), Some(stated), "linked with {linker:?}");
}

fn stated_by_nm(program: &Path, name: &str) -> u64 {
    let output = Command::new("nm").arg(program).output().expect("nm runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("the symbol is there");
    let address = line.split_ascii_whitespace().next().expect("the address comes first");
    u64::from_str_radix(address, 16).expect("nm prints hexadecimal numbers")
}
