//! Trouble of the store that waiting does not mend. The catalog's LSM tries for ever, so its owner must look itself.

use store::{Store, StoreTrouble, TroubleKind};

/// Ends when the store is in trouble that somebody must put right: a full disk, a refused key. Never ends otherwise.
pub(crate) async fn lasting(store: &Store) -> StoreTrouble {
    let mut watched = store.trouble();
    let is_lasting = |trouble: &Option<StoreTrouble>| {
        trouble
            .as_ref()
            .is_some_and(|t| t.writing && matches!(t.kind, TroubleKind::Full | TroubleKind::Denied))
    };
    match watched.wait_for(is_lasting).await.map(|trouble| trouble.clone()) {
        Ok(Some(trouble)) => trouble,
        // The store has gone, and with it all trouble.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}
