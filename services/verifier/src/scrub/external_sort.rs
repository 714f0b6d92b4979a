//! External sort of what is to be read, by location: lines are gathered, sorted and spooled piece by piece, and
//! merged while they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write as _};

/// Bytes of lines in memory.
const GATHERED: usize = 16 * 1024 * 1024;
/// Bytes read at a time of each spooled piece.
const AHEAD: usize = 16 * 1024;

/// Sorts lines by their bytes. Their memory is bounded; the rest is in a temporary file, which is removed with this
/// value.
pub(crate) struct ExternalSort {
    gathered: Vec<String>,
    bytes: usize,
    limit: usize,
    file: Option<File>,
    end: u64,
    runs: Vec<Run>,
}

/// Sorted lines in the file.
#[derive(Debug)]
struct Run {
    at: u64,
    end: u64,
    ahead: Vec<u8>,
    begin: usize,
}

/// All lines, in order.
pub(crate) struct Sorted {
    file: Option<File>,
    runs: Vec<Run>,
    next: BinaryHeap<Reverse<(String, usize)>>,
}

impl ExternalSort {
    pub(crate) fn new() -> Self {
        Self::with_limit(GATHERED)
    }

    fn with_limit(limit: usize) -> Self {
        Self { gathered: Vec::new(), bytes: 0, limit, file: None, end: 0, runs: Vec::new() }
    }

    /// Adds a line without a line break in it.
    pub(crate) fn add(&mut self, line: String) -> io::Result<()> {
        self.bytes += line.len() + size_of::<String>();
        self.gathered.push(line);
        if self.bytes >= self.limit { self.put_away() } else { Ok(()) }
    }

    fn put_away(&mut self) -> io::Result<()> {
        self.gathered.sort_unstable();
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile()?),
        };
        let begin = self.end;
        let mut out = BufWriter::new(&*file);
        for line in self.gathered.drain(..) {
            out.write_all(line.as_bytes())?;
            out.write_all(b"\n")?;
            self.end += line.len() as u64 + 1;
        }
        out.flush()?;
        self.bytes = 0;
        self.runs.push(Run { at: begin, end: self.end, ahead: Vec::new(), begin: 0 });
        Ok(())
    }

    /// All lines, from the first on.
    pub(crate) fn sorted(mut self) -> io::Result<Sorted> {
        self.put_away()?;
        let mut sorted = Sorted { file: self.file, runs: self.runs, next: BinaryHeap::new() };
        for run in 0..sorted.runs.len() {
            sorted.advance(run)?;
        }
        Ok(sorted)
    }
}

impl Sorted {
    fn advance(&mut self, run: usize) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Some(line) = self.runs[run].line(file)? {
            self.next.push(Reverse((line, run)));
        }
        Ok(())
    }
}

impl Iterator for Sorted {
    type Item = io::Result<String>;

    fn next(&mut self) -> Option<io::Result<String>> {
        let Reverse((line, run)) = self.next.pop()?;
        Some(self.advance(run).map(|()| line))
    }
}

impl Run {
    fn line(&mut self, file: &mut File) -> io::Result<Option<String>> {
        loop {
            let rest = &self.ahead[self.begin..];
            if let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&rest[..length]).into_owned();
                self.begin += length + 1;
                return Ok(Some(line));
            }
            if self.at == self.end {
                return Ok(None);
            }
            self.ahead.drain(..self.begin);
            self.begin = 0;
            let have = self.ahead.len();
            let more = (self.end - self.at).min(AHEAD as u64) as usize;
            self.ahead.resize(have + more, 0);
            file.seek(SeekFrom::Start(self.at))?;
            file.read_exact(&mut self.ahead[have..])?;
            self.at += more as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_sorted_whether_they_fit_into_memory_or_not() {
        // Some are longer than one read.
        let lines: Vec<String> =
            (0..500_usize).map(|n| format!("{:05}{}", (n * 7_919) % 500, "x".repeat(n * 71))).collect();
        let mut expected = lines.clone();
        expected.sort_unstable();
        for limit in [1, 10_000, usize::MAX] {
            let mut order = ExternalSort::with_limit(limit);
            lines.iter().for_each(|line| order.add(line.clone()).unwrap());
            let sorted: Vec<String> = order.sorted().unwrap().map(Result::unwrap).collect();
            assert_eq!(sorted, expected, "{limit}");
        }
        assert_eq!(ExternalSort::new().sorted().unwrap().count(), 0);
    }
}
