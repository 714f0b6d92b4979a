//! External sort of claims: portions are sorted in memory, written to the disk, and merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use super::{Claim, Kind, SpoolError};

/// Bytes of claims that are sorted in memory.
const PORTION: usize = 16 * 1024 * 1024;
/// Bytes that a claim takes in memory besides its texts.
const FRAME: usize = 96;
/// Bytes that are read ahead of each file.
const AHEAD: usize = 32 * 1024;

/// Collects claims.
pub(crate) struct ClaimSorter {
    portion: Vec<Claim>,
    bytes: usize,
    limit: usize,
    files: Vec<File>,
}

/// Sorted claims, each once.
pub(crate) struct SortedClaims {
    portion: std::vec::IntoIter<Claim>,
    files: Vec<BufReader<File>>,
    /// The next claim of each file, and of the portion, which comes after the files.
    heap: BinaryHeap<Reverse<(Claim, usize)>>,
    last: Option<Claim>,
}

impl ClaimSorter {
    pub(crate) fn new() -> Self {
        Self::with(PORTION)
    }

    pub(crate) fn with(limit: usize) -> Self {
        Self { portion: Vec::new(), bytes: 0, limit, files: Vec::new() }
    }

    pub(crate) fn add(&mut self, claim: Claim) -> Result<(), SpoolError> {
        self.bytes += claim.about.len() + claim.by.len() + claim.rel.len() + FRAME;
        self.portion.push(claim);
        if self.bytes < self.limit {
            return Ok(());
        }
        self.portion.sort_unstable();
        let mut file = BufWriter::new(tempfile::tempfile()?);
        for claim in self.portion.drain(..) {
            write(&mut file, &claim)?;
        }
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.files.push(file);
        self.bytes = 0;
        Ok(())
    }

    pub(crate) fn sorted(mut self) -> Result<SortedClaims, SpoolError> {
        self.portion.sort_unstable();
        let files = self.files.into_iter().map(|file| BufReader::with_capacity(AHEAD, file)).collect();
        let mut sorted =
            SortedClaims { portion: self.portion.into_iter(), files, heap: BinaryHeap::new(), last: None };
        for n in 0..=sorted.files.len() {
            sorted.fill(n)?;
        }
        Ok(sorted)
    }
}

impl SortedClaims {
    /// The next claim.
    pub(crate) fn next(&mut self) -> Result<Option<Claim>, SpoolError> {
        while let Some(Reverse((claim, n))) = self.heap.pop() {
            self.fill(n)?;
            if self.last.as_ref() != Some(&claim) {
                self.last = Some(claim.clone());
                return Ok(Some(claim));
            }
        }
        Ok(None)
    }

    /// The resource that the next claim is about.
    pub(crate) fn about(&self) -> Option<&str> {
        self.heap.peek().map(|Reverse((claim, _))| claim.about.as_str())
    }

    fn fill(&mut self, n: usize) -> io::Result<()> {
        let next = match self.files.get_mut(n) {
            Some(file) => read(file)?,
            None => self.portion.next(),
        };
        self.heap.extend(next.map(|claim| Reverse((claim, n))));
        Ok(())
    }
}

fn write(to: &mut impl Write, claim: &Claim) -> io::Result<()> {
    let kind = match claim.kind {
        Kind::IsMember => 0,
        Kind::HasMember => 1,
    };
    to.write_all(&[kind])?;
    for text in [&claim.about, &claim.by, &claim.rel] {
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        to.write_all(&length.to_le_bytes())?;
        to.write_all(text.as_bytes())?;
    }
    Ok(())
}

fn read(from: &mut impl Read) -> io::Result<Option<Claim>> {
    let mut kind = [0];
    match from.read_exact(&mut kind) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let kind = if kind == [0] { Kind::IsMember } else { Kind::HasMember };
    let [about, by, rel] = [text(from)?, text(from)?, text(from)?];
    Ok(Some(Claim { about, kind, by, rel }))
}

fn text(from: &mut impl Read) -> io::Result<String> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(about: usize, by: usize) -> Claim {
        let kind = if by.is_multiple_of(2) { Kind::IsMember } else { Kind::HasMember };
        Claim {
            about: format!("http://h/\u{e9}{about}"),
            kind,
            by: format!("http://h/{by}"),
            rel: "item".to_owned(),
        }
    }

    #[test]
    fn claims_come_sorted_and_once_from_memory_and_from_files() {
        let all: Vec<Claim> = (0..500).map(|n| claim(n * 7 % 50, n * 11 % 30)).collect();
        let mut expected = all.clone();
        expected.sort();
        expected.dedup();
        for limit in [1, 2_000, 1 << 30] {
            let mut sorter = ClaimSorter::with(limit);
            all.iter().cloned().for_each(|claim| sorter.add(claim).unwrap());
            let mut sorted = sorter.sorted().unwrap();
            let mut found = Vec::new();
            while let Some(claim) = sorted.next().unwrap() {
                found.push(claim);
            }
            assert!(found == expected && sorted.about().is_none(), "limit {limit}");
        }
    }
}
