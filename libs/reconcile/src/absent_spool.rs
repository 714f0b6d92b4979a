//! Resources that no list contains, spooled to a temporary file. What happens to each depends on their number. A
//! second search would read the whole catalog again.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write as _};
use std::iter;

use model::ResourceUri;

use crate::error::SpoolError;

/// The URIs that were spooled so far.
#[derive(Debug)]
pub struct AbsentSpool(BufWriter<File>);

impl AbsentSpool {
    /// Creates an empty spool.
    ///
    /// # Errors
    /// When there is no disk space for a temporary file.
    pub fn new() -> Result<Self, SpoolError> {
        Ok(Self(BufWriter::new(tempfile::tempfile()?)))
    }

    /// Appends one URI.
    ///
    /// # Errors
    /// When the disk is full.
    pub fn note(&mut self, uri: &[u8]) -> Result<(), SpoolError> {
        // Length-prefixed, because a URI of a Source may even contain a line break.
        self.0.write_all(&(uri.len() as u64).to_le_bytes())?;
        Ok(self.0.write_all(uri)?)
    }

    /// All URIs, in the order in which they were appended.
    ///
    /// # Errors
    /// When the last of them cannot be written.
    pub fn all(self) -> Result<impl Iterator<Item = ResourceUri>, SpoolError> {
        let mut file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let mut file = BufReader::new(file);
        Ok(iter::from_fn(move || read(&mut file).ok()))
    }
}

/// The next URI; an error after the last one. The next run finds those that cannot be read back.
fn read(file: &mut impl Read) -> io::Result<ResourceUri> {
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let mut text = String::new();
    file.by_ref().take(u64::from_le_bytes(length)).read_to_string(&mut text)?;
    text.parse().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_comes_back_as_it_was() {
        let uris = ["http://h/1", "http://h/2\n3?a=b#c", "http://h/\u{e9} \u{3000}x"];
        let uris = uris.map(|uri| uri.parse::<ResourceUri>().unwrap());
        let mut absentees = AbsentSpool::new().unwrap();
        for uri in &uris {
            absentees.note(uri.as_str().as_bytes()).unwrap();
        }
        assert_eq!(absentees.all().unwrap().collect::<Vec<_>>(), uris);
    }
}
