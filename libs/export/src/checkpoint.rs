//! The checkpoint of an export, stored next to it. An interrupted export resumes from it, and is not mistaken
//! for a complete one.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use fixity::Computed;
use jiff::Timestamp;
use model::ResourceUri;
use serde::{Deserialize, Serialize};

use crate::ExportError;
use crate::request::{ExportRequest, Summary};

/// The folder for files that are no part of the export, until it is complete.
pub(crate) const DATA: &str = ".thresher";
/// Prefix of incomplete checkpoint files.
pub(crate) const TEMPORARY: &str = ".export-";

/// The progress of an export.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Checkpoint {
    /// None for an export that cannot be resumed: on standard output.
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(flatten)]
    pub(crate) asked: ExportRequest,
    /// The start of the export: the `at` of a Resource Dump (RS-4).
    pub(crate) at: Timestamp,
    /// The last resource that is safely part of it; those behind it in the catalog's order are still to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<ResourceUri>,
    /// Bytes of a single file that are safely written.
    #[serde(default)]
    pub(crate) bytes: u64,
    /// Complete packages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) packages: Vec<Closed>,
    /// The number of complete tables.
    #[serde(default)]
    pub(crate) parts: u32,
    /// Totals so far.
    #[serde(default)]
    pub(crate) done: Summary,
}

/// A complete package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Closed {
    pub(crate) name: String,
    pub(crate) computed: Computed,
}

/// The file of the `number`th table, counted from one.
pub(crate) fn part_name(number: u32) -> String {
    format!("part-{number:05}.parquet")
}

impl Checkpoint {
    /// The checkpoint at `path`, or a new one if there is none.
    pub(crate) fn open(
        path: Option<PathBuf>,
        asked: ExportRequest,
        now: Timestamp,
    ) -> Result<Self, ExportError> {
        match path.as_deref().map(read).transpose()?.flatten() {
            Some(found) if found.asked == asked => Ok(Self { path, ..found }),
            Some(found) => {
                let place = path.as_deref().unwrap_or(Path::new("-")).display();
                let begun = serde_json::to_string(&found.asked).unwrap_or_default();
                Err(ExportError::Refused(format!(
                    "{place}: an unfinished export with other options ({begun}). Repeat it with these options, delete \
                     the target and this file, or pass another target"
                )))
            }
            None => Ok(Self {
                path,
                asked,
                at: now,
                after: None,
                bytes: 0,
                packages: Vec::new(),
                parts: 0,
                done: Summary::default(),
            }),
        }
    }

    /// Refuses to resume if a complete file of `directory` is missing or has another length.
    pub(crate) fn check_files(&self, directory: &Path) -> Result<(), ExportError> {
        let packages =
            self.packages.iter().map(|closed| (closed.name.clone(), Some(closed.computed.length())));
        let tables = (1..=self.parts).map(|number| (part_name(number), None));
        for (name, length) in packages.chain(tables) {
            let path = directory.join(name);
            match (fs_err::metadata(&path), length) {
                (Ok(found), Some(length)) if found.len() != length => {
                    return Err(
                        self.changed(&path, &format!("it has {} bytes instead of {length}", found.len()))
                    );
                }
                (Ok(_), _) => {}
                (Err(error), _) if error.kind() == ErrorKind::NotFound => {
                    return Err(self.changed(&path, "it is missing"));
                }
                (Err(error), _) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// The error of an interrupted export whose file `path` does not match this checkpoint.
    pub(crate) fn changed(&self, path: &Path, how: &str) -> ExportError {
        let checkpoint = self.path.as_deref().unwrap_or(Path::new("-")).display();
        ExportError::Refused(format!(
            "{} changed since the export was interrupted: {how}. Delete the target and its checkpoint {checkpoint}, \
             then export again",
            path.display()
        ))
    }

    /// Writes the checkpoint, in place of the earlier one. Everything in it has to be on the disk already.
    pub(crate) fn save(&self) -> Result<(), ExportError> {
        let Some(path) = &self.path else { return Ok(()) };
        let directory = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(directory)?;
        serde_json::to_writer(&mut file, self).map_err(anyhow::Error::from)?;
        file.flush()?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| ExportError::Write(error.error))?;
        Ok(())
    }

    /// Removes it, and the other files in a directory of its own: the export is complete.
    pub(crate) fn remove(self) -> Result<(), ExportError> {
        let Some(path) = self.path else { return Ok(()) };
        match path.parent() {
            Some(directory) if directory.ends_with(DATA) => fs_err::remove_dir_all(directory)?,
            _ => fs_err::remove_file(path)?,
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Option<Checkpoint>, ExportError> {
    let bytes = match fs_err::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    serde_json::from_slice(&bytes).map(Some).map_err(|error| {
        ExportError::Refused(format!(
            "{} is no checkpoint of this version ({error}). Delete it and the target, then export again",
            path.display()
        ))
    })
}
