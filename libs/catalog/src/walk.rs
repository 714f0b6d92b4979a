//! Reads records by ascending keys. It reads on to a near record, and seeks to a distant one. The cost
//! follows the number of requested records, and never exceeds that of a full scan.

use std::cmp::Ordering;
use std::ops::Bound;

use bytes::Bytes;

use crate::keyspace::{KeySpace, all_of};
use crate::lazy_resource::LazyResource;
use crate::lookups::Stride;
use crate::resources::Resources;
use crate::scan::Cursor;
use crate::{CatalogError, Lookups};

/// How many records it reads on before it seeks: about as many as a seek costs.
const NEAR: usize = 16;

/// Finds resources in the order of their URIs' bytes.
///
/// Like a [`Scan`](crate::Scan) it shows the catalog as it was when it began.
pub struct ResourceWalk {
    lookups: Lookups,
    cursor: Option<Box<Cursor>>,
    /// The first record that was not passed yet.
    ahead: Option<(Bytes, Bytes)>,
    is_over: bool,
}

impl ResourceWalk {
    /// The resource with this URI, which must be after the previous one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find(&mut self, uri: &[u8]) -> Result<Option<LazyResource>, CatalogError> {
        let mut steps = 0;
        let key = [&[Resources::PREFIX], uri].concat();
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => {
                let from = Bound::Included(key.clone().into());
                let (_, end) = all_of::<Resources>();
                none.insert(Cursor::open(self.lookups.clone(), from, end, Stride::Far).await?)
            }
        };
        loop {
            let order = self.ahead.as_ref().map(|(key, _)| key[1..].cmp(uri));
            match order {
                Some(Ordering::Greater) => return Ok(None),
                Some(Ordering::Equal) => {
                    let found = self.ahead.take();
                    return Ok(found.map(|(key, value)| LazyResource::new(&self.lookups, key, value)));
                }
                Some(Ordering::Less) => {}
                None if self.is_over => return Ok(None),
                None => {}
            }
            if steps == NEAR {
                cursor.seek(&key).await?;
            }
            steps += 1;
            self.ahead = cursor.found().await?;
            self.is_over = self.ahead.is_none();
        }
    }
}

impl std::fmt::Debug for ResourceWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResourceWalk")
    }
}

impl Lookups {
    /// Begins a walk through the resources, tombstones included.
    pub fn walk_resources(&self) -> ResourceWalk {
        ResourceWalk { lookups: self.clone(), cursor: None, ahead: None, is_over: false }
    }
}
