#![doc = include_str!("../README.md")]

mod archive;
mod audit;
mod backfill;
mod change_notification;
mod clock;
mod counted;
mod damage;
mod dead_letter_summary;
mod discovery;
mod discovery_report;
mod display;
mod document;
mod encoding;
mod failure;
mod follow;
mod follow_rule;
mod home;
mod ids;
mod job;
mod job_messages;
mod landing_page;
mod linked;
mod links;
mod location;
mod mirror;
pub mod moment;
mod network;
mod oai;
mod only;
mod options;
mod origin;
mod outcome;
mod package;
mod package_job;
mod package_names;
mod patch;
mod pending;
mod persisted;
mod poll;
mod problem;
mod problem_reason;
mod provenance;
mod resource;
mod resource_state;
mod run;
mod selection;
mod set;
mod set_rule;
mod site;
mod slice_set;
mod stored_bitstream;
mod terms;
mod text;
mod unpack;
mod uri;
mod usual_uri;
mod version;
mod wire;

pub use archive::{Archive, NoArchive};
pub use audit::{AuditCounts, DifferenceKind};
pub use backfill::BackfillCounts;
pub use change_notification::ChangeNotification;
pub use clock::{Clock, ManualClock, SystemClock};
pub use counted::{bytes, count, counted, plural};
pub use damage::{Damage, DamageFound};
pub use dead_letter_summary::{DeadLetterSummary, KeptPayload};
pub use discovery::{DiscoveryRecord, KnownDocument, KnownEntry};
pub use discovery_report::{DiscoveryReport, Remark, VisitedDocument};
pub use display::{displayed, displayed_lines};
pub use document::{ChangeTimes, DocumentRecord, DocumentState, Validators};
pub use encoding::{TextEncoding, TextEncodingError};
pub use failure::{Disposition, Evidence, Failure};
pub use follow::{FollowedRelation, FollowedRelationError, MediaRange, MediaRangeError};
pub use follow_rule::{FollowRule, FollowRuleError};
pub use home::HomeSite;
pub use ids::{DamageId, IdError, JobId, PackId, PackageId, RunId, Seq, SetId, SourceId};
pub use job::{FetchItem, FetchJob, Fetched, FetchedResult, VerifyJob};
pub use landing_page::{MOST_RECORDS_OF_A_PAGE, PageList, PageRecord, PageState};
pub use linked::{LinkVersion, Linked};
pub use links::Links;
pub use location::{CompactedPack, Location, Method, Span};
pub use mirror::{MementoStep, Mirror, MirrorPlan};
pub use network::{Network, NetworkError};
pub use oai::{
    OaiDeletions, OaiFormat, OaiGap, OaiList, OaiNamed, OaiPage, OaiProgress, OaiReading, OaiReadingKind,
    OaiRepository, OaiSet, OaiTokens, OaiWindow,
};
pub use only::{Only, OnlyError, Scope, WantedLink};
pub use options::{Absent, Mirrors, OaiOptions, Origins, Patches, Prefer, Publish, Push, Robots, RunMode};
pub use origin::{Origin, OriginError};
pub use outcome::{Outcome, OutcomeResult, Outcomes};
pub use package::{Contents, KeptNames, ManifestHeader, PackageRecord, PackageState, SettledPackage};
pub use package_job::{
    ManifestEntry, MemberOutcome, MemberResult, PackageJob, PackageOutcome, PackageResult,
};
pub use package_names::PackageNames;
pub use patch::{
    MOST_PATCHES_IN_VAIN, Patch, PatchBase, PatchItem, PatchPlan, PatchUnused, PatchUse, packaged_patch,
};
pub use pending::{Action, PendingRecord};
pub use persisted::{Area, Persisted, Registered, Role};
pub use poll::{PollBasis, PollDocument};
pub use problem::{Ignored, ProblemRecord, Subject};
pub use problem_reason::{ProblemReason, UnknownReason};
pub use provenance::{Adopted, Attempt, Provenance, Why};
pub use resource::{
    Absence, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, HeldBitstream, HeldListing,
    Holding, Listing, ResourceRecord, content_coding,
};
pub use resource_state::ResourceState;
pub use run::{Counters, Mode, Phase, RunRecord};
pub use selection::SelectionId;
pub use set::{CapabilityLink, MissedChanges, PendingRescan, SetRecord, wait_again};
pub use set_rule::{SetPatternError, SetRule, SetRuleError};
pub use site::{registrable_domain, same_site, same_site_hosts};
pub use slice_set::SliceSet;
pub use stored_bitstream::StoredBitstream;
pub use terms::Terms;
pub use unpack::{UnpackJob, UnpackTask};
pub use uri::{ResourceUri, UriError};
pub use version::{Version, Versions};
pub use wire::{Message, WireError, decode, encode, length};
