//! Writes the seeds of the corpora, from the builders of the tests: `cargo run --example seeds`.

use std::path::Path;
use std::{fs, io};

#[path = "../../tests/common/mod.rs"]
mod common;

use common::tars::{ALL, Tar, compressed, record};
use common::zips::{Zip, zip64_field};

fn main() -> io::Result<()> {
    let content = b"content content content content";
    let zip = || Zip::new().stored("manifest.xml", b"<urlset/>").deflated("a/b.pdf", content);
    let later = zip().both(|fields| fields.flags = 8).but(|part| {
        part.local.crc32 = 0;
        part.local.size = 0;
        part.local.compressed = 0;
        part.data.extend(*b"PK\x07\x08");
        part.data.extend([0; 12]);
    });
    let wide = Zip::new().stored("a", b"first").but(|part| {
        part.local.size = u32::MAX;
        part.local.compressed = u32::MAX;
        part.local.extra = zip64_field(&[5, 5]);
        part.central.size = u32::MAX;
        part.central.compressed = u32::MAX;
        part.offset = Some(u32::MAX);
        part.central.extra = zip64_field(&[5, 5, 0]);
    });
    let link =
        Zip::new().stored("a", b"b").but(|part| (part.made_by, part.attributes) = (0x314, 0o120_777 << 16));
    let zips = [
        Zip::new().build(),
        zip().build(),
        zip().with(|zip| zip.zip64 = true).build(),
        zip().with(|zip| zip.comment = b"comment".to_vec()).build(),
        zip().with(|zip| zip.trailing = b"\n".to_vec()).build(),
        zip().with(|zip| zip.preamble = b"MZ program".to_vec()).build(),
        zip().with(|zip| zip.comment = Zip::new().build()).build(),
        zip().stored("a/b.pdf", b"").stored("../c", b"").stored("/d", b"").stored(b"b\x84r", b"").build(),
        Zip::new().deflated("zeros", &[0; 3_000]).build(),
        later.build(),
        wide.build(),
        link.build(),
    ];
    let long = "long/".repeat(30);
    let tars = [
        Tar::new().file("manifest.xml", b"<urlset/>").file("a", content),
        Tar::new().entry(b'5', "d/", b"").entry(b'2', "link", b"").entry(b'3', "device", b""),
        Tar::new().long_name(&long).file("a", content),
        Tar::new().pax(&[("path", &long), ("size", "31"), ("mtime", "1")]).file("a", content),
        Tar::new().entry(b'g', "g", &record("comment", "global")).file("a", b"").file("a", b""),
        Tar::new().pax(&[("GNU.sparse.major", "1")]).file("a", b"").entry(b'S', "b", b""),
        Tar::new().file("zeros", &[0; 3_000]),
    ];
    let tars = tars.map(Tar::end);
    let packed = tars.iter().flat_map(|tar| ALL.map(|compression| compressed(tar, compression)));
    write("zip", 1, zips.into_iter())?;
    write("tar", 2, packed)
}

/// Each seed, behind the bytes that choose how to read it.
fn write(target: &str, choosing: usize, seeds: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    let mut count = 0;
    for (number, seed) in seeds.enumerate() {
        fs::write(folder.join(format!("seed-{number:03}")), [vec![0; choosing], seed].concat())?;
        count += 1;
    }
    println!("{count} seeds in {}", folder.display());
    Ok(())
}
