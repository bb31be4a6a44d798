//! A point in time, as people and files write it.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A point in time, in nanoseconds since the Unix epoch. In JSON it is `"2026-11-27T05:03:12.000000250Z"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Moment(pub u64);

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400;

impl Moment {
    /// The present.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// `11-27 05:03`, in UTC.
    pub fn minute(self) -> String {
        self.to_string()[5..16].replace('T', " ")
    }

    /// `2026-11-27 05:03:12`, in UTC.
    pub fn second(self) -> String {
        self.to_string()[..19].replace('T', " ")
    }
}

/// Year, month and day of a day since the epoch, after Hinnant, "chrono-compatible low-level date algorithms".
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

/// The reverse of `civil`.
fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ns) = (self.0 / SECOND, self.0 % SECOND);
        let (year, month, day) = civil((seconds / DAY) as i64);
        let of_day = seconds % DAY;
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
    }
}

/// The text is no point in time.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no time such as 2026-11-27T05:03:12Z")]
pub struct NoMoment(String);

impl FromStr for Moment {
    type Err = NoMoment;

    /// Reads RFC 3339, with `Z` or an offset, from 1970 on.
    fn from_str(text: &str) -> Result<Self, NoMoment> {
        parse(text).ok_or_else(|| NoMoment(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Moment> {
    let part = |from: usize, to: usize| {
        text.get(from..to).filter(|part| part.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    };
    let (year, month, day): (i64, i64, i64) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let (hour, minute, second): (i64, i64, i64) = (part(11, 13)?, part(14, 16)?, part(17, 19)?);
    let marks: Vec<u8> = [4, 7, 10, 13, 16].map(|at| text.as_bytes()[at]).to_vec();
    let fits = matches!(&marks[..], [b'-', b'-', b'T' | b't' | b' ', b':', b':']);
    let in_range =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 61;
    if !fits || !in_range || civil(day_of(year, month, day)) != (year, month, day) {
        return None;
    }
    let rest = &text[19..];
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let fraction: u64 = match digits {
        0 => 0,
        _ => format!("{:0<9}", &rest[1..=digits]).get(..9)?.parse().ok()?,
    };
    let zone = &rest[if digits == 0 { 0 } else { digits + 1 }..];
    let offset = match zone.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let number = |part: &str| part.parse::<i64>().ok();
            let minutes = number(zone.get(1..3)?)? * 60 + number(zone.get(4..6)?)?;
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let seconds = day_of(year, month, day) * DAY as i64 + hour * 3600 + (minute - offset) * 60 + second;
    u64::try_from(seconds).ok()?.checked_mul(SECOND)?.checked_add(fraction).map(Moment)
}

impl TryFrom<String> for Moment {
    type Error = NoMoment;

    fn try_from(text: String) -> Result<Self, NoMoment> {
        text.parse()
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> Self {
        moment.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // As `date -u --date=@...` prints them: a leap day, the end of a century without one, the last day of a year.
        let known = [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (1_798_675_199, "2026-12-30T23:59:59"),
        ];
        for (seconds, text) in known {
            let moment = Moment(seconds * SECOND + 250);
            assert_eq!(moment.to_string(), format!("{text}.000000250Z"));
            assert_eq!(moment.to_string().parse::<Moment>().unwrap(), moment);
        }
        assert_eq!(Moment(1_798_675_199 * SECOND).minute(), "12-30 23:59");
    }

    #[test]
    fn times_with_offsets_and_fractions_are_read_and_others_refused() {
        let read = |text: &str| text.parse::<Moment>().map(|moment| moment.0);
        assert_eq!(read("2026-11-27T06:03:12+01:00").unwrap(), read("2026-11-27T05:03:12Z").unwrap());
        assert_eq!(read("1970-01-01T00:00:01.5Z").unwrap(), 1_500_000_000);
        assert_eq!(read("1969-12-31T23:00:00-01:30").unwrap(), 1800 * SECOND);
        for wrong in [
            "",
            "2026-11-27",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "1969-01-01T00:00:00Z",
            "2026-11-27T05:03:12",
            "+026-11-27T05:03:12Z",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
