//! Tests of packs: members are found by range, by our own libraries and by others.

use std::io::{Cursor, Read, Write};
use std::process::{Command, Stdio};

use fixity::{Algorithm, Hasher};
use resourcesync::{Capability, Item, Options, Reader};
use zip::ZipArchive;

use super::pack::MANIFEST;
use super::*;
use fixity::Computed;
use model::{Location, ResourceUri, SourceId};

fn source() -> SourceId {
    "example-0".parse().unwrap()
}

fn builder(limits: PackLimits) -> PackBuilder {
    PackBuilder::new(source(), "2026-01-02T03:04:05Z".parse().unwrap(), limits).unwrap()
}

fn members(count: usize) -> Vec<(ResourceUri, Vec<u8>)> {
    let member = |n: usize| {
        let uri = format!("http://example.org/{n}?a=1&b=<{n}>").parse().unwrap();
        (uri, vec![n as u8; n * 37 % 2_000])
    };
    (0..count).map(member).collect()
}

fn add(builder: &mut PackBuilder, uri: &ResourceUri, bytes: &[u8]) -> usize {
    let mut hasher = Hasher::new([Algorithm::Md5]);
    hasher.update(bytes);
    let computed = hasher.finish();
    let media_type = Some("text/plain");
    builder.add(PackMember { uri, bytes, computed: &computed, media_type, last_modified: None }).unwrap()
}

fn pack_of(members: &[(ResourceUri, Vec<u8>)]) -> Pack {
    let mut builder = builder(PackLimits::default());
    for (n, (uri, bytes)) in members.iter().enumerate() {
        assert_eq!(add(&mut builder, uri, bytes), n);
    }
    builder.finish().unwrap()
}

/// The names of members, up to 36 * 36 of them.
fn name(n: usize) -> String {
    let digit = |n: usize| char::from_digit(n as u32, 36).unwrap();
    let first = Some(n / 36).filter(|first| *first > 0).map(digit);
    first.into_iter().chain([digit(n % 36)]).collect()
}

fn manifest(pack: &Pack) -> Vec<u8> {
    let mut archive = ZipArchive::new(Cursor::new(pack.body())).unwrap();
    let mut manifest = Vec::new();
    archive.by_name(MANIFEST).unwrap().read_to_end(&mut manifest).unwrap();
    manifest
}

#[tokio::test]
async fn every_member_is_found_by_its_range_and_by_its_name() {
    let members = members(300);
    let pack = pack_of(&members);
    let locations = Store::in_memory().put_pack(&pack).await.unwrap();
    let mut archive = ZipArchive::new(Cursor::new(pack.body())).unwrap();
    assert_eq!(archive.len(), members.len() + 1);
    for (n, (_, bytes)) in members.iter().enumerate() {
        let Location::Pack { offset, stored_length, .. } = &locations[n] else { panic!("{n}") };
        let range = *offset as usize..(*offset + *stored_length) as usize;
        assert_eq!(&pack.body()[range], bytes, "{n}");
        let mut member = archive.by_name(&name(n)).unwrap();
        assert_eq!(member.data_start(), Some(*offset));
        let mut read = Vec::new();
        member.read_to_end(&mut read).unwrap();
        assert_eq!(&read, bytes, "{n}");
    }
}

#[test]
fn the_manifest_says_what_is_where() {
    let members = members(20);
    let pack = pack_of(&members);
    let manifest = manifest(&pack);
    let mut reader = Reader::new(manifest.as_slice(), Options::default()).unwrap();
    let header = reader.header().unwrap().clone();
    assert_eq!(header.capability, Some(Capability::ResourceDumpManifest));
    assert_eq!(header.at.unwrap().instant(), "2026-01-02T03:04:05Z".parse().unwrap());
    for (n, (uri, bytes)) in members.iter().enumerate() {
        let Ok(Some(Item::Entry(entry))) = reader.next() else { panic!("no entry {n}") };
        assert_eq!(entry.loc, uri.as_str());
        assert_eq!(entry.metadata.length, Some(bytes.len() as u64));
        assert_eq!(entry.metadata.media_type.as_deref(), Some("text/plain"));
        assert_eq!(entry.metadata.path, Some(format!("/{}", name(n))));
        let hashes = fixity::parse_hashes(&entry.metadata.hash.unwrap());
        assert_eq!((hashes.known.len(), hashes.unjudged.len()), (2, 0));
        assert!(hashes.known.contains(&Computed::of(bytes).sha256().into()));
    }
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn pythons_zipfile_reads_it_too() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("python3 is not there; nothing was compared");
        return;
    }
    let members = members(50);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pack_of(&members).body()).unwrap();
    let script = "import sys, zipfile, hashlib\n\
        z = zipfile.ZipFile(sys.argv[1])\n\
        assert z.testzip() is None\n\
        assert all(i.date_time == (1980, 1, 1, 0, 0, 0) for i in z.infolist())\n\
        assert all(i.compress_type == 0 for i in z.infolist() if i.filename != 'manifest.xml')\n\
        for i in z.infolist():\n    print(i.filename, hashlib.sha256(z.read(i)).hexdigest())\n";
    let run = Command::new("python3").args(["-c", script]).arg(file.path()).stderr(Stdio::inherit()).output();
    let run = run.unwrap();
    assert!(run.status.success());
    let printed = String::from_utf8(run.stdout).unwrap();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), members.len() + 1);
    for (n, (_, bytes)) in members.iter().enumerate() {
        assert_eq!(lines[n], format!("{} {}", name(n), Computed::of(bytes).sha256()));
    }
    assert!(lines.last().unwrap().starts_with(MANIFEST));
}

