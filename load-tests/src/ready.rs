//! What is done before each run that is timed, so that it pays for nothing but itself.

use std::io::{self, Write as _};

use crate::machine;

/// The most memory that is gone through: what one run of a small case takes, several times over.
const MOST: u64 = 3 << 30;
/// What is left alone, so that nothing has to make room.
const LEFT: u64 = 1 << 30;

/// Writes back to disk what earlier commands wrote, and goes through free memory once. A virtual machine gets memory from its host when a page is touched
/// first, or again after it was free for a while, and waits for it several times as long as the page takes otherwise: whoever comes first would pay for that.
pub(crate) fn make_ready() {
    nix::unistd::sync();
    // Where there is no such file system, or no room in it, runs are timed as they are.
    let _ = touch(machine::free_memory().saturating_sub(LEFT).min(MOST));
}

/// Takes so many bytes of memory, and gives them back to the kernel: a file without a name, since what a process frees may stay with its allocator.
fn touch(bytes: u64) -> io::Result<()> {
    let mut file = tempfile::tempfile_in("/dev/shm")?;
    let piece = vec![1; 1 << 20];
    for _ in 0..bytes / piece.len() as u64 {
        file.write_all(&piece)?;
    }
    Ok(())
}
