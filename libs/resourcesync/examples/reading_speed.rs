//! Measures how fast a synthetic Change List is read: `cargo run --release -p resourcesync --example reading_speed`.

use std::io::Write;
use std::time::Instant;

use resourcesync::{Options, Reader};

const ENTRIES: u32 = 500_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let document = document()?;
    for _ in 0..3 {
        let start = Instant::now();
        let mut reader = Reader::new(&document[..], Options::default())?;
        while reader.next()?.is_some() {}
        let summary = reader.summary();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{} entries, complete: {}, {:.0} entries/s, {:.0} MB/s",
            summary.entries,
            summary.complete,
            summary.entries as f64 / seconds,
            document.len() as f64 / seconds / 1e6
        );
    }
    Ok(())
}

fn document() -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    out.write_all(
        br#"<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/">
  <rs:ln rel="up" href="http://example.com/capabilitylist.xml"/>
  <rs:md capability="changelist" from="2013-01-01T00:00:00Z"/>
"#,
    )?;
    for n in 0..ENTRIES {
        let (hour, minute, second) = (n / 36_000 % 24, n / 600 % 60, n / 10 % 60);
        write!(
            out,
            r#"  <url>
    <loc>http://example.com/resources/{n:08}.html?a=1&amp;b=2</loc>
    <lastmod>2013-01-02T{hour:02}:{minute:02}:{second:02}Z</lastmod>
    <rs:md change="updated" datetime="2013-01-02T{hour:02}:{minute:02}:{second:02}Z"
      hash="md5:1584abdf8ebdc9802ac0c6a7{n:08}" length="{n}" type="text/html"/>
    <rs:ln rel="duplicate" pri="1" href="http://mirror.example.com/resources/{n:08}.html"
      modified="2013-01-02T{hour:02}:{minute:02}:{second:02}Z"/>
  </url>
"#
        )?;
    }
    out.write_all(b"</urlset>\n")?;
    Ok(out)
}
