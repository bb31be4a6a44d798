use super::*;

/// Writes a jitdump file, as a JIT compiler would.
pub(crate) struct Writer {
    bytes: Vec<u8>,
    big_endian: bool,
}

impl Writer {
    pub(crate) fn new(big_endian: bool) -> Self {
        let mut writer = Self { bytes: Vec::new(), big_endian };
        writer.u32(0x4a69_5444).u32(1).u32(40).u32(62).u32(0).u32(77).u64(5).u64(0);
        writer
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend(if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes.extend(if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() });
        self
    }

    fn text(&mut self, text: &[u8]) -> &mut Self {
        self.bytes.extend(text);
        self.bytes.push(0);
        self
    }

    pub(crate) fn load(&mut self, time: u64, start: u64, size: u64, index: u64, name: &str) -> &mut Self {
        self.u32(0).u32((16 + 40 + name.len() + 1 + size as usize) as u32).u64(time);
        self.u32(77).u32(78).u64(start).u64(start).u64(size).u64(index).text(name.as_bytes());
        self.bytes.resize(self.bytes.len() + size as usize, 0xcc);
        self
    }

    pub(crate) fn moved(&mut self, time: u64, from: u64, to: u64, size: u64, index: u64) -> &mut Self {
        self.u32(1).u32(16 + 48).u64(time);
        self.u32(77).u32(78).u64(to).u64(from).u64(to).u64(size).u64(index)
    }

    pub(crate) fn lines(&mut self, function: u64, lines: &[(u64, u32, &[u8])]) -> &mut Self {
        let entries: usize = lines.iter().map(|(_, _, file)| 16 + file.len() + 1).sum();
        self.u32(2).u32((16 + 16 + entries) as u32).u64(0).u64(function).u64(lines.len() as u64);
        for (address, line, file) in lines {
            self.u64(*address).u32(*line).u32(0).text(file);
        }
        self
    }

    fn unwinding_information(&mut self) -> &mut Self {
        self.u32(4).u32(16 + 8).u64(0).u64(0)
    }

    fn close(&mut self) -> &mut Self {
        self.u32(3).u32(16).u64(99)
    }
}

/// A file with one record of each kind, and where its records end.
fn example_with_ends(big_endian: bool) -> (Vec<u8>, Vec<usize>) {
    let mut writer = Writer::new(big_endian);
    let mut ends = vec![writer.bytes.len()];
    let mut end = |writer: &mut Writer| ends.push(writer.bytes.len());
    end(writer.lines(0x1000, &[(0x1010, 8, b"old.js")]));
    end(writer.lines(0x1000, &[(0x1000, 7, b"a.js"), (0x1010, 8, b"\xff")]));
    end(writer.load(10, 0x1000, 0x20, 1, "add"));
    end(writer.unwinding_information());
    end(writer.moved(20, 0x1000, 0x2000, 0x20, 1));
    end(writer.close());
    (writer.bytes, ends)
}

fn example(big_endian: bool) -> Vec<u8> {
    example_with_ends(big_endian).0
}

#[test]
fn both_byte_orders_tell_the_same() {
    let dump = parse(&example(false)).expect("it has a header");
    assert_eq!(Ok(&dump), parse(&example(true)).as_ref());
    assert_eq!((dump.pid, dump.machine, dump.raw_timestamps, dump.damage), (77, 62, false, None));
    let line = |address, line| JitLine { address, file: "a.js".into(), line };
    assert_eq!(
        dump.events,
        [
            JitEvent::Load {
                time: 10,
                start: 0x1000,
                size: 0x20,
                index: 1,
                name: "add".into(),
                lines: vec![line(0x1000, 7), line(0x1010, 8)]
            },
            JitEvent::Move { time: 20, index: 1, from: 0x1000, to: 0x2000, size: 0x20 },
        ]
    );
}

#[test]
fn every_prefix_gives_a_prefix_of_the_events_and_says_where_it_is_cut() {
    let whole = parse(&example(false)).expect("it has a header");
    let (bytes, ends) = example_with_ends(false);
    for end in 0..bytes.len() {
        match parse(&bytes[..end]) {
            Err(error) => assert!(end < HEADER_SIZE, "{error} for a prefix of {end} bytes"),
            Ok(dump) => {
                assert!(whole.events.starts_with(&dump.events));
                assert_eq!(dump.damage.is_none(), ends.contains(&end), "a prefix of {end} bytes");
            }
        }
    }
}

#[test]
fn a_record_shorter_than_its_contents_is_reported_with_its_position() {
    let mut writer = Writer::new(false);
    writer.u32(0).u32(20).u64(0).u32(1);
    assert_eq!(parse(&writer.bytes).map(|dump| dump.damage), Ok(Some(JitdumpError::Short { at: 40 })));
    let mut writer = Writer::new(false);
    writer.u32(0).u32(0).u64(0);
    assert_eq!(parse(&writer.bytes).map(|dump| dump.damage), Ok(Some(JitdumpError::Short { at: 40 })));
}

#[test]
fn foreign_files_are_refused() {
    assert_eq!(parse(b""), Err(JitdumpError::NotJitdump));
    assert_eq!(parse(b"\x7fELF and so on"), Err(JitdumpError::NotJitdump));
    let mut bytes = example(false);
    bytes[4] = 9;
    assert_eq!(parse(&bytes), Err(JitdumpError::Version(9)));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(position in 0_usize..380, byte: u8) {
        let mut bytes = example(true);
        let position = position.min(bytes.len() - 1);
        bytes[position] = byte;
        let _ = parse(&bytes);
    }
}
