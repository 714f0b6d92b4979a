//! Where something of this store is published, so that a harvest does not take it in again (docs/adr/0088).

use fixity::Sha256;
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};

use crate::error::AtObject;
use crate::{Key, Store, StoreError};

/// The most bases that are read: a store is published at a few.
const MOST: usize = 100;

/// A base, as `publications/.bases/<hex>.json` keeps it.
#[derive(Debug, Serialize, Deserialize)]
struct PublicationBase {
    /// The URL below which readers find what is published. It ends with `/`.
    base: String,
}

impl Store {
    /// Records that something of this store is published below this URL; it may be recorded before.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn note_publication_base(&self, base: &str) -> Result<(), StoreError> {
        let key = Key::PublicationBase(Sha256::of(base.as_bytes()));
        let json = serde_json::to_vec(&PublicationBase { base: base.to_owned() })
            .map_err(|e| StoreError::Other { at: key.to_string(), source: Box::new(e) })?;
        self.put(&key, json.into(), PutMode::Overwrite).await
    }

    /// The URLs below which something of this store is published, in their order: at most 100.
    ///
    /// # Errors
    /// The error of the store. A record that cannot be read is left out.
    pub async fn publication_bases(&self) -> Result<Vec<String>, StoreError> {
        let folder = Key::publication_bases();
        let mut listed = self.objects().list(Some(&folder));
        let mut bases = Vec::new();
        while bases.len() < MOST
            && let Some(meta) = listed.try_next().await.at_object(self.root(), &folder)?
        {
            let Ok(key @ Key::PublicationBase(_)) = meta.location.as_ref().parse() else { continue };
            let result = self.objects().get(&key.path()).await.at_object(self.root(), &key)?;
            let json = result.bytes().await.at_object(self.root(), &key)?;
            bases.extend(serde_json::from_slice(&json).ok().map(|found: PublicationBase| found.base));
        }
        bases.sort_unstable();
        Ok(bases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bases_are_recorded_once_and_some_are_read() {
        let store = Store::in_memory();
        assert!(store.publication_bases().await.unwrap().is_empty());
        for base in ["http://b/", "http://a/x/", "http://b/"] {
            store.note_publication_base(base).await.unwrap();
        }
        assert_eq!(store.publication_bases().await.unwrap(), ["http://a/x/", "http://b/"]);
        for n in 0..2 * MOST {
            store.note_publication_base(&format!("http://h/{n}/")).await.unwrap();
        }
        assert_eq!(store.publication_bases().await.unwrap().len(), MOST);
    }
}
