//! Which packages have bytes of what is withdrawn. They are refused from the moment at which the list has it: to make
//! others may take hours.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use model::ResourceUri;
use publish::{Publication, PublishError, TakedownList};

/// How many packages are known. Of others the manifest is read once more.
const MOST: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// What is known of the packages of a publication.
#[derive(Debug, Default)]
pub(crate) struct Packages(Mutex<Option<Known>>);

/// What is known under one list of what is withdrawn.
#[derive(Debug)]
struct Known {
    list: Arc<TakedownList>,
    /// The URLs of its resources.
    urls: Arc<HashSet<String>>,
    /// Whether a package has bytes of any.
    by_path: LruCache<String, bool>,
}

impl Packages {
    /// Whether a package has bytes of a resource of this list, whose URLs are such.
    ///
    /// # Errors
    /// When its manifest cannot be read.
    pub(crate) async fn has_any(
        &self,
        publication: &Publication,
        path: &str,
        list: Arc<TakedownList>,
        url: impl Fn(&ResourceUri) -> String,
    ) -> Result<bool, PublishError> {
        if list.is_empty() {
            return Ok(false);
        }
        let urls = {
            let mut known = self.known();
            if known.as_ref().is_none_or(|known| !Arc::ptr_eq(&known.list, &list)) {
                let urls = Arc::new(list.uris().iter().map(url).collect());
                *known = Some(Known { list: Arc::clone(&list), urls, by_path: LruCache::new(MOST) });
            }
            let Some(known) = known.as_mut() else { return Ok(false) };
            if let Some(has) = known.by_path.get(path) {
                return Ok(*has);
            }
            Arc::clone(&known.urls)
        };
        // Where there is no such package, none has anything.
        let Some(has) = publication.package_has(path, urls).await? else { return Ok(false) };
        if let Some(known) = self.known().as_mut().filter(|known| Arc::ptr_eq(&known.list, &list)) {
            known.by_path.put(path.to_owned(), has);
        }
        Ok(has)
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
