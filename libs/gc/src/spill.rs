//! Digests on the disk: as many as there are, looked at a 256th at a time.

use std::collections::HashSet;
use std::io::{self, BufWriter, Read as _, Write as _};

use fixity::Sha256;
use fs_err as fs;
use tempfile::TempDir;

/// Bytes gathered for each file before they are written.
const GATHERED: usize = 4 * 1024;

/// Digests, by their first byte. Removed when dropped.
pub(crate) struct Spill {
    directory: TempDir,
    files: Vec<Option<BufWriter<fs::File>>>,
}

impl Spill {
    pub(crate) fn new() -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix("thresher-gc-").tempdir()?;
        Ok(Self { directory, files: (0..=u8::MAX).map(|_| None).collect() })
    }

    /// Adds a digest; it may be added again.
    pub(crate) fn add(&mut self, sha256: Sha256) -> io::Result<()> {
        let bytes = sha256.as_bytes();
        let slot = &mut self.files[usize::from(bytes[0])];
        let file = match slot {
            Some(file) => file,
            None => {
                let file = fs::File::create(path(&self.directory, bytes[0]))?;
                slot.insert(BufWriter::with_capacity(GATHERED, file))
            }
        };
        file.write_all(bytes)
    }

    /// Those that begin with this byte. Nothing is added to them after that.
    pub(crate) fn take(&mut self, first: u8) -> io::Result<HashSet<Sha256>> {
        let Some(file) = self.files[usize::from(first)].take() else { return Ok(HashSet::new()) };
        drop(file.into_inner().map_err(io::IntoInnerError::into_error)?);
        let path = path(&self.directory, first);
        let mut file = io::BufReader::new(fs::File::open(&path)?);
        let (mut digests, mut bytes) = (HashSet::new(), [0; 32]);
        let whole = file.get_ref().metadata()?.len() / 32;
        for _ in 0..whole {
            file.read_exact(&mut bytes)?;
            digests.insert(Sha256::from_bytes(bytes));
        }
        fs::remove_file(&path)?;
        Ok(digests)
    }
}

fn path(directory: &TempDir, first: u8) -> std::path::PathBuf {
    directory.path().join(format!("{first:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_digest_comes_back_with_those_that_begin_as_it_does() {
        let mut spill = Spill::new().unwrap();
        let all: HashSet<Sha256> = (0..5_000_u32).map(|n| Sha256::of(&n.to_be_bytes())).collect();
        for _ in 0..2 {
            all.iter().try_for_each(|digest| spill.add(*digest)).unwrap();
        }
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
