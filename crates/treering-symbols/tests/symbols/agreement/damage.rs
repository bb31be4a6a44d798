//! Binaries that are cut short or overwritten are never a reason to panic.

use std::fs;

use treering_symbols::Options;

use super::binutils::Symbols;
use super::frame::resolve;
use super::program::{Program, compile, missing};

#[test]
fn cut_and_overwritten_binaries_resolve_as_far_as_they_can() {
    if missing(&["gcc", "nm"]) {
        return;
    }
    let program = compile("damage", Program::C, &["-O2", "-g", "-gdwarf-5"]);
    let addresses: Vec<u64> = Symbols::of(&program).addresses().into_iter().step_by(5).collect();
    let whole = fs::read(&program).expect("it was compiled just now");
    let damaged = program.with_file_name("damaged");
    let check = |bytes: &[u8]| {
        fs::write(&damaged, bytes).expect("the directory is writable");
        let resolved = resolve(&damaged, &addresses, &Options::default());
        assert_eq!(resolved.frames.len(), addresses.len());
        assert!(resolved.frames.iter().all(|frames| !frames.is_empty()));
    };
    for end in (0..whole.len()).step_by(997) {
        check(&whole[..end]);
    }
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..300 {
        let mut bytes = whole.clone();
        for _ in 0..20 {
            let at = random.usize(..bytes.len());
            bytes[at] = random.u8(..);
        }
        check(&bytes);
    }
}
