//! Lists the members of a ZIP package, then reads its manifest. Without a path it takes a small package of its own.
//!
//! ```sh
//! cargo run -p packages --example list_zip -- resourcedump.zip
//! ```

use std::error::Error;

use bytes::Bytes;
use packages::zip::{Directory, MemberReader};
use packages::{Limits, ReadAhead};

/// An empty member `manifest.xml`, stored.
const PACKAGE: &[u8] = b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0c\0\0\0manifest.xml\
PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0c\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0manifest.xml\
PK\x05\x06\0\0\0\0\x01\0\x01\0\x3a\0\0\0\x2a\0\0\0\0\0";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // In memory for brevity. A file or an object is read by ranges: implement `packages::ReadAt` for it.
    let package = match std::env::args_os().nth(1) {
        Some(path) => Bytes::from(std::fs::read(path)?),
        None => Bytes::from_static(PACKAGE),
    };
    let directory = Directory::open(&package, &Limits::default()).await?;
    for member in directory.members() {
        println!("{:>12} bytes, {}: {:?}", member.size, member.kind, member.name());
    }

    let (member, manifest) = directory.manifest()?;
    println!("manifest: {:?}", manifest.name);
    // `data` says where the bytes are. With it, a member can be read years later without the directory.
    let data = directory.locate(&package, &member).await?;
    let mut reader = MemberReader::new(&package, data, ReadAhead::default());
    let mut length = 0;
    while let Some(chunk) = reader.chunk().await? {
        length += chunk.len();
    }
    // The CRC-32 is compared at the end: trust the bytes only after `None`.
    println!("read {length} bytes of it");
    Ok(())
}
