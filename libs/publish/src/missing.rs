//! Resources whose bytes are damaged or missing in the store: they are told as deleted, and each run tries them again.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use model::ResourceUri;
use resourcesync::Change;

use crate::PublishError;
use crate::changes::tell_these;
use crate::records::Told;
use crate::state::State;
use crate::work::Work;

/// Resources that are looked up together.
const TOGETHER: usize = 1_000;

/// Tells as created what is there again, of what the run before had left out.
pub(crate) async fn tell_back(
    work: &mut Work<'_>,
    state: &mut State,
    before: &BTreeSet<ResourceUri>,
) -> Result<(), PublishError> {
    let left: Vec<ResourceUri> = before.intersection(&state.missing).cloned().collect();
    if left.is_empty() {
        return Ok(());
    }
    let (records, at) = (work.records, work.now);
    let found = stream::iter(left).chunks(TOGETHER).then(move |uris| async move {
        let found = records.find(&uris).await?.into_iter().zip(uris);
        let told = found.filter_map(|(stored, uri)| {
            let stored = Some(stored?);
            Some(Told { uri, kind: Change::Created, at, stored, links: Vec::new() })
        });
        Ok::<_, PublishError>(stream::iter(told.map(Ok).collect::<Vec<_>>()))
    });
    Box::pin(tell_these(work, state, found.try_flatten().boxed())).await
}
