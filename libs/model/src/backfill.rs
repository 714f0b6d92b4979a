//! What a backfill did: a record of its counts, as the command line prints it and a fleet stores it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The counts of a backfill: of what is known of earlier versions, and of what was fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackfillCounts {
    /// Resources whose entry links to versions, or of which Archives have some.
    pub resources: u64,
    /// Pages of TimeMaps that were read.
    pub timemaps: u64,
    /// Documents of Archives that were read.
    pub archive_documents: u64,
    /// Archives of dumps, of whose packages the manifests are read.
    pub dump_archives: u64,
    /// Versions that are known, each once.
    pub known: u64,
    /// Of these: held already, or the stored version.
    pub held: u64,
    /// Of these: newer than the stored version. The next sync fetches what is current.
    pub newer: u64,
    /// Of these: older than the newest N, or not had since the time that was asked for.
    pub older: u64,
    /// Of these: chosen, but no URL is named, and no version with their digest is held.
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
    pub failed: BTreeMap<String, u64>,
    /// Tolerated faults of TimeMaps, by name.
    pub faults: BTreeMap<String, u64>,
    /// Requests, with redirects, retries and robots.txt.
    pub requests: u64,
}

impl BackfillCounts {
    /// How many documents, TimeMaps and versions could not be used.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }
}
