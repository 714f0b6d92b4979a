//! Findings of a scrub, in a temporary file: they may concern all stored resources.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};

use model::SourceId;
use verifier::scrub::Damaged;

/// Damaged or missing bitstreams.
pub(super) struct Findings {
    file: BufWriter<File>,
    counts: BTreeMap<SourceId, u64>,
}

impl Findings {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?), counts: BTreeMap::new() })
    }

    pub(super) fn add(&mut self, damaged: &Damaged) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, damaged)?;
        self.file.write_all(b"\n")?;
        // The reader opens the same file.
        self.file.flush()?;
        *self.counts.entry(damaged.held.source.clone()).or_default() += 1;
        Ok(())
    }

    /// The Sources with findings, and the number of each.
    pub(super) fn sources(&self) -> Vec<(SourceId, u64)> {
        self.counts.iter().map(|(source, count)| (source.clone(), *count)).collect()
    }

    /// The findings about a Source. One reader at a time: they share one position in the file.
    pub(super) fn of(
        &self,
        source: &SourceId,
    ) -> io::Result<impl Iterator<Item = io::Result<Damaged>> + use<>> {
        let mut file = self.file.get_ref().try_clone()?;
        file.seek(SeekFrom::Start(0))?;
        let source = source.clone();
        let found = BufReader::new(file).lines().map(|line| Ok(serde_json::from_str::<Damaged>(&line?)?));
        Ok(found.filter(move |found| !matches!(found, Ok(damaged) if damaged.held.source != source)))
    }
}
