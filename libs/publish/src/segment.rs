//! Bytes of changes, kept until their Change List is closed: later changes may replace them in the records (§13).
//! A segment is an archive of the publisher's own, with the changes of one Change List that one run told.

use model::ResourceUri;

use crate::PublishError;
use crate::archive::{Archive, member, zip};
use crate::change_record::ChangeListRecord;
use crate::paths::name_with;
use crate::place::OWN;
use crate::records::{BodyError, Stored};
use crate::work::Work;

/// A segment in the making.
pub(crate) struct Segment {
    path: String,
    archive: Archive,
}

impl Segment {
    /// Begins with the change that has this number in its list. A run that was killed is repeated with the same name.
    pub(crate) fn begin(work: &Work<'_>, list: &ChangeListRecord, number: u64) -> Result<Self, PublishError> {
        let folder = format!("{OWN}/changes");
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let path = name_with(&folder, list.from, number.saturating_add(1), ".zip");
        Ok(Self { path, archive: Archive::begin(work.place)? })
    }

    /// Adds the bytes of the change with this number. The inner error is that of damaged bytes.
    pub(crate) async fn add(
        &mut self,
        work: &Work<'_>,
        number: u64,
        uri: &ResourceUri,
        stored: &Stored,
    ) -> Result<Result<(), BodyError>, PublishError> {
        self.archive.add(work, &member(number), uri, stored).await
    }

    /// Writes it. Returns its path.
    pub(crate) async fn put(self, work: &Work<'_>) -> Result<String, PublishError> {
        let Self { path, archive } = self;
        work.place.put_file(&path, archive.finish()?, &zip()).await?;
        Ok(path)
    }
}
