//! Link sets: links of one or more resources in a body of their own (RFC 9264).
//!
//! ```
//! use links::linkset::{self, Format};
//!
//! let body = br#"{"linkset": [{"anchor": "http://e.org/a", "item": [{"href": "/a.pdf", "type": "application/pdf"}]}]}"#;
//! let set = linkset::read(body, Format::Json, &links::Limits::BODY)?;
//! assert_eq!(set.links[0].attribute("type"), Some("application/pdf"));
//! # Ok::<_, links::linkset::LinksetError>(())
//! ```

use crate::fault::Fault;
use crate::header;
use crate::limits::Limits;
use crate::link::Links;

mod json;
mod repair;
mod write;

pub use write::to_json;

/// The media type of a link set in JSON.
pub const JSON: &str = "application/linkset+json";
/// The media type of a link set in text.
pub const TEXT: &str = "application/linkset";

/// How a link set is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `application/linkset+json` (RFC 9264, 4.2).
    Json,
    /// `application/linkset` (RFC 9264, 4.1): the value of a `Link` header, with line breaks.
    Text,
}

/// Why a body is no link set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinksetError {
    /// It is longer than the limit.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    /// It is no JSON.
    #[error("it is no JSON: {0}")]
    NotJson(String),
    /// It is JSON of another kind.
    #[error("it has no member \"linkset\"")]
    NotALinkset,
    /// It is not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
}

impl Format {
    /// The format of a media type, with or without parameters, and whether that type is the registered one. Servers
    /// also send link sets as plain JSON and under names of their own.
    pub fn of(media_type: &str) -> Option<(Self, bool)> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            JSON => Some((Self::Json, true)),
            TEXT => Some((Self::Text, true)),
            "application/json"
            | "linkset+json"
            | "application/json+linkset"
            | "application/json+ld"
            | "application/ld+json" => Some((Self::Json, false)),
            "application/link-format" => Some((Self::Text, false)),
            _ => None,
        }
    }
}

/// Reads a link set.
///
/// Its links are in its order. An anchor may be missing or relative; resolve it against the URL of the set
/// ([`Link::context_at`](crate::Link::context_at)).
///
/// # Errors
/// [`LinksetError`].
pub fn read(body: &[u8], format: Format, limits: &Limits) -> Result<Links, LinksetError> {
    if body.len() > limits.bytes {
        return Err(LinksetError::TooLarge(limits.bytes));
    }
    match format {
        Format::Json => json::read(body, limits),
        Format::Text => {
            let text = std::str::from_utf8(body).map_err(|_| LinksetError::NotUtf8)?;
            let mut set = header::read([text], limits);
            for link in &set.links {
                match &link.anchor {
                    None => set.faults.add(Fault::NoAnchor),
                    Some(anchor) if is_relative(anchor) => set.faults.add(Fault::RelativeAnchor),
                    Some(_) => {}
                }
            }
            Ok(set)
        }
    }
}

fn is_relative(anchor: &str) -> bool {
    url::Url::parse(anchor) == Err(url::ParseError::RelativeUrlWithoutBase)
}

#[cfg(test)]
mod tests;
