//! The room that the results of a job have in one message.
//!
//! A server decides how long its validators, types, redirects and errors are. So a job ends when the message of its
//! results is nearly full. The rest comes back as deferred, and goes out again in another job.

use bus::MAX_PAYLOAD;
use model::{FetchItem, FetchedResult, PatchUse, SourceId, StoredBitstream};

use crate::body::Body;
use crate::resource::Fresh;

/// Bytes that a single result is expected not to exceed. A failure has up to twelve URLs of 8 KiB.
const LONGEST_RESULT: usize = 128 * 1024;
/// Bytes around the results: ids, names, and the objects that were put.
const ENVELOPE: usize = 16 * 1024;

/// What is left of a message while the resources of a job are fetched.
pub(crate) struct ResultRoom {
    left: usize,
}

impl ResultRoom {
    /// The room of a job before its resources are fetched. Each is in the message, also if it is deferred.
    pub(crate) fn of(items: &[FetchItem]) -> Self {
        let deferred: usize = items.iter().map(FetchItem::result_envelope_bytes).sum();
        Self { left: (MAX_PAYLOAD - ENVELOPE).saturating_sub(deferred) }
    }

    /// Whether another result fits, however long.
    pub(crate) fn has_room(&self) -> bool {
        self.left >= LONGEST_RESULT
    }

    /// Counts a result that is final.
    pub(crate) fn count(&mut self, result: &FetchedResult) {
        self.take(result.bytes());
    }

    /// Counts the use of patches.
    pub(crate) fn count_patch(&mut self, used: &PatchUse) {
        self.take(used.bytes_on_the_wire());
    }

    /// Counts a body that will be stored.
    pub(crate) fn count_body(&mut self, source: &SourceId, fresh: &Fresh<Body>) {
        let Fresh { body, media_type, encoding, validators, modified: _, final_url } = fresh;
        let texts = [media_type, encoding, final_url];
        self.take(StoredBitstream::bytes_before_it_is_stored(source, body.computed(), texts, validators));
    }

    fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}
