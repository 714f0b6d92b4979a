//! TimeMaps: the versions of a resource, as a Memento server lists them (RFC 7089, 5).
//!
//! ```
//! use links::timemap::{self, Format};
//!
//! let body = br#"<http://e.org/a>; rel="original",
//!     <http://m.org/20260106/a>; rel="first last memento"; datetime="Tue, 06 Jan 2026 09:00:00 GMT""#;
//! let map = timemap::read(body, Format::LinkFormat, &links::Limits::BODY)?;
//! assert_eq!(map.mementos[0].url, "http://m.org/20260106/a");
//! # Ok::<_, timemap::TimeMapError>(())
//! ```

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;

use crate::fault::{Fault, Faults};
use crate::header;
use crate::limits::Limits;
use crate::link::Link;
use crate::moment::{http_date, parse_http_date};

mod json;

/// The media type of a TimeMap in the form of links.
pub const LINK_FORMAT: &str = "application/link-format";

/// How a TimeMap is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/link-format` (RFC 7089, 5).
    LinkFormat,
    /// JSON, as Memento aggregators serve it. No standard describes it.
    Json,
}

/// Why a body is no TimeMap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeMapError {
    /// It is longer than the limit.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// It is no JSON of the expected form.
    #[error("it is no TimeMap in JSON: {0}")]
    NotJson(String),
}

/// A TimeMap, or a page of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeMap {
    /// The resource whose versions these are.
    pub original: Option<String>,
    /// Its TimeGate.
    pub timegate: Option<String>,
    /// This page, and the interval it covers.
    pub this: Option<Part>,
    /// Other pages, or the parts of an index.
    pub parts: Vec<Part>,
    /// The versions, the oldest first.
    pub mementos: Vec<Memento>,
    /// Whether the first of these versions is the first there is.
    pub has_first: bool,
    /// Whether the last of these versions is the last there is.
    pub has_last: bool,
    /// The tolerated faults.
    pub faults: Faults,
}

/// A page of a TimeMap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// Its URL, as written.
    pub url: String,
    /// The time of its first version.
    pub from: Option<Timestamp>,
    /// The time of its last version.
    pub until: Option<Timestamp>,
}

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memento {
    /// Its URL, as written.
    pub url: String,
    /// Since when the resource was like that.
    pub time: Timestamp,
}

impl Format {
    /// The format of a media type, with or without parameters.
    pub fn of(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            LINK_FORMAT | "text/plain" => Some(Self::LinkFormat),
            "application/json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Reads a TimeMap.
///
/// # Errors
/// [`TimeMapError`].
pub fn read(body: &[u8], format: Format, limits: &Limits) -> Result<TimeMap, TimeMapError> {
    if body.len() > limits.bytes {
        return Err(TimeMapError::TooLarge(limits.bytes));
    }
    let mut map = match format {
        Format::LinkFormat => of_links(std::str::from_utf8(body).map_err(|_| TimeMapError::NotUtf8)?, limits),
        Format::Json => json::read(body, limits).map_err(|error| TimeMapError::NotJson(error.to_string()))?,
    };
    if map.original.is_none() {
        map.faults.add(Fault::NoOriginal);
    }
    // Servers may list them in any order, and name the first and the last twice.
    map.mementos.sort_by(|a, b| (a.time, &a.url).cmp(&(b.time, &b.url)));
    map.mementos.dedup();
    Ok(map)
}

fn of_links(text: &str, limits: &Limits) -> TimeMap {
    let found = header::read([text], limits);
    let mut map = TimeMap { faults: found.faults, ..TimeMap::default() };
    for link in found.links {
        let moment = |name| link.attribute(name).and_then(parse_moment);
        if link.is("memento") {
            let Some(time) = moment("datetime") else {
                map.faults.add(Fault::BadDatetime);
                continue;
            };
            map.has_first |= link.is("first");
            map.has_last |= link.is("last");
            map.mementos.push(Memento { url: link.target, time });
            continue;
        }
        let part = || Part { url: link.target.clone(), from: moment("from"), until: moment("until") };
        if link.is("original") {
            map.original.get_or_insert_with(|| link.target.clone());
        }
        if link.is("timegate") {
            map.timegate.get_or_insert_with(|| link.target.clone());
        }
        if link.is("self") {
            map.this.get_or_insert_with(part);
        } else if link.is("timemap") {
            map.parts.push(part());
        }
    }
    map
}

/// A time as servers write it: strictly, with other zones, or as W3C Datetime.
fn parse_moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    parse_http_date(text)
        .or_else(|| DateTimeParser::new().parse_timestamp(text).ok())
        .or_else(|| text.parse().ok())
}

impl TimeMap {
    /// Writes it in the form of links, one a line. Times are written in whole seconds.
    pub fn to_link_format(&self) -> String {
        let mut lines = Vec::with_capacity(self.mementos.len() + 4);
        let mut add =
            |url: &str, rel: &str, times: &[(&str, Option<Timestamp>)], media_type: Option<&str>| {
                let mut link = Link::new(url, rel);
                if let Some(media_type) = media_type {
                    link = link.with("type", media_type);
                }
                for (name, time) in times {
                    if let Some(time) = time.and_then(http_date) {
                        link = link.with(name, time);
                    }
                }
                lines.push(link.to_string());
            };
        if let Some(original) = &self.original {
            add(original, "original", &[], None);
        }
        if let Some(this) = &self.this {
            add(&this.url, "self", &[("from", this.from), ("until", this.until)], Some(LINK_FORMAT));
        }
        if let Some(timegate) = &self.timegate {
            add(timegate, "timegate", &[], None);
        }
        for part in &self.parts {
            add(&part.url, "timemap", &[("from", part.from), ("until", part.until)], Some(LINK_FORMAT));
        }
        for (number, memento) in self.mementos.iter().enumerate() {
            let mut rel = String::new();
            if number == 0 && self.has_first {
                rel.push_str("first ");
            }
            if number + 1 == self.mementos.len() && self.has_last {
                rel.push_str("last ");
            }
            rel.push_str("memento");
            add(&memento.url, &rel, &[("datetime", Some(memento.time))], None);
        }
        lines.join(",\n") + "\n"
    }
}

#[cfg(test)]
mod tests;
