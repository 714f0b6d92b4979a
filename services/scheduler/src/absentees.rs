//! Resources that no list names, noted in a temporary file: what becomes of each depends on how many they are, and to look for
//! them a second time would read the whole catalog again.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek as _, Write as _};
use std::iter;

use model::ResourceUri;

/// What was noted so far.
#[derive(Debug)]
pub(crate) struct Absentees(BufWriter<File>);

impl Absentees {
    /// None so far.
    ///
    /// # Errors
    /// When there is no room for a temporary file.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(BufWriter::new(tempfile::tempfile()?)))
    }

    /// Notes one.
    ///
    /// # Errors
    /// When there is no more room.
    pub(crate) fn note(&mut self, uri: &[u8]) -> io::Result<()> {
        // A length, since even a line break may stand in what a Source writes.
        self.0.write_all(&(uri.len() as u64).to_le_bytes())?;
        self.0.write_all(uri)
    }

    /// All of them, in the order in which they were noted.
    ///
    /// # Errors
    /// When the last of them cannot be written any more.
    pub(crate) fn all(self) -> io::Result<impl Iterator<Item = ResourceUri>> {
        let mut file = self.0.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        let mut file = BufReader::new(file);
        Ok(iter::from_fn(move || read(&mut file).ok()))
    }
}

/// The next one. After the last one comes nothing, and what cannot be read back is left for the next run to find.
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
        let mut absentees = Absentees::new().unwrap();
        for uri in &uris {
            absentees.note(uri.as_str().as_bytes()).unwrap();
        }
        assert_eq!(absentees.all().unwrap().collect::<Vec<_>>(), uris);
    }
}
