//! A directory of files as the records of a publication: scanned, with digests that are kept.

mod beneath;
mod hash;
mod lookup;
mod media_types;
mod merge;
mod records;
mod rows;
mod spelling;
mod stamp;
mod streams;
mod walk;

pub use beneath::OpenFile;
pub use records::FileRecords;

pub use crate::records::FileError;
pub use crate::scanned::{Problem, Problems, Scanned};

/// The folder of the files below the base.
pub const FOLDER: &str = "files/";
