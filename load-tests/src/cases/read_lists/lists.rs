//! The Change Lists of the case, as files.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::{Compression, GzBuilder};
use jiff::{SignedDuration, Timestamp};
use resourcesync::{Capability, Change, Datetime, Entry, Header, Link, Root, Writer};

use crate::check::sha256;
use crate::read_list::Read;

/// The start of the list; it has a change per second.
const FROM: Timestamp = Timestamp::constant(1_764_547_200, 0);

/// A Change List on disk.
#[derive(Debug)]
pub(crate) struct ChangeList {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// The sums that a reader has to find.
    pub(crate) expected: Read,
}

impl ChangeList {
    /// Writes one with the library's own writer; as gzip if its name ends so.
    pub(crate) fn write(folder: &Path, name: &str, entries: u64) -> anyhow::Result<Self> {
        let path = folder.join(name);
        let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let out = BufWriter::with_capacity(1 << 16, file);
        if name.ends_with(".gz") {
            // Without a time in its header the same list gives the same bytes.
            let packed = GzBuilder::new().mtime(0).write(out, Compression::default());
            write(packed, entries)?.finish()?.flush()?;
        } else {
            write(out, entries)?.flush()?;
        }
        let expected = Read {
            entries,
            declared_bytes: (0..entries).sum(),
            hashes: entries,
            links: entries,
            is_whole: true,
        };
        Ok(Self { bytes: path.metadata()?.len(), path, expected })
    }
}

fn write<W: Write>(out: W, entries: u64) -> anyhow::Result<W> {
    let mut header = Header::new(Root::UrlSet, Some(Capability::ChangeList));
    header.from = Some(Datetime::from(FROM));
    header.links.push(Link::new("up", "http://example.com/capabilitylist.xml"));
    let mut writer = Writer::new(out, &header)?;
    for index in 0..entries {
        writer.write(&entry(index)?)?;
    }
    Ok(writer.finish()?)
}

fn entry(index: u64) -> anyhow::Result<Entry> {
    let changed = Datetime::from(FROM.checked_add(SignedDuration::from_secs(i64::try_from(index)?))?);
    let mut entry = Entry::new(format!("http://example.com/resources/{index:08}.html?a=1&b=2"));
    entry.lastmod = Some(changed);
    let said = &mut entry.metadata;
    said.change = Some(Change::Updated);
    said.datetime = Some(changed);
    said.hash = Some(format!("sha-256:{}", sha256(&index.to_le_bytes())));
    said.length = Some(index);
    said.media_type = Some("text/html".to_owned());
    let mirror = format!("http://mirror.example.com/resources/{index:08}.html");
    entry.links.push(Link { pri: Some(1), ..Link::new("duplicate", mirror) });
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use resourcesync::{Options, Quirk, Reader};
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn packed_or_not_the_list_is_the_same_and_nothing_in_it_is_odd() {
        let folder = TempDir::new().unwrap();
        let read = |name| {
            let list = ChangeList::write(folder.path(), name, 100).unwrap();
            let mut reader = Reader::new(File::open(&list.path).unwrap(), Options::default()).unwrap();
            let mut items = Vec::new();
            while let Some(item) = reader.next().unwrap() {
                items.push(item);
            }
            let summary = reader.summary();
            let odd = summary.quirks.iter().find(|(quirk, _)| *quirk != Quirk::Gzip);
            assert!(summary.complete && summary.entries == 100 && odd.is_none(), "{summary:?}");
            (items, list.bytes)
        };
        let ((plain, plain_bytes), (packed, packed_bytes)) = (read("a.xml"), read("a.xml.gz"));
        assert_eq!(plain, packed);
        assert!(packed_bytes < plain_bytes / 2);
    }
}
