//! A number of objects and their bytes.

use serde::Serialize;

/// A number of objects and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Amount {
    /// How many.
    pub objects: u64,
    /// Their bytes, together.
    pub bytes: u64,
}

impl Amount {
    /// Counts another object.
    pub fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}
