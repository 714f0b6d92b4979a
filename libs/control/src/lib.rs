#![doc = include_str!("../README.md")]

mod bucket;
mod config;
mod control;
mod error;
mod hints;
mod inboxes;
mod lease;
mod members;
mod outbox;
mod plans;
mod readings;
mod rests;
mod revised;
mod runs;
mod schedule;
mod sessions;
mod sources;
mod submissions;
mod subscriptions;
mod table;
mod tries;
mod view;
mod words;

pub use async_nats::ConnectOptions;
pub use config::Config;
pub use control::Control;
pub use error::ControlError;
pub use hints::{Hint, Hints};
pub use inboxes::{InboxLimits, InboxPage, Inboxes, KeptNotification, NotificationId, NotificationIdError};
pub use lease::{Claim, Lease, LeaseRecord, Leases};
pub use members::{Member, MemberId, MemberIdError, Members, Membership, Role, assign};
pub use outbox::{Change, Outbox, OutboxMessage, OutgoingState};
pub use plans::{Plan, PlanEstimate, PlanState, PlanUnread, PlanWay, Plans};
pub use readings::{MOST_SEEN, Reading, Readings, Seen};
pub use rests::{Cooldown, Rests};
pub use revised::{Revision, Versioned};
pub use runs::{
    AskedBy, DesiredState, InSync, InvalidTransition, LeaseTerm, Problems, Progress, Run, RunSpec, RunState,
    RunStatus, Runs, Step, Stopped, SyncSummary, Why,
};
pub use schedule::{PaceError, PollInterval, Schedule, ScheduleError, Times};
pub use sessions::{Session, SessionKey, Sessions};
pub use sources::{CredentialName, CredentialNameError, InvalidSource, SourceSpec, Sources};
pub use submissions::{Submission, SubmissionKey, Submissions};
pub use subscriptions::{
    AdvertisedChannel, Asked, AskedMode, DeliveryStats, NotRequested, Subscription, SubscriptionId,
    SubscriptionIdError, SubscriptionState, SubscriptionStep, Subscriptions,
};
pub use table::Kept;
pub use view::WatchCache;
pub use words::{ProblemActionRequest, WordAbout, WordKind, Words};
