//! Changes: requested ones, and their results.

use super::clock::SimTime;

/// How many changes of each kind to make; the resources are chosen by the seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// New resources.
    pub create: u64,
    /// Existing resources that get other bytes.
    pub update: u64,
    /// Existing resources that are deleted; none of them is among the updated ones.
    pub delete: u64,
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It did not exist before.
    Created,
    /// It has other bytes now.
    Updated,
    /// It is gone.
    Deleted,
}

/// One change that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Its time: each change has a second of its own.
    pub time: SimTime,
    /// The resource.
    pub index: u64,
    /// Its present version, or its last one.
    pub version: u32,
    /// The kind.
    pub kind: ChangeKind,
}

impl ChangeKind {
    /// The value of the `change` attribute.
    pub fn name(self) -> &'static str {
        match self {
            ChangeKind::Created => "created",
            ChangeKind::Updated => "updated",
            ChangeKind::Deleted => "deleted",
        }
    }
}
