#![doc = include_str!("../README.md")]

mod bitstreams;
mod error;
mod examine;
mod inflate;
mod key;
mod leftovers;
mod open;
mod operations;
mod pack;
mod pack_contents;
#[cfg(test)]
mod pack_tests;
mod package_upload;
mod packer;
mod parts;
mod probe;
mod range_reader;
mod read;
mod s3;
mod set_aside;
mod sources;
mod spool;
mod sweep;
mod sweep_turn;
mod target;
mod temporary;
#[cfg(test)]
mod testing;
mod trouble;
mod unfinished;
mod upload_lock;
mod upload_note;
mod upload_notes;
mod verified;
pub mod view;
mod watched;

pub use error::{Cause, StoreError};
pub use key::{Key, KeyError};
pub use leftovers::Growing;
pub use open::{DATA_DIRECTORY, Store, StoreOptions};
pub use operations::{Ending, Operation, Operations};
pub use pack::{Pack, PackBuilder, PackLimits, PackMember};
pub use pack_contents::PackContents;
pub use package_upload::{PackageHead, PackageUpload, part_bytes};
pub use packer::Packer;
pub use range_reader::RangeReader;
pub use read::ByteStream;
pub use s3::S3Options;
pub use sources::SourceNote;
pub use spool::{Spool, Spooled, spooled_bytes};
pub use sweep::{Amount, Listed, Listing};
pub use target::StoreTarget;
pub use trouble::{StoreTrouble, TroubleKind};
pub use upload_notes::UploadLeft;
pub use view::View;
