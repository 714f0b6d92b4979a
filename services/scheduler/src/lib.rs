#![doc = include_str!("../README.md")]

mod absent;
mod candidate;
mod decide;
mod discover;
mod dispatch;
mod entries;
mod entry;
mod error;
mod failures;
mod finish;
mod gaps;
mod harvest;
mod look;
mod offer;
mod options;
mod plan;
mod problems;
mod progress;
mod queue;
mod read;
mod requeue;
mod restore;
mod seen;
mod settle;
mod trouble;
mod view;
mod ways;
mod window;

pub use absent::Guard;
pub use discover::{DiscoverError, Discovery, Hint, HintKind, Route, Tried, Unread, Visited, discover};
pub use error::HarvestError;
pub use harvest::{Harvest, Parts, Report};
pub use options::{AbsentPolicy, Filter, HarvestOptions, RetryPolicy};
pub use progress::Progress;
pub use read::{DocumentError, DocumentStream, Opened, Part, open, read_options};
pub use restore::{Restored, restore};
