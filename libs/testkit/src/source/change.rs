//! Changes: what is asked for, and what came of it.

use super::clock::SimTime;

/// How many changes of each kind to make; which resources they hit is chosen from the seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Changes {
    /// New resources.
    pub create: u64,
    /// Present resources that get other bytes.
    pub update: u64,
    /// Present resources that go; none of them is among the updated ones.
    pub delete: u64,
}

/// What happened to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It has other bytes now.
    Updated,
    /// It is gone.
    Deleted,
}

/// One change that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When: each change has a second of its own.
    pub time: SimTime,
    /// Which resource.
    pub index: u64,
    /// The version that it has, or last had.
    pub version: u32,
    /// What happened.
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
