//! The bytes in memory and the concurrent reads stay few, however long the package is.

mod common;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use common::block_on;
use common::counting::Counting;
use common::tars::{Tar, header};
use common::zips::Zip;
use packages::tar::{Entries, Item};
use packages::zip::Directory;
use packages::{Limits, PackageError, ReadAt};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

const MEMBERS: u64 = 200_000;

fn many() -> Bytes {
    let mut zip = Zip::new();
    for number in 0..MEMBERS {
        zip = zip.stored(format!("some/folder/of/a/repository/{number:012}/record.metadata.xml"), b"");
    }
    zip.with(|zip| zip.zip64 = true).build().into()
}

#[test]
fn directory_of_two_hundred_thousand_members_is_read_in_pieces_and_held_in_little() {
    let zip = many();
    let names: u64 = MEMBERS * 60;
    let package = Counting::new(zip);
    let directory = block_on(Directory::open(&package, &Limits::default())).unwrap();
    assert_eq!(u64::from(directory.len()), MEMBERS);
    assert!(directory.held_bytes() as u64 <= MEMBERS * 48 + names, "{} bytes", directory.held_bytes());
    assert!(package.longest() <= 1 << 20, "{} bytes at once", package.longest());
    let whole = MEMBERS * 46 + names;
    assert!(package.bytes() <= whole + (129 << 10), "{} bytes read of {whole}", package.bytes());
    let last = directory.find("some/folder/of/a/repository/000000199999/record.metadata.xml").unwrap();
    assert_eq!(u64::from(last.index), MEMBERS - 1);
}

#[test]
fn directory_over_the_limit_is_not_read() {
    let package = Counting::new(many());
    let limits = Limits { directory_bytes: 1 << 20, ..Limits::default() };
    let error = block_on(Directory::open(&package, &limits)).unwrap_err();
    assert!(matches!(error, PackageError::DirectoryTooLarge { .. }), "{error}");
    assert!(package.bytes() <= 129 << 10, "{} of {}", package.bytes(), package.len());
}

/// Counts the bytes that are consumed from it.
struct Taken<R>(R, Arc<AtomicU64>);

impl<R: AsyncRead + Unpin> AsyncRead for Taken<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.0).poll_read(context, buffer);
        self.1.fetch_add((buffer.filled().len() - before) as u64, Ordering::Relaxed);
        read
    }
}

#[test]
fn tar_is_read_no_further_ahead_than_a_buffer() {
    // A member of 4 GiB, whose bytes are generated on request.
    let begin = Tar::new().raw(&header(b'0', b"big", 4 << 30), b"").0;
    let taken = Arc::<AtomicU64>::default();
    let source = Taken(begin.as_slice().chain(tokio::io::repeat(7)), Arc::clone(&taken));
    block_on(async {
        let mut entries = Entries::open(source, &Limits::default()).await.unwrap();
        assert!(matches!(entries.next().await, Ok(Some(Item::Member(_)))));
        let mut given = 512;
        for _ in 0..1_000 {
            given += entries.chunk().await.unwrap().unwrap().len() as u64;
            let taken = taken.load(Ordering::Relaxed);
            assert!(taken <= given + (128 << 10), "{taken} taken for {given}");
        }
        assert!(given > 1 << 20, "{given}");
    });
}
