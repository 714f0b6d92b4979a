//! The change log: what happened to resources here, in order. Only appended to. Keyed by a number that counts up.

use futures::{StreamExt, TryStreamExt, future};
use model::{ChangeLogEntry, ResourceUri};

use crate::keyspace::{Key, KeySpace};
use crate::scan::{ChangeScan, Scan};
use crate::{Batch, CatalogError, Lookups};

/// `c<number>`, 8 bytes, big endian
pub(crate) enum Changes {}

impl KeySpace for Changes {
    const PREFIX: u8 = b'c';
    const NAME: &'static str = "change log entry";
    type Name = u64;
    type Record = ChangeLogEntry;

    fn read_name(name: &[u8]) -> Result<u64, String> {
        let bytes = name.try_into().map_err(|_| format!("its key has {} bytes instead of 8", name.len()))?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn show_name(name: &[u8]) -> String {
        Self::read_name(name).map_or_else(|_| format!("{name:02x?}"), |number| number.to_string())
    }
}

impl Changes {
    pub(crate) fn key(number: u64) -> Key<Self> {
        Key::of(number.to_be_bytes())
    }
}

impl Lookups {
    /// The change log from the entry with this number on (0: from the beginning), each entry with its number.
    ///
    /// Numbers count up in the order of commits; one may be missing, none comes twice.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where an entry cannot be read.
    pub async fn scan_changes(&self, from: u64) -> Result<ChangeScan, CatalogError> {
        self.scan::<Changes>(b"", from.checked_sub(1).map(Changes::key)).await
    }

    /// What happened to one resource, oldest first.
    ///
    /// There is no index for it: it reads the whole change log, a few seconds for a million entries.
    ///
    /// # Errors
    /// As [`scan_changes`](Self::scan_changes).
    pub async fn changes_of(&self, uri: &ResourceUri) -> Result<ChangeScan, CatalogError> {
        let uri = uri.clone();
        let all = self.scan_changes(0).await?;
        Ok(Scan::new(all.try_filter(move |(_, entry)| future::ready(entry.uri == uri)).boxed()))
    }
}

impl Batch {
    /// Appends to the change log; the number is given at the commit.
    pub fn append_change(&mut self, entry: &ChangeLogEntry) {
        self.append(entry);
    }
}
