//! Values and their revisions.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The revision of a key. Each write to a bucket gets a larger one than all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(u64);

/// A value with its revision. A writer passes the revision that it read, and so never overwrites a newer value.
#[derive(Debug)]
pub struct Versioned<T> {
    /// The value.
    pub value: Arc<T>,
    /// Its revision.
    pub revision: Revision,
}

impl Revision {
    /// The revision with this number.
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Clone for Versioned<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), revision: self.revision }
    }
}

impl<T> Deref for Versioned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
