//! The differences of an audit, in a temporary file: there may be as many as resources.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};
use std::sync::Mutex;

use model::{DifferenceKind, PendingRecord, ResourceUri};
use reconcile::SpoolError;
use serde::{Deserialize, Serialize};

/// A resource that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Kind of the difference.
    pub difference: DifferenceKind,
    /// The resource.
    pub uri: ResourceUri,
    /// Explanation, as text.
    pub why: String,
    /// The last document that lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// Why the operator ignores it, in the operator's entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
}

/// A difference, and its repair.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    #[serde(flatten)]
    pub(crate) difference: Difference,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<PendingRecord>,
    /// The set whose lists omit it, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) absent_from: Option<usize>,
}

/// Writer for differences as they are found.
pub(crate) struct Notes(BufWriter<File>);

/// All differences of an audit, in the order of URIs.
#[derive(Debug)]
pub struct Differences(Mutex<File>);

impl Notes {
    pub(crate) fn new() -> Result<Self, SpoolError> {
        Ok(Self(BufWriter::new(tempfile::tempfile()?)))
    }

    pub(crate) fn add(&mut self, found: &Found) -> Result<(), SpoolError> {
        serde_json::to_writer(&mut self.0, found).map_err(io::Error::from)?;
        Ok(self.0.write_all(b"\n")?)
    }

    pub(crate) fn finish(self) -> Result<Differences, SpoolError> {
        Ok(Differences(Mutex::new(self.0.into_inner().map_err(io::IntoInnerError::into_error)?)))
    }
}

impl Differences {
    /// Iterates over all differences, from the first on. One iterator at a time.
    ///
    /// # Errors
    /// When the file cannot be read. Each item may fail too.
    pub fn iter(&self) -> Result<impl Iterator<Item = Result<Difference, SpoolError>> + use<>, SpoolError> {
        Ok(self.found()?.map(|found| Ok(found?.difference)))
    }

    pub(crate) fn found(
        &self,
    ) -> Result<impl Iterator<Item = Result<Found, SpoolError>> + use<>, SpoolError> {
        let mut file = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).try_clone()?;
        file.rewind()?;
        Ok(BufReader::new(file)
            .lines()
            .map(|line| Ok(serde_json::from_str(&line?).map_err(io::Error::from)?)))
    }
}
