//! How the program is linked.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // At fixed addresses: ten thousand of its own that stand in its data need not be filled in at each start, half a
    // millisecond of which `treering count` has ten for a short program.
    println!("cargo::rustc-link-arg-bin=treering=-no-pie");
    // The compiler's library for unwinding becomes part of it, where there is one that can: to load it as a shared
    // library and to let it look at the processor takes another quarter of a millisecond.
    if has_static_unwinder() {
        println!("cargo::rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// Whether the linker would find GCC's `libgcc_eh.a`.
fn has_static_unwinder() -> bool {
    if env::var_os("CARGO_CFG_TARGET_ENV").is_none_or(|library| library != "gnu") {
        return false;
    }
    let linker = env::var_os("RUSTC_LINKER").unwrap_or_else(|| OsString::from("cc"));
    let answer = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    // What is not found is answered by its name alone.
    answer.is_ok_and(|answer| Path::new(String::from_utf8_lossy(&answer.stdout).trim()).is_absolute())
}
