//! The record of a document that a run is to read.

use jiff::Timestamp;
use model::{DocumentRecord, DocumentState, RunId, SetId};
use resourcesync::Capability;

/// Record of a document that `run` is to read, with its known state.
pub fn queued_document(
    run: RunId,
    set: &SetId,
    capability: &Capability,
    before: Option<DocumentRecord>,
) -> DocumentRecord {
    let before = before.unwrap_or_else(|| DocumentRecord {
        set: set.clone(),
        capability: capability.clone(),
        parent: None,
        run,
        state: DocumentState::Queued,
        selection: None,
        root: None,
        validators: Default::default(),
        digest: None,
        at: None,
        at_latest: None,
        from: None,
        until: None,
        until_latest: None,
        archived_until: None,
        oldest_change: None,
        latest_change: None,
        unseen_before: None,
        entries: 0,
        bad: 0,
        documents: 0,
        packages: 0,
        unpacked: None,
        doubtful: false,
        quirks: Default::default(),
    });
    DocumentRecord {
        set: set.clone(),
        capability: capability.clone(),
        run,
        state: DocumentState::Queued,
        ..before
    }
}

/// Whether a closed change document (RS-5) was read whole, without a doubtful entry, and its index still states the
/// same end.
pub fn is_settled_part(known: &DocumentRecord, until_in_index: Option<Timestamp>) -> bool {
    known.tells_changes()
        && known.is_read_whole()
        && known.until.is_some()
        && known.until == until_in_index
        && known.bad == 0
}

/// Whether a document of this kind contains changes of its set.
pub fn is_changes(kind: &Capability) -> bool {
    matches!(kind, Capability::ChangeList | Capability::ChangeDump | Capability::ChangeNotification)
}