#[test]
fn the_same_members_give_the_same_bytes() {
    let members = members(10);
    assert_eq!(pack_of(&members).body(), pack_of(&members).body());
}

#[test]
fn a_pack_is_full_at_either_limit_and_an_empty_one_takes_any_member() {
    let uri: ResourceUri = "http://h/a".parse().unwrap();
    let bytes = vec![0; 10_000];
    let computed = Computed::of(&bytes);
    let member =
        PackMember { uri: &uri, bytes: &bytes, computed: &computed, media_type: None, last_modified: None };
    let mut by_members = builder(PackLimits { bytes: usize::MAX, members: 2 });
    let mut by_bytes = builder(PackLimits { bytes: 15_000, members: 100 });
    let mut tiny = builder(PackLimits { bytes: 10, members: 100 });
    assert!(tiny.fits(&member) && by_bytes.fits(&member));
    for builder in [&mut by_members, &mut by_bytes, &mut tiny] {
        builder.add(member).unwrap();
    }
    assert!(by_members.fits(&member));
    assert!(!by_bytes.fits(&member));
    assert!(!tiny.fits(&member));
    by_members.add(member).unwrap();
    assert!(!by_members.fits(&member));
}

#[test]
fn a_control_character_from_a_server_does_not_cost_the_pack() {
    let uri: ResourceUri = "http://h/a\u{1}b".parse().unwrap();
    let computed = Computed::of(b"x");
    let mut builder = builder(PackLimits::default());
    let media_type = Some("text/\u{2}plain");
    builder
        .add(PackMember { uri: &uri, bytes: b"x", computed: &computed, media_type, last_modified: None })
        .unwrap();
    let pack = builder.finish().unwrap();
    let text = String::from_utf8(manifest(&pack)).unwrap();
    assert!(text.contains("<loc>http://h/a%01b</loc>"), "{text}");
}

#[test]
fn bytes_that_are_not_those_of_the_digests_are_refused() {
    let uri: ResourceUri = "http://h/a".parse().unwrap();
    let computed = Computed::of(b"longer");
    let member =
        PackMember { uri: &uri, bytes: b"x", computed: &computed, media_type: None, last_modified: None };
    assert!(matches!(builder(PackLimits::default()).add(member), Err(StoreError::Damaged { .. })));
}

/// A pack of an earlier version: longer names, and a manifest that is not compressed.
#[tokio::test]
async fn an_earlier_pack_is_read_by_its_ranges_and_counted() {
    use zip::write::SimpleFileOptions;
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut offsets = Vec::new();
    for (n, bytes) in [b"one".as_slice(), b"three"].into_iter().enumerate() {
        archive.start_file(format!("resources/{n:05}"), options).unwrap();
        offsets.push((archive.get_ref().unwrap().position(), bytes));
        archive.write_all(bytes).unwrap();
    }
    archive.start_file(MANIFEST, options).unwrap();
    archive.write_all(b"<urlset/>").unwrap();
    let body = archive.finish().unwrap().into_inner();
    let size = body.len() as u64;
    let store = Store::in_memory();
    let pack = model::PackId::fresh();
    let key = Key::Pack { source: source(), pack };
    store.put(&key, body.into(), object_store::PutMode::Create).await.unwrap();
    for (offset, bytes) in offsets {
        let stored_length = bytes.len() as u64;
        let method = model::Method::Stored;
        let location = Location::Pack { source: source(), pack, offset, stored_length, method };
        assert_eq!(store.read_range(&location, 0..stored_length).await.unwrap(), bytes);
    }
    let contents = store.pack_contents(&source(), pack, size).await.unwrap();
    assert_eq!(contents, PackContents { members: 2, bytes: 8 });
}

#[test]
fn a_member_costs_few_bytes_beside_its_own() {
    let members: Vec<(ResourceUri, Vec<u8>)> = (0..1_024)
        .map(|n| (format!("http://127.0.0.1:8080/resources/{n:07}.pdf").parse().unwrap(), vec![7; 16]))
        .collect();
    let mut builder = builder(PackLimits::default());
    for (uri, bytes) in &members {
        // Digests of other bytes: equal ones would be compressed.
        let digest = fixity::Sha256::of(uri.as_str().as_bytes());
        let computed = Computed::new(16, [digest.into()]).unwrap();
        let media_type = Some("application/pdf");
        let last_modified = Some("2026-01-02T03:04:05Z".parse().unwrap());
        builder.add(PackMember { uri, bytes, computed: &computed, media_type, last_modified }).unwrap();
    }
    let beside = builder.finish().unwrap().body().len() / members.len() - 16;
    assert!(beside <= 150, "{beside} bytes");
}
