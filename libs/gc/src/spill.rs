//! Digests in temporary files, without a limit on their number. A 256th of them is in memory at a time.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::PathBuf;

use fixity::Sha256;

/// Bytes to buffer for each file before they are written.
const GATHERED: usize = 4 * 1024;

/// Digests, by their first byte. Their files have no names, so they disappear however the process ends.
pub(crate) struct Spill {
    directory: PathBuf,
    files: Vec<Option<BufWriter<File>>>,
}

impl Spill {
    /// A spill in the system's temporary directory.
    pub(crate) fn new() -> Self {
        Self::within(std::env::temp_dir())
    }

    fn within(directory: PathBuf) -> Self {
        Self { directory, files: (0..=u8::MAX).map(|_| None).collect() }
    }

    /// Adds a digest. Duplicates are allowed.
    pub(crate) fn add(&mut self, sha256: Sha256) -> io::Result<()> {
        let bytes = sha256.as_bytes();
        let slot = &mut self.files[usize::from(bytes[0])];
        let file = match slot {
            Some(file) => file,
            None => {
                let file = tempfile::tempfile_in(&self.directory)?;
                slot.insert(BufWriter::with_capacity(GATHERED, file))
            }
        };
        file.write_all(bytes)
    }

    /// The digests with this first byte. None of them may be added after that.
    pub(crate) fn take(&mut self, first: u8) -> io::Result<HashSet<Sha256>> {
        let Some(file) = self.files[usize::from(first)].take() else { return Ok(HashSet::new()) };
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let whole = file.metadata()?.len() / 32;
        let mut file = BufReader::new(file);
        let mut digests = HashSet::new();
        let mut bytes = [0; 32];
        for _ in 0..whole {
            file.read_exact(&mut bytes)?;
            digests.insert(Sha256::from_bytes(bytes));
        }
        Ok(digests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digest_comes_back_with_those_that_begin_as_it_does() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::within(directory.path().to_owned());
        let all: HashSet<Sha256> = (0..5_000_u32).map(|n| Sha256::of(&n.to_be_bytes())).collect();
        for _ in 0..2 {
            all.iter().try_for_each(|digest| spill.add(*digest)).unwrap();
        }
        let named = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(named, 0, "who is killed now leaves files behind");
        let mut found = HashSet::new();
        for first in 0..=u8::MAX {
            let some = spill.take(first).unwrap();
            assert!(some.iter().all(|digest| digest.as_bytes()[0] == first));
            found.extend(some);
        }
        assert_eq!(found, all);
        assert!(spill.take(0).unwrap().is_empty());
    }
}
