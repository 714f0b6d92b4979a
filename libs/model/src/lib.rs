#![doc = include_str!("../README.md")]

mod audit;
mod change_notification;
mod clock;
mod counted;
mod damage;
mod dead_letter_summary;
mod discovery;
mod discovery_report;
mod display;
mod document;
mod home;
mod ids;
mod job;
mod lane;
mod location;
mod network;
mod options;
mod outcome;
mod package;
mod pending;
mod problem;
mod provenance;
mod resource;
mod resource_state;
mod run;
mod set;
mod site;
mod size;
mod terms;
mod text;
mod unpack;
mod uri;
mod version;
mod wire;

pub use audit::{AuditCounts, DifferenceKind};
pub use change_notification::ChangeNotification;
pub use clock::{Clock, ManualClock, SystemClock};
pub use counted::{bytes, count, counted, plural};
pub use damage::{Damage, DamageFound};
pub use dead_letter_summary::{DeadLetterSummary, KeptPayload};
pub use discovery::{DiscoveryRecord, KnownDocument, KnownEntry};
pub use discovery_report::{DiscoveryReport, Remark, VisitedDocument};
pub use display::{displayed, displayed_lines};
pub use document::{DocumentRecord, DocumentState, Told, Validators};
pub use home::HomeSite;
pub use ids::{DamageId, IdError, JobId, PackId, PackageId, RunId, Seq, SetId, SourceId};
pub use job::{FetchItem, FetchJob, Fetched, FetchedResult, StoredBitstream, VerifyJob};
pub use lane::{Lane, LaneError};
pub use location::{CompactedPack, Location, Method, Span};
pub use network::{Network, NetworkError};
pub use options::{Absent, Origins, Prefer, Push, Robots, RunMode};
pub use outcome::{Disposition, Evidence, Failure, Outcome, OutcomeResult, Outcomes};
pub use package::{
    Contents, ManifestEntry, ManifestHeader, MemberOutcome, MemberResult, PackageJob, PackageOutcome,
    PackageRecord, PackageResult, PackageState, SettledPackage, SliceSet,
};
pub use pending::{Action, PendingRecord};
pub use problem::{Ignored, ProblemReason, ProblemRecord, Subject, UnknownReason};
pub use provenance::{Attempt, Provenance, Why};
pub use resource::{
    Absence, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, HeldBitstream, Holding, Listing,
    ResourceRecord, content_coding,
};
pub use resource_state::ResourceState;
pub use run::{Counters, Mode, Phase, RunRecord};
pub use set::{CapabilityLink, MissedChanges, PendingRescan, SetRecord, wait_again};
pub use site::{registrable_domain, same_site, same_site_hosts};
pub use terms::Terms;
pub use unpack::{UnpackJob, UnpackTask};
pub use uri::{ResourceUri, UriError};
pub use version::{Version, Versions};
pub use wire::{Message, WireError, decode, encode, length};
