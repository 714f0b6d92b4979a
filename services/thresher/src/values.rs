//! Values of options, as people write them.

use std::num::NonZeroU64;
use std::time::Duration;

use control::{LabelKey, LabelValue};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, SpanRelativeTo, Timestamp};
use model::{Network, SourceId, WantedLink};
use regex::Regex;
use resourcesync::relation;

use crate::exit::{Failed, usage};

/// A length of time with its unit. A day has 24 hours, a week seven days; months and years have no length.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let span = text.parse::<Span>().ok();
    let length = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    length
        .and_then(|length| Duration::try_from(length).ok())
        .ok_or_else(|| "give a length of time with its unit, such as 90s, 5min, 1h 30min or 7days".to_owned())
}

/// A length of time above 0.
pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() {
        return Err("give a length of time above 0, such as 90s, 5min or 6h".to_owned());
    }
    Ok(length)
}

/// A length of time between two scans, up to this many days. A number without a unit is of seconds, as it was before.
pub(crate) fn scan_interval<const DAYS: u64>(text: &str) -> Result<Duration, String> {
    let length = match text.parse::<u32>() {
        Ok(seconds) => Duration::from_secs(seconds.into()),
        Err(_) => duration(text)?,
    };
    let longest = Duration::from_secs(DAYS * 24 * 60 * 60);
    if (Duration::from_secs(1)..=longest).contains(&length) {
        return Ok(length);
    }
    Err(format!("give a length of time from 1s to {}h, such as 10s or 5min", DAYS * 24))
}

/// A moment in UTC, or the beginning of a day.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    let day = || text.parse::<Date>().ok()?.to_zoned(TimeZone::UTC).ok().map(|day| day.timestamp());
    text.parse::<Timestamp>()
        .ok()
        .or_else(day)
        .ok_or_else(|| "give a day such as 2026-01-31, or a moment such as 2026-01-31T12:00:00Z".to_owned())
}

/// The link of all resources of a collection.
pub(crate) fn collection(uri: &str) -> Result<WantedLink, String> {
    let link = format!("{}={uri}", relation::COLLECTION);
    link.parse().map_err(|_| format!("{uri:?} names no collection; write its URI, as `report` shows it"))
}

/// A number of bytes, as people write it.
pub(crate) fn bytes(text: &str) -> Result<NonZeroU64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => 0,
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .and_then(NonZeroU64::new)
        .ok_or_else(|| "give a number of bytes, such as 500000, 50MB or 20MiB".to_owned())
}

/// A Source's ID, or that of the URL it was added with.
pub(crate) fn source_id(text: &str) -> Result<SourceId, Failed> {
    if text.contains("://") {
        let url = text.parse().map_err(|error| usage(format!("{text} is no URL: {error}")))?;
        return Ok(SourceId::of_entry(&url));
    }
    text.parse().map_err(usage)
}

/// A network of readers: of all sets, or of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReaderNetwork {
    /// The Source of the set; none for all.
    pub(crate) source: Option<SourceId>,
    /// The network.
    pub(crate) network: Network,
}

/// A network of readers, such as `10.2.0.0/16`, or `repository-example-org-0123456789ab=10.2.0.0/16`.
pub(crate) fn reader_network(text: &str) -> Result<ReaderNetwork, String> {
    let (source, network) = match text.rsplit_once('=') {
        None => (None, text),
        Some((source, network)) => {
            (Some(source_id(source).map_err(|failed| failed.error.to_string())?), network)
        }
    };
    let network = network.parse::<Network>().map_err(|error| error.to_string())?;
    Ok(ReaderNetwork { source, network })
}

/// A label: its key and its value.
pub(crate) fn label(text: &str) -> Result<(LabelKey, LabelValue), String> {
    let (key, value) = text.split_once('=').ok_or("write a key and a value, such as country=jp")?;
    let key = key.parse::<LabelKey>().map_err(|error| error.to_string())?;
    Ok((key, value.parse::<LabelValue>().map_err(|error| error.to_string())?))
}

/// A shell pattern: `*` is any text, `?` any one character.
pub(crate) fn glob(text: &str) -> Result<Regex, regex::Error> {
    let pattern = regex::escape(text).replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("(?s)^{pattern}$"))
}

/// A mail address, as OAI-PMH takes it.
pub(crate) fn mail(text: &str) -> Result<String, String> {
    if publisher::is_mail(text) {
        return Ok(text.to_owned());
    }
    Err("give a mail address, such as archive@example.org".to_owned())
}

