//! The names that a package of a Resource Dump lists, kept beside its record: an unchanged package is not read again,
//! and what its dump leaves out can be told all the same.

use serde::{Deserialize, Serialize};

use crate::{ResourceUri, Seq, SliceSet};

/// The resources that some slices of a package list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageNames {
    /// The package's plan when they were read. Names of another version of the package have another.
    pub seq: Seq,
    /// The slices.
    pub slices: SliceSet,
    /// The resources of their entries, and those that links lead to which are followed.
    pub names: Vec<ResourceUri>,
    /// Whether an entry could not be read, or the manifest casts doubt: the package may list others, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}
