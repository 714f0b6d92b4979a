//! Times.

use jiff::Timestamp;
use jiff::fmt::rfc2822::{DateTimeParser, DateTimePrinter};
use serde::{Deserialize, Serialize};

/// A time: seconds and nanoseconds of Unix time. Most times that Sources state have no nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Time(i64, i32);

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Self {
        Self(time.as_second(), time.subsec_nanosecond())
    }
}

impl Time {
    pub(super) fn read(self) -> Result<Timestamp, String> {
        Timestamp::new(self.0, self.1).map_err(|error| error.to_string())
    }

    pub(super) fn read_optional(time: Option<Self>) -> Result<Option<Timestamp>, String> {
        time.map(Self::read).transpose()
    }
}

/// A `Last-Modified` header as it was sent. Nearly all are of one format (RFC 9110, section 5.6.7), and so are times.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum HttpDate<'a> {
    /// There was none.
    None,
    /// The declared last modification.
    Declared,
    /// Another time, in seconds of Unix time.
    At(i64),
    /// Another text.
    Text(&'a str),
}

impl<'a> HttpDate<'a> {
    pub(super) fn of(sent: Option<&'a str>, declared: Option<Timestamp>) -> Self {
        let Some(sent) = sent else { return Self::None };
        let is_sent = |time: &Timestamp| http_date(*time).is_some_and(|text| text == sent);
        if declared.as_ref().is_some_and(is_sent) {
            return Self::Declared;
        }
        match DateTimeParser::new().parse_timestamp(sent).ok().filter(is_sent) {
            Some(time) => Self::At(time.as_second()),
            None => Self::Text(sent),
        }
    }

    pub(super) fn read(self, declared: Option<Timestamp>) -> Result<Option<String>, String> {
        let time = match self {
            Self::None => return Ok(None),
            Self::Text(sent) => return Ok(Some(sent.to_owned())),
            Self::Declared => declared.ok_or("its last modification is not declared")?,
            Self::At(seconds) => Time(seconds, 0).read()?,
        };
        http_date(time).map(Some).ok_or_else(|| format!("{time} is no time of a header"))
    }
}

fn http_date(time: Timestamp) -> Option<String> {
    DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()
}
