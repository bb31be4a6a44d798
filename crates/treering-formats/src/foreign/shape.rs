//! Signs of a sort of file whose first bytes do not tell it.

use super::text_start;

/// `v 10400 2` in the first line, `X command` soon after.
pub(super) fn is_heaptrack(bytes: &[u8]) -> bool {
    let text = text_start(bytes);
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("v "));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_hexdigit()))
        && lines.take(8).any(|line| line.starts_with("X "))
}

/// The same, compressed.
pub(super) fn is_packed_heaptrack(bytes: &[u8]) -> bool {
    use std::io::Read as _;
    let mut start = Vec::new();
    // An error only means that there is less to look at.
    let read =
        zstd::stream::read::Decoder::new(bytes).map(|unpacked| unpacked.take(4096).read_to_end(&mut start));
    read.is_ok() && is_heaptrack(&start)
}

/// Whether it is what the kernel's ftrace or trace-cmd prints: `bash-1977  [000] d..2. 17284.993652: event: ...`, where
/// flags stand between processor and time.
pub(super) fn is_ftrace(bytes: &[u8]) -> bool {
    let is_flags = |word: &str| {
        let known = |c: char| ".dDnNhHzZsSbBpPlLK#0123456789".contains(c);
        (4..=7).contains(&word.len()) && word.contains('.') && word.chars().all(known)
    };
    let is_cpu = |word: &str| {
        let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
        inner.is_some_and(|inner| !inner.is_empty() && inner.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_event = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take(12).collect();
        words.windows(3).any(|at| is_cpu(at[0]) && is_flags(at[1]) && at[2].ends_with(':'))
    };
    let text = text_start(bytes);
    text.starts_with("# tracer:") || text.lines().any(is_event)
}

/// `File: program` and `Type: cpu`, before a table or stacks.
pub(super) fn is_pprof_text(bytes: &[u8]) -> bool {
    let text = text_start(bytes);
    let mut head = text.lines().take(8);
    let titled = head.clone().any(|line| line.starts_with("Type: "));
    let framed = text.contains("\n-----------+----") || text.contains(" flat  flat%   sum%");
    framed && (titled || head.any(|line| line.starts_with("Showing nodes accounting for")))
}

/// `@[`, stacks, and `]: 12`.
pub(super) fn is_bpftrace(bytes: &[u8]) -> bool {
    let text = text_start(bytes);
    let opens = |line: &str| line.starts_with('@') && line.ends_with('[');
    let closes = |line: &str| {
        line.starts_with(']') && line.contains("]: ") || line.contains("]: ") && line.starts_with('@')
    };
    text.lines().any(opens) && text.lines().any(closes)
}

/// Frames such as ``libc.so.1`read+0x15``, and the count below them.
pub(super) fn is_dtrace(bytes: &[u8]) -> bool {
    let text = text_start(bytes);
    let is_frame = |line: &str| {
        let word = line.trim();
        line.starts_with(' ') && word.contains('`') && word.contains("+0x") && !word.contains(' ')
    };
    text.lines().filter(|line| is_frame(line)).count() >= 2
}

/// `go 1.22 trace`.
pub(super) fn is_go_trace(bytes: &[u8]) -> bool {
    bytes.starts_with(b"go 1.") && bytes[..bytes.len().min(16)].windows(6).any(|at| at == b" trace")
}

/// The signature and the first block's.
pub(super) fn is_bzip2(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BZh") && bytes.get(4..10) == Some(b"1AY&SY")
}

/// The mark of UTF-16, or every other byte of Latin text.
pub(super) fn is_utf16(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(b"\xff\xfe").or_else(|| bytes.strip_prefix(b"\xfe\xff"));
    let pairs = rest.unwrap_or_default().chunks_exact(2).take(32);
    let zeros = pairs.clone().filter(|pair| pair[0] == 0 || pair[1] == 0).count();
    pairs.len() > 0 && zeros * 2 >= pairs.len()
}

/// The size of a buffer, and the mark of the header's event behind the header of the first one.
pub(super) fn is_etl(bytes: &[u8]) -> bool {
    const HEADER: usize = 0x48;
    let size = bytes.first_chunk().map_or(0, |size| u32::from_le_bytes(*size));
    let is_size = size >= 1024 && size % 1024 == 0 && size <= 64 << 20;
    is_size && matches!(bytes.get(HEADER..HEADER + 4), Some([_, 0, 1 | 2, 0xc0]))
}

/// Packets one after the other, all of field 1, whose first field is none that profiles have there.
pub(super) fn is_perfetto(bytes: &[u8]) -> bool {
    let mut rest = &bytes[..bytes.len().min(crate::detect::LOOK)];
    let mut packets = 0;
    while let Some(after) = rest.strip_prefix(b"\x0a") {
        let Some((length, inner)) = crate::detect::varint(after) else { break };
        // Timestamps, identifiers of a sequence, descriptors: fields 3 to 127, but no sample type of pprof.
        if inner.first().is_some_and(|&tag| tag >> 3 < 3) {
            return false;
        }
        packets += 1;
        match usize::try_from(length).ok().and_then(|length| inner.get(length..)) {
            Some(next) => rest = next,
            None => return packets > 1,
        }
    }
    packets > 1 && rest.is_empty()
}
