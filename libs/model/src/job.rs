//! Jobs: messages with work for other services.

use std::sync::Arc;

use fixity::Computed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::wire::Message;
use crate::{
    Declaration, Failure, JobId, Lane, Location, ResourceUri, RunId, Seq, SourceId, Terms, Validators, size,
};

/// Resources of one origin, to be fetched one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchJob {
    /// The id of the job.
    pub id: JobId,
    /// The Source they belong to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin.
    pub lane: Lane,
    /// The Source's request settings.
    #[serde(default, skip_serializing_if = "Terms::is_empty")]
    pub terms: Terms,
    /// The resources, in this order.
    pub items: Vec<FetchItem>,
}

/// One resource to be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchItem {
    /// The resource.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// What was declared; its digest algorithms are computed as the bytes pass.
    #[serde(default)]
    pub declaration: Declaration,
    /// The latest time that the listing refers to ([`Listing::latest`](crate::Listing::latest)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_until: Option<Timestamp>,
    /// The validators of the stored version, for a declaration that decides nothing.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub held: Validators,
    /// The stored bytes are not to be relied on: the received ones are written even where an object of this
    /// name exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mend: bool,
    /// The media type of the stored version, for a declaration that decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_type: Option<String>,
}

/// Fetched resources, to be verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyJob {
    /// The id of the fetch job.
    pub id: JobId,
    /// The Source they belong to.
    pub source: SourceId,
    /// The run that sent it.
    pub run: RunId,
    /// The origin they come from.
    pub lane: Lane,
    /// One for each item of the fetch job, in its order.
    pub items: Vec<Fetched>,
    /// Requests made for them.
    pub requests: u64,
    /// Time taken, in milliseconds.
    pub elapsed_ms: u64,
}

/// The result of one item of a fetch job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// The resource.
    pub uri: ResourceUri,
    /// The number of its plan.
    pub seq: Seq,
    /// What was declared.
    #[serde(default)]
    pub declaration: Declaration,
    /// The latest time that the listing refers to ([`Listing::latest`](crate::Listing::latest)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_until: Option<Timestamp>,
    /// The result.
    pub result: FetchedResult,
}

/// The result of a fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "a failure is rare, and only a few strings larger")]
pub enum FetchedResult {
    /// Received completely and stored; not verified yet.
    Stored(Arc<StoredBitstream>),
    /// Received in an earlier run and kept as a candidate; its bytes were not read since.
    Kept(Arc<StoredBitstream>),
    /// The server says that the stored version is the current one.
    NotModified,
    /// Not fetched within the job's time.
    Deferred,
    /// Not received.
    Failed(Failure),
}

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

impl Message for FetchJob {
    const KIND: &'static str = "fetch-job";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(size::fetch_job(self))
    }
}

impl Message for VerifyJob {
    const KIND: &'static str = "verify-job";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(size::verify_job(self))
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
