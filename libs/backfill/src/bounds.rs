//! Bounds of what a backfill has in memory.

use links::Limits;

/// How much of what strangers say a backfill has in memory at a time, and how often it can stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Resources whose versions are chosen together, and then fetched. It stops between two such groups.
    pub resources: usize,
    /// Groups after which all is committed, however few versions were fetched. A crash costs the TimeMaps of so many.
    pub groups_per_commit: usize,
    /// Bytes and versions of one page of a TimeMap; over all its pages, a TimeMap has as many versions.
    pub timemap: Limits,
    /// Versions that Archives name.
    pub archived: usize,
}

impl Bounds {
    /// For a process of its own.
    pub const COMMAND: Self =
        Self { resources: 32, groups_per_commit: 64, timemap: Limits::BODY, archived: 500_000 };
    /// For a process that many Sources share: some 60 MiB.
    pub const SHARED: Self = Self {
        resources: 8,
        groups_per_commit: 4,
        timemap: Limits { links: 10_000, bytes: 2 * 1024 * 1024, ..Limits::BODY },
        archived: 50_000,
    };
}
