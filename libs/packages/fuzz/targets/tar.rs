//! Any bytes as a tar, plain or compressed: no panic, nothing beyond the limits, and the same result for
//! other chunks. If a plain tar is accepted, the `tar` crate finds the same files in it.
//!
//! The first two bytes of the input choose the limits and the chunks, the rest is the package.

#![no_main]

use std::io::{self, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use libfuzzer_sys::fuzz_target;
use packages::tar::{Entries, Item};
use packages::{Compression, Limits, Packaging, Scope};
use tokio::io::{AsyncRead, ReadBuf};

const MOST: u64 = 256 << 10;

#[derive(Debug, Default, PartialEq)]
struct Reading {
    packaging: Option<Packaging>,
    files: Vec<(u64, Vec<u8>, Vec<u8>)>,
    refused: Vec<&'static str>,
    error: Option<&'static str>,
}

fuzz_target!(|input: &[u8]| {
    let [flags, amount, package @ ..] = input else { return };
    let narrow = Limits {
        members: 3,
        name_bytes: 8,
        extension_bytes: 600,
        member_bytes: 600,
        ratio: 4,
        ratio_floor_bytes: 3_000,
        ..Limits::default()
    };
    let limits = if flags & 1 == 0 { Limits::default() } else { narrow };
    let limits = Limits { inflated_bytes_total: MOST, decoder_bytes: 8 << 20, ..limits };
    let whole = read(package, &limits);
    let cut = read(Cut { bytes: package, amount: usize::from(*amount).max(1) }, &limits);
    // How much is inflated before a limit is noticed depends on the chunks.
    if whole.error == cut.error {
        assert_eq!(whole, cut, "cut into pieces of {amount}");
    } else {
        let bounded = ["package-too-dense", "too-many-bytes", "truncated", "bad-compression"];
        let of_limits = |error: Option<&'static str>| error.is_some_and(|error| bounded.contains(&error));
        assert!(of_limits(whole.error) || of_limits(cut.error), "{:?} and {:?}", whole.error, cut.error);
    }
    let plain = whole.packaging == Some(Packaging::Tar(Compression::Plain));
    if plain && whole.error.is_none() {
        compare(package, &whole);
    }
});

fn read(source: impl AsyncRead + Send, limits: &Limits) -> Reading {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs nothing");
    let mut reading = Reading::default();
    let mut bytes = 0;
    let result = runtime.block_on(async {
        let mut entries = Entries::open(source, limits).await?;
        reading.packaging = Some(entries.packaging());
        while let Some(item) = entries.next().await? {
            match item {
                Item::Member(member) => {
                    let content = entries.to_end(MOST).await?;
                    assert_eq!(content.len() as u64, member.size);
                    assert!(
                        member.size <= limits.member_bytes && member.name_bytes.len() <= limits.name_bytes
                    );
                    bytes += member.size;
                    reading.files.push((member.header_offset, member.name_bytes, content));
                }
                Item::Refused(error) => {
                    assert_eq!(error.scope(), Scope::Member, "{error}");
                    reading.refused.push(error.name());
                }
            }
        }
        Ok::<_, packages::PackageError>(())
    });
    assert!(bytes <= MOST);
    assert!(reading.files.len() as u64 <= limits.members);
    reading.error = result.err().map(|error| error.name());
    reading
}

/// Both must find the same files at the same offsets: content for one must not be a header for the other.
fn compare(package: &[u8], ours: &Reading) {
    let mut archive = tar::Archive::new(package);
    let Ok(entries) = archive.entries() else { return };
    let mut theirs = Vec::new();
    for entry in entries {
        // It refuses other archives than we do; only two complete readings are compared.
        let Ok(mut entry) = entry else { return };
        // It reads PAX records with the other type letter as a file, and accepts content of folders.
        let header = entry.header().as_bytes();
        if header[156] == b'X' || header[156] == b'5' && entry.size() > 0 {
            return;
        }
        let mut content = Vec::new();
        if entry.read_to_end(&mut content).is_err() {
            return;
        }
        theirs.push((entry.raw_header_position(), content));
    }
    for (offset, name, content) in &ours.files {
        let found = theirs.iter().find(|(position, _)| position == offset);
        assert!(found.is_some_and(|(_, other)| other == content), "{name:?} at {offset}");
    }
}

struct Cut<'a> {
    bytes: &'a [u8],
    amount: usize,
}

impl AsyncRead for Cut<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.amount.min(self.bytes.len()).min(buffer.remaining());
        let (now, later) = self.bytes.split_at(length);
        buffer.put_slice(now);
        self.bytes = later;
        Poll::Ready(Ok(()))
    }
}
