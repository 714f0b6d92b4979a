//! The register of all that outlives a process: object prefixes, key spaces of the catalog, buckets, streams.
//!
//! The crates that read and write take their names and versions from here, so that a name cannot be used twice and a
//! version has one place. `docs/PERSISTED.md` describes each row. Names never change.

/// A place where data outlives a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Area {
    /// A prefix of object keys in the store.
    Object,
    /// A letter that begins the keys of one kind of record in a Source's catalog.
    Catalog,
    /// A NATS KV bucket, behind the fleet's namespace.
    Bucket,
    /// A JetStream stream, behind the fleet's namespace. Its name also begins its subjects.
    Stream,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The scheduler that owns the Source, or `thresher sync` and `audit` in its place.
    Owner,
    /// Any scheduler.
    Scheduler,
    /// Any fetcher.
    Fetcher,
    /// Any unpacker.
    Unpacker,
    /// Any verifier.
    Verifier,
    /// Any gateway.
    Gateway,
    /// Any publisher.
    Publisher,
    /// A command of the operator beside the services: `gc`, `scrub`, `restore`.
    Operator,
}

/// A row of the register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registered {
    /// Where it is.
    pub area: Area,
    /// Its prefix, letter or name.
    pub name: &'static str,
    /// The version of its values. It rises with a change that an older reader would misunderstand.
    pub version: u16,
    /// Who writes it.
    pub writers: &'static [Role],
}

