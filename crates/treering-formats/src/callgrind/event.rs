//! Units that names of events hold.

use treering_profile::Unit;

use crate::unit;

/// The name, the unit and the factor of `cpu-clock [nanoseconds]`, `Time_(10ns)` or `cpu(ms)`;
/// nothing for a name that holds no unit.
pub(crate) fn split(text: &str) -> Option<(&str, Unit, u64)> {
    let text = text.trim();
    let open = match text.bytes().last()? {
        b']' => '[',
        b')' => '(',
        _ => return None,
    };
    let at = text.rfind(open)?;
    let inner = &text[at + 1..text.len() - 1];
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let times = if digits == 0 { 1 } else { inner[..digits].parse::<u64>().ok()? };
    let (unit, factor) = unit::known(&inner[digits..])?;
    Some((text[..at].trim_end_matches(['_', ' ']), unit, factor.checked_mul(times)?.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_in_brackets_at_the_end() {
        for (text, expected) in [
            ("Time_(10ns)", Some(("Time", Unit::Nanoseconds, 10))),
            ("Memory_(bytes)", Some(("Memory", Unit::Bytes, 1))),
            ("cpu(ms)", Some(("cpu", Unit::Nanoseconds, 1_000_000))),
            ("alloc_space(kB)", Some(("alloc_space", Unit::Bytes, 1024))),
            ("cpu-clock [nanoseconds]", Some(("cpu-clock", Unit::Nanoseconds, 1))),
            ("samples [count]", Some(("samples", Unit::Count, 1))),
            ("Time (µs)", Some(("Time", Unit::Nanoseconds, 1_000))),
            ("L1 Instr. Fetch Miss", None),
            ("operator()", None),
            ("Ge(strange)", None),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }
}
