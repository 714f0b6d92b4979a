//! The room that the results of a job have in one message.
//!
//! A server decides how long its validators, types, redirects and errors are. So a job ends when the message of its
//! results is full. The rest comes back as deferred, and goes out again in another job.

use bus::MAX_PAYLOAD;
use model::{FetchItem, FetchedResult, PatchUse, SourceId, StoredBitstream};

use crate::body::Body;
use crate::resource::Fresh;

/// Bytes around the results: ids and names.
const ENVELOPE: usize = 16 * 1024;
/// Bytes of the location of an object that was put.
const PUT: usize = 256;

/// What is left of a message while the resources of a job are fetched.
pub(crate) struct ResultRoom {
    left: usize,
    is_full: bool,
    has_any: bool,
}

impl ResultRoom {
    /// The room of a job before its resources are fetched. Each is in the message, also if it is deferred.
    pub(crate) fn of(items: &[FetchItem]) -> Self {
        let deferred: usize = items.iter().map(FetchItem::result_envelope_bytes).sum();
        let left = (MAX_PAYLOAD - ENVELOPE).saturating_sub(deferred);
        Self { left, is_full: false, has_any: false }
    }

    /// Whether a result did not fit: the rest of the job is deferred.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Takes room for a result, if there is enough. The first one has it in any case, so each job settles at least one.
    pub(crate) fn fits(&mut self, result: &FetchedResult) -> bool {
        let put = if matches!(result, FetchedResult::Stored(_)) { PUT } else { 0 };
        self.take(result.bytes() + put)
    }

    /// As [`fits`](Self::fits), for the use of patches. The result of the same resource follows.
    pub(crate) fn fits_patch(&mut self, used: &PatchUse) -> bool {
        let has_any = self.has_any;
        let fits = self.take(used.bytes_on_the_wire());
        self.has_any = has_any;
        fits
    }

    /// As [`fits`](Self::fits), for a body that is to be stored.
    pub(crate) fn fits_body(&mut self, source: &SourceId, fresh: &Fresh<Body>) -> bool {
        let Fresh { body, media_type, encoding, validators, modified: _, final_url } = fresh;
        let texts = [media_type, encoding, final_url];
        let stored = StoredBitstream::bytes_before_it_is_stored(source, body.computed(), texts, validators);
        self.take(stored + if matches!(body, Body::Large(_)) { PUT } else { 0 })
    }

    fn take(&mut self, bytes: usize) -> bool {
        self.is_full |= self.has_any && bytes > self.left;
        if !self.is_full {
            self.left = self.left.saturating_sub(bytes);
            self.has_any = true;
        }
        !self.is_full
    }
}
