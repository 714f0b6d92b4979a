//! Cache of recently seen packs and their lengths, for jobs that do not say what the store acknowledged: those of an
//! earlier fetcher. Jobs that end at about the same time share a pack. One request to the store is enough for all of
//! them, even for those that arrive while it is open.
//!
//! A cached result may be trusted:
//!
//! - A pack is written whole, by one PUT, under a name that is used once. Nothing appends to it or overwrites it, so
//!   its length is constant.
//! - Garbage collection removes a pack only if no record points to it and it is older than the beginning of any
//!   unfinished run (ADR 0019). A job whose outcomes still count belongs to an unfinished run, and its packs were
//!   stored by that run.
//! - A pack that exists and is lost a moment later is not noticed by a request either. It is found when it is read,
//!   or by a scrub (ADR 0003). The cache makes that moment longer; its bounded size limits it to what is in progress.
//!
//! Candidates of earlier runs do not use this cache: they are read to their end. A missing pack is not cached.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use model::{Location, PackId, SourceId};
use store::{Store, StoreError};
use tokio::sync::OnceCell;

/// Packs in the cache: several times as many as there are in the jobs in progress.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(256).unwrap();

/// The recently seen packs. Cheap to clone; all clones share one cache.
#[derive(Debug, Clone)]
pub(crate) struct PackLengthCache(Arc<Mutex<LruCache<(SourceId, PackId), Length>>>);

/// The length of a pack in bytes, once the store has returned it. Concurrent callers wait for the same response.
type Length = Arc<OnceCell<u64>>;

/// No length was returned.
enum Unknown {
    NotThere,
    Failed(StoreError),
}

impl Default for PackLengthCache {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(LruCache::new(REMEMBERED))))
    }
}

impl PackLengthCache {
    /// Whether a bitstream of this length is at its location. Requests it from the store, unless the pack is cached.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn have(
        &self,
        store: &Store,
        location: &Location,
        length: u64,
    ) -> Result<bool, StoreError> {
        let ask = async || match store.object_length(location).await {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(Unknown::NotThere),
            Err(error) => Err(Unknown::Failed(error)),
        };
        let object = match location {
            Location::Pack { source, pack, .. } => {
                self.length_of(source, *pack).get_or_try_init(ask).await.copied()
            }
            Location::Object { .. } | Location::Package { .. } => ask().await,
        };
        match object {
            Ok(object) => Ok(store::lies_within(location, length, object)),
            Err(Unknown::NotThere) => Ok(false),
            Err(Unknown::Failed(error)) => Err(error),
        }
    }

    fn length_of(&self, source: &SourceId, pack: PackId) -> Length {
        let mut packs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(packs.get_or_insert_mut((source.clone(), pack), Length::default))
    }
}

#[cfg(test)]
mod tests {
    use fixity::Computed;
    use store::{PackLimits, PackMember, SharedPacks};
    use testkit::gated::GatedObjects;

    use super::*;

    struct Case {
        objects: Arc<GatedObjects>,
        store: Store,
        seen: PackLengthCache,
    }

    impl Case {
        fn new() -> Self {
            let (objects, gate) = GatedObjects::closed();
            gate.open(1_000);
            let store = Store::over_objects(Arc::clone(&objects), "memory", std::env::temp_dir());
            Self { objects, store, seen: PackLengthCache::default() }
        }

        /// Two bitstreams of four bytes, in a pack of their own.
        async fn pack(&self) -> Vec<Location> {
            let packs = SharedPacks::new(self.store.clone(), PackLimits::default());
            let mut batch = packs.batch("2026-01-01T00:00:00Z".parse().unwrap());
            for content in ["aaaa", "bbbb"] {
                let (uri, bytes) = ("http://h/".parse().unwrap(), content.as_bytes());
                let computed = Computed::of(bytes);
                let media_type = None;
                let last_modified = None;
                let member = PackMember { uri: &uri, bytes, computed: &computed, media_type, last_modified };
                batch.add(member).unwrap();
            }
            packs.store(&"s".parse().unwrap(), batch).await.unwrap().members
        }

        async fn has(&self, location: &Location) -> bool {
            self.seen.clone().have(&self.store, location, 4).await.unwrap()
        }
    }

    #[tokio::test]
    async fn a_pack_is_asked_for_once_whoever_names_which_of_its_members_first() {
        let case = Case::new();
        let members = case.pack().await;
        for location in members.iter().chain(members.iter().rev()) {
            assert!(case.has(location).await);
        }
        assert_eq!(case.objects.heads(), 1);
        let others = case.pack().await;
        assert!(case.has(&others[0]).await);
        assert_eq!(case.objects.heads(), 2);
    }

    #[tokio::test]
    async fn whoever_asks_for_a_pack_while_it_is_asked_for_waits_for_the_same_answer() {
        let case = Case::new();
        let members = case.pack().await;
        let asked = (0..8).map(|n| case.has(&members[n % 2]));
        assert_eq!(futures::future::join_all(asked).await, [true; 8]);
        assert_eq!(case.objects.heads(), 1);
        let missing = Case::new().pack().await;
        let asked = (0..3).map(|_| case.has(&missing[0]));
        assert_eq!(futures::future::join_all(asked).await, [false; 3]);
        assert_eq!(case.objects.heads(), 1 + 3, "what was not there is not remembered");
    }

    #[tokio::test]
    async fn what_lies_beyond_the_end_of_a_pack_that_was_seen_is_not_there() {
        let case = Case::new();
        let mut members = case.pack().await;
        assert!(case.has(&members[0]).await);
        let Location::Pack { offset, .. } = &mut members[1] else { panic!("{:?}", members[1]) };
        *offset += 1_000_000;
        assert!(!case.has(&members[1]).await);
        assert!(!case.seen.have(&case.store, &members[0], 5).await.unwrap(), "another length than is stored");
    }

    #[tokio::test]
    async fn a_pack_of_the_same_name_of_another_source_was_not_seen() {
        let case = Case::new();
        let mut members = case.pack().await;
        assert!(case.has(&members[0]).await);
        let Location::Pack { source, .. } = &mut members[0] else { panic!("{:?}", members[0]) };
        *source = "other".parse().unwrap();
        assert!(!case.has(&members[0]).await);
    }

    #[tokio::test]
    async fn what_was_not_there_is_asked_for_again_and_what_was_seen_long_ago_too() {
        let case = Case::new();
        let other = Case::new();
        let missing = other.pack().await;
        assert!(!case.has(&missing[0]).await && !case.has(&missing[0]).await);
        assert_eq!(case.objects.heads(), 2);
        let first = case.pack().await;
        assert!(case.has(&first[0]).await);
        for _ in 0..REMEMBERED.get() {
            assert!(case.has(&case.pack().await[0]).await);
        }
        let heads = case.objects.heads();
        assert!(case.has(&first[0]).await);
        assert_eq!(case.objects.heads(), heads + 1, "no more is remembered than was said");
    }
}
