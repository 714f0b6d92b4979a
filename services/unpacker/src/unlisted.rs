//! Members that no entry of a manifest names: they are no resources, and their Source should know of them.

use crate::failure::shown;

/// Names that are told.
const TOLD: usize = 8;

/// How many there are, and what the first of them are called.
#[derive(Debug, Default)]
pub(crate) struct Unlisted {
    pub(crate) count: u64,
    pub(crate) names: Vec<String>,
}

impl Unlisted {
    /// Counts one.
    pub(crate) fn see(&mut self, name: &str) {
        self.count += 1;
        if self.names.len() < TOLD {
            self.names.push(shown(name));
        }
    }
}