/// A share in percent, with its sign or without.
pub(crate) fn percent(text: &str) -> Result<u8, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        _ => Err("give a whole number of percent from 0% to 100%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 60 * 60;

    #[test]
    fn lengths_of_time_are_read_as_people_write_them() {
        for (text, seconds) in [
            ("90s", 90),
            ("5min", 300),
            ("1h 30min", 5_400),
            ("1h30m", 5_400),
            ("1day", 24 * HOUR),
            ("7days", 7 * 24 * HOUR),
            ("2weeks 1h", (2 * 7 * 24 + 1) * HOUR),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "5", "-1h", "-1day", "1month", "1year", "soon"] {
            assert!(duration(wrong).unwrap_err().contains("90s"), "{wrong}");
        }
    }

    #[test]
    fn intervals_are_above_0() {
        assert_eq!(interval("1day"), duration("24h"));
        for (wrong, why) in [("0s", "above 0"), ("0days", "above 0"), ("6", "unit"), ("-1h", "unit")] {
            assert!(interval(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }

    #[test]
    fn intervals_of_scans_are_bounded_and_may_be_plain_seconds() {
        let day = Ok(Duration::from_secs(24 * HOUR));
        for text in ["1day", "24h", "86400", "86400s"] {
            assert_eq!(scan_interval::<1>(text), day, "{text}");
        }
        assert_eq!(scan_interval::<7>("1week"), Ok(Duration::from_secs(7 * 24 * HOUR)));
        for wrong in ["0", "0s", "999ms", "86401", "25h"] {
            assert!(scan_interval::<1>(wrong).unwrap_err().contains("1s to 24h"), "{wrong}");
        }
        assert!(scan_interval::<1>("soon").unwrap_err().contains("90s"));
    }

    #[test]
    fn numbers_of_bytes_are_read_as_people_write_them() {
        for (text, expected) in
            [("500000", 500_000), ("50MB", 50_000_000), ("20MiB", 20 << 20), ("1 kB", 1_000)]
        {
            assert_eq!(bytes(text).map(NonZeroU64::get), Ok(expected), "{text}");
        }
        for wrong in ["", "0", "MB", "50Mb", "-1", "1.5GB", "99999999999GB"] {
            assert!(bytes(wrong).unwrap_err().contains("50MB"), "{wrong}");
        }
    }

    #[test]
    fn stars_stand_for_any_text_and_question_marks_for_one_character() {
        let matches = |pattern: &str, text: &str| glob(pattern).unwrap().is_match(text);
        for (pattern, text) in [
            ("*", ""),
            ("https://*.example.org/*", "https://a.example.org/list.xml"),
            ("a*b*c", "a-bb-b-c"),
            ("?b", "ab"),
            ("a", "a"),
            ("**", "a"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("", "a"), ("a", "ab"), ("?", ""), ("a*b", "abc"), ("A", "a"), ("a?c", "ac")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(50), &"a".repeat(49)));
    }

    #[test]
    fn labels_are_read_as_a_key_and_a_value() {
        let read = |text: &str| label(text).map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(read("country=jp"), Ok(("country".to_owned(), "jp".to_owned())));
        assert_eq!(read("example.org/tier="), Ok(("example.org/tier".to_owned(), String::new())));
        for (wrong, why) in [("country", "country=jp"), ("=jp", "key"), ("a=b=c", "value"), ("a b=c", "key")]
        {
            assert!(read(wrong).unwrap_err().contains(why), "{wrong}");
        }
    }

    #[test]
    fn mail_addresses_have_a_name_and_a_host_with_a_dot() {
        assert_eq!(mail("archive@example.org").as_deref(), Ok("archive@example.org"));
        for wrong in ["", "archive", "@example.org", "archive@localhost", "a b@example.org", "a@.org", "a@b."]
        {
            assert!(mail(wrong).unwrap_err().contains("example.org"), "{wrong}");
        }
    }

    #[test]
    fn networks_of_readers_are_read_with_a_source_or_without() {
        let all = reader_network("10.2.0.0/16").unwrap();
        assert_eq!((all.source, all.network), (None, "10.2.0.0/16".parse().unwrap()));
        let url = "https://repository.example/?set=a";
        let one = reader_network(&format!("{url}=fd00:2::/32")).unwrap();
        assert_eq!(one.source, Some(SourceId::of_entry(&url.parse().unwrap())));
        assert_eq!(reader_network("one=192.0.2.7").unwrap().source, Some("one".parse().unwrap()));
        for wrong in ["", "one", "one=", "=10.2.0.0/16", "10.2.0.0/33"] {
            assert!(reader_network(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentages_are_read_with_their_sign_or_without() {
        assert_eq!(percent("5%"), Ok(5));
        assert_eq!(percent("100"), Ok(100));
        assert!(percent("101%").is_err());
        assert!(percent("-1%").is_err());
    }
}
