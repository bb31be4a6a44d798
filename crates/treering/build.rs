//! How the program is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // At fixed addresses: ten thousand of its own that stand in its data need not be filled in at each start, half a
    // millisecond of which `treering count` has ten for a short program.
    println!("cargo::rustc-link-arg-bin=treering=-no-pie");
}
