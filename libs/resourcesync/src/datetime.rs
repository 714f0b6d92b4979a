use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod parse;

use crate::quirk::QuirkSet;

/// A W3C Datetime (RS-3): an instant, with the precision and zone in which it was written.
///
/// **Equality, order and hash use the instant alone**, because documents are compared by it:
/// `2013-01-03T11:00:00+02:00` equals `2013-01-03T09:00:00Z`, and a date equals midnight UTC of that day. Use
/// [`precision`](Self::precision) and [`zone`](Self::zone) where the writing matters.
///
/// `Display` writes canonical W3C Datetime in the original precision and zone; a time without zone is written
/// with `Z`, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Datetime {
    instant: Timestamp,
    precision: Precision,
    zone: Zone,
}

/// The smallest unit that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// `YYYY`
    Year,
    /// `YYYY-MM`
    Month,
    /// `YYYY-MM-DD`
    Day,
    /// `YYYY-MM-DDThh:mm`
    Minute,
    /// `YYYY-MM-DDThh:mm:ss`
    Second,
    /// `YYYY-MM-DDThh:mm:ss.s`, kept to the nanosecond
    Subsecond,
}

/// The zone that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Zone {
    /// `Z`
    Utc,
    /// `±hh:mm`, in seconds ahead of UTC: `+02:00` is 7,200.
    Offset(i32),
    /// None. A date needs none; a time of day should have one. Read as UTC.
    Missing,
}

impl Datetime {
    /// The instant; for a year, month or date its first instant in UTC.
    pub fn instant(&self) -> Timestamp {
        self.instant
    }

    /// The precision in which it was written.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The zone it was written in.
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// Parses a strict W3C Datetime: a time of day needs its zone.
    pub fn parse(text: &str) -> Result<Self, DatetimeError> {
        let (datetime, quirks) = parse::parse(text)?;
        if quirks.is_empty() { Ok(datetime) } else { Err(DatetimeError::new(text)) }
    }

    /// Parses what sources write for a W3C Datetime, and returns its quirks: no zone (read as UTC), a blank
    /// for the `T`, lower case, a zone without colon, second 60 (read as the next second). Surrounding blanks
    /// are ignored.
    pub fn parse_lenient(text: &str) -> Result<(Self, QuirkSet), DatetimeError> {
        match parse::parse_common(text) {
            Some(datetime) => Ok((datetime, QuirkSet::default())),
            None => parse::parse(text.trim()),
        }
    }

    fn from_civil(civil: DateTime, precision: Precision, zone: Zone) -> Option<Self> {
        let utc = Offset::UTC.to_timestamp(civil).ok()?;
        let instant = match zone {
            Zone::Offset(ahead) => {
                Timestamp::new(utc.as_second().checked_sub(ahead.into())?, utc.subsec_nanosecond()).ok()?
            }
            Zone::Utc | Zone::Missing => utc,
        };
        Some(Self { instant, precision, zone })
    }

    fn civil(&self) -> DateTime {
        let offset = match self.zone {
            Zone::Offset(ahead) => Offset::from_seconds(ahead).unwrap_or(Offset::UTC),
            Zone::Utc | Zone::Missing => Offset::UTC,
        };
        offset.to_datetime(self.instant)
    }
}

/// In UTC, with as many decimals as needed.
impl From<Timestamp> for Datetime {
    fn from(instant: Timestamp) -> Self {
        let precision =
            if instant.subsec_nanosecond() == 0 { Precision::Second } else { Precision::Subsecond };
        Self { instant, precision, zone: Zone::Utc }
    }
}

/// Strict parsing.
impl FromStr for Datetime {
    type Err = DatetimeError;

    fn from_str(text: &str) -> Result<Self, DatetimeError> {
        Self::parse(text)
    }
}

impl fmt::Display for Datetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = self.civil();
        write!(f, "{:04}", civil.year())?;
        if self.precision >= Precision::Month {
            write!(f, "-{:02}", civil.month())?;
        }
        if self.precision >= Precision::Day {
            write!(f, "-{:02}", civil.day())?;
        }
        if self.precision < Precision::Minute {
            return Ok(());
        }
        write!(f, "T{:02}:{:02}", civil.hour(), civil.minute())?;
        if self.precision >= Precision::Second {
            write!(f, ":{:02}", civil.second())?;
        }
        if self.precision == Precision::Subsecond {
            let digits = format!("{:09}", civil.subsec_nanosecond());
            let shortest = digits.trim_end_matches('0');
            write!(f, ".{}", if shortest.is_empty() { "0" } else { shortest })?;
        }
        match self.zone {
            Zone::Utc | Zone::Missing => f.write_str("Z"),
            Zone::Offset(ahead) => {
                let sign = if ahead < 0 { '-' } else { '+' };
                let minutes = ahead.unsigned_abs() / 60;
                write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
        }
    }
}

impl PartialEq for Datetime {
    fn eq(&self, other: &Self) -> bool {
        self.instant == other.instant
    }
}

impl Eq for Datetime {}

impl PartialOrd for Datetime {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Datetime {
    fn cmp(&self, other: &Self) -> Ordering {
        self.instant.cmp(&other.instant)
    }
}

impl Hash for Datetime {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.instant.hash(state);
    }
}

impl Serialize for Datetime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Datetime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// A text that is no W3C Datetime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is no W3C Datetime; expected for example 2013-01-03T09:00:00Z")]
pub struct DatetimeError {
    text: String,
}

impl DatetimeError {
    fn new(text: &str) -> Self {
        Self { text: text.chars().take(40).collect() }
    }
}

/// A valid date and time of day.
fn civil(date: (i16, i8, i8), time: (i8, i8, i8, i32)) -> Option<DateTime> {
    let date = Date::new(date.0, date.1, date.2).ok()?;
    let time = Time::new(time.0, time.1, time.2, time.3).ok()?;
    Some(DateTime::from_parts(date, time))
}

#[cfg(test)]
mod tests;
