#![doc = include_str!("../README.md")]

mod actions;
mod backfill;
mod batch;
mod counters;
mod page;
mod plan;
mod problem;
mod problems;
mod renamed;
mod resource;
mod run;
pub mod schema;
mod source;
mod source_move;
mod spec;
mod subscription;

pub use actions::{Ignore, ProblemAction, ProblemSelector, Retry};
pub use backfill::{BackfillRequest, BackfillRun};
pub use batch::{MOST_IN_A_BATCH, RunBatch, RunResult, SourceBatch, SourceDone, SourceInBatch, SourceResult};
pub use counters::{AuditCounts, Counters};
pub use page::Page;
pub use plan::{Plan, PlanEstimate, PlanStrategy, PlanUnread};
pub use problem::{FieldError, Problem};
pub use problems::{ProblemGroup, ProblemGroups, SourceProblem};
pub use renamed::with_new_name;
pub use resource::{LinkEnd, Resource, ResourceHistory, ResourceState};
pub use run::{Run, RunRequest, RunWait};
pub use source::Source;
pub use source_move::{MoveRequest, MoveRun};
pub use spec::{Follow, Spec};
pub use subscription::Subscription;
