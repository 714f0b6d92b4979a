//! Objects that this process wrote or read, as the store would answer for them.

use std::ops::Range;

use bytes::Bytes;
use object_store::path::Path;
use object_store::{Attributes, Extensions, GetResult, GetResultPayload, ObjectMeta, PutResult};

/// What is known of an object that was written now.
pub(crate) fn written(at: &Path, size: usize, put: &PutResult) -> ObjectMeta {
    ObjectMeta {
        location: at.clone(),
        last_modified: chrono::Utc::now(),
        size: size as u64,
        e_tag: put.e_tag.clone(),
        version: put.version.clone(),
    }
}

/// The answer to a request for this range of an object.
pub(crate) fn answer(meta: ObjectMeta, range: Range<u64>, bytes: Bytes) -> GetResult {
    let payload = GetResultPayload::Stream(Box::pin(futures::stream::iter([Ok(bytes)])));
    let (attributes, extensions) = (Attributes::new(), Extensions::new());
    GetResult { payload, meta, range, attributes, extensions }
}
