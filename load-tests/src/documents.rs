//! The Resource Lists that nginx serves, as files; also a Capability List and Change Lists.

pub(crate) mod changes;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use jiff::{Timestamp, ToSpan as _};

/// The most entries in one document, by the specification.
const ENTRIES_PER_LIST: u64 = 50_000;
/// When every resource was last changed, by lists and servers.
const LAST_CHANGE: Timestamp = Timestamp::constant(1_764_547_200, 0);

const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// The declaration of a resource in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Declared {
    pub(crate) length: u64,
    /// Lower-case hex.
    pub(crate) sha256: String,
}

/// A static Resource List, or with more than 50,000 resources an index of several.
#[derive(Debug)]
pub(crate) struct ResourceList<'a> {
    /// `http://127.0.0.1:<port>`
    pub(crate) base: &'a str,
    pub(crate) resources: u64,
    /// The edition: each is a day younger than the previous one.
    pub(crate) edition: u32,
    /// Links of each entry.
    pub(crate) links: usize,
}

/// Links of an entry: its relation, and what follows the resource's URI in its target.
const LINKS: [(&str, &str); 3] = [("describedby", ".xml"), ("duplicate", "?mirror"), ("collection", "/../")];

/// The path of a resource: a thousand per folder, as people would arrange them.
pub(crate) fn resource_path(index: u64) -> String {
    format!("/set/resources/{:04}/{index:07}.bin", index / 1000)
}

/// The path of the list, or of the index when there is one.
pub(crate) const LIST_PATH: &str = "/set/resourcelist.xml";
/// The path of a Resource Dump.
pub(crate) const DUMP_PATH: &str = "/set/resourcedump.xml";

impl ResourceList<'_> {
    /// Writes the documents below `docroot`. Each has the edition's time, so that a server gives each edition
    /// another validator, however fast they follow each other.
    pub(crate) fn write(&self, docroot: &Path, declared: impl Fn(u64) -> Declared) -> io::Result<()> {
        let parts = self.resources.div_ceil(ENTRIES_PER_LIST);
        if parts <= 1 {
            return self.write_part(docroot, LIST_PATH, 0..self.resources, &declared);
        }
        for part in 0..parts {
            let first = part * ENTRIES_PER_LIST;
            let indices = first..self.resources.min(first + ENTRIES_PER_LIST);
            self.write_part(docroot, &part_path(part + 1), indices, &declared)?;
        }
        self.document(docroot, LIST_PATH, "sitemapindex", |out| {
            (1..=parts).try_for_each(|part| {
                let base = self.base;
                let path = part_path(part);
                let at = self.at();
                writeln!(out, "  <sitemap><loc>{base}{path}</loc><rs:md at=\"{at}\"/></sitemap>")
            })
        })
    }

    /// Writes all entries into one document at another path: the same resources under another base.
    pub(crate) fn write_at(
        &self,
        docroot: &Path,
        path: &str,
        declared: impl Fn(u64) -> Declared,
    ) -> io::Result<()> {
        self.write_part(docroot, path, 0..self.resources, &declared)
    }

    /// How many documents there are.
    pub(crate) fn documents(&self) -> u64 {
        match self.resources.div_ceil(ENTRIES_PER_LIST) {
            0 | 1 => 1,
            parts => parts + 1,
        }
    }

    fn write_part(
        &self,
        docroot: &Path,
        path: &str,
        indices: std::ops::Range<u64>,
        declared: &impl Fn(u64) -> Declared,
    ) -> io::Result<()> {
        let links = LINKS.iter().take(self.links);
        self.document(docroot, path, "urlset", |out| {
            for index in indices {
                let Declared { length, sha256 } = declared(index);
                let base = self.base;
                let path = resource_path(index);
                write!(
                    out,
                    "  <url><loc>{base}{path}</loc><lastmod>{LAST_CHANGE}</lastmod>\
                     <rs:md hash=\"sha-256:{sha256}\" length=\"{length}\"/>"
                )?;
                for (rel, more) in links.clone() {
                    write!(out, "<rs:ln rel=\"{rel}\" href=\"{base}{path}{more}\"/>")?;
                }
                writeln!(out, "</url>")?;
            }
            Ok(())
        })
    }

    fn document(
        &self,
        docroot: &Path,
        path: &str,
        root: &str,
        entries: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let head = format!("<rs:md capability=\"resourcelist\" at=\"{}\"/>", self.at());
        document(docroot, path, root, &head, self.at(), entries)
    }

    fn at(&self) -> Timestamp {
        edition_at(self.edition)
    }
}

