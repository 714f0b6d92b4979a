//! Opens several publications of a harvest: some at a time, and again where one cannot be opened.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use publish::{Publication, PublishError, Published};
use serving::{Catalogs, VerifiedCache};
use store::Store;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::follow::First;
use crate::harvest::Harvest;
use crate::readers::Readers;
use crate::set::{Opening, Server};
use crate::several::{Member, Several};
use crate::shared::{OpenRecords, Shared};

/// The pause after a set could not be opened.
const PAUSE: Duration = Duration::from_secs(60);
/// The most sets of a server of a harvest: each has an open catalog.
pub(crate) const MOST_SETS: usize = 1_000;
/// Sets that are looked at, at a time, whether they are there.
const LOOKED_AT: usize = 32;
/// Memory for parts of all catalogs.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Opens a set of a harvest.
#[derive(Clone)]
struct Opener {
    all: Several,
    catalogs: Catalogs,
    verified: VerifiedCache,
    server: Server,
    looks: Arc<Semaphore>,
}

/// Opens all sets, some at a time, and waits for them; but for one that takes longer than the start time of the
/// settings, no other waits. One that was published before is served at once. One that cannot be opened is tried again
/// later. Returns what was published meanwhile; none if that is no set.
///
/// # Errors
/// [`PublishError::Refused`] for too many sets.
pub(crate) async fn open_all(
    all: &Several,
    sets: Vec<(Publication, Readers)>,
    store: Store,
    server: &Server,
) -> Result<Option<Published>, PublishError> {
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
    server.tasks.spawn(catalogs.clone().sweep(server.stop.clone()));
    let (verified, server) = (VerifiedCache::default(), server.clone());
    let looks = Arc::new(Semaphore::new(LOOKED_AT));
    let opener = Opener { all: all.clone(), catalogs, verified, server, looks };
    // One message for each set, so none waits.
    let (tried, mut results) = mpsc::channel(sets.len().max(1));
    for (publication, readers) in sets {
        let tasks = &opener.server.tasks;
        tasks.spawn(opener.clone().keep_opening(publication, readers, tried.clone()));
    }
    drop(tried);
    let mut done: Option<Published> = None;
    let over = tokio::time::sleep(opener.server.settings.start_time);
    tokio::pin!(over);
    loop {
        tokio::select! {
            result = results.recv() => match result {
                Some(published) => *done.get_or_insert_default() += published,
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
    fn open(&self, publication: &Publication, readers: &Readers) -> Opening {
        let open = |publication: Publication| {
            let source = publication.source.source.clone();
            let harvest = Harvest::new(source, self.catalogs.clone(), self.verified.clone());
            let records = OpenRecords::Harvest(Box::new(harvest));
            let shared = Shared::new(publication, records, &self.server.settings);
            shared.admit(readers);
            shared
        };
        Opening::new(publication.clone(), open, &self.server)
    }

    /// Serves a set whose documents are there.
    async fn serve(
        &self,
        opening: &Opening,
        publication: &Publication,
        readers: &Readers,
    ) -> Result<(), PublishError> {
        let set = opening.serve().await?;
        let (marker, readers) = (publication.source.clone(), readers.clone());
        self.all.put(Member { marker, readers, set: Some(set) });
        Ok(())
    }

    /// Serves a set that was published before. Returns whether it was.
    async fn serve_if_there(&self, opening: &Opening, publication: &Publication, readers: &Readers) -> bool {
        // The semaphore is never closed.
        let _look = self.looks.acquire().await;
        if !opening.is_there().await {
            return false;
        }
        let served = self.serve(opening, publication, readers).await;
        let source = publication.source.source.as_str();
        served.inspect_err(|error| tracing::warn!(%error, source, "a Source cannot be served yet")).is_ok()
    }

    /// Opens a set; one that cannot be opened is tried again, after a pause. The first result goes to `tried`.
    async fn keep_opening(self, publication: Publication, readers: Readers, tried: mpsc::Sender<Published>) {
        let source = publication.source.source.as_str();
        let Server { turns, stop, .. } = &self.server;
        let opening = self.open(&publication, &readers);
        let mut is_served = tokio::select! {
            is_served = self.serve_if_there(&opening, &publication, &readers) => is_served,
            () = stop.cancelled() => return,
        };
        // The server waits for none that is served.
        let mut tried = Some(tried).filter(|_| !is_served);
        loop {
            let publish = |time| timeout(time, opening.publish()).map(Result::ok);
            let (mut opened, _) = tokio::select! {
                opened = turns.run(false, publish) => opened,
                () = stop.cancelled() => return,
            };
            if opened.is_ok() && !is_served {
                match self.serve(&opening, &publication, &readers).await {
                    Ok(()) => is_served = true,
                    Err(error) => opened = Err(error),
                }
            }
            let is_first = tried.is_some();
            match (opened, tried.take()) {
                (Ok(published), tried) => {
                    tracing::info!(source, "a Source is published now");
                    // Without a receiver, the server did not wait for it.
                    let _ = tried.map(|tried| tried.try_send(published));
                    break;
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
        opening.follow(First::Later);
    }
}
