//! Allocations of the reader: for an entry's values, and for nothing else. Counts, not times, so that they
//! are the same wherever the tests run.

use allocation_counter::{AllocationInfo, measure};
use resourcesync::{Options, Reader};

mod common;

/// An entry as in the largest Change Lists.
fn entry(index: u32) -> String {
    format!(
        "  <url>\n    <loc>http://example.com/resources/{index:08}.html?a=1&amp;b=2</loc>\n    \
         <lastmod>2013-01-02T03:04:05Z</lastmod>\n    <rs:md change=\"updated\" datetime=\"2013-01-02T03:04:05Z\" \
         hash=\"sha-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\" length=\"{index}\" type=\"text/html\"/>\n    \
         <rs:ln rel=\"duplicate\" href=\"http://mirror.example.com/resources/{index:08}.html\" pri=\"1\"/>\n  </url>\n"
    )
}

/// Allocations per entry, from the second on, and the most bytes at a time for all of them.
fn allocations(entries: u32, buffer: usize) -> (f64, AllocationInfo) {
    let document = common::change_list(&(0..entries).map(entry).collect::<String>());
    let mut reader = Reader::with_buffer(document.as_bytes(), Options::default(), buffer).unwrap();
    reader.next().unwrap();
    let all = measure(|| while reader.next().unwrap().is_some() {});
    assert_eq!(reader.summary().entries, u64::from(entries));
    (all.count_total as f64 / f64::from(entries - 1), all)
}

/// The entry itself, its list of links, and five texts: loc, hash, type, rel and href.
const HELD: f64 = 7.0;

#[test]
fn entry_of_the_common_shape_is_allocated_and_nothing_else() {
    let (each, _) = allocations(2_000, 64 * 1024);
    assert!(each < HELD + 0.1, "{each} for each entry");
}

#[test]
fn entry_read_token_by_token_takes_no_more_than_it_holds() {
    let (each, _) = allocations(2_000, 16);
    assert!(each < HELD + 0.1, "{each} for each entry");
}

#[test]
fn memory_is_that_of_one_entry_however_many_there_are() {
    let few = allocations(200, 64 * 1024).1;
    let many = allocations(4_000, 64 * 1024).1;
    assert!(
        many.bytes_max <= few.bytes_max + 64,
        "{} bytes, and with more entries {}",
        few.bytes_max,
        many.bytes_max
    );
    assert!(many.bytes_max < 16 * 1024, "{} bytes at a time", many.bytes_max);
}
