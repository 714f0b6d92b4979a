//! The view's part of settling. Files change only after their bytes were verified, and before the catalog records it.
//! So a crash in between is repaired by repeating the step.

use std::collections::HashMap;

use catalog::Batch;
use futures::{StreamExt, TryStreamExt, stream};
use model::{Bitstream, Mode, ResourceUri};
use store::View;

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::settler::Settler;

/// Bytes of small resources in memory at once on their way into the view.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;
/// Resources written together.
const BATCH: usize = 512;
/// Resources of them that one thread reads, and then writes.
const SHARE: usize = 64;
/// Concurrent shares: while some are written, others are read.
const SHARES_AT_ONCE: usize = 4;
/// Larger resources are copied, one by one.
const SMALL_BYTES: u64 = 1024 * 1024;

impl Settler {
    /// Whether the view needs a scan of stored resources before the harvest goes on.
    pub(crate) async fn has_view_work(&self, ctx: &mut RunContext) -> Result<bool, HarvestError> {
        if self.view.is_none() || ctx.is_catalog_empty() {
            return Ok(false);
        }
        let has_old_names = ctx.catalog().await?.view_names().await? < store::view::NAMES;
        Ok(!ctx.run.view || ctx.run.mode != Mode::Audit && has_old_names)
    }

    /// Writes verified bitstreams as files.
    pub(crate) async fn place_in_view(
        &self,
        ctx: &RunContext,
        verified: &[(ResourceUri, Bitstream)],
    ) -> Result<(), HarvestError> {
        let Some(view) = &self.view else { return Ok(()) };
        let verified = last_of_each(verified);
        let mut begin = 0;
        while begin < verified.len() {
            let first = &verified[begin];
            let rest = &verified[begin + 1..];
            if first.1.computed.length() > SMALL_BYTES {
                ctx.store.write_view(first.1, view, first.0.clone()).await?;
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
            self.place_small(ctx, view, &verified[begin..end]).await?;
            begin = end;
        }
        Ok(())
    }

    /// Writes small resources, several shares in parallel. All shares have ended on return, even after a failure. So
    /// no share writes files during the next settlement.
    async fn place_small(
        &self,
        ctx: &RunContext,
        view: &View,
        batch: &[(&ResourceUri, &Bitstream)],
    ) -> Result<(), HarvestError> {
        let shares: Vec<_> = batch.chunks(SHARE).map(|share| self.place_share(ctx, view, share)).collect();
        let placed: Vec<_> = stream::iter(shares).buffered(SHARES_AT_ONCE).collect().await;
        placed.into_iter().collect()
    }

    async fn place_share(
        &self,
        ctx: &RunContext,
        view: &View,
        share: &[(&ResourceUri, &Bitstream)],
    ) -> Result<(), HarvestError> {
        let bitstreams: Vec<&Bitstream> = share.iter().map(|(_, bitstream)| *bitstream).collect();
        let bodies = ctx.store.read_batch(&bitstreams).await;
        let uris = share.iter().map(|(uri, _)| (*uri).clone());
        let files =
            uris.zip(bodies).map(|(uri, body)| Ok((uri, body?))).collect::<Result<Vec<_>, HarvestError>>()?;
        view.place_batch(files).await.into_iter().try_for_each(|placed| Ok(placed?))
    }

    /// Removes the files of deleted resources.
    pub(crate) async fn remove_from_view(&self, uris: &[ResourceUri]) -> Result<(), HarvestError> {
        let Some(view) = &self.view else { return Ok(()) };
        for uri in uris {
            view.remove(uri.clone()).await?;
        }
        Ok(())
    }

    /// Moves files that were written while fewer names were known as dangerous, once per Source.
    pub(crate) async fn put_view_right(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        let Some(view) = self.view.clone() else { return Ok(()) };
        if ctx.run.mode == Mode::Audit || ctx.catalog().await?.view_names().await? >= store::view::NAMES {
            return Ok(());
        }
        let catalog = ctx.catalog().await?;
        let mut resources = catalog.scan_resources(None, None).await?;
        let mut uris = Vec::with_capacity(BATCH);
        while let Some((uri, _)) = resources.try_next().await? {
            uris.push(uri);
            if uris.len() == BATCH {
                view.put_right(std::mem::take(&mut uris)).await?;
            }
        }
        view.put_right(uris).await?;
        drop(resources);
        let mut batch = Batch::new();
        batch.put_view_names(store::view::NAMES);
        ctx.commit(batch).await
    }

    /// Writes resources that were harvested without a view, before this harvest continues with one.
    pub(crate) async fn catch_up_view(&mut self, ctx: &mut RunContext) -> Result<(), HarvestError> {
        if self.view.is_none() {
            ctx.run.view = false;
            return Ok(());
        }
        if ctx.run.view {
            return Ok(());
        }
        let mut resources = ctx.catalog().await?.scan_resources(None, None).await?;
        let mut held = Vec::with_capacity(BATCH);
        while let Some((uri, record)) = resources.try_next().await? {
            held.extend(record.bitstream.map(|bitstream| (uri, bitstream)));
            if held.len() == BATCH {
                self.place_in_view(ctx, &held).await?;
                held.clear();
            }
        }
        self.place_in_view(ctx, &held).await?;
        drop(resources);
        ctx.run.view = true;
        ctx.commit(Batch::new()).await
    }
}

/// The last verified version of each resource. A redelivered job may have found other bytes, and the catalog keeps
/// the last version, too. So no two resources written in parallel are the same.
fn last_of_each<T>(verified: &[(ResourceUri, T)]) -> Vec<(&ResourceUri, &T)> {
    let last: HashMap<&ResourceUri, usize> =
        verified.iter().enumerate().map(|(n, (uri, _))| (uri, n)).collect();
    let is_last = |(n, (uri, _)): &(usize, &(ResourceUri, T))| last.get(uri) == Some(n);
    verified.iter().enumerate().filter(is_last).map(|(_, (uri, found))| (uri, found)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_resource_that_comes_twice_only_the_last_is_laid_out() {
        let uri = |n: u8| format!("https://h/{n}").parse::<ResourceUri>().unwrap();
        let verified = [(uri(1), "old"), (uri(2), "only"), (uri(1), "new"), (uri(3), "only")];
        let last = [(&uri(2), &"only"), (&uri(1), &"new"), (&uri(3), &"only")];
        assert_eq!(last_of_each(&verified), last);
    }
}
