//! Reads a ResourceSync document of any kind, plain or gzip, and prints what it says. Without a path it reads a small
//! Change List of its own.
//!
//! ```sh
//! cargo run -p resourcesync --example read_document -- changelist.xml
//! ```

use std::error::Error;
use std::fs::File;
use std::io::Read;

use resourcesync::{Item, Options, Reader};

const CHANGE_LIST: &[u8] = br#"<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
  <rs:md capability="changelist" from="2013-01-02T00:00:00Z"/>
  <url>
    <loc>http://example.com/res1?a=1&amp;b=2</loc>
    <rs:md change="updated" datetime="2013-01-02T13:00:00Z" hash="md5:900150983cd24fb0d6963f7d28e17f72" length="3"/>
  </url>
  <url>
    <loc>http://example.com/res2</loc>
    <rs:md change="deleted" datetime="2013-01-02T14:00:00"/>
  </url>
</urlset>"#;

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args_os().nth(1) {
        Some(path) => print(File::open(path)?),
        None => print(CHANGE_LIST),
    }
}

/// One entry is in memory at a time, so a list of many millions needs no more memory than this one.
fn print(document: impl Read) -> Result<(), Box<dyn Error>> {
    let mut reader = Reader::new(document, Options::default())?;
    println!("capability: {:?}", reader.header()?.capability);
    while let Some(item) = reader.next()? {
        match item {
            Item::Entry(entry) => {
                let metadata = &entry.metadata;
                println!("{:?}: {:?}, {:?}", entry.loc, metadata.change, metadata.hash);
            }
            // One bad entry does not lose the document.
            Item::Bad(bad) => println!("bad entry at {}: {}", bad.position, bad.reason),
        }
    }
    let summary = reader.summary();
    println!("{} entries, {} bad, complete: {}", summary.entries, summary.bad, summary.complete);
    for (quirk, times) in summary.quirks.iter() {
        println!("quirk {quirk}, {times} times: {}", quirk.meaning());
    }
    Ok(())
}
