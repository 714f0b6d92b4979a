//! A directory that is watched.

use std::path::Path;
use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::beneath::identity;
use super::heard::Heard;
use super::kernel::Kernel;
use crate::unheard::Unheard;

/// A directory that is watched, until this is dropped. Its folders are watched as a walk enters them.
#[derive(Debug)]
pub(super) struct Watch {
    heard: Arc<Heard>,
    /// What tells the directory from others that may be at its path later.
    directory: (u64, u64),
    _listening: AbortOnDropHandle<()>,
}

impl Watch {
    /// Begins. It needs a runtime.
    pub(super) fn begin(directory: &Path, most_folders: usize) -> Result<Self, Unheard> {
        let directory = at(directory).ok_or(Unheard::Gone)?;
        let heard = Arc::new(Heard::new(Kernel::begin()?, most_folders));
        let listener = Arc::clone(&heard);
        let listening = tokio::spawn(async move { listener.listen().await });
        Ok(Self { heard, directory, _listening: AbortOnDropHandle::new(listening) })
    }

    pub(super) fn heard(&self) -> &Arc<Heard> {
        &self.heard
    }

    /// Whether it is still this directory that is at the path. A folder above may have been moved, which nothing tells.
    pub(super) fn is_at(&self, directory: &Path) -> bool {
        at(directory) == Some(self.directory)
    }
}

fn at(directory: &Path) -> Option<(u64, u64)> {
    rustix::fs::stat(directory).ok().as_ref().map(identity)
}
