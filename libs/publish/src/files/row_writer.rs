//! Rows in the making. Those that stay are copied as they are, a range at a time, and only if anything changes.

use std::io::{self, BufWriter, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use tempfile::NamedTempFile;

use super::row::{Line, Row};
use super::rows::{At, Head, Rows};
use crate::PublishError;

/// The room of the first line, which is written last. Blanks fill it.
const HEAD_BYTES: usize = 128;
/// How much is written at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Rows in the making.
pub(super) struct RowWriter {
    file: BufWriter<NamedTempFile>,
    old: Option<Rows>,
    /// Old rows that stay, and are not copied yet.
    kept: Range<u64>,
}

impl RowWriter {
    /// Begins a file. `old` are the rows of which some may stay.
    pub(super) fn begin(file: NamedTempFile, old: Option<Rows>) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(PIECE_BYTES, file);
        file.write_all(&[b' '; HEAD_BYTES])?;
        Ok(Self { file, old, kept: 0..0 })
    }

    /// Keeps old rows as they are.
    pub(super) fn keep(&mut self, rows: Range<u64>) -> io::Result<()> {
        if self.kept.end == rows.start {
            self.kept.end = rows.end;
            return Ok(());
        }
        self.copy_kept()?;
        self.kept = rows;
        Ok(())
    }

    pub(super) fn push(&mut self, row: &Row) -> Result<(), PublishError> {
        self.copy_kept()?;
        serde_json::to_writer(&mut self.file, &Line::from(row)).map_err(io::Error::from)?;
        Ok(self.file.write_all(b"\n")?)
    }

    fn copy_kept(&mut self) -> io::Result<()> {
        let Range { start, end } = std::mem::replace(&mut self.kept, 0..0);
        match &self.old {
            Some(old) if start < end => old.copy(start, end - start, &mut self.file).map(drop),
            _ => Ok(()),
        }
    }

    /// The file with all rows.
    pub(super) fn finish(mut self, head: Head) -> Result<NamedTempFile, PublishError> {
        self.copy_kept()?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().write_all_at(&line(head)?, 0)?;
        Ok(file)
    }

    /// Writes head and rows so far into another file, and all old rows from an offset on.
    pub(super) fn copy_to(
        &mut self,
        into: NamedTempFile,
        head: Head,
        rest: u64,
    ) -> Result<NamedTempFile, PublishError> {
        self.copy_kept()?;
        self.file.flush()?;
        let mut out = BufWriter::with_capacity(PIECE_BYTES, into);
        io::copy(&mut At::begin(self.file.get_ref().reopen()?), &mut out)?;
        if let Some(old) = &self.old {
            old.copy(rest, u64::MAX, &mut out)?;
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().write_all_at(&line(head)?, 0)?;
        Ok(file)
    }
}

/// The first line.
fn line(head: Head) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&head)?;
    line.resize(HEAD_BYTES.max(line.len() + 1) - 1, b' ');
    line.push(b'\n');
    debug_assert_eq!(line.len(), HEAD_BYTES, "three numbers are shorter");
    Ok(line)
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;

    use super::super::rows::VERSION;
    use super::super::stamp::Stamp;
    use super::*;

    fn row(path: &str, changed: u64) -> Row {
        let stamp = Stamp { length: 3, modified: -5, inode: 7 };
        let sha256 = (changed != 4).then(|| Sha256::of(path.as_bytes()));
        Row { path: path.to_owned(), stamp, sha256, changed, created: changed == 2, unsure: changed == 3 }
    }

    fn all(rows: &Rows) -> Vec<(Row, Range<u64>)> {
        let mut reader = rows.read();
        let mut all = Vec::new();
        loop {
            let begin = reader.offset;
            let Some(row) = reader.next().unwrap() else { return all };
            all.push((row, begin..reader.offset));
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written_and_kept_ones_are_copied() {
        let head = Head { version: VERSION, begun: u64::MAX, changed: u64::MAX };
        let old: Vec<Row> = (1..=9).map(|number| row(&format!("a\"{number}\u{e4}"), number)).collect();
        let mut writer = RowWriter::begin(NamedTempFile::new().unwrap(), None).unwrap();
        old.iter().for_each(|row| writer.push(row).unwrap());
        let first = Rows::open(writer.finish(head).unwrap().reopen().unwrap()).unwrap();
        assert_eq!(first.head, head);
        let found = all(&first);
        assert!(found.iter().map(|(row, _)| row).eq(&old));

        let at = |number: usize| found[number].1.clone();
        let mut writer = RowWriter::begin(NamedTempFile::new().unwrap(), Some(first.clone())).unwrap();
        for number in [0, 1, 2] {
            writer.keep(at(number)).unwrap();
        }
        let new = row("b", 1);
        writer.push(&new).unwrap();
        writer.keep(at(5)).unwrap();
        let saved = writer.copy_to(NamedTempFile::new().unwrap(), head, at(7).start).unwrap();
        let saved = Rows::open(saved.reopen().unwrap()).unwrap();
        let rows: Vec<Row> = all(&saved).into_iter().map(|(row, _)| row).collect();
        let expected = [&old[0], &old[1], &old[2], &new, &old[5], &old[7], &old[8]];
        assert!(rows.iter().eq(expected), "{rows:?}");

        writer.keep(at(8)).unwrap();
        let last = Rows::open(writer.finish(head).unwrap().reopen().unwrap()).unwrap();
        let rows: Vec<Row> = all(&last).into_iter().map(|(row, _)| row).collect();
        assert!(rows.iter().eq([&old[0], &old[1], &old[2], &new, &old[5], &old[8]]), "{rows:?}");
    }

    #[test]
    fn rows_of_the_first_version_are_read() {
        let text = "{\"version\":1,\"begun\":1,\"changed\":9}\n\
            {\"path\":\"a\",\"length\":3,\"modified\":-5,\"inode\":7,\"changed\":9}\n";
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let rows = Rows::open(file.reopen().unwrap()).unwrap();
        assert_eq!(rows.head, Head { version: 1, begun: 1, changed: 9 });
        let (found, _) = all(&rows).remove(0);
        assert_eq!((found.path.as_str(), found.stamp.modified, found.sha256), ("a", -5, None));
    }
}
