//! Finds the row of one file by halving: rows are in the order of their paths.

use std::cmp::Ordering;

use super::rows::{Row, Rows};
use super::spelling::order;
use crate::PublishError;

/// Rows that lie so close together are read one after the other.
const NEAR_BYTES: u64 = 4 * 1024;

impl Rows {
    /// The row of the file at a path.
    pub(super) fn find(&self, path: &str) -> Result<Option<Row>, PublishError> {
        // The row begins at `low` or behind it, and before `high`. A row begins at `low`.
        let (mut low, mut high) = (self.begin(), self.end()?);
        while low.saturating_add(NEAR_BYTES) < high {
            let middle = low + (high - low) / 2;
            let mut reader = self.near(middle);
            reader.skip()?;
            let at = reader.offset;
            if at >= high {
                high = middle + 1;
                continue;
            }
            let Some(row) = reader.next()? else { return Ok(None) };
            match order(&row.path, path) {
                Ordering::Less => low = reader.offset,
                Ordering::Equal => return Ok(Some(row)),
                Ordering::Greater => high = at,
            }
        }
        let mut reader = self.near(low);
        while reader.offset < high
            && let Some(row) = reader.next()?
        {
            if row.path == path {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use tempfile::NamedTempFile;

    use super::super::rows::{Head, RowWriter, VERSION};
    use super::super::stamp::Stamp;
    use super::*;

    fn row(path: String) -> Row {
        let stamp = Stamp { length: path.len() as u64, modified: 5, inode: 7 };
        let sha256 = Some(Sha256::of(path.as_bytes()));
        Row { path, stamp, sha256, changed: 9, created: true, unsure: false }
    }

    fn rows(mut paths: Vec<String>) -> (Rows, Vec<String>) {
        paths.sort_by(|one, other| order(one, other));
        let mut writer = RowWriter::begin(NamedTempFile::new().unwrap());
        for path in &paths {
            writer.push(&row(path.clone())).unwrap();
        }
        let head = Head { version: VERSION, begun: 1, changed: 9 };
        let file = writer.assemble(NamedTempFile::new().unwrap(), head, None).unwrap();
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
}
