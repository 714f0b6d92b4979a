//! What a backfill did.

use std::collections::BTreeMap;

use links::Faults;
use model::ResourceUri;
use secrets::redacted;
use serde::Serialize;
use url::Url;

/// The counts of a backfill.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Resources whose entry links to versions, or of which Archives have some.
    pub resources: u64,
    /// Pages of TimeMaps that were read.
    pub timemaps: u64,
    /// Documents of Archives that were read.
    pub archive_documents: u64,
    /// Archives of dumps, which are not read.
    pub dump_archives: u64,
    /// Versions that are known, each once.
    pub known: u64,
    /// Of these: held already, or the stored version.
    pub held: u64,
    /// Of these: newer than the stored version. The next sync fetches what is current.
    pub newer: u64,
    /// Of these: older than the newest N, or not had since the time that was asked for.
    pub older: u64,
    /// Of these: wanted, but no URL is named, and no version with their digest is held.
    pub not_held: u64,
    /// Versions that were verified and added to the history.
    pub stored: u64,
    /// Of these: not fetched, because a version with their digest was held.
    pub copied: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Versions that were left out: on another host, and without a digest to judge them by.
    pub left_out: u64,
    /// Documents, TimeMaps and versions that could not be used, by the reason.
    pub failed: BTreeMap<&'static str, u64>,
    /// Tolerated faults of TimeMaps, by name.
    pub faults: BTreeMap<&'static str, u64>,
    /// Requests, with redirects, retries and robots.txt.
    pub requests: u64,
}

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

impl Report {
    /// How many could not be used.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    pub(crate) fn note(&mut self, remark: &Remark) {
        if remark.is_left_out {
            self.left_out += 1;
        } else {
            *self.failed.entry(remark.reason).or_default() += 1;
        }
    }

    /// Counts what was not read, and tells it.
    pub(crate) fn add_unread(
        &mut self,
        uri: Option<&ResourceUri>,
        unread: Vec<Unread>,
        told: &mut dyn FnMut(&Remark),
    ) {
        for Unread { at, reason, message } in unread {
            let remark = Remark { uri: uri.cloned(), at, reason, message, is_left_out: false };
            self.note(&remark);
            told(&remark);
        }
    }

    pub(crate) fn add_faults(&mut self, faults: &Faults) {
        for (fault, times) in faults.iter() {
            *self.faults.entry(fault.as_str()).or_default() += times;
        }
    }
}
