//! What packages have, by their manifests.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use futures::{StreamExt as _, TryStreamExt as _, stream};

use crate::PublishError;
use crate::bytes::AT_A_TIME;
use crate::place::Place;
use crate::published::each_entry;

/// Which of these manifests name bytes at any of these URLs. One that is not there names nothing.
pub(crate) async fn with_any(
    place: &Place,
    manifests: Vec<String>,
    urls: Arc<HashSet<String>>,
) -> Result<Vec<usize>, PublishError> {
    let all = stream::iter(manifests).map(|manifest| {
        let urls = Arc::clone(&urls);
        async move { has_any(place, &manifest, urls).await }
    });
    let all: Vec<Option<bool>> = all.buffered(AT_A_TIME).try_collect().await?;
    Ok((0..).zip(all).filter_map(|(at, has)| has.unwrap_or_default().then_some(at)).collect())
}

/// Whether a manifest names bytes at any of these URLs. None if it is not there.
pub(crate) async fn has_any(
    place: &Place,
    manifest: &str,
    urls: Arc<HashSet<String>>,
) -> Result<Option<bool>, PublishError> {
    let Some(copy) = place.copy(manifest).await? else { return Ok(None) };
    let path = manifest.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut has = false;
        each_entry(&path, copy, |entry| {
            // A deletion has no bytes.
            has = entry.metadata.path.is_some() && urls.contains(&entry.loc);
            Ok(if has { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(Some(has))
    });
    read.await.map_err(|error| PublishError::place(manifest, error))?
}