/// The time of an edition of the Resource List.
fn edition_at(edition: u32) -> Timestamp {
    // A timestamp of ours plus days is far below the maximum.
    LAST_CHANGE.saturating_add((24 * (i64::from(edition) + 1)).hours()).unwrap_or(LAST_CHANGE)
}

/// Writes a document of any kind, last changed at `modified`.
fn document(
    docroot: &Path,
    path: &str,
    root: &str,
    head: &str,
    modified: Timestamp,
    entries: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let file = docroot.join(path.trim_start_matches('/'));
    fs::create_dir_all(file.parent().unwrap_or(docroot))?;
    let mut out = BufWriter::new(File::create(file)?);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} {NAMESPACES}>\n  {head}")?;
    entries(&mut out)?;
    writeln!(out, "</{root}>")?;
    let file = out.into_inner()?;
    file.set_modified(modified.into())
}

/// Writes a resource below `docroot`, last changed at the time in the list.
pub(crate) fn write_resource(docroot: &Path, index: u64, body: &[u8]) -> io::Result<()> {
    let path = docroot.join(resource_path(index).trim_start_matches('/'));
    if index.is_multiple_of(1000) {
        fs::create_dir_all(path.parent().unwrap_or(docroot))?;
    }
    let mut file = File::create(path)?;
    file.write_all(body)?;
    file.set_modified(LAST_CHANGE.into())
}

fn part_path(number: u64) -> String {
    format!("/set/resourcelist-{number}.xml")
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn write(resources: u64, edition: u32) -> TempDir {
        let folder = TempDir::new().unwrap();
        let list = ResourceList { base: "http://127.0.0.1:1", resources, edition, links: 0 };
        list.write(folder.path(), |index| Declared { length: index, sha256: "ab".repeat(32) }).unwrap();
        assert_eq!(fs::read_dir(folder.path().join("set")).unwrap().count() as u64, list.documents());
        folder
    }

    fn read(folder: &TempDir, name: &str) -> String {
        fs::read_to_string(folder.path().join("set").join(name)).unwrap()
    }

    #[test]
    fn fifty_thousand_fit_in_one_list() {
        let list = read(&write(50_000, 0), "resourcelist.xml");
        assert_eq!(list.matches("<url>").count(), 50_000);
    }

    #[test]
    fn one_more_makes_an_index_and_a_part_for_the_rest() {
        let folder = write(50_001, 0);
        assert_eq!(read(&folder, "resourcelist.xml").matches("<sitemap>").count(), 2);
        assert_eq!(read(&folder, "resourcelist-1.xml").matches("<url>").count(), 50_000);
        let last = read(&folder, "resourcelist-2.xml");
        assert!(last.contains("/set/resources/0050/0050000.bin</loc>") && last.contains("length=\"50000\""));
    }

    #[test]
    fn editions_differ_in_at_and_in_the_time_of_the_file_but_not_in_entries() {
        let first = write(3, 0);
        let second = write(3, 1);
        let modified = |folder: &TempDir| {
            folder.path().join("set/resourcelist.xml").metadata().unwrap().modified().unwrap()
        };
        assert!(modified(&first) < modified(&second));
        let entries = |folder| read(folder, "resourcelist.xml").split_once("<url>").unwrap().1.to_owned();
        assert_eq!(entries(&first), entries(&second));
        assert!(read(&first, "resourcelist.xml").contains("at=\"2025-12-02T00:00:00Z\""));
        assert!(read(&second, "resourcelist.xml").contains("at=\"2025-12-03T00:00:00Z\""));
    }
}
