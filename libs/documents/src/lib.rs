#![doc = include_str!("../README.md")]

mod digest;
mod error;
mod header;
mod manifest;
mod member;
mod parse;
mod part;
mod prefetch;
mod remote_package;
mod stream;

pub use digest::BodyDigest;
pub use error::DocumentError;
pub use header::{expect_archive, expect_kind, take_header};
pub use manifest::{ManifestTimes, is_manifest_of, manifest_context, manifest_of};
pub use member::parse_member;
pub use part::Part;
pub use prefetch::{BodyPrefix, Prefetched};
pub use remote_package::{Approach, RemotePackage, open_directory};
pub use stream::{DocumentStream, Opened, open, open_anew, open_bytes, open_member, read_options};
