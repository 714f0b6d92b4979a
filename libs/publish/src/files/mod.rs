//! A directory of files as the records of a publication: scanned, with digests that are kept.

mod above;
mod beneath;
mod directory;
mod hash;
mod heard;
mod kernel;
mod last;
mod looks;
mod lookup;
mod media_types;
mod merge;
mod old_rows;
mod records;
mod row;
mod row_writer;
mod rows;
mod scan;
mod scanning;
mod spelling;
mod stamp;
mod streams;
mod walk;
mod walking;
mod watch;
mod watched;

pub use beneath::OpenFile;
pub use directory::FileRecords;
pub use watched::Watching;

pub use crate::records::FileError;
pub use crate::scanned::{Problem, Problems, Scanned};
pub use crate::unheard::Unheard;

/// The folder of the files below the base.
pub const FOLDER: &str = "files/";
