//! Any header and entries: the writer refuses them, or the reader returns what was written, and writing that
//! again gives the same bytes.

#![no_main]

use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use resourcesync::{
    Capability, Change, Datetime, Entry, Header, Item, Link, Metadata, Options, Position, Reader, Root,
    WriteError, Writer,
};

fuzz_target!(|document: Document| {
    let Document { header, entries } = document;
    let mut written = Vec::new();
    let Some(bytes) = write(&header, &entries, &mut written) else { return };
    let (header_read, entries_read) = read(&bytes);
    assert_eq!(header_read, as_read(header));
    let expected: Vec<_> = written.into_iter().filter_map(entry_as_read).collect();
    assert_eq!(entries_read, expected);

    let again = write(&header_read, &entries_read, &mut Vec::new()).expect("what was read can be written");
    assert_eq!(read(&again), (header_read, entries_read));
});

#[derive(Debug)]
struct Document {
    header: Header,
    entries: Vec<Entry>,
}

impl<'a> Arbitrary<'a> for Document {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let root = if u.arbitrary()? { Root::UrlSet } else { Root::SitemapIndex };
        let Metadata { capability, at, completed, from, until, .. } = metadata(u)?;
        let header = Header { root, capability, at, completed, from, until, links: links(u)? };
        let entries = u.arbitrary_iter::<Written>()?.map(|entry| entry.map(|Written(entry)| entry));
        Ok(Self { header, entries: entries.take(4).collect::<Result<_>>()? })
    }
}

struct Written(Entry);

impl<'a> Arbitrary<'a> for Written {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self(Entry {
            loc: u.arbitrary()?,
            lastmod: time(u)?,
            change_frequency: u.arbitrary()?,
            priority: u.arbitrary()?,
            metadata: metadata(u)?,
            links: links(u)?,
            position: Position::default(),
        }))
    }
}

fn metadata(u: &mut Unstructured<'_>) -> Result<Metadata> {
    let known: [Capability; 9] = [
        Capability::Description,
        Capability::CapabilityList,
        Capability::ResourceList,
        Capability::ResourceDump,
        Capability::ResourceDumpManifest,
        Capability::ChangeList,
        Capability::ChangeDump,
        Capability::ChangeDumpManifest,
        Capability::ChangeNotification,
    ];
    let capability = match u.int_in_range(0..=10)? {
        0 => None,
        // The letter keeps it from being a misspelt known name.
        10 => Some(Capability::Other(format!("x{}", u.arbitrary::<&str>()?))),
        n => Some(known[n - 1].clone()),
    };
    let change = *u.choose(&[None, Some(Change::Created), Some(Change::Updated), Some(Change::Deleted)])?;
    Ok(Metadata {
        capability,
        change,
        datetime: time(u)?,
        at: time(u)?,
        completed: time(u)?,
        from: time(u)?,
        until: time(u)?,
        hash: u.arbitrary()?,
        length: u.arbitrary()?,
        media_type: u.arbitrary()?,
        encoding: u.arbitrary()?,
        path: u.arbitrary()?,
    })
}

fn links(u: &mut Unstructured<'_>) -> Result<Vec<Link>> {
    let count = u.int_in_range(0..=2)?;
    (0..count)
        .map(|_| {
            Ok(Link {
                // The letter keeps it from being a known relation in another case.
                // No blanks: they would part it into several relations.
                rel: format!("x{}", u.arbitrary::<&str>()?.split_ascii_whitespace().collect::<String>()),
                href: u.arbitrary()?,
                hash: u.arbitrary()?,
                length: u.arbitrary()?,
                media_type: u.arbitrary()?,
                encoding: u.arbitrary()?,
                modified: time(u)?,
                path: u.arbitrary()?,
                pri: u.arbitrary()?,
                other: Default::default(),
            })
        })
        .collect()
}

