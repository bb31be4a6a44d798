//! Every parser takes every prefix and many mutations of every fixture without a panic, in
//! bounded time. The fuzz targets do the same for longer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;

use common::{FIXTURES, canonical, fixture, set_checksums, vector};
use treering_formats::{
    Format, callgrind, chrome_trace, cpuprofile, detect, detect_foreign, firefox, folded, pprof, read_any,
    read_as, speedscope, trg,
};

/// Numbers that look random, the same in every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Reads the bytes in every way; what can be read must be valid and writable.
fn try_all(bytes: &[u8]) {
    let _ = (detect(bytes), detect_foreign(bytes));
    for format in Format::ALL {
        let Ok((profile, report)) = read_as(format, bytes) else { continue };
        profile.validate().unwrap();
        let _ = report.warnings();
        trg::write(&profile, std::io::sink()).unwrap();
        let _ = pprof::write(&profile, std::io::sink()).unwrap();
        let _ = callgrind::write(&profile, std::io::sink()).unwrap();
        let _ = speedscope::write(&profile, std::io::sink()).unwrap();
        for (metric, _) in profile.metrics() {
            let _ = folded::write(&profile, metric, std::io::sink()).unwrap();
            let _ = chrome_trace::write(&profile, metric, std::io::sink()).unwrap();
            let _ = firefox::write(&profile, metric, std::io::sink()).unwrap();
            let _ = cpuprofile::write(&profile, metric, std::io::sink()).unwrap();
        }
    }
    if let Ok(frames) = trg::dump(bytes) {
        frames.for_each(drop);
    }
}

#[test]
fn every_prefix_is_read_or_refused() {
    for name in FIXTURES {
        let file = fixture(name);
        // Long files in steps, so that the test stays short; small ones at every byte.
        let step = file.len().div_ceil(600);
        for length in (0..file.len()).step_by(step) {
            try_all(&file[..length]);
        }
    }
}

/// Readers did not say how many samples there are, or said it of fewer than those they found no function for.
#[test]
fn samples_are_stated_where_metrics_count_them() {
    for name in FIXTURES {
        let (format, profile, _) = read_any(&fixture(name)).unwrap();
        if format.is_own() {
            continue;
        }
        let losses = &profile.metadata.losses;
        let (samples, unresolved) = profile.counted_samples();
        assert!(losses.samples >= samples, "{name}: {losses:?}, counted {samples}");
        assert!(losses.unresolved_samples >= unresolved, "{name}: {losses:?}, counted {unresolved}");
        assert!(losses.unresolved_samples <= losses.samples, "{name}: {losses:?}");
    }
}

/// Editors put a mark before UTF-8; some formats were not recognised behind one.
#[test]
fn a_mark_of_utf8_changes_nothing_in_text() {
    for name in FIXTURES {
        let file = fixture(name);
        let is_text = std::str::from_utf8(&file).is_ok() && !file.contains(&0);
        if !is_text {
            continue;
        }
        let (format, profile, _) = read_any(&file).unwrap();
        let marked = [b"\xef\xbb\xbf".as_slice(), &file].concat();
        let read = read_any(&marked).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((read.0, canonical(&read.1)), (format, canonical(&profile)), "{name}");
    }
}

#[test]
fn mutations_are_read_or_refused() {
    let mut noise = Noise(42);
    for name in FIXTURES {
        let file = fixture(name);
        for _ in 0..300 {
            let mut mutated = file.clone();
            for _ in 0..1 + noise.below(4) {
                mutate(&mut mutated, &mut noise);
            }
            try_all(&mutated);
        }
    }
}

/// Files as other tools write them and no fixture has: the forms that are easily cut or changed into something else.
#[test]
fn prefixes_and_mutations_of_unusual_files_are_read_or_refused() {
    let mut noise = Noise(3);
    let raw_pprof = [
        b"\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x02\x02\x01\x12\x00\x12\x07\x0a\x02\x02\x01\x12\x01\x05".as_slice(),
        b"\x22\x08\x08\x01\x22\x04\x08\x01\x10\x03\x22\x06\x08\x02\x22\x02\x08\x02\x2a\x04\x08\x01\x10\x03\x2a\x04\x08\x02\x10\x04",
        b"\x32\x00\x32\x03cpu\x32\x02ns\x32\x04main\x32\x05f\xff(x)\x32\x03f.*\x38\x05\x40\x03\x70\x01",
    ]
    .concat();
    let files = [
        b"version: 0.9.6\nevents: Time_(10ns) Memory Memory\nfl=(1) a.php\nfn=(1) main\n1 100 -5000 3\n+2 10 260\ncob=(8)\n\
          cfn=(9)\ncalls=1 1\n* 5 -6\nfn=(9)\n-1 4 -7\nsummary: 1 -2\n"
            .to_vec(),
        "\u{feff}a;b_[k] 1.5 2\na;c\u{37e};;d_[0] 0.125 7\n#x;y 3 4\n".as_bytes().to_vec(),
        b"caf\xe9;b\x1b 2\r\na;worker 5 7\r\n".to_vec(),
        raw_pprof,
        b"# cmdline : x\nmy a 1/2 [001] 1.000001: 7 cycles:u: \n\t10 f+0x1\n  x.c:3 (inlined)\n\t10 [unknown] (/a)\n  a[10]\n\n\
          java 7 cycles:\nf0 LA;::a->LB;::b (/tmp/perf-7.map)\n\na 1 1.000000: PERF_RECORD_LOST lost 17\n"
            .to_vec(),
    ];
    for file in &files {
        (0..=file.len()).for_each(|length| try_all(&file[..length]));
        for _ in 0..1500 {
            let mut mutated = file.clone();
            for _ in 0..1 + noise.below(4) {
                mutate(&mut mutated, &mut noise);
            }
            try_all(&mutated);
        }
    }
}

/// Checksums stop nearly every mutation of a `.trg` file, so here they are set right.
#[test]
fn mutations_with_right_checksums_are_read_or_refused() {
    let mut noise = Noise(7);
    let files = [vector(1), vector(2), vector(3)];
    for round in 0..6000 {
        let mut mutated = files[round % files.len()].clone();
        for _ in 0..1 + noise.below(3) {
            let at = 16 + noise.below(mutated.len() - 16);
            mutated[at] = [0, 1, 0x7f, 0x80, 0xff, mutated[at] ^ 1 << noise.below(8)][noise.below(6)];
        }
        set_checksums(&mut mutated);
        try_all(&mutated);
    }
}

fn mutate(file: &mut Vec<u8>, noise: &mut Noise) {
    let at = noise.below(file.len());
    match noise.below(5) {
        0 => file[at] ^= 1 << noise.below(8),
        1 => file[at] = [0, 0xff, b'\n', b'-', b'9', b'('][noise.below(6)],
        2 => file.truncate(at.max(1)),
        3 => {
            let length = noise.below(20).min(file.len() - at);
            let copy = file[at..at + length].to_vec();
            let to = noise.below(file.len());
            file.splice(to..to, copy);
        }
        _ => {
            let length = noise.below(20).min(file.len() - at - 1);
            file.drain(at..at + length);
        }
    }
}

#[test]
fn fixtures_are_what_their_folders_say() {
    for name in FIXTURES {
        let (format, profile, _) = read_any(&fixture(name)).unwrap();
        assert_eq!(format.as_str(), name.split('/').next().unwrap());
        // Only Treering's own files say what was lost, if it was nothing.
        if format != Format::Trg {
            assert_eq!(profile.metadata.losses.unknown, !format.is_own(), "{name}");
        }
    }
}
