//! The memory that the patches of a process share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes of a unit.
const UNIT: u64 = 1024 * 1024;
/// Units: room for the largest patch.
const UNITS: u32 = 384;
/// The longest wait for room. After it the resource is requested: patches of one Source must not hold up others.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of that memory.
pub(crate) const BYTES: u64 = UNITS as u64 * UNIT;

/// Room for versions while patches are applied to them. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct PatchRoom(Arc<Semaphore>);

impl Default for PatchRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(UNITS as usize)))
    }
}

impl PatchRoom {
    /// Waits until there is memory for so many bytes, and takes it until the value is dropped. None after the longest
    /// wait.
    pub(crate) async fn take(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(UNITS).clamp(1, UNITS);
        // It is never closed.
        tokio::time::timeout(PATIENCE, self.0.acquire_many(units)).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_patch_does_not_wait_long_for_what_others_have_taken() {
        let room = PatchRoom::default();
        let most = room.take(u64::MAX).await.expect("the largest one has room");
        let begun = tokio::time::Instant::now();
        assert!(room.take(1).await.is_none());
        assert_eq!(begun.elapsed(), PATIENCE);
        drop(most);
        assert!(room.take(1).await.is_some());
    }
}
