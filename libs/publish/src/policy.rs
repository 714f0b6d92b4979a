//! Sizes and times of a publication.

use std::str::FromStr;
use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// How long documents of the past stay, listed in Archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Archive {
    /// No longer than their readers may need: they are in no Archive.
    #[default]
    Off,
    /// For this time after they were replaced, or ended.
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

    /// `off`, `all`, or a length of time in hours, days, weeks, or years of 365 days.
    fn from_str(text: &str) -> Result<Self, NoArchive> {
        match text {
            "off" => return Ok(Self::Off),
            "all" => return Ok(Self::All),
            _ => {}
        }
        let years = text.strip_suffix('y').and_then(|years| years.parse::<u32>().ok());
        let time = match years {
            Some(years) => DAY.checked_mul(365).and_then(|year| year.checked_mul(years)),
            None => {
                let span = text.parse::<Span>().ok();
                let time = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
                time.and_then(|time| Duration::try_from(time).ok())
            }
        };
        time.filter(|time| !time.is_zero()).map(Self::For).ok_or(NoArchive)
    }
}

/// Sizes and times of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Entries after which a part of a Resource List may end.
    pub least_entries: u64,
    /// It ends then at the first URI that is one of this many, chosen by its digest. So an added resource moves the
    /// ends of one part, and not those of all later ones.
    pub one_in: u64,
    /// The most entries of any list: at most 50,000, as in a Sitemap.
    pub most_entries: u64,
    /// A list ends when its entries have this many bytes: at most 50 MB, as in a Sitemap.
    pub most_bytes: u64,
    /// A new Resource List is made when more than this share of the resources has changed, in percent.
    pub changed_percent: u64,
    /// It is not made more often than this, unless it is small: a first harvest changes much at a time.
    pub edition_pause: Duration,
    /// A Resource List of at most this many resources is made anew after each change.
    pub small: u64,
    /// A Resource List is made anew after this time, if anything has changed.
    pub edition_age: Duration,
    /// The most resources, or changes, of a package.
    pub package_entries: u64,
    /// A package ends when its resources have this many bytes.
    pub package_bytes: u64,
    /// A new Resource Dump is made when more than this share of the resources has changed, in percent.
    pub dump_changed_percent: u64,
    /// A Resource Dump is made anew after this time, if anything has changed.
    pub dump_age: Duration,
    /// A Change List is closed after this time.
    pub change_list_age: Duration,
    /// The same where a Change Dump is made: its packages are those of closed Change Lists.
    pub dumped_list_age: Duration,
    /// Closed Change Lists stay this long, and back to the oldest `at` of the Resource List.
    pub keep_changes: Duration,
    /// What a replaced document names stays this long.
    pub keep_replaced: Duration,
    /// How long documents of the past stay beyond that, in Archives.
    pub archive: Archive,
    /// Whether entries link to the versions that they are about, at URLs that stay: a server has them.
    pub version_links: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            least_entries: 25_000,
            one_in: 8_192,
            most_entries: 50_000,
            // The header and the last entry come on top.
            most_bytes: 49_900_000,
            changed_percent: 5,
            edition_pause: Duration::from_secs(600),
            small: 10_000,
            edition_age: 7 * DAY,
            package_entries: 5_000,
            package_bytes: 256 * 1024 * 1024,
            dump_changed_percent: 20,
            dump_age: 30 * DAY,
            change_list_age: DAY,
            dumped_list_age: Duration::from_secs(3_600),
            keep_changes: 30 * DAY,
            keep_replaced: 2 * DAY,
            archive: Archive::Off,
            version_links: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_stay_for_a_time_or_for_ever() {
        let read = |text: &str| text.parse::<Archive>();
        assert_eq!((read("off"), read("all")), (Ok(Archive::Off), Ok(Archive::All)));
        for year in ["365days", "1y"] {
            assert_eq!(read(year), Ok(Archive::For(DAY * 365)));
        }
        assert_eq!(read("4294967295y").map(|_| ()), Ok(()));
        for wrong in ["", "0s", "0y", "-1y", "on", "1month", "4294967296y"] {
            assert!(read(wrong).unwrap_err().to_string().contains("90days"), "{wrong}");
        }
    }
}
