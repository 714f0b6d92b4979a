//! The view's part of settling: files change only after their bytes were judged, and before the catalog says so, so that a
//! crash in between is mended by doing it again.

use catalog::Batch;
use futures::TryStreamExt;
use model::{Bitstream, ResourceUri};
use store::View;

use crate::error::HarvestError;
use crate::harvest::Harvest;

/// Bytes of small resources held at once on their way into the view.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;
/// Resources laid out together.
const BATCH: usize = 512;
/// Larger ones are streamed, each by itself.
const SMALL_BYTES: u64 = 1024 * 1024;

impl Harvest {
    /// Lays verified bitstreams out as files.
    pub(crate) async fn place_in_view(
        &self,
        verified: &[(ResourceUri, Bitstream)],
    ) -> Result<(), HarvestError> {
        let Some(view) = &self.view else { return Ok(()) };
        let mut begin = 0;
        while begin < verified.len() {
            let (first, rest) = (&verified[begin], &verified[begin + 1..]);
            if first.1.computed.length() > SMALL_BYTES {
                let bytes = self.store.open_verified(&first.1).await?;
                view.place_stream(first.0.clone(), bytes).await?;
                begin += 1;
                continue;
            }
            let mut bytes = first.1.computed.length();
            let more = rest
                .iter()
                .take(BATCH - 1)
                .take_while(|(_, next)| {
                    bytes += next.computed.length();
                    next.computed.length() <= SMALL_BYTES && bytes <= BATCH_BYTES
                })
                .count();
            let end = begin + 1 + more;
            self.place_small(view, &verified[begin..end]).await?;
            begin = end;
        }
        Ok(())
    }

    async fn place_small(&self, view: &View, batch: &[(ResourceUri, Bitstream)]) -> Result<(), HarvestError> {
        let bitstreams: Vec<&Bitstream> = batch.iter().map(|(_, bitstream)| bitstream).collect();
        let bodies = self.store.read_batch(&bitstreams).await;
        let uris = batch.iter().map(|(uri, _)| uri.clone());
        let files =
            uris.zip(bodies).map(|(uri, body)| Ok((uri, body?))).collect::<Result<Vec<_>, HarvestError>>()?;
        for placed in view.place_batch(files).await {
            placed?;
        }
        Ok(())
    }

    /// Removes the files of deleted resources.
    pub(crate) async fn remove_from_view(&self, uris: &[ResourceUri]) -> Result<(), HarvestError> {
        let Some(view) = &self.view else { return Ok(()) };
        for uri in uris {
            view.remove(uri.clone()).await?;
        }
        Ok(())
    }

    /// Lays out what was harvested without a view, before this harvest goes on with one.
    pub(crate) async fn catch_up_view(&mut self) -> Result<(), HarvestError> {
        if self.view.is_none() {
            self.run.view = false;
            return Ok(());
        }
        if self.run.view {
            return Ok(());
        }
        let mut resources = self.catalog.scan_resources(None, None).await?;
        let mut held = Vec::with_capacity(BATCH);
        while let Some((uri, record)) = resources.try_next().await? {
            held.extend(record.bitstream.map(|bitstream| (uri, bitstream)));
            if held.len() == BATCH {
                self.place_in_view(&held).await?;
                held.clear();
            }
        }
        self.place_in_view(&held).await?;
        drop(resources);
        self.run.view = true;
        self.commit(Batch::new()).await
    }
}
