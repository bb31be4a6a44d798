//! The cost of attributing memory: a block is taken and given back.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, c_void};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use treering_runtime::{Allocator, Options, scope};

use crate::measure::{Cost, Effort};
use crate::table::{Row, Table};

static OURS: Allocator = Allocator::new();

/// Sizes of a block, by turn.
type Sizes = fn(u64) -> usize;

const SIZES: [(&str, Sizes); 2] = [
    ("64 bytes", |_| 64),
    ("16 to 1039 bytes", |turn| 16 + (turn.wrapping_mul(0x9E37_79B9) >> 7 & 1023) as usize),
];

/// The rows of Rust's allocators and of a program that the library was preloaded into.
pub(crate) fn measure(effort: Effort, directory: &Path) -> Table {
    let mut table = Table::new("a block taken and given back", "over the plain one");
    treering_runtime::set_profiler(Options {
        output: Some(directory.join("memory.trg")),
        ..Options::default()
    });
    scope!("memory");
    for (name, sizes) in SIZES {
        let plain = effort.cost(|turns| blocks(&System, turns, sizes));
        let ours = effort.cost(|turns| blocks(&OURS, turns, sizes));
        table.add(Row::floor(format!("Rust, {name}: the system's allocator"), plain));
        table.add(Row::ours(format!("Rust, {name}: treering_runtime::Allocator"), ours));
    }
    treering_runtime::clear_profiler();
    preloaded(effort, directory, &mut table);
    table
}

#[inline(never)]
fn blocks(allocator: &impl GlobalAlloc, turns: u64, sizes: Sizes) {
    for turn in 0..turns {
        let layout = Layout::from_size_align(sizes(turn), 8).expect("a layout");
        // SAFETY: the size is not 0, and the block goes back with its layout.
        unsafe { allocator.dealloc(black_box(allocator.alloc(layout)), layout) };
    }
}

/// Runs this program again, with the library in front of the system's allocator.
fn preloaded(effort: Effort, directory: &Path, table: &mut Table) {
    let Some(library) = built_library() else {
        return table.leave_out("malloc and free, preloaded", "cargo cannot build treering-malloc");
    };
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    command
        .arg("--preloaded")
        .env("LD_PRELOAD", library)
        .env("TREERING_OUTPUT", directory.join("malloc.trg"));
    if effort.batches < crate::measure::FULL.batches {
        command.arg("--quick");
    }
    let said = command.output().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    for line in said.unwrap_or_default().lines() {
        match Cost::parse(line) {
            Some((name, cost)) if name.ends_with("system's allocator") => table.add(Row::floor(name, cost)),
            Some((name, cost)) => table.add(Row::ours(name, cost)),
            None => table.leave_out("malloc and free, preloaded", line),
        }
    }
}

fn built_library() -> Option<std::path::PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("library");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--package", "treering-malloc", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    let library = target.join("release/libtreering_malloc.so");
    (built.is_ok_and(|status| status.success()) && library.exists()).then_some(library)
}

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);

/// Compares the preloaded library's functions with those of the C library behind it.
#[expect(clippy::print_stdout, reason = "it is read by the process that has started it")]
pub(crate) fn measure_preloaded(effort: Effort) {
    // SAFETY: the names have these types in every C library.
    let (system, ours): ((Malloc, Free), (Malloc, Free)) = unsafe {
        let library = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        let find = |name: &CStr| libc::dlsym(library, name.as_ptr());
        let (malloc, free) = (find(c"malloc"), find(c"free"));
        if library.is_null() || malloc.is_null() || free.is_null() {
            println!("there is no libc.so.6 to compare with");
            return;
        }
        (
            (
                std::mem::transmute::<*mut c_void, Malloc>(malloc),
                std::mem::transmute::<*mut c_void, Free>(free),
            ),
            (libc::malloc, libc::free),
        )
    };
    if system.0 as usize == ours.0 as usize {
        println!("the library was not preloaded");
        return;
    }
    scope!("memory");
    for (name, sizes) in SIZES {
        for (whose, (malloc, free)) in [("the system's allocator", system), ("libtreering_malloc.so", ours)] {
            let cost = effort.cost(|turns| c_blocks(malloc, free, turns, sizes));
            println!("{}", cost.line(&format!("C, {name}: {whose}")));
        }
    }
}

#[inline(never)]
fn c_blocks(malloc: Malloc, free: Free, turns: u64, sizes: Sizes) {
    for turn in 0..turns {
        // SAFETY: what was taken is given back, to the same allocator.
        unsafe { free(black_box(malloc(sizes(turn)))) };
    }
}
