#![doc = include_str!("../README.md")]

mod base;
mod bytes;
mod changes;
mod documents;
mod edition;
mod entries;
mod entry;
mod error;
mod names;
mod page;
pub mod paths;
mod place;
mod policy;
mod publication;
mod retire;
mod state;
mod work;

pub use base::Base;
pub use entry::{last_modified, media_type};
pub use error::PublishError;
pub use names::{Named, PublishedPath};
pub use place::Place;
pub use policy::Policy;
pub use publication::Publication;
pub use work::{Published, Seen};
