//! Bytes of changes, kept until their Change List is closed: later changes may replace them in the records (§13).
//! A segment is an archive of the publisher's own, with the changes of one Change List that one run told.

use jiff::Timestamp;
use model::ResourceUri;

use crate::PublishError;
use crate::archive::{Archive, measured, member, short, zip};
use crate::change_record::ChangeListRecord;
use crate::paths::name_with;
use crate::place::OWN;
use crate::records::{BodyError, Stored};
use crate::work::Work;

/// A segment in the making.
pub(crate) struct Segment {
    /// When its list begins.
    from: Timestamp,
    /// The number of its first change, from 1.
    number: usize,
    archive: Archive,
}

impl Segment {
    /// Begins with the change that has this number in its list, from 0.
    pub(crate) fn begin(work: &Work<'_>, list: &ChangeListRecord, number: u64) -> Result<Self, PublishError> {
        let number = usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1);
        Ok(Self { from: list.from, number, archive: Archive::begin(work.place)? })
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

    /// Writes it. Returns its path. That has its digest: a PUT that comes late, of a run that another one has
    /// overtaken, replaces no other segment. A run that was killed is repeated with the same name, if it tells the
    /// same.
    pub(crate) async fn put(self, work: &Work<'_>) -> Result<String, PublishError> {
        let Self { from, number, archive } = self;
        let file = archive.finish()?;
        let (_length, sha256) = measured(&file).await?;
        let folder = format!("{OWN}/changes");
        let path = name_with(&folder, from, number, &format!("-{}.zip", short(&sha256)));
        work.place.put_file(&path, file, &zip()).await?;
        Ok(path)
    }
}
