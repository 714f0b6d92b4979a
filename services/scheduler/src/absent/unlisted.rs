//! What failed before, and is in no list any more.

use std::io;

use catalog::Batch;
use futures::TryStreamExt;
use model::{ResourceUri, SetId, Subject};

use super::{BATCH, Lists, is_wanted_elsewhere};
use crate::absentees::Absentees;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::seen::Portion;
use crate::settle::subject;

impl Harvest {
    /// Notes what failed before and is in no list any more. The inner error says that there is no room for the notes.
    pub(super) async fn note_unlisted_failures(
        &self,
        set: &SetId,
        lists: &Lists,
        portion: &Portion,
        unlisted: &mut Absentees,
    ) -> Result<io::Result<()>, HarvestError> {
        if !self.has_problems {
            return Ok(Ok(()));
        }
        let mut problems = self.catalog.scan_problems().await?;
        while let Some((subject, problem)) = problems.try_next().await? {
            let (Subject::Resource(uri), Some(listing)) = (subject, problem.listing) else { continue };
            let Ok(uri) = ResourceUri::try_from(uri) else { continue };
            if portion.names(&uri) == Some(false)
                && !is_wanted_elsewhere(set, lists, &listing)
                && let Err(no_room) = unlisted.note(&uri)
            {
                return Ok(Err(no_room));
            }
        }
        Ok(Ok(()))
    }

    /// What failed before, is not held, and is in no list any more is nobody's problem: the Source does not offer it. Nothing is lost with it, so
    /// one list is enough; a list that names it again asks for it again.
    pub(super) async fn settle_unlisted_failures(
        &mut self,
        set: &SetId,
        lists: &Lists,
        unlisted: Absentees,
    ) -> Result<(), HarvestError> {
        let Ok(unlisted) = unlisted.all() else { return Ok(()) };
        let mut batch = Batch::new();
        for uri in unlisted {
            let is_held = self.catalog.resource(&uri).await?.is_some_and(|record| record.is_present());
            if is_held || self.is_asked_for(set, lists, &uri).await? {
                continue;
            }
            batch.delete_pending(&uri);
            batch.delete_problem(&subject(&uri));
            if batch.len() >= BATCH {
                self.commit(std::mem::take(&mut batch)).await?;
            }
        }
        self.commit(batch).await
    }
}
