//! The requests to the Source and their times, by its own log.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use anyhow::Context as _;

use crate::cases::million::serving::index_of;

/// The requests for resources in a log.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Asked {
    /// Their number.
    pub(super) requests: u64,
    /// The number of distinct resources.
    pub(super) distinct: u64,
    /// The time of the first response, in seconds since 1970; none without requests.
    pub(super) first: Option<f64>,
}

impl Asked {
    /// Reads a log from a byte on, for a Source of this many resources.
    pub(super) fn read(log: &Path, from: u64, resources: u64) -> anyhow::Result<Self> {
        let mut file = File::open(log).with_context(|| format!("cannot open {}", log.display()))?;
        file.seek(SeekFrom::Start(from))?;
        let mut is_asked = vec![false; usize::try_from(resources)?];
        let mut asked = Self::default();
        for line in BufReader::new(file).lines() {
            asked.count(&line?, &mut is_asked);
        }
        Ok(asked)
    }

    /// Counts a line: a time and a path.
    fn count(&mut self, line: &str, is_asked: &mut [bool]) {
        let Some((time, path)) = line.split_once(' ') else { return };
        let (Ok(time), Some(index)) = (time.parse::<f64>(), index_of(path)) else { return };
        self.requests += 1;
        // Two processes of the server write it: the first line need not be the first request.
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        if let Some(is_asked) = usize::try_from(index).ok().and_then(|index| is_asked.get_mut(index)) {
            self.distinct += u64::from(!*is_asked);
            *is_asked = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_twice_counts_twice_and_is_one_resource() {
        let folder = tempfile::TempDir::new().unwrap();
        let log = folder.path().join("log");
        let before = "1.0 /set/resources/0000/0000000.bin\n";
        let lines = "3.5 /set/resources/0000/0000002.bin\n3.25 /set/resources/0000/0000001.bin\n\
            4.0 /set/resources/0000/0000002.bin\n";
        std::fs::write(&log, format!("{before}{lines}")).unwrap();
        let asked = Asked::read(&log, before.len() as u64, 3).unwrap();
        assert_eq!(asked, Asked { requests: 3, distinct: 2, first: Some(3.25) });
    }
}
