//! The mappings of the program, as `/proc/self/maps` lists them.

use treering_profile::Profile;

use crate::binary::{Binaries, Mappings, Place};
use crate::label::text_of;

/// The code that was mapped.
pub(super) fn parse(text: &[u8], profile: &mut Profile, binaries: &mut dyn Binaries) -> Mappings {
    let mut mappings = Mappings::default();
    for line in text.split(|&byte| byte == b'\n') {
        if let Some((start, end, offset, path)) = line_of_code(&text_of(line)) {
            let place = match path.starts_with('/') {
                true => Place::of_binary(profile, binaries, (path, &[]), (start, end, offset)),
                false => Place::nameless(profile, path, &[], crate::perf_script::kind_of(path)),
            };
            mappings.map(start, end, place);
        }
    }
    mappings
}

/// `00400000-00401000 r-xp 00001000 08:01 1234   /bin/solve`: start, end, offset in the file, path.
fn line_of_code(line: &str) -> Option<(u64, u64, u64, &str)> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut rest = line;
    let mut word = || {
        let trimmed = rest.trim_start();
        let end = trimmed.find(char::is_whitespace).unwrap_or(trimmed.len());
        let (word, behind) = trimmed.split_at(end);
        rest = behind;
        word
    };
    let (start, end) = word().split_once('-')?;
    let is_code = word().contains('x');
    let offset = hex(word())?;
    let (_device, _inode) = (word(), word());
    let path = rest.trim();
    // A program that was replaced since.
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let path = if path.is_empty() { "//anon" } else { path };
    is_code.then_some((hex(start)?, hex(end)?, offset, path))
}

#[cfg(test)]
mod tests {
    use super::line_of_code;

    #[test]
    fn code_is_found_with_its_file() {
        let line = "55d0-55e1 r-xp 00001000 08:01 1234   /opt/my programs/solve (deleted)";
        assert_eq!(line_of_code(line), Some((0x55d0, 0x55e1, 0x1000, "/opt/my programs/solve")));
        assert_eq!(line_of_code("10-20 r-xp 00000000 00:00 0"), Some((0x10, 0x20, 0, "//anon")));
        for line in ["55d0-55e1 rw-p 00001000 08:01 1234 /bin/solve", "build=/bin/x", "", "MAPPED_LIBRARIES:"]
        {
            assert_eq!(line_of_code(line), None, "{line}");
        }
    }
}
