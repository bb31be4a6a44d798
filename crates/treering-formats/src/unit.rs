//! Units by their names in other tools' profiles.

use treering_profile::Unit;

/// The unit, and what values are multiplied by to be in it; nothing for other units than those of
/// time and memory and `count`. The names are those that `go tool pprof` knows.
pub(crate) fn known(name: &str) -> Option<(Unit, u64)> {
    const SECOND: u64 = 1_000_000_000;
    let name = name.trim().to_lowercase();
    let one = if name.chars().count() > 2 { name.strip_suffix('s').unwrap_or(&name) } else { &name };
    Some(match one {
        "nanosecond" | "ns" | "nsec" => (Unit::Nanoseconds, 1),
        "microsecond" | "us" | "µs" | "μs" | "usec" => (Unit::Nanoseconds, 1_000),
        "millisecond" | "ms" | "msec" => (Unit::Nanoseconds, 1_000_000),
        "second" | "s" | "sec" => (Unit::Nanoseconds, SECOND),
        "minute" | "min" => (Unit::Nanoseconds, 60 * SECOND),
        "hour" | "hr" => (Unit::Nanoseconds, 3600 * SECOND),
        "day" => (Unit::Nanoseconds, 86_400 * SECOND),
        "byte" | "b" => (Unit::Bytes, 1),
        "kilobyte" | "kb" | "kbyte" | "kib" => (Unit::Bytes, 1 << 10),
        "megabyte" | "mb" | "mbyte" | "mib" => (Unit::Bytes, 1 << 20),
        "gigabyte" | "gb" | "gbyte" | "gib" => (Unit::Bytes, 1 << 30),
        "terabyte" | "tb" | "tbyte" | "tib" => (Unit::Bytes, 1 << 40),
        "count" => (Unit::Count, 1),
        _ => return None,
    })
}

/// The same, where any other unit is a count.
pub(crate) fn from_name(name: &str) -> (Unit, u64) {
    known(name).unwrap_or((Unit::Count, 1))
}

/// The name of a unit.
pub(crate) fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        _ => "count",
    }
}
