//! Reads any bytes as a gmon.out; what can be read is written again with the same counts, and
//! makes a valid profile.
#![no_main]

use libfuzzer_sys::fuzz_target;
use treering_formats::gmon::{Program, read_of_width};
use treering_formats::trg;

fuzz_target!(|bytes: &[u8]| {
    for wide in [true, false] {
        let Ok((gmon, _)) = read_of_width(bytes, wide) else { continue };
        let mut file = Vec::new();
        gmon.write(&mut file).expect("memory takes everything");
        // The unit's name may be no UTF-8, and is cut to 15 bytes.
        let (again, _) = read_of_width(&file, wide).expect("it was just written");
        assert_eq!((&again.arcs, &again.blocks), (&gmon.arcs, &gmon.blocks));
        assert!(again.histograms.iter().map(|one| &one.bins).eq(gmon.histograms.iter().map(|one| &one.bins)));
        let program = Program { functions: vec![0..0x1000, 0x1001..0x2000], ..Program::default() };
        let Ok(profile) = gmon.profile(&program) else { continue };
        assert_eq!(profile.validate(), Ok(()));
        trg::write(&profile, std::io::sink()).expect("a sink takes everything");
    }
});
