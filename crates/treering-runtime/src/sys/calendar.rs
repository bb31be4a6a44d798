//! The calendar of the machine's time zone.

/// A point in time as the calendar of the machine's time zone shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LocalTime {
    /// Years since 1900.
    pub(crate) years: i32,
    /// Months since January, 0 to 11.
    pub(crate) month: i32,
    /// Day of the month, from 1.
    pub(crate) day: i32,
    /// Days since Sunday, 0 to 6.
    pub(crate) weekday: i32,
    /// 0 to 23.
    pub(crate) hour: i32,
    /// 0 to 59.
    pub(crate) minute: i32,
    /// 0 to 60, for leap seconds.
    pub(crate) second: i32,
}

/// The calendar's date at that many seconds after 1970 in UTC; nothing where the year does not
/// fit the C library's type.
pub(crate) fn local_time(unix_s: i64) -> Option<LocalTime> {
    let time = libc::time_t::try_from(unix_s).ok()?;
    // SAFETY: all fields of `tm` are integers or a pointer, for which zero is a value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to locals that live through the call, and `localtime_r` keeps
    // neither; unlike `localtime` it has no buffer that threads share.
    let done = unsafe { libc::localtime_r(&raw const time, &raw mut parts) };
    (!done.is_null()).then_some(LocalTime {
        years: parts.tm_year,
        month: parts.tm_mon,
        day: parts.tm_mday,
        weekday: parts.tm_wday,
        hour: parts.tm_hour,
        minute: parts.tm_min,
        second: parts.tm_sec,
    })
}
