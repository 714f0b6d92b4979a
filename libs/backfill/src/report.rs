//! What a backfill did.

use links::Faults;
use model::{BackfillCounts, ResourceUri};
use secrets::redacted;
use url::Url;

/// Why a document, a TimeMap or a version was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The resource; none of a document of an Archive.
    pub uri: Option<ResourceUri>,
    /// The URL of the document, the TimeMap or the version, without secrets.
    pub at: String,
    /// The reason's name.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
    /// Whether it is left out by rule, and not a failure.
    pub is_left_out: bool,
}

/// Why a document, or the rest of one, was not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unread {
    /// Its URL, without secrets.
    pub(crate) at: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Unread {
    pub(crate) fn new(url: &Url, reason: &'static str, message: String) -> Self {
        Self { at: redacted(url), reason, message }
    }
}

/// Counts what comes of a backfill's requests.
pub(crate) trait Count {
    /// Counts what was not used.
    fn note(&mut self, remark: &Remark);

    /// Counts what was not read, and tells it.
    fn add_unread(
        &mut self,
        uri: Option<&ResourceUri>,
        unread: Vec<Unread>,
        told: &mut (dyn FnMut(&Remark) + Send),
    );

    /// Counts tolerated faults of TimeMaps.
    fn add_faults(&mut self, faults: &Faults);
}

impl Count for BackfillCounts {
    fn note(&mut self, remark: &Remark) {
        if remark.is_left_out {
            self.left_out += 1;
        } else {
            *self.failed.entry(remark.reason.to_owned()).or_default() += 1;
        }
    }

    fn add_unread(
        &mut self,
        uri: Option<&ResourceUri>,
        unread: Vec<Unread>,
        told: &mut (dyn FnMut(&Remark) + Send),
    ) {
        for Unread { at, reason, message } in unread {
            let remark = Remark { uri: uri.cloned(), at, reason, message, is_left_out: false };
            self.note(&remark);
            told(&remark);
        }
    }

    fn add_faults(&mut self, faults: &Faults) {
        for (fault, times) in faults.iter() {
            *self.faults.entry(fault.as_str().to_owned()).or_default() += times;
        }
    }
}
