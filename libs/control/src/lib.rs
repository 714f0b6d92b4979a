#![doc = include_str!("../README.md")]

mod backoff;
mod bucket;
mod config;
mod control;
mod cooldowns;
mod error;
mod hints;
mod hub_hints;
mod inbox_cursors;
mod inboxes;
mod kept;
mod lease;
mod members;
mod outbox;
mod plans;
mod problem_actions;
mod runs;
mod samples;
mod schedule;
#[cfg(feature = "openapi")]
pub mod schema;
mod sessions;
mod sources;
mod submissions;
mod subscriptions;
mod table;
mod versioned;
mod watch_cache;

pub use async_nats::ConnectOptions;
pub use config::Config;
pub use control::Control;
pub use cooldowns::{Cooldown, Cooldowns};
pub use error::{ControlError, InvalidSource};
pub use hints::{Hint, Hints};
pub use hub_hints::{HubHint, HubHints};
pub use inbox_cursors::{InboxCursor, InboxCursors, MOST_SEEN, Seen};
pub use inboxes::{InboxLimits, InboxPage, Inboxes, KeptNotification, NotificationId, NotificationIdError};
pub use kept::Kept;
pub use lease::{Claim, Lease, LeaseRecord, LeaseTerm, Leases};
pub use members::{Member, MemberId, MemberIdError, Members, Membership, Role, assign};
pub use outbox::{Change, Outbox, OutboxMessage, OutboxState};
pub use plans::{Plan, PlanEstimate, PlanState, PlanUnread, PlanWay, Plans};
pub use problem_actions::{ActionKind, ActionSelector, ProblemActionRequest, ProblemActions};
pub use runs::{
    AskedBy, Backfill, DesiredState, InSync, InvalidTransition, PollState, Problems, Progress, Run,
    RunFailure, RunSpec, RunState, RunStatus, RunTransition, RunWait, Runs, SyncSummary, Task, TaskProgress,
    WaitReason, Why,
};
pub use samples::{Sample, SampledRuns, SampledSources, Samples};
pub use schedule::{PaceError, PollInterval, Schedule, ScheduleError, Times};
pub use sessions::{Session, SessionKey, Sessions};
pub use sources::{
    CredentialName, CredentialNameError, LabelError, LabelKey, LabelValue, NameClaim, NameOrId, Selector,
    SelectorError, SourceName, SourceNameError, SourceSpec, Sources, Spec, SpecDigest,
};
pub use submissions::{Submission, SubmissionKey, Submissions};
pub use subscriptions::{
    AdvertisedChannel, AskedMode, DeliveryStats, HubRequest, NotRequested, Subscription, SubscriptionId,
    SubscriptionIdError, SubscriptionState, SubscriptionStep, Subscriptions,
};
pub use table::Table;
pub use versioned::{Revision, Versioned};
pub use watch_cache::{ChangedKey, ChangedKeys, WatchCache};
