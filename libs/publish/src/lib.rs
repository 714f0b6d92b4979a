#![doc = include_str!("../README.md")]

mod base;
mod bytes;
mod catalog_records;
mod changes;
mod documents;
mod dump;
mod edition;
mod entries;
mod entry;
mod error;
pub mod files;
mod names;
mod outbox;
mod package;
mod page;
pub mod paths;
mod place;
mod policy;
mod publication;
mod records;
mod retire;
mod scanned;
mod state;
mod work;

pub use base::Base;
pub use catalog_records::CatalogRecords;
pub use entry::{last_modified, media_type};
pub use error::PublishError;
pub use names::{Named, PublishedPath};
pub use outbox::Untold;
pub use place::Place;
pub use policy::Policy;
pub use publication::Publication;
pub use records::{Body, BodyError, Changes, Pieces, Records, Resources, Stored, Told};
pub use work::{Published, Seen};
