//! Files of 2 KB that are compressed from millions of entries, read where there is little memory.

use std::process::Command;

use crate::session::{Outcome, Session};

/// A number in groups of seven bits.
fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A frame of a `.trg` file, compressed where that is shorter.
fn frame(kind: u16, payload: &[u8]) -> Vec<u8> {
    let packed = zstd::bulk::compress(payload, 3).expect("bytes can be compressed");
    let stored = if packed.len() < payload.len() { &packed } else { payload };
    let mut frame = [kind.to_le_bytes(), 1_u16.to_le_bytes()].concat();
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend((stored.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&frame), stored);
    frame.extend(checksum.to_le_bytes());
    frame.extend(stored);
    frame
}

/// The content of a table of `count` entries from `first` on, whose columns hold one byte for each.
fn columns(first: Option<u8>, count: usize, columns: &[u8]) -> Vec<u8> {
    let mut payload: Vec<u8> = first.into_iter().collect();
    payload.extend(varint(count));
    columns.iter().for_each(|&byte| payload.resize(payload.len() + count, byte));
    payload
}

/// The frames that nearly every other refers to: a thread, whose tree is a chain of `depth` nodes.
fn profile(depth: usize) -> Vec<u8> {
    let meta =
        r#"{"metadata":{},"recursion":"full","metrics":[{"name":"samples","unit":"count"}],"runs":[{}]}"#;
    let mut nodes = columns(Some(0), depth, &[1, 1, 0]);
    let (parent, function) = (nodes.len() - 3 * depth, nodes.len() - 2 * depth);
    (nodes[parent], nodes[function]) = (0, 0);
    [
        frame(1, meta.as_bytes()),
        frame(2, b"\x00\x02\x00\x04main"),
        frame(4, b"\x00\x02\x03\x08\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
        frame(5, b"\x00\x01\x02\x02"),
        frame(6, b"\x00\x01\x00\x07\x01a"),
        frame(7, b"\x00\x01\x00\x07\x00\x01a"),
        frame(8, &nodes),
        frame(19, b"\x00\x01\x00\x00"),
    ]
    .concat()
}

/// JSON with a list of `count` such entries.
fn listed(count: usize, before: &str, entry: &str, after: &str) -> Vec<u8> {
    let entries = vec![entry; count].join(",");
    frame(1, format!("{before}{entries}{after}").as_bytes())
}

const METADATA: &str = r#"{"metadata":{},"recursion":"full","metrics":["#;

/// Files whose entries are as small as can be in the file, and as large as can be in memory.
fn hostile(count: usize) -> Vec<(&'static str, Vec<u8>)> {
    let small = profile(10);
    let with = |kind: u16, payload: Vec<u8>| [small.clone(), frame(kind, &payload)].concat();
    let after = |first: &[u8], rest: Vec<u8>| [first, &rest].concat();
    let mut texts = columns(Some(2), count, &[1]);
    texts.resize(texts.len() + count, b'x');
    let sources = (0..count).flat_map(|_| *b"\x01\x00").collect::<Vec<_>>();
    let processes = (0..count).flat_map(|_| *b"\x00\x07\x00").collect::<Vec<_>>();
    vec![
        ("depth", profile(count / 2)),
        ("texts", with(2, texts)),
        ("functions", with(4, columns(Some(2), count, &[8, 0, 0, 0, 0, 0, 0]))),
        ("lines", with(5, columns(Some(1), count / 8, &[0, 2]))),
        ("processes", with(6, after(&[1], after(&varint(count), processes)))),
        ("line costs", with(11, columns(None, count, &[0, 0, 0, 1]))),
        ("arcs", with(12, columns(None, count / 2, &[0, 0, 0, 1, 0]))),
        ("sources", with(13, after(&varint(count), sources))),
        ("sizes", with(16, after(&[0], columns(None, count, &[0, 0, 1, 1])))),
        ("points", with(17, columns(None, count / 4, &[2, 0, 0, 0, 0]))),
        ("bytes of code", with(20, columns(None, count, &[0, 2, 0]))),
        ("translated code", with(21, columns(None, count / 8, &[0, 0, 2, 1, 1, 1]))),
        ("blocks", with(23, columns(Some(0), count / 2, &[0, 2, 0, 0]))),
        ("branches", with(25, columns(None, count, &[0; 7]))),
        ("uncounted", with(27, columns(None, count, &[1, 0, 0, 0, 0, 0]))),
        ("metrics", listed(count / 16, METADATA, r#"{"name":"","unit":"count"}"#, r#"],"runs":[]}"#)),
        ("runs", listed(count, &format!(r#"{METADATA}],"runs":["#), "{}", "]}")),
    ]
}

/// The memory that may be asked for: the program itself maps some 150 MB of it.
const LIMIT_KB: u32 = 700_000;

fn run_limited(session: &Session, arguments: &[&str]) -> Outcome {
    let script = format!("ulimit -v {LIMIT_KB} && exec \"$0\" \"$@\" > out");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_treering")]).args(arguments);
    Outcome::of(command.current_dir(session.path("")).output().expect("there is a shell"))
}

/// A 2 KB file once took 6 GB under `dump` and 3.7 GB under `view`, and a 1 KB file minutes.
#[test]
fn small_files_take_little_memory_whatever_they_hold() {
    let session = Session::new();
    let header = b"\x89trg\r\n\x1a\n\x01\x00\x00\x00\x00\x00\x00\x00";
    for (name, frames) in hostile(2_400_000) {
        let file = [&header[..], &frames].concat();
        assert!(file.len() <= 2048, "{name}: {} bytes", file.len());
        std::fs::write(session.path("hostile.trg"), file).expect("the folder can be written");
        for arguments in [
            &["report", "hostile.trg"][..],
            &["view", "--no-open", "-o", "page.html", "hostile.trg"],
            &["merge", "-o", "-", "hostile.trg"],
            &["dump", "hostile.trg"],
        ] {
            let outcome = run_limited(&session, arguments);
            let status = outcome.shell_status();
            assert!(status <= 2, "{name}: {arguments:?}: {outcome:#?}");
        }
    }
}
