//! The change log: the events of resources, in order. Append-only; each entry has an ascending number.
//!
//! Entries that are committed together are stored in pages. A row of the database per entry would cost
//! several times the entry's size.

use futures::{StreamExt, TryStreamExt, future, stream};
use jiff::Timestamp;
use model::{ChangeLogEntry, ResourceUri};

use crate::batch::Batch;
use crate::change_page::Changes;
use crate::error::CatalogError;
use crate::lookups::Lookups;
use crate::meta::NEXT_CHANGE;
use crate::scan::{ChangeScan, Scan};

impl Lookups {
    /// The number of the next entry of the change log; zero in a fresh catalog.
    ///
    /// # Errors
    /// When the store fails or the record cannot be read.
    pub async fn next_change(&self) -> Result<u64, CatalogError> {
        Ok(self.meta(NEXT_CHANGE).await?.unwrap_or_default())
    }

    /// The change log from the entry with this number on (0: from the beginning), each entry with its number.
    ///
    /// Numbers rise in the order of commits. One may be missing; none occurs twice.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where an entry cannot be read.
    pub async fn scan_changes(&self, from: u64) -> Result<ChangeScan, CatalogError> {
        let pages = self.scan::<Changes>(b"", from.checked_sub(1).map(Changes::key)).await?;
        let lookups = self.clone();
        let entries = pages.and_then(move |(last, page)| {
            let page = page.numbered(last).ok_or_else(|| {
                let why = "it has more entries than there are numbers up to its own";
                lookups.corrupt::<Changes>(&last.to_be_bytes(), why)
            });
            future::ready(page.map(|entries| stream::iter(entries.map(Ok))))
        });
        Ok(Scan::new(
            entries.try_flatten().try_filter(move |(number, _)| future::ready(*number >= from)).boxed(),
        ))
    }

    /// The number of the first entry of the change log that is not before this time. Times rise with the numbers, except
    /// where a clock went back: subtract from `time` what clocks may differ, and skip entries that are too early.
    ///
    /// It reads an entry for each halving of the log: some twenty for a million.
    ///
    /// # Errors
    /// As [`scan_changes`](Self::scan_changes).
    pub async fn first_change_since(&self, time: Timestamp) -> Result<u64, CatalogError> {
        let (mut low, mut high) = (0, self.next_change().await?);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.scan_changes(middle).await?.try_next().await? {
                Some((number, entry)) if number < high && entry.at < time => low = number + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// The events of one resource, oldest first.
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
        self.changes.append(entry);
    }
}
