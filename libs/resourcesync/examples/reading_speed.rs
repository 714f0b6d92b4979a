//! Measures how fast a document is read, compared with the bare events of the XML parser: `cargo run
//! --release -p resourcesync --example reading_speed -- <document> [reader|events] [rounds]`.

use std::env::args;
use std::fs::File;
use std::io::{BufReader, Read};
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use quick_xml::events::Event;
use resourcesync::{Options, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = args().nth(1).ok_or("which document?")?;
    let how = args().nth(2).unwrap_or_else(|| "reader".to_owned());
    let rounds = args().nth(3).map_or(Ok(1), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let start = Instant::now();
        let file = File::open(&path)?;
        let entries = match (how.as_str(), path.ends_with(".gz")) {
            ("reader", _) => entries(file)?,
            ("events", true) => events(MultiGzDecoder::new(file))?,
            ("events", false) => events(file)?,
            _ => return Err("either reader or events".into()),
        };
        let seconds = start.elapsed().as_secs_f64();
        println!("{how}: {entries} entries, {:.0} entries/s", entries as f64 / seconds);
    }
    Ok(())
}

fn entries(document: impl Read) -> Result<u64, Box<dyn std::error::Error>> {
    let mut reader = Reader::new(document, Options::default())?;
    while reader.next()?.is_some() {}
    Ok(reader.summary().entries)
}

/// Compares element names only.
fn events(document: impl Read) -> Result<u64, Box<dyn std::error::Error>> {
    let mut parser = quick_xml::Reader::from_reader(BufReader::with_capacity(64 * 1024, document));
    let mut buffer = Vec::new();
    let mut entries = 0;
    loop {
        match parser.read_event_into(&mut buffer)? {
            Event::Start(start) if start.name().into_inner() == "url" => entries += 1,
            Event::Eof => return Ok(entries),
            _ => {}
        }
        buffer.clear();
    }
}
