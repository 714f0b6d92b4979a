//! Store failures that waiting does not fix. The catalog's LSM tree retries for ever, so its owner must watch the
//! store.

use store::{FailureKind, Store, StoreFailure};

/// Returns when the store has a failure that the operator must fix: a full disk, a refused key. Otherwise never
/// returns.
pub(crate) async fn lasting(store: &Store) -> StoreFailure {
    let mut watched = store.trouble();
    let is_lasting = |failure: &Option<StoreFailure>| {
        failure
            .as_ref()
            .is_some_and(|t| t.writing && matches!(t.kind, FailureKind::Full | FailureKind::Denied))
    };
    match watched.wait_for(is_lasting).await.map(|failure| failure.clone()) {
        Ok(Some(failure)) => failure,
        // The store is gone, and its failures with it.
        Ok(None) | Err(_) => std::future::pending().await,
    }
}
