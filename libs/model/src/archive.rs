//! How long documents of the past of a publication stay, listed in ResourceSync Archives.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};
use serde::{Deserialize, Serialize};

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// How long documents of the past stay, listed in Archives. As a text: `off`, `all`, or a length of time such as `1y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Archive {
    /// No longer than their readers may need: they are in no Archive.
    #[default]
    Off,
    /// For this time after they were replaced, or ended; in whole seconds.
    For(Duration),
    /// As long as there is room for them.
    All,
}

/// A text that is no [`Archive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give a length of time such as 1y or 90days, or all, or off")]
pub struct NoArchive;

impl FromStr for Archive {
    type Err = NoArchive;

    /// `off`, `all`, or a length of time in seconds, hours, days, weeks, or years of 365 days.
    fn from_str(text: &str) -> Result<Self, NoArchive> {
        match text {
            "off" => return Ok(Self::Off),
            "all" => return Ok(Self::All),
            _ => {}
        }
        let years = text.strip_suffix('y').and_then(|years| years.parse::<u32>().ok());
        let time = match years {
            Some(years) => Some(Duration::from_secs(YEAR * u64::from(years))),
            None => {
                let span = text.parse::<Span>().ok();
                let time = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
                time.and_then(|time| Duration::try_from(time).ok())
            }
        };
        let is_whole = |time: &Duration| !time.is_zero() && time.subsec_nanos() == 0;
        time.filter(is_whole).map(Self::For).ok_or(NoArchive)
    }
}

/// The text that is read as the same.
impl fmt::Display for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::For(time) = self else {
            return f.write_str(if *self == Self::All { "all" } else { "off" });
        };
        let seconds = time.as_secs();
        let units = [(YEAR, "y"), (DAY, "d"), (HOUR, "h"), (1, "s")];
        let whole = units.into_iter().find(|(unit, _)| seconds.is_multiple_of(*unit));
        whole.map_or(Ok(()), |(unit, name)| write!(f, "{}{name}", seconds / unit))
    }
}

impl TryFrom<String> for Archive {
    type Error = NoArchive;

    fn try_from(text: String) -> Result<Self, NoArchive> {
        text.parse()
    }
}

impl From<Archive> for String {
    fn from(archive: Archive) -> Self {
        archive.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn archives_stay_for_a_time_or_for_ever() {
        let read = |text: &str| text.parse::<Archive>();
        assert_eq!((read("off"), read("all")), (Ok(Archive::Off), Ok(Archive::All)));
        for year in ["365days", "1y"] {
            assert_eq!(read(year), Ok(Archive::For(Duration::from_secs(YEAR))));
        }
        assert_eq!(read("4294967295y").map(|_| ()), Ok(()));
        for wrong in ["", "0s", "0y", "-1y", "on", "1month", "4294967296y", "1500ms"] {
            assert!(read(wrong).unwrap_err().to_string().contains("90days"), "{wrong}");
        }
    }

    #[test]
    fn an_archive_is_shown_in_the_largest_unit_that_fits() {
        for (text, shown) in [
            ("off", "off"),
            ("all", "all"),
            ("730days", "2y"),
            ("90days", "90d"),
            ("36h", "36h"),
            ("1m", "60s"),
        ] {
            assert_eq!(text.parse::<Archive>().unwrap().to_string(), shown, "{text}");
        }
        assert_eq!(serde_json::to_string(&Archive::All).unwrap(), r#""all""#);
        assert!(serde_json::from_str::<Archive>(r#""sometimes""#).is_err());
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_as_the_same(seconds in 1_u64..200 * YEAR, unit in 0_usize..4) {
            let unit = [1, HOUR, DAY, YEAR][unit];
            let seconds = (seconds / unit).max(1) * unit;
            let archive = Archive::For(Duration::from_secs(seconds));
            prop_assert_eq!(archive.to_string().parse::<Archive>(), Ok(archive));
        }
    }
}
