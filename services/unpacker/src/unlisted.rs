//! Members without an entry in the manifest: they are no resources, but the operator of their Source should know of
//! them.

use crate::failure::shown;

/// Maximum names reported.
const TOLD: usize = 8;

/// Their number, and the names of the first of them.
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
