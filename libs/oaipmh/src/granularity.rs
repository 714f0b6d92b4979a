use std::fmt;

use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use resourcesync::{Datetime, Precision};
use serde::{Deserialize, Serialize};

use crate::quirk::Quirk;

/// The finest unit of a repository's datestamps and windows (sections 3.3 and 4.2). All times are UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// `YYYY-MM-DD`. Every repository takes it in requests.
    Day,
    /// `YYYY-MM-DDThh:mm:ssZ`.
    Second,
}

impl Granularity {
    /// Reads the `granularity` of an Identify answer. Another case or surrounding blanks are
    /// [`Quirk::OddGranularity`]; an unknown text is too, and gives no granularity.
    pub fn read(text: &str) -> (Option<Self>, Option<Quirk>) {
        match text {
            "YYYY-MM-DD" => (Some(Self::Day), None),
            "YYYY-MM-DDThh:mm:ssZ" => (Some(Self::Second), None),
            other => {
                let other = other.trim().to_ascii_lowercase();
                let known = match other.as_str() {
                    "yyyy-mm-dd" | "day" => Some(Self::Day),
                    "yyyy-mm-ddthh:mm:ssz" | "yyyy-mm-ddthh:mm:ss" | "second" | "seconds" => {
                        Some(Self::Second)
                    }
                    _ => None,
                };
                (known, Some(Quirk::OddGranularity))
            }
        }
    }

    /// The granularity that a time is written in: of an `earliestDatestamp`, where `granularity` is missing.
    pub fn of(time: &Datetime) -> Self {
        if time.precision() > Precision::Day { Self::Second } else { Self::Day }
    }

    /// As an Identify answer writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Day => "YYYY-MM-DD",
            Self::Second => "YYYY-MM-DDThh:mm:ssZ",
        }
    }

    /// The other granularity, for a repository that refuses the one it announces.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Day => Self::Second,
            Self::Second => Self::Day,
        }
    }

    /// One unit: a day or a second.
    pub fn unit(self) -> SignedDuration {
        match self {
            Self::Day => SignedDuration::from_hours(24),
            Self::Second => SignedDuration::from_secs(1),
        }
    }

    /// The first instant of the unit that `time` is in.
    #[must_use]
    pub fn floor(self, time: Timestamp) -> Timestamp {
        let seconds = time.as_second() - i64::from(time.subsec_nanosecond() < 0);
        let unit = self.unit().as_secs();
        Timestamp::from_second(seconds.div_euclid(unit) * unit).unwrap_or(Timestamp::MIN)
    }

    /// An instant as an argument of a request or a datestamp, rounded down to the unit.
    pub fn format(self, time: Timestamp) -> String {
        let civil = Offset::UTC.to_datetime(self.floor(time));
        let day = civil.date();
        let day = format!("{:04}-{:02}-{:02}", day.year(), day.month(), day.day());
        match self {
            Self::Day => day,
            Self::Second => {
                format!("{day}T{:02}:{:02}:{:02}Z", civil.hour(), civil.minute(), civil.second())
            }
        }
    }

    /// Parses an argument in exactly one of the two forms of the protocol.
    pub fn parse(text: &str) -> Option<(Timestamp, Self)> {
        let time = Datetime::parse(text).ok()?;
        let granularity = match text.len() {
            10 => Self::Day,
            20 if text.ends_with('Z') => Self::Second,
            _ => return None,
        };
        Some((time.instant(), granularity))
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
