//! Documents of a Source with changes, beside its Resource List: a Capability List, and a Change List or an
//! index of several.

use std::io::{self, Write as _};
use std::path::Path;

use jiff::{Timestamp, ToSpan as _};

use super::{Declared, ENTRIES_PER_LIST, LIST_PATH, document, edition_at, resource_path};

/// The path of a Capability List.
pub(crate) const CAPABILITIES_PATH: &str = "/set/capabilitylist.xml";
/// The path of the Change List, or of the index when there is one.
const CHANGES_PATH: &str = "/set/changelist.xml";

/// One change: each has a second of its own.
#[derive(Debug)]
pub(crate) struct Change {
    /// The resource.
    pub(crate) index: u64,
    /// Its declaration from then on.
    pub(crate) declared: Declared,
}

/// All changes since the first edition of the Resource List.
#[derive(Debug)]
pub(crate) struct ChangeLists<'a> {
    /// `http://127.0.0.1:<port>`
    pub(crate) base: &'a str,
    /// Their number.
    pub(crate) changes: u64,
}

/// Writes the document that lists the Resource List and the Change List.
pub(crate) fn write_capability_list(docroot: &Path, base: &str) -> io::Result<()> {
    let head = "<rs:md capability=\"capabilitylist\"/>";
    document(docroot, CAPABILITIES_PATH, "urlset", head, edition_at(0), |out| {
        for (path, capability) in [(LIST_PATH, "resourcelist"), (CHANGES_PATH, "changelist")] {
            writeln!(out, "  <url><loc>{base}{path}</loc><rs:md capability=\"{capability}\"/></url>")?;
        }
        Ok(())
    })
}

impl ChangeLists<'_> {
    /// Writes the documents below `docroot`. All but the last of several are closed.
    pub(crate) fn write(&self, docroot: &Path, change: impl Fn(u64) -> Change) -> io::Result<()> {
        let parts = self.changes.div_ceil(ENTRIES_PER_LIST);
        if parts <= 1 {
            return self.write_part(docroot, CHANGES_PATH, 0, &change);
        }
        for part in 0..parts {
            self.write_part(docroot, &part_path(part), part, &change)?;
        }
        let head = format!("<rs:md capability=\"changelist\" from=\"{}\"/>", at(0));
        document(docroot, CHANGES_PATH, "sitemapindex", &head, at(self.changes), |out| {
            (0..parts).try_for_each(|part| {
                let base = self.base;
                let path = part_path(part);
                let period = self.period(part);
                writeln!(out, "  <sitemap><loc>{base}{path}</loc><rs:md {period}/></sitemap>")
            })
        })
    }

    /// The number of documents.
    pub(crate) fn documents(&self) -> u64 {
        match self.changes.div_ceil(ENTRIES_PER_LIST) {
            0 | 1 => 1,
            parts => parts + 1,
        }
    }

    fn write_part(
        &self,
        docroot: &Path,
        path: &str,
        part: u64,
        change: &impl Fn(u64) -> Change,
    ) -> io::Result<()> {
        let (first, end) = self.numbers(part);
        let head = format!("<rs:md capability=\"changelist\" {}/>", self.period(part));
        document(docroot, path, "urlset", &head, at(end), |out| {
            for number in first..end {
                let Change { index, declared: Declared { length, sha256 } } = change(number);
                let base = self.base;
                let path = resource_path(index);
                let time = at(number + 1);
                writeln!(
                    out,
                    "  <url><loc>{base}{path}</loc><lastmod>{time}</lastmod><rs:md change=\"updated\" \
                     datetime=\"{time}\" hash=\"sha-256:{sha256}\" length=\"{length}\"/></url>"
                )?;
            }
            Ok(())
        })
    }

    /// The changes of a part.
    fn numbers(&self, part: u64) -> (u64, u64) {
        let first = part * ENTRIES_PER_LIST;
        (first, self.changes.min(first + ENTRIES_PER_LIST))
    }

    /// The attributes with the interval of a part; the last one has no end.
    fn period(&self, part: u64) -> String {
        let (first, end) = self.numbers(part);
        let from = format!("from=\"{}\"", at(first));
        if end == self.changes { from } else { format!("{from} until=\"{}\"", at(end)) }
    }
}

/// The time of a change, of which the first has the number 1; 0 is the time of the Resource List.
fn at(number: u64) -> Timestamp {
    let seconds = i64::try_from(number).unwrap_or_default();
    // A timestamp of ours plus months is far below the maximum.
    edition_at(0).saturating_add(seconds.seconds()).unwrap_or_else(|_| edition_at(0))
}

fn part_path(part: u64) -> String {
    format!("/set/changelist-{}.xml", part + 1)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use resourcesync::{Item, Options, Reader};
    use tempfile::TempDir;

    use super::*;

    fn write(changes: u64) -> TempDir {
        let folder = TempDir::new().unwrap();
        let lists = ChangeLists { base: "http://127.0.0.1:1", changes };
        let change = |number| Change {
            index: number % 10,
            declared: Declared { length: number, sha256: "ab".repeat(32) },
        };
        lists.write(folder.path(), change).unwrap();
        assert_eq!(fs::read_dir(folder.path().join("set")).unwrap().count() as u64, lists.documents());
        folder
    }

    /// The number of entries of a document, all of which are valid.
    fn entries(folder: &TempDir, name: &str) -> u64 {
        let file = File::open(folder.path().join("set").join(name)).unwrap();
        let mut reader = Reader::new(file, Options::default()).unwrap();
        while let Some(item) = reader.next().unwrap() {
            assert!(matches!(item, Item::Entry(_)), "{item:?}");
        }
        let summary = reader.summary();
        assert!(summary.complete && summary.bad == 0, "{summary:?}");
        summary.entries
    }

    fn text(folder: &TempDir, name: &str) -> String {
        fs::read_to_string(folder.path().join("set").join(name)).unwrap()
    }

    #[test]
    fn no_changes_are_a_list_that_is_open_and_empty() {
        let folder = write(0);
        assert_eq!(entries(&folder, "changelist.xml"), 0);
        assert!(text(&folder, "changelist.xml").contains("from=\"2025-12-02T00:00:00Z\"/>"));
    }

    #[test]
    fn more_than_a_list_may_hold_are_an_index_whose_parts_join_on() {
        let folder = write(50_001);
        assert_eq!(entries(&folder, "changelist-1.xml"), 50_000);
        assert_eq!(entries(&folder, "changelist-2.xml"), 1);
        let index = text(&folder, "changelist.xml");
        assert!(index.contains("until=\"2025-12-02T13:53:20Z\"/>"), "{index}");
        assert!(index.contains("<rs:md from=\"2025-12-02T13:53:20Z\"/>"), "{index}");
        assert!(text(&folder, "changelist-1.xml").contains("datetime=\"2025-12-02T13:53:20Z\""));
        assert!(text(&folder, "changelist-2.xml").contains("datetime=\"2025-12-02T13:53:21Z\""));
    }

    #[test]
    fn a_capability_list_names_both_lists() {
        let folder = TempDir::new().unwrap();
        write_capability_list(folder.path(), "http://127.0.0.1:1").unwrap();
        assert_eq!(entries(&folder, "capabilitylist.xml"), 2);
    }
}
