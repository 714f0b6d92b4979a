#![doc = include_str!("../README.md")]

mod batch;
mod page;
mod plan;
mod problem;
mod problems;
mod resource;
mod run;
pub mod schema;
mod source;
mod subscription;
mod wanted;
mod words;

pub use batch::{MOST_IN_A_BATCH, RunBatch, RunResult, SourceBatch, SourceDone, SourceInBatch, SourceResult};
pub use page::Page;
pub use plan::{Plan, PlanEstimate, PlanUnread, PlanWay};
pub use problem::{FieldError, Problem};
pub use problems::{ProblemGroup, ProblemGroups, SourceProblem};
pub use resource::{Resource, Standing, Story};
pub use run::{Run, Submit};
pub use source::Source;
pub use subscription::Subscription;
pub use wanted::Wanted;
pub use words::{About, Ignore, Retry, Word};
