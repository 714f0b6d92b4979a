//! Bounds the memory of link sets while several landing pages are read at the same time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of a link set, as received and as links, that every page may hold.
pub(crate) const SMALL: usize = 256 * 1024;

/// The memory for link sets that pages share while they are read at the same time. Each of them may hold a small link
/// set, and one of them large ones.
#[derive(Debug, Clone)]
pub struct LinkSetMemory(Arc<Semaphore>);

/// What one page holds of it.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    shared: LinkSetMemory,
    large: Option<OwnedSemaphorePermit>,
}

impl Default for LinkSetMemory {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl HeldMemory {
    pub(crate) fn of(shared: LinkSetMemory) -> Self {
        Self { shared, large: None }
    }

    /// Whether the page may hold large link sets now. It may if no other one does.
    pub(crate) fn try_grow(&mut self) -> bool {
        if self.large.is_none() {
            self.large = Arc::clone(&self.shared.0).try_acquire_owned().ok();
        }
        self.large.is_some()
    }

    /// Waits until the page may hold large link sets. The caller must not hold an open response: the other page may
    /// need its place at the origin.
    pub(crate) async fn grow(&mut self) {
        if self.large.is_none() {
            // It is never closed.
            self.large = Arc::clone(&self.shared.0).acquire_owned().await.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_page_at_a_time_holds_large_link_sets() {
        let shared = LinkSetMemory::default();
        let [mut first, mut second] = [HeldMemory::of(shared.clone()), HeldMemory::of(shared)];
        assert!(first.try_grow() && first.try_grow());
        assert!(!second.try_grow());
        drop(first);
        second.grow().await;
        assert!(second.try_grow());
    }
}
