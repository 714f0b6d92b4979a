//! Tests whether a store supports conditional puts, so that of two writers only one wins.

use object_store::{Error, ObjectStore, PutMode, PutOptions};

use crate::{Key, StoreError};

const WORDS: &str = "Thresher writes this object once and tries to create it again whenever it opens the store.\n\
    A store that lets it succeed twice would also let two writers overwrite each other's catalog.\n";

/// Tests a conditional put. It takes one request when the store was tested before, two the first time.
///
/// The object stays. The next probe finds it: that its creation is refused is proof enough.
///
/// # Errors
/// [`StoreError::Unsupported`] when an object can be created twice, or not conditionally at all; otherwise
/// the error of the store.
pub(crate) async fn conditional_put(store: &dyn ObjectStore, root: &str) -> Result<(), StoreError> {
    for _ in 0..2 {
        let mode = PutOptions::from(PutMode::Create);
        match store.put_opts(&Key::Probe.path(), WORDS.into(), mode).await {
            Ok(_) => {}
            Err(Error::AlreadyExists { .. }) => return Ok(()),
            Err(error) => return Err(StoreError::of_object(root, &Key::Probe, error)),
        }
    }
    Err(StoreError::Unsupported {
        root: root.to_owned(),
        what:
            "conditional puts (If-None-Match), without which two writers could overwrite each other's catalog"
                .into(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;
    use crate::testing::{Faulty, ignore_conditions};

    #[tokio::test]
    async fn a_store_that_refuses_the_second_creation_passes_however_often_it_is_asked() {
        let store = InMemory::new();
        for _ in 0..3 {
            conditional_put(&store, "memory").await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_store_that_ignores_the_condition_is_refused() {
        let store = Faulty::new(Arc::new(InMemory::new()), ignore_conditions);
        let error = conditional_put(&store, "s3://b").await.unwrap_err();
        assert!(matches!(error, StoreError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("If-None-Match"), "{error}");
    }
}
