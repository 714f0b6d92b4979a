//! A permit of the in-process bus.

use std::sync::Arc;

use super::Shared;
use crate::Filter;
use crate::place::Held;

/// One of the permits of an origin. Dropping it returns it.
#[derive(Debug)]
pub(super) struct MemoryPlace {
    shared: Arc<Shared>,
    filter: Filter,
}

impl MemoryPlace {
    pub(super) fn new(shared: Arc<Shared>, filter: Filter) -> Self {
        Self { shared, filter }
    }
}

impl Held for MemoryPlace {}

impl Drop for MemoryPlace {
    fn drop(&mut self) {
        self.shared.give_place_back(&self.filter);
    }
}