/// A time between the years 0 and 9999, as W3C Datetime knows them, in some zone and precision.
fn time(u: &mut Unstructured<'_>) -> Result<Option<Datetime>> {
    if !u.arbitrary::<bool>()? {
        return Ok(None);
    }
    let second = u.int_in_range(-62_167_000_000_i64..=253_402_000_000)?;
    let nano = if u.arbitrary()? { u.int_in_range(0..=999_999_999)? } else { 0 };
    let Ok(instant) = jiff::Timestamp::new(second, nano) else { return Ok(None) };
    let text = Datetime::from(instant).to_string();
    let minutes = u.int_in_range(0..=59_u8)?;
    let text = match u.int_in_range(0..=4)? {
        0 => text[..4].to_owned(),
        1 => text[..10].to_owned(),
        2 => text.replace('Z', &format!("+{:02}:{minutes:02}", minutes / 3)),
        3 => text.replace('Z', &format!("-{:02}:{minutes:02}", minutes / 3)),
        _ => text,
    };
    Ok(text.parse().ok())
}

/// The bytes, and the entries that were accepted.
fn write(header: &Header, entries: &[Entry], written: &mut Vec<Entry>) -> Option<Vec<u8>> {
    let mut writer = match Writer::new(Vec::new(), header) {
        Ok(writer) => writer,
        Err(WriteError::NotText { .. }) => return None,
        Err(error) => panic!("a vector does not fail: {error}"),
    };
    for entry in entries {
        match writer.write(entry) {
            Ok(()) => written.push(entry.clone()),
            Err(WriteError::NotText { .. }) => {}
            Err(error) => panic!("a vector does not fail: {error}"),
        }
    }
    Some(writer.finish().expect("a vector does not fail"))
}

fn read(bytes: &[u8]) -> (Header, Vec<Entry>) {
    let fail = |error| panic!("{error} in {}", String::from_utf8_lossy(bytes));
    let mut reader = Reader::new(bytes, Options::default()).unwrap_or_else(fail);
    let header = reader.header().cloned().unwrap_or_else(|error| panic!("{error}"));
    let mut entries = Vec::new();
    while let Some(item) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        if let Item::Entry(entry) = item {
            entries.push(Entry { position: Position::default(), ..*entry });
        }
    }
    assert!(reader.summary().complete);
    (header, entries)
}

/// The header as the reader returns it: blanks around values are removed, and an empty value is none.
fn as_read(mut header: Header) -> Header {
    header.capability = header.capability.map(capability);
    header.links = header.links.into_iter().filter_map(link).collect();
    header
}

fn entry_as_read(mut entry: Entry) -> Option<Entry> {
    let element = |text: Option<String>| text.map(|t| t.trim().to_owned()).filter(|t| !t.is_empty());
    entry.loc = element(Some(entry.loc))?;
    entry.change_frequency = element(entry.change_frequency);
    entry.priority = element(entry.priority);
    let said = &mut entry.metadata;
    said.capability = said.capability.take().map(capability);
    for text in [&mut said.hash, &mut said.media_type, &mut said.encoding, &mut said.path] {
        *text = attribute(text.take());
    }
    entry.links = entry.links.into_iter().filter_map(link).collect();
    Some(entry)
}

fn link(mut link: Link) -> Option<Link> {
    link.rel = attribute(Some(link.rel))?;
    link.href = attribute(Some(link.href))?;
    link.pri = link.pri.filter(|pri| (1..=999_999).contains(pri));
    for text in [&mut link.hash, &mut link.media_type, &mut link.encoding, &mut link.path] {
        *text = attribute(text.take());
    }
    Some(link)
}

fn capability(capability: Capability) -> Capability {
    match capability {
        Capability::Other(name) => Capability::Other(name.trim_end_matches(' ').to_owned()),
        known => known,
    }
}

/// Line ends and tabs are written as references, so only blanks are trimmed.
fn attribute(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim_matches(' ').to_owned()).filter(|text| !text.is_empty())
}
