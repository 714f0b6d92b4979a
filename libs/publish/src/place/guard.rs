//! Guards a file against a writer that another one has overtaken: it is replaced only as it was read.

use std::sync::{Arc, Mutex, PoisonError};

use object_store::{PutMode, UpdateVersion};

/// The version of the file that was read or written last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard(Arc<Mutex<Option<UpdateVersion>>>);

impl Guard {
    /// Notes the version that is there; none if there is no file.
    pub(super) fn note(&self, version: Option<UpdateVersion>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = version;
    }

    /// How the next version is put.
    pub(super) fn mode(&self) -> PutMode {
        let version = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        version.map_or(PutMode::Create, PutMode::Update)
    }
}
