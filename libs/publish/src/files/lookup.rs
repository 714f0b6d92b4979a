//! Finds the row of one file by halving: rows are in the order of their paths.

use super::row::Row;
use super::rows::{NEAR_BYTES, Rows};
use super::spelling::order;
use crate::PublishError;

/// Rows that lie so close together are read one after the other.
const NEAR: u64 = NEAR_BYTES as u64;

impl Rows {
    /// The row of the file at a path.
    pub(super) fn find(&self, path: &str) -> Result<Option<Row>, PublishError> {
        let at = self.seek(path, self.begin())?;
        Ok(self.near(at).next()?.filter(|row| row.path == path))
    }

    /// Where the first row begins that is at this path or behind it, of the row that begins at `from` and later ones.
    pub(super) fn seek(&self, path: &str, from: u64) -> Result<u64, PublishError> {
        // Rows before `low` are before the path; rows that begin at `high` or later are not. A row begins at `low`.
        let (mut low, mut high) = (from, self.end()?);
        // The row may be near: the first looks are not far ahead.
        let mut step = NEAR;
        while low.saturating_add(NEAR) < high {
            let middle = low + step.min((high - low) / 2);
            let mut reader = self.near(middle);
            reader.skip()?;
            let at = reader.offset;
            if at >= high {
                high = middle + 1;
                continue;
            }
            match reader.next()? {
                Some(row) if order(&row.path, path).is_lt() => {
                    low = reader.offset;
                    step = step.saturating_mul(2);
                }
                _ => high = at,
            }
        }
        let mut reader = self.near(low);
        loop {
            let at = reader.offset;
            if at >= high {
                return Ok(at);
            }
            match reader.next()? {
                Some(row) if order(&row.path, path).is_lt() => {}
                _ => return Ok(at),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use tempfile::NamedTempFile;

    use super::super::row_writer::RowWriter;
    use super::super::rows::{Head, VERSION};
    use super::super::stamp::Stamp;
    use super::*;

    fn row(path: String) -> Row {
        let stamp = Stamp { length: path.len() as u64, modified: 5, inode: 7 };
        let sha256 = Some(Sha256::of(path.as_bytes()));
        Row { path, stamp, sha256, changed: 9, created: true, unsure: false }
    }

    fn rows(mut paths: Vec<String>) -> (Rows, Vec<String>) {
        paths.sort_by(|one, other| order(one, other));
        let mut writer = RowWriter::begin(NamedTempFile::new().unwrap(), None).unwrap();
        for path in &paths {
            writer.push(&row(path.clone())).unwrap();
        }
        let head = Head { version: VERSION, begun: 1, changed: 9 };
        let file = writer.finish(head).unwrap();
        (Rows::open(file.reopen().unwrap()).unwrap(), paths)
    }

    #[test]
    fn each_row_is_found_and_no_other() {
        for count in [0, 1, 2, 3, 50, 3_000] {
            let name = |number: usize| {
                // Short rows, and some that are longer than what is read at a time.
                let long = if number.is_multiple_of(97) { "n\u{1}".repeat(900) } else { String::new() };
                format!("{}/{number:05}{long}", number % 7)
            };
            let (rows, paths) = rows((0..count).map(name).collect());
            for path in &paths {
                assert_eq!(rows.find(path).unwrap().map(|row| row.path).as_ref(), Some(path));
                assert_eq!(rows.find(&format!("{path}0")).unwrap(), None);
            }
            for nothing in ["", "0", "0/", "7/00007", "zzz"] {
                assert_eq!(rows.find(nothing).unwrap(), None, "{nothing:?} of {count}");
            }
        }
    }

    #[test]
    fn a_place_is_found_from_any_row_on() {
        let long = |number: usize| if number.is_multiple_of(31) { "n".repeat(800) } else { String::new() };
        let name = |number: usize| format!("{:04}{}", 2 * number, long(number));
        let (rows, paths) = rows((0..700).map(name).collect());
        let mut begins = vec![rows.begin()];
        let mut reader = rows.read();
        while reader.next().unwrap().is_some() {
            begins.push(reader.offset);
        }
        for from in (0..700).step_by(97) {
            for number in (from..700).step_by(3) {
                assert_eq!(rows.seek(&paths[number], begins[from]).unwrap(), begins[number]);
                let behind = format!("{:04}", 2 * number + 1);
                assert_eq!(rows.seek(&behind, begins[from]).unwrap(), begins[number + 1]);
            }
            assert_eq!(rows.seek("", begins[from]).unwrap(), begins[from]);
        }
    }
}
