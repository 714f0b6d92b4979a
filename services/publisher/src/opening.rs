//! Opens several publications of a harvest: some at a time, and again where one cannot be opened.

use std::time::Duration;

use futures::FutureExt as _;
use publish::{Publication, PublishError, Published};
use serving::{Catalogs, VerifiedCache};
use store::Store;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::harvest::Harvest;
use crate::readers::Readers;
use crate::set::{self, Server};
use crate::several::{Member, Several};
use crate::shared::{OpenRecords, Shared};

/// The pause after a set could not be opened.
const PAUSE: Duration = Duration::from_secs(60);
/// The most sets of a server of a harvest: each has an open catalog.
pub(crate) const MOST_SETS: usize = 1_000;
/// Memory for parts of all catalogs.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Opens a set of a harvest.
#[derive(Clone)]
struct Opener {
    all: Several,
    catalogs: Catalogs,
    verified: VerifiedCache,
    server: Server,
}

/// Opens all sets, some at a time, and waits for them; but for one that takes longer than the start time of the
/// settings, no other waits. One that cannot be opened is tried again later. Returns what was published meanwhile.
///
/// # Errors
/// [`PublishError::Refused`] for too many sets.
pub(crate) async fn open_all(
    all: &Several,
    sets: Vec<(Publication, Readers)>,
    store: Store,
    server: &Server,
) -> Result<Published, PublishError> {
    if sets.len() > MOST_SETS {
        let why = format!("a server of a harvest has 1 to {MOST_SETS} Sources, not {}", sets.len());
        return Err(PublishError::Refused(why));
    }
    for (publication, readers) in &sets {
        let (marker, readers) = (publication.source.clone(), readers.clone());
        all.put(Member { marker, readers, set: None });
    }
    server.settings.metrics.sets(sets.len(), 0);
    let catalogs = Catalogs::new(store, sets.len(), CACHE_BYTES);
    let (verified, server) = (VerifiedCache::default(), server.clone());
    let opener = Opener { all: all.clone(), catalogs, verified, server };
    // One message for each set, so none waits.
    let (tried, mut results) = mpsc::channel(sets.len().max(1));
    for (publication, readers) in sets {
        let tasks = &opener.server.tasks;
        tasks.spawn(opener.clone().keep_opening(publication, readers, tried.clone()));
    }
    drop(tried);
    let mut done = Published::default();
    let over = tokio::time::sleep(opener.server.settings.start_time);
    tokio::pin!(over);
    loop {
        tokio::select! {
            result = results.recv() => match result {
                Some(published) => done += published,
                None => break,
            },
            () = &mut over => {
                tracing::warn!("some Sources are not published yet: they are answered by 503 until then");
                break;
            }
        }
    }
    Ok(done)
}

impl Opener {
    async fn open(&self, publication: &Publication, readers: &Readers) -> Result<Published, PublishError> {
        let open = |publication: Publication| {
            let source = publication.source.source.clone();
            let harvest = Harvest::new(source, self.catalogs.clone(), self.verified.clone());
            Shared::new(publication, OpenRecords::Harvest(Box::new(harvest)), &self.server.settings)
        };
        let (set, done) = set::start(publication.clone(), open, &self.server).await?;
        let (marker, readers) = (publication.source.clone(), readers.clone());
        self.all.put(Member { marker, readers, set: Some(set) });
        Ok(done)
    }

    /// Opens a set; one that cannot be opened is tried again, after a pause. The first result goes to `tried`.
    async fn keep_opening(self, publication: Publication, readers: Readers, tried: mpsc::Sender<Published>) {
        let source = publication.source.source.as_str();
        let Server { turns, stop, .. } = &self.server;
        let mut tried = Some(tried);
        loop {
            let (opened, _) = tokio::select! {
                opened = turns.run(false, |time| timeout(time, self.open(&publication, &readers)).map(Result::ok)) => opened,
                () = stop.cancelled() => return,
            };
            let is_first = tried.is_some();
            match (opened, tried.take()) {
                (Ok(published), tried) => {
                    tracing::info!(source, "a Source is published now");
                    // Without a receiver, the server did not wait for it.
                    let _ = tried.map(|tried| tried.try_send(published));
                    return;
                }
                (Err(error), _) if is_first => {
                    tracing::error!(%error, source, "a Source cannot be published now: it is tried again");
                }
                (Err(error), _) => tracing::warn!(%error, source, "a Source cannot be published yet"),
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = stop.cancelled() => return,
            }
        }
    }
}
