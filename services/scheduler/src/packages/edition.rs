//! Whether a package is of the edition of its dump that was read.
//!
//! A Source may publish a dump anew and keep the names of its packages. What was in one package is then in another,
//! and packages of two editions together may name less than either edition does.

use jiff::Timestamp;
use model::{Contents, DocumentRecord, DocumentState, Evidence, PackageRecord, ProblemReason};
use resourcesync::Capability;

use crate::document::unreadable;
use crate::error::HarvestError;
use crate::harvest::Harvest;

impl Harvest {
    /// Gives up a Resource Dump that was published anew before this package was received. The package is taken all the
    /// same. A list is read instead of the dump, or the next run reads the dump again.
    pub(super) async fn judge_edition(
        &mut self,
        package: &str,
        record: &PackageRecord,
        contents: &Contents,
    ) -> Result<(), HarvestError> {
        let is_of_this_run = record.run == self.run.id;
        // Bytes that have the digest of the dump's entry are of the dump's edition.
        let is_proved = !record.declaration.digests.is_empty();
        if record.capability != Capability::ResourceDump || is_proved || !is_of_this_run {
            return Ok(());
        }
        let Some(dump) = self.catalog.document(&record.document).await? else { return Ok(()) };
        let Some(at) = later_at(record, &dump, contents) else { return Ok(()) };
        if dump.state != DocumentState::Done || self.is_alone(&dump) {
            return Ok(());
        }
        // A snapshot may take its time: only the dump itself tells whether it is another one now.
        match self.is_as_read(&record.document, &dump).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let why = format!(
                    "the Source published it anew while its packages were received, and the package {package} is of \
                     {at}, later than the edition that was read: packages of two editions may leave resources out"
                );
                let failure = unreadable(ProblemReason::ChangedAgain, why, Evidence::default());
                self.fail_document(&record.document, dump, failure).await
            }
            Err(error) => self.fail_document_web(&record.document, dump, &error).await,
        }
    }

    /// Whether a dump's only package holds all that its set has: it is of one edition, whichever that is.
    fn is_alone(&self, dump: &DocumentRecord) -> bool {
        let dumps = self.sets.get(&dump.set).map(|set| set.documents(&Capability::ResourceDump).count());
        dump.packages == 1 && dump.parent.is_none() && dumps == Some(1)
    }
}

/// The moment of a manifest, where it is later than what the dump says of the package or of itself.
fn later_at(record: &PackageRecord, dump: &DocumentRecord, contents: &Contents) -> Option<Timestamp> {
    let at = contents.manifest.at?.instant();
    let told = record.metadata.at.map(|at| at.instant()).or(dump.at)?;
    (at > told).then_some(at)
}
