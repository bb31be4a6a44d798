//! Dates for people to read.

use crate::sys::{self, LocalTime};

const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Date and time in the machine's time zone, in the form of C's `asctime`, which CBS uses:
/// `Sat Nov 21 18:37:45 2026`.
///
/// A time that the calendar of the C library cannot show becomes `@` and the number of seconds
/// since 1970.
pub fn date(unix_s: i64) -> String {
    sys::local_time(unix_s).and_then(text).unwrap_or_else(|| format!("@{unix_s}"))
}

fn text(time: LocalTime) -> Option<String> {
    let weekday = WEEKDAYS.get(usize::try_from(time.weekday).ok()?)?;
    let month = MONTHS.get(usize::try_from(time.month).ok()?)?;
    let LocalTime { years, day, hour, minute, second, .. } = time;
    let year = i64::from(years) + 1900;
    Some(format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_the_form_of_asctime() {
        let time = LocalTime { years: 126, month: 10, day: 1, weekday: 0, hour: 8, minute: 7, second: 45 };
        assert_eq!(text(time).as_deref(), Some("Sun Nov  1 08:07:45 2026"));
    }

    #[test]
    fn the_calendar_of_this_machine_is_read() {
        // In any time zone, the middle of 2026 is in 2026.
        let date = date(1_782_000_000);
        assert!(date.ends_with(" 2026"), "{date}");
        assert_eq!(date.len(), 24, "{date}");
    }

    #[test]
    fn a_time_that_no_calendar_shows_is_a_number() {
        assert_eq!(date(i64::MAX), format!("@{}", i64::MAX));
    }
}
