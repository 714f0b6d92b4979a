//! The sets by rule of a publication.

use jiff::Timestamp;

use super::Publication;
use crate::part_set::Part;
use crate::paths::DESCRIPTION;
use crate::records::Records;
use crate::work::Seen;
use crate::{Base, Policy, PublishError};

impl Publication {
    /// Refuses sets of a publication that lays down bytes: a list of a set could name some before they are there.
    pub(super) fn check_sets(&self) -> Result<(), PublishError> {
        if self.with_bytes && !self.sets.is_empty() {
            let why = "sets by rule need a server that has the bytes; publish documents only";
            return Err(PublishError::Refused(why.to_owned()));
        }
        Ok(())
    }

    /// Publishes each set by rule, behind the publication itself. Returns the documents that were written.
    pub(super) async fn put_sets(
        &self,
        records: &dyn Records,
        now: Timestamp,
        see: &mut (dyn FnMut(Seen<'_>) + Send + Sync),
    ) -> Result<u64, PublishError> {
        let description = self.description.clone().unwrap_or_else(|| self.base.url(DESCRIPTION));
        let mut documents = 0;
        for set in &self.sets {
            let (folder, name) = (set.folder(), set.rule().name());
            let base = self.base.url(&format!("{folder}/")).parse();
            let base = base.map_err(|error| PublishError::Refused(format!("the set {name}: {error}")))?;
            let part = Self {
                place: self.place.folder(&folder)?,
                base: Base::new(base)?,
                dumps: false,
                // Its topic is that of the publication, which tells all changes.
                hubs: Vec::new(),
                description: Some(description.clone()),
                sets: Vec::new(),
                rule: Some(set.rule().pattern().to_owned()),
                // The versions of the past are below the base of the publication.
                policy: Policy { version_links: false, ..self.policy },
                ..self.clone()
            };
            let _lock = part.place.lock()?;
            let records = Part { records, base: &self.base, set };
            let (mut state, done) = Box::pin(part.put_lists(&records, now, see)).await?;
            documents += done.documents + part.put_above(&mut state, records.are_copies()).await?;
        }
        Ok(documents)
    }
}
