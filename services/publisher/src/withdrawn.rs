//! When resources of a publication were withdrawn, as all requests see it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::{Clock as _, SystemClock};
use oaipmh::BaseUrl;
use publish::{LATEST_COMMIT, Publication, PublishError, Takedown, Withdrawals};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How long what another process may replace is not read again.
const FRESH: Duration = Duration::from_secs(10);

/// When resources were withdrawn. It is read when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Withdrawn(Mutex<Option<Known>>);

/// What was read or written last.
#[derive(Debug)]
struct Known {
    all: Arc<Withdrawals>,
    at: Instant,
    /// All that was withdrawn up to this time is known.
    until: Timestamp,
}

impl Withdrawn {
    /// When resources were withdrawn, and the time up to which all withdrawals are known.
    ///
    /// # Errors
    /// When the place fails.
    pub(crate) async fn get(
        &self,
        publication: &Publication,
    ) -> Result<(Arc<Withdrawals>, Timestamp), PublishError> {
        let mut known = self.0.lock().await;
        let is_shared = publication.place.is_shared();
        if let Some(Known { all, until, .. }) =
            known.as_ref().filter(|known| !is_shared || known.at.elapsed() < FRESH)
        {
            return Ok((Arc::clone(all), *until));
        }
        let read = Known::now(publication.withdrawals().await?, is_shared);
        let Known { all, until, .. } = known.insert(read);
        Ok((Arc::clone(all), *until))
    }

    /// Notes since when records of the repository with this base URL are withdrawn. Only the process that publishes
    /// does. Requests wait meanwhile.
    ///
    /// # Errors
    /// When the place fails. It may be tried again.
    pub(crate) async fn note(
        &self,
        publication: &Publication,
        base: &BaseUrl,
        takedown: &Takedown,
    ) -> Result<(), PublishError> {
        let mut known = self.0.lock().await;
        // Another process may have published before, and one that fails has not noted anything.
        *known = None;
        let mut all = publication.withdrawals().await?;
        if let Some(updated) = all.updated(base, takedown, SystemClock.now()) {
            publication.save_withdrawals(&updated).await?;
            all = updated;
        }
        *known = Some(Known::now(all, publication.place.is_shared()));
        Ok(())
    }
}

impl Known {
    /// What was read or written now.
    fn now(all: Withdrawals, is_shared: bool) -> Self {
        // Another process notes a time before it has written it.
        let sure = || SystemClock.now().checked_sub(LATEST_COMMIT).unwrap_or(Timestamp::MIN);
        let until = if is_shared { sure() } else { Timestamp::MAX };
        Self { all: Arc::new(all), at: Instant::now(), until }
    }
}

#[cfg(test)]
mod tests {
    use publish::{Base, Place};
    use store::SourceMarker;

    use super::*;

    fn publication(place: Place) -> Publication {
        Publication::of_documents(
            place,
            Base::new("http://mirror.example/".parse().unwrap()).unwrap(),
            SourceMarker::new("one".parse().unwrap(), "http://one.example/"),
        )
    }

    fn base() -> BaseUrl {
        BaseUrl::new("http://one.example/oai".parse().unwrap()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn what_another_process_notes_is_seen_and_known_up_to_a_time_before() {
        let store = store::Store::in_memory();
        let place = || Place::of(store.publication(&"one".parse().unwrap())).unwrap();
        let shared = publication(place().shared());
        let (reader, writer) = (Withdrawn::default(), Withdrawn::default());
        let (all, until) = reader.get(&shared).await.unwrap();
        assert_eq!(*all, Withdrawals::default());
        assert!(until < SystemClock.now() - Duration::from_secs(290));
        let base = base();
        let takedown = Takedown::parse(&base.record_uri("a", "oai_dc")).unwrap();
        writer.note(&shared, &base, &takedown).await.unwrap();
        let noted = writer.get(&shared).await.unwrap().0;
        assert_ne!(*noted, Withdrawals::default());
        assert_eq!(*reader.get(&shared).await.unwrap().0, Withdrawals::default(), "it was read a moment ago");
        tokio::time::advance(FRESH).await;
        assert_eq!(reader.get(&shared).await.unwrap().0, noted);

        // A process that is alone reads once, and knows all that it wrote itself.
        let alone = publication(place());
        assert_eq!(reader.get(&alone).await.unwrap().0, noted);
        reader.note(&alone, &base, &Takedown::default()).await.unwrap();
        let (after, until) = reader.get(&alone).await.unwrap();
        assert!(after != noted && until == Timestamp::MAX);
    }

    #[tokio::test]
    async fn one_that_cannot_be_read_is_an_error_each_time() {
        let store = store::Store::in_memory();
        let publication = publication(Place::of(store.publication(&"one".parse().unwrap())).unwrap());
        let withdrawn = Withdrawn::default();
        let objects = store.object_store();
        let path = "publications/one/.thresher/withdrawals.json".into();
        object_store::ObjectStoreExt::put(&*objects, &path, "{".into()).await.unwrap();
        for _ in 0..2 {
            withdrawn.get(&publication).await.unwrap_err();
            withdrawn.note(&publication, &base(), &Takedown::default()).await.unwrap_err();
        }
    }
}
