//! Nothing is built; the file is there for `links`, by which cargo refuses two versions of the
//! runtime in one program.
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
