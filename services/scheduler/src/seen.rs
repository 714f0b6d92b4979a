//! What a set's lists named in this run: digests of URIs in a temporary file, compared in portions, so that a list of any
//! length takes the same memory.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use fixity::Sha256;
use model::ResourceUri;

/// Bytes kept of a URI's digest. Two URIs of one digest would hide an absence, never invent one.
const BYTES: usize = 16;
/// Digests held in memory at once: 32 MiB of them.
const PORTION: u64 = 2_000_000;

/// What was named so far.
#[derive(Debug)]
pub(crate) struct Seen {
    file: BufWriter<File>,
    count: u64,
    portion: u64,
}

/// Everything that was named, to be looked up one portion at a time.
#[derive(Debug)]
pub(crate) struct Named {
    file: File,
    portions: u64,
}

/// The digests of one portion.
#[derive(Debug)]
pub(crate) struct Portion {
    number: u64,
    of: u64,
    digests: Vec<u128>,
}

impl Seen {
    /// Nothing so far.
    ///
    /// # Errors
    /// When there is no room for a temporary file.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?), count: 0, portion: PORTION })
    }

    /// Notes a URI that a list names.
    pub(crate) fn add(&mut self, uri: &ResourceUri) -> io::Result<()> {
        self.count += 1;
        self.file.write_all(&digest(uri).to_le_bytes())
    }

    /// All lists are read.
    pub(crate) fn finish(self) -> io::Result<Named> {
        let portions = self.count.div_ceil(self.portion).max(1);
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(Named { file, portions })
    }
}

impl Named {
    /// How many portions there are.
    pub(crate) fn portions(&self) -> u64 {
        self.portions
    }

    /// Reads one portion.
    pub(crate) fn portion(&mut self, number: u64) -> io::Result<Portion> {
        self.file.rewind()?;
        let mut file = BufReader::new(&self.file);
        let mut digests = Vec::new();
        let mut bytes = [0; BYTES];
        loop {
            match file.read_exact(&mut bytes) {
                Ok(()) => digests
                    .extend(Some(u128::from_le_bytes(bytes)).filter(|d| belongs(*d, number, self.portions))),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        digests.sort_unstable();
        Ok(Portion { number, of: self.portions, digests })
    }
}

impl Portion {
    /// Whether a URI was named; none when another portion knows.
    pub(crate) fn names(&self, uri: &ResourceUri) -> Option<bool> {
        let digest = digest(uri);
        belongs(digest, self.number, self.of).then(|| self.digests.binary_search(&digest).is_ok())
    }
}

fn belongs(digest: u128, number: u64, of: u64) -> bool {
    digest % u128::from(of) == u128::from(number)
}

fn digest(uri: &ResourceUri) -> u128 {
    let digest = Sha256::of(uri.as_str().as_bytes());
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(&digest.as_bytes()[..BYTES]);
    u128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(n: u32) -> ResourceUri {
        format!("http://h/{n}").parse().unwrap()
    }

    fn named(portion: u64, count: u32) -> Named {
        let mut seen = Seen { portion, ..Seen::new().unwrap() };
        for n in 0..count {
            seen.add(&uri(n)).unwrap();
        }
        seen.finish().unwrap()
    }

    #[test]
    fn each_uri_is_known_to_exactly_one_portion() {
        let mut named = named(10, 95);
        assert_eq!(named.portions(), 10);
        let portions: Vec<Portion> = (0..10).map(|n| named.portion(n).unwrap()).collect();
        for n in 0..95 {
            let answers: Vec<bool> = portions.iter().filter_map(|portion| portion.names(&uri(n))).collect();
            assert_eq!(answers, [true], "{n}");
        }
        for n in 95..200 {
            let answers: Vec<bool> = portions.iter().filter_map(|portion| portion.names(&uri(n))).collect();
            assert_eq!(answers, [false], "{n}");
        }
    }

    #[test]
    fn an_empty_list_names_nothing() {
        let mut named = named(10, 0);
        assert_eq!(named.portion(0).unwrap().names(&uri(1)), Some(false));
    }
}
