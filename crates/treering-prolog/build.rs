//! Keeps what SWI-Prolog is not to see out of the library's exports.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // The runtime's C interface would stand in for functions of other libraries, such as
    // `dlclose`, where this one is loaded for all to see.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
}
