//! Prepares the machine before each timed run, so that the run pays only for its own work.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::machine;

/// The most memory that is touched: several times the need of a run of a small case.
const MOST: u64 = 3 << 30;
/// Memory that is left free, so that no page has to be evicted.
const LEFT: u64 = 1 << 30;
/// Bytes written or read at a time.
const PIECE: usize = 1 << 20;

/// Writes the dirty pages of earlier commands back to disk, and touches free memory once. A virtual machine
/// gets a page from its host at the first touch, or again after the page was free for a while. That takes
/// several times as long as a normal page fault, and the first measured command would pay for it.
pub(crate) fn make_ready() {
    nix::unistd::sync();
    // Without such a file system, or without room in it, runs are timed as they are.
    let _ = touch(machine::free_memory().saturating_sub(LEFT).min(MOST));
}

/// A file whose copy in the page cache fills all free memory.
///
/// A computer that has worked for a while has no free memory: the page cache fills it, and the kernel drops
/// pages for new writes. A virtual machine's host may take free memory back within a second. So before a run
/// that writes gigabytes, touching memory once is not enough.
#[derive(Debug, Default)]
pub(crate) struct FullMemory(Option<File>);

impl FullMemory {
    /// Creates the file in `directory`, as large as free memory is now. There is none if the directory is in
    /// memory itself, or has no room.
    fn new(directory: &Path) -> Self {
        if machine::lies_in_memory(directory) {
            return Self(None);
        }
        nix::unistd::sync();
        let bytes = machine::free_memory().saturating_sub(LEFT);
        eprintln!("filling {} MB of memory with copies of a file", bytes / 1_000_000);
        let file =
            tempfile::tempfile_in(directory).and_then(|mut file| fill(&mut file, bytes).map(|()| file));
        let left = |error: &io::Error| eprintln!("memory is left as it is: {error}");
        Self(file.inspect_err(left).ok())
    }

    /// The same below the target directory.
    pub(crate) fn below_target() -> io::Result<Self> {
        let disk = testkit::servers::target_directory();
        fs::create_dir_all(&disk)?;
        Ok(Self::new(&disk))
    }

    /// The memory that runs find, for the report.
    pub(crate) fn described(&self) -> &'static str {
        if self.0.is_some() { "full of copies of files" } else { "as it was" }
    }

    /// Reads it, so that its copy fills the free memory again.
    pub(crate) fn restore(&self) -> io::Result<()> {
        let Some(mut file) = self.0.as_ref() else { return Ok(()) };
        file.rewind()?;
        let mut piece = vec![0; PIECE];
        while file.read(&mut piece)? > 0 {}
        Ok(())
    }
}

/// Allocates this much memory, and returns it to the kernel. It uses an unnamed file, since memory that a
/// process frees may stay with its allocator.
fn touch(bytes: u64) -> io::Result<()> {
    fill(&mut tempfile::tempfile_in("/dev/shm")?, bytes)
}

fn fill(file: &mut File, bytes: u64) -> io::Result<()> {
    let piece = vec![1; PIECE];
    for _ in 0..bytes / PIECE as u64 {
        file.write_all(&piece)?;
    }
    Ok(())
}
