#![doc = include_str!("../README.md")]

mod blocks;
mod error;
mod kind;
mod limits;
mod manifest;
mod name;
mod range;
mod read_at;
mod sniff;
pub mod tar;
pub mod zip;

pub use blocks::Blocks;
pub use error::{MemberPosition, PackageError, Scope};
pub use kind::Kind;
pub use limits::Limits;
pub use manifest::{Manifest, ManifestFinder, OddPlace};
pub use name::{NameOddity, PathMatch, path_candidates};
pub use range::{RangeReader, ReadAhead, range_reader, range_stream};
pub use read_at::ReadAt;
pub use sniff::{Compression, Packaging, SNIFF_BYTES, sniff};
