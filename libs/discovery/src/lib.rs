#![doc = include_str!("../README.md")]

mod archives;
mod discover;
mod discovery_report;
mod document;
mod down;
mod error;
mod estimate;
mod fetch;
mod found;
mod hint;
mod landing;
mod link_set;
mod link_set_memory;
mod oai;
mod onward;
mod poll;
mod robots;
mod search;
mod signposting;
mod source;
mod up;

pub use archives::{Archive, archives};
pub use discover::{discover, rediscover};
pub use discovery_report::discovery_report;
pub use error::{DiscoverError, EstimateError};
pub use estimate::{Estimate, StrategyEstimate, estimate};
pub use found::{Discovery, FoundInterface, Route, SeenPage, Tried, Unread, Visited};
pub use hint::{Hint, HintKind};
pub use landing::{Landing, PageAnswer, PageRequest, landing, read_page, read_seen};
pub use link_set_memory::LinkSetMemory;
pub use poll::{PollOutcome, poll};
pub use source::discover_source;
