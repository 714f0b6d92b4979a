//! The packages that a dump lists, in a temporary file. They are processed after the dump is read to its end, so that
//! no response stays open meanwhile.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};

use jiff::Timestamp;
use model::Declaration;
use planning::{package_declaration, package_interval};
use reconcile::SpoolError;
use resourcesync::{Entry, Metadata};
use serde::{Deserialize, Serialize};

/// A package that a dump lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) uri: String,
    pub(crate) declaration: Declaration,
    /// Its times, from the dump.
    pub(crate) metadata: Metadata,
    /// URL of a copy of its manifest, if the dump gives one.
    pub(crate) contents: Option<String>,
}

/// The packages of one dump.
#[derive(Debug)]
pub(crate) struct NamedPackages {
    file: BufWriter<File>,
    /// Start of its interval, and its place in the file.
    places: Vec<(Option<Timestamp>, u64, usize)>,
    end: u64,
}

impl Named {
    pub(crate) fn of(entry: &Entry) -> Self {
        Self {
            uri: entry.loc.clone(),
            declaration: package_declaration(entry),
            metadata: package_interval(entry),
            contents: entry.link("contents").map(|link| link.href.clone()),
        }
    }
}

impl NamedPackages {
    pub(crate) fn new() -> Result<Self, SpoolError> {
        Ok(Self { file: BufWriter::new(tempfile::tempfile()?), places: Vec::new(), end: 0 })
    }

    pub(crate) fn add(&mut self, named: &Named) -> Result<(), SpoolError> {
        let line = serde_json::to_vec(named).map_err(io::Error::from)?;
        self.file.write_all(&line)?;
        let from = named.metadata.from.as_ref().map(resourcesync::Datetime::instant);
        self.places.push((from, self.end, line.len()));
        self.end += line.len() as u64;
        Ok(())
    }

    /// All packages in chronological order, whatever order their dump has.
    pub(crate) fn all(self) -> Result<impl Iterator<Item = Result<Named, SpoolError>>, SpoolError> {
        let mut file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut places = self.places;
        places.sort_by_key(|(from, _, _)| *from);
        Ok(places.into_iter().map(move |(_, at, length)| {
            let mut line = vec![0; length];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut line)?;
            Ok(serde_json::from_slice(&line).map_err(io::Error::from)?)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_come_back_as_they_were_in_the_order_of_time() {
        let named = |day: Option<u32>| Named {
            uri: format!("http://h/{day:?}.zip"),
            declaration: Declaration { length: Some(7), ..Declaration::default() },
            metadata: Metadata {
                from: day.map(|day| format!("2026-01-{day:02}").parse().unwrap()),
                ..Metadata::default()
            },
            contents: day.map(|day| format!("http://h/{day}.xml")),
        };
        let mut packages = NamedPackages::new().unwrap();
        for day in [Some(9), None, Some(2)] {
            packages.add(&named(day)).unwrap();
        }
        let all: Vec<Named> = packages.all().unwrap().map(Result::unwrap).collect();
        assert_eq!(all, [named(None), named(Some(2)), named(Some(9))]);
    }
}
