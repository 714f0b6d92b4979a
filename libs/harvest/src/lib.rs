#![doc = include_str!("../README.md")]

mod adopt;
mod audit;
mod cancel;
mod dispatcher;
mod error;
mod finish;
mod harvest;
mod oai;
mod packages;
mod parts;
mod planner;
mod poll_basis;
mod problem_actions;
mod repair;
mod report;
mod restore;
mod run;
mod run_observer;
mod settler;
mod source_move;

pub use audit::{Audit, Difference, Differences};
pub use cancel::cancel;
pub use error::HarvestError;
pub use harvest::Harvest;
pub use parts::Parts;
pub use planner::change_notifications::consumer as notification_consumer;
pub use problem_actions::{ProblemAction, apply_problem_action};
pub use repair::{QueuedRepairs, queue_repairs};
pub use report::Report;
pub use restore::{Restored, restore};
pub use run::progress::{DocumentCounts, Progress};
pub use run::push_lag::PushLag;
pub use run_observer::{ObserverError, RunObserver};
pub use source_move::{may_move, move_source, take_move_back};