/// Declares the enum, the list of its variants, and their rows.
macro_rules! register {
    ($($(#[$doc:meta])+ $variant:ident = $area:ident $name:literal $version:literal [$($writer:ident)+];)+) => {
        /// Every key space, bucket, stream and object prefix.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Persisted {
            $($(#[$doc])+ $variant,)+
        }

        impl Persisted {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its row.
            pub const fn row(self) -> Registered {
                match self {
                    $(Self::$variant => Registered {
                        area: Area::$area,
                        name: $name,
                        version: $version,
                        writers: &[$(Role::$writer),+],
                    },)+
                }
            }
        }
    };
}

register! {
    /// Large bitstreams, by their digest.
    Bitstreams = Object "bitstreams/sha256" 1 [Fetcher Unpacker];
    /// ZIP packs of small bitstreams.
    Packs = Object "packs" 1 [Fetcher Unpacker Operator];
    /// Packages of dumps as received, and their indexes.
    Packages = Object "packages" 2 [Fetcher Unpacker];
    /// Checkpoints of package uploads, and the bytes behind their last part.
    Uploads = Object "uploads" 1 [Fetcher];
    /// Catalogs, one database for each Source. The version is the schema.
    Catalogs = Object "catalogs" 3 [Owner Operator];
    /// Markers of Sources, with their entry URLs.
    SourceMarkers = Object "sources" 1 [Owner];
    /// Moves of Sources to other entry URLs, by the Source that was left.
    Moves = Object "moves" 1 [Operator];
    /// Quarantined bitstreams.
    Damaged = Object "damaged" 1 [Operator];
    /// The test of conditional puts.
    Probe = Object "probe/conditional-put" 1 [Owner Fetcher Unpacker Operator];
    /// Documents that publishers serve, and the state of each publication.
    Publications = Object "publications" 1 [Operator Publisher];
    /// The lock of a removal.
    SweepLock = Object "gc/sweeping" 1 [Operator];

    /// Pages of the change log.
    Changes = Catalog "c" 3 [Owner];
    /// Documents: progress, validators, counts.
    Documents = Catalog "d" 1 [Owner];
    /// Stored digests, after a move of the Source.
    HeldDigests = Catalog "h" 1 [Owner Operator];
    /// Packages of dumps.
    PackageRecords = Catalog "k" 1 [Owner];
    /// Landing pages, with their links.
    LandingPages = Catalog "l" 1 [Owner];
    /// Properties of the catalog.
    Properties = Catalog "m" 1 [Owner Operator];
    /// Names that packages of Resource Dumps list.
    PackageNames = Catalog "n" 1 [Owner];
    /// Pending records.
    Pending = Catalog "p" 2 [Owner Operator];
    /// Resources, tombstones included.
    Resources = Catalog "r" 2 [Owner Operator];
    /// Sets: how far each is in sync.
    Sets = Catalog "s" 1 [Owner];
    /// Runs with their counters.
    RunRecords = Catalog "u" 1 [Owner];
    /// Kept versions of resources.
    KeptVersions = Catalog "v" 2 [Owner Operator];
    /// Problems.
    Problems = Catalog "x" 1 [Owner Operator];

    /// Specs of Sources.
    SourceSpecs = Bucket "sources" 1 [Gateway Operator Scheduler];
    /// Which Source bears which name.
    SourceNames = Bucket "names" 1 [Gateway Scheduler];
    /// The present or last run of each Source.
    Runs = Bucket "runs" 1 [Gateway Operator Scheduler];
    /// The present or last task of each Source, such as a backfill.
    Tasks = Bucket "tasks" 1 [Gateway Operator Scheduler];
    /// Earlier runs, as revisions.
    PastRuns = Bucket "runs-past" 1 [Gateway Operator Scheduler];
    /// Leases of Sources.
    Leases = Bucket "leases" 1 [Scheduler];
    /// Leases of publications: which publisher writes one now.
    PublicationLeases = Bucket "publications" 1 [Publisher];
    /// Leases of the hubs of publications: which publisher has one open now.
    HubLeases = Bucket "hub-leases" 1 [Publisher];
    /// Hints that requests wait for the hub of a publication.
    HubHints = Bucket "hub-hints" 1 [Publisher];
    /// Live processes.
    Members = Bucket "members" 1 [Scheduler Fetcher Publisher];
    /// Cooldowns of origins.
    Cooldowns = Bucket "rests" 1 [Scheduler Fetcher];
    /// Queued actions on problems.
    ProblemActions = Bucket "words" 1 [Gateway];
    /// Requested estimates and their results.
    Plans = Bucket "plans" 1 [Gateway Scheduler];
    /// Hints of changes.
    Hints = Bucket "hints" 1 [Gateway Scheduler];
    /// Notifications that the fleet owes others.
    Outbox = Bucket "outbox" 1 [Scheduler];
    /// How far inboxes of others are read.
    InboxCursors = Bucket "readings" 1 [Scheduler];
    /// Subscriptions to hubs.
    Subscriptions = Bucket "subscriptions" 1 [Scheduler Gateway];
    /// Sessions of the console.
    Sessions = Bucket "sessions" 1 [Gateway];
    /// Idempotency keys of submitted requests.
    Submissions = Bucket "submissions" 1 [Gateway];
    /// The state of the fleet over the last hours, once a minute.
    Samples = Bucket "samples" 1 [Gateway];
    /// Open origin queues and their limits.
    OriginQueues = Bucket "lanes" 1 [Scheduler];
    /// Holders of origin permits.
    OriginPermits = Bucket "places" 1 [Scheduler Fetcher];

    /// Jobs that fetch resources or packages, by origin.
    FetchJobs = Stream "fetch" 1 [Scheduler];
    /// Jobs that verify bitstreams.
    VerifyJobs = Stream "verify" 1 [Fetcher Scheduler];
    /// Jobs that open packages.
    OpenJobs = Stream "open" 1 [Scheduler];
    /// Jobs that read slices of packages.
    UnpackJobs = Stream "unpack" 1 [Scheduler];
    /// Outcomes of jobs.
    Outcomes = Stream "outcomes" 1 [Fetcher Verifier Unpacker];
    /// Change Notifications of hubs.
    ChangeNotifications = Stream "notices" 1 [Gateway];
    /// Messages that were given up.
    DeadLetters = Stream "dead" 1 [Scheduler Fetcher Verifier Unpacker];
    /// Linked Data Notifications, kept for a while.
    Inbox = Stream "inbox" 1 [Gateway];
}

impl Persisted {
    /// Its prefix, letter or name.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The version of its values.
    pub const fn version(self) -> u16 {
        self.row().version
    }

    /// The byte that begins its keys, of a key space of the catalog.
    pub const fn letter(self) -> u8 {
        self.name().as_bytes()[0]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_area_has_each_name_once() {
        let names: HashSet<_> = Persisted::ALL.iter().map(|each| (each.row().area, each.name())).collect();
        assert_eq!(names.len(), Persisted::ALL.len());
    }

    #[test]
    fn keys_of_the_catalog_begin_with_one_lower_case_letter() {
        for row in Persisted::ALL.iter().map(|each| each.row()).filter(|row| row.area == Area::Catalog) {
            assert!(row.name.len() == 1 && row.name.as_bytes()[0].is_ascii_lowercase(), "{row:?}");
        }
    }

    #[test]
    fn the_page_describes_each_of_them() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/PERSISTED.md"));
        let page = page.expect("docs/PERSISTED.md");
        for row in Persisted::ALL.iter().map(|each| each.row()) {
            let name = row.name;
            let cells = match row.area {
                Area::Object => vec![format!("`{name}`"), format!("`{name}/")],
                Area::Catalog => vec![format!("| `{name}"), format!(", `{name}")],
                Area::Bucket => vec![format!("| `{name}` |")],
                Area::Stream => vec![format!("`{name}."), format!("`<namespace>-{name}`")],
            };
            let is_described = page.lines().any(|line| cells.iter().any(|cell| line.contains(cell)));
            assert!(is_described, "no row for {row:?}");
        }
    }
}
