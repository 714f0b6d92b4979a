//! A bitstream between fetch and verification.

use fixity::Computed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Location, Validators};

/// A stored bitstream that is not verified yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredBitstream {
    /// Its location.
    pub location: Location,
    /// Length and digests, computed as the bytes passed.
    pub computed: Computed,
    /// The media type the server sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The Content-Encoding of the stored bytes, in lower case; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The server's validators.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// When the bytes were last modified, as far as the server's `Last-Modified` is credible (RFC 9110,
    /// 8.8.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// The URL of the bytes, if redirects led elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
}

impl StoredBitstream {
    /// Whether these bytes are certainly newer than the listed version, whose latest time is given. Without a
    /// time on either side, nothing is certain.
    pub fn is_newer_than(&self, listed_until: Option<Timestamp>) -> bool {
        self.modified.zip(listed_until).is_some_and(|(modified, listed)| modified > listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modified(modified: Option<&str>) -> StoredBitstream {
        let computed = Computed::of(b"abc");
        StoredBitstream {
            location: Location::Object { sha256: computed.sha256() },
            computed,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            modified: modified.map(|time| time.parse().unwrap()),
            final_url: None,
        }
    }

    #[test]
    fn only_a_modification_after_the_last_moment_listed_is_certainly_newer() {
        let stored = modified(Some("2026-01-02T00:00:05Z"));
        for (listed, is_newer) in [
            ("2026-01-02T00:00:04.999999999Z", true),
            ("2026-01-02T00:00:05Z", false),
            ("2026-01-02T23:59:59Z", false),
        ] {
            assert_eq!(stored.is_newer_than(Some(listed.parse().unwrap())), is_newer, "{listed}");
        }
    }

    #[test]
    fn without_a_time_on_either_side_nothing_is_certain() {
        assert!(!modified(Some("2026-01-02T00:00:05Z")).is_newer_than(None));
        assert!(!modified(None).is_newer_than(Some("2026-01-02T00:00:05Z".parse().unwrap())));
    }
}
