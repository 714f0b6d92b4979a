//! Sizes and times of a publication.

use std::time::Duration;

use model::Archive;

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Sizes and times of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Entries after which a part of a Resource List may end.
    pub least_entries: u64,
    /// It ends then at the first URI that is one of this many, chosen by its digest. So an added resource moves the
    /// ends of one part, and not those of all later ones.
    pub one_in: u64,
    /// The most entries of any list: at most 50,000, as in a Sitemap.
    pub most_entries: u64,
    /// A list ends when its entries have this many bytes: at most 50 MB, as in a Sitemap.
    pub most_bytes: u64,
    /// At a place that several processes may write, a Change List ends with so many bytes: it is in memory when it is
    /// written, since a PUT with a condition has no parts.
    pub guarded_list_bytes: u64,
    /// A new Resource List is made when more than this share of the resources has changed, in percent.
    pub changed_percent: u64,
    /// It is not made more often than this, unless it is small: a first harvest changes much at a time.
    pub edition_pause: Duration,
    /// A Resource List of at most this many resources is made anew after each change.
    pub small: u64,
    /// A Resource List is made anew after this time, if anything has changed.
    pub edition_age: Duration,
    /// The most resources, or changes, of a package.
    pub package_entries: u64,
    /// A package ends when its resources have this many bytes.
    pub package_bytes: u64,
    /// The most packages of a document: at most 50,000, as in a Sitemap. A Resource Dump of more is an index.
    pub most_packages: usize,
    /// A new Resource Dump is made when more than this share of the resources has changed, in percent.
    pub dump_changed_percent: u64,
    /// A Resource Dump is made anew after this time, if anything has changed.
    pub dump_age: Duration,
    /// While a Resource List is made, changes are told after this time, or later if telling takes long.
    pub tell_every: Duration,
    /// A Change List is closed after this time.
    pub change_list_age: Duration,
    /// The same where a Change Dump is made: its packages are those of closed Change Lists.
    pub dumped_list_age: Duration,
    /// Closed Change Lists stay this long, and back to the oldest `at` of the Resource List.
    pub keep_changes: Duration,
    /// Where no bytes are laid down, resources that were told as deleted for their damage are read again after this time.
    pub retry_damaged: Duration,
    /// What a replaced document names stays this long.
    pub keep_replaced: Duration,
    /// How long documents of the past stay beyond that, in Archives.
    pub archive: Archive,
    /// Whether entries link to the versions that they are about, at URLs that stay: a server has them.
    pub version_links: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            least_entries: 25_000,
            one_in: 8_192,
            most_entries: 50_000,
            // The header and the last entry come on top.
            most_bytes: 49_900_000,
            guarded_list_bytes: 8 * 1024 * 1024,
            changed_percent: 5,
            edition_pause: Duration::from_secs(600),
            small: 10_000,
            edition_age: 7 * DAY,
            package_entries: 5_000,
            package_bytes: 256 * 1024 * 1024,
            most_packages: 50_000,
            dump_changed_percent: 20,
            dump_age: 30 * DAY,
            tell_every: Duration::from_secs(2),
            change_list_age: DAY,
            dumped_list_age: Duration::from_secs(3_600),
            keep_changes: 30 * DAY,
            retry_damaged: Duration::from_secs(1_800),
            keep_replaced: 2 * DAY,
            archive: Archive::Off,
            version_links: false,
        }
    }
}

impl Policy {
    /// The same with Archives, whose entries link to the versions that a server has; or without them.
    pub fn archived(self, archive: Archive) -> Self {
        Self { archive, version_links: archive != Archive::Off, ..self }
    }
}
