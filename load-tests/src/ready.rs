//! What is done before each run that is timed, so that it pays for nothing but itself.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::machine;

/// The most memory that is gone through: what one run of a small case takes, several times over.
const MOST: u64 = 3 << 30;
/// What is left alone, so that nothing has to make room.
const LEFT: u64 = 1 << 30;
/// What is written or read at a time, in bytes.
const PIECE: usize = 1 << 20;

/// Writes back to disk what earlier commands wrote, and goes through free memory once. A virtual machine gets memory from its host when a page is touched
/// first, or again after it was free for a while, and waits for it several times as long as the page takes otherwise: whoever comes first would pay for that.
pub(crate) fn make_ready() {
    nix::unistd::sync();
    // Where there is no such file system, or no room in it, runs are timed as they are.
    let _ = touch(machine::free_memory().saturating_sub(LEFT).min(MOST));
}

/// A file that the kernel keeps a copy of in all memory that would be free otherwise.
///
/// A computer that has worked for a while has no free memory: it is full of copies of files, which the kernel drops for whatever is written. What is free in a
/// virtual machine may be taken back by its host within a second, so where gigabytes are written nothing that was gone through before is there any more.
#[derive(Debug)]
pub(crate) struct FullMemory(Option<File>);

impl FullMemory {
    /// Makes the file in `directory`, as large as memory is free now. There is none where files lie in memory themselves, and none where it has no room.
    pub(crate) fn new(directory: &Path) -> Self {
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

    /// Whether there is such a file.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// Reads it, so that what is free by now is full of it again.
    pub(crate) fn restore(&self) -> io::Result<()> {
        let Some(mut file) = self.0.as_ref() else { return Ok(()) };
        file.rewind()?;
        let mut piece = vec![0; PIECE];
        while file.read(&mut piece)? > 0 {}
        Ok(())
    }
}

/// Takes so many bytes of memory, and gives them back to the kernel: a file without a name, since what a process frees may stay with its allocator.
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
