//! Units by their names in pprof profiles.

use treering_profile::Unit;

/// The unit, and what values are multiplied by to be in it. Other units than those of time and
/// memory are counts.
pub(crate) fn from_name(name: &str) -> (Unit, u64) {
    match name {
        "nanoseconds" | "nanosecond" | "ns" => (Unit::Nanoseconds, 1),
        "microseconds" | "microsecond" | "us" => (Unit::Nanoseconds, 1_000),
        "milliseconds" | "millisecond" | "ms" => (Unit::Nanoseconds, 1_000_000),
        "seconds" | "second" | "s" => (Unit::Nanoseconds, 1_000_000_000),
        "bytes" | "byte" => (Unit::Bytes, 1),
        "kilobytes" | "kilobyte" | "kb" => (Unit::Bytes, 1 << 10),
        "megabytes" | "megabyte" | "mb" => (Unit::Bytes, 1 << 20),
        "gigabytes" | "gigabyte" | "gb" => (Unit::Bytes, 1 << 30),
        _ => (Unit::Count, 1),
    }
}

/// The name of a unit.
pub(crate) fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        _ => "count",
    }
}
