//! A permit of the in-process bus.

use std::sync::Arc;

use super::Shared;
use crate::Filter;
use crate::permit::PermitGuard;

/// One of the permits of an origin. Dropping it returns it.
#[derive(Debug)]
pub(super) struct MemoryPermit {
    shared: Arc<Shared>,
    filter: Filter,
}

impl MemoryPermit {
    pub(super) fn new(shared: Arc<Shared>, filter: Filter) -> Self {
        Self { shared, filter }
    }
}

impl PermitGuard for MemoryPermit {}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        self.shared.return_permit(&self.filter);
    }
}
