//! The memory that the patches of a process share.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes of a unit.
const UNIT: u64 = 1024 * 1024;
/// Units: room for the largest patch.
const UNITS: u32 = 384;
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
    /// Waits until there is memory for so many bytes, and takes it until the value is dropped.
    pub(crate) async fn take(&self, bytes: u64) -> Option<SemaphorePermit<'_>> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(UNITS).clamp(1, UNITS);
        // It is never closed.
        self.0.acquire_many(units).await.ok()
    }
}
