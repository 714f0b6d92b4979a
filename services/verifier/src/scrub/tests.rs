//! Scrubs of small stores: damage is reported, and each intact object is read once.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use bytes::Bytes;
use fixity::{Hasher, Sha256};
use jiff::Timestamp;
use model::{Method, PackageId};
use object_store::ObjectStoreExt as _;
use store::{PackBuilder, PackLimits, PackMember};

use super::*;

const OPTIONS: ScrubOptions =
    ScrubOptions { bytes_per_second: None, at_a_time: NonZeroUsize::new(3).unwrap() };

struct World {
    store: Store,
    held: Vec<ScrubItem>,
}

fn source() -> SourceId {
    "s".parse().unwrap()
}

impl World {
    fn new() -> Self {
        Self { store: Store::in_memory(), held: Vec::new() }
    }

    fn holds(&mut self, name: &str, location: Location, bytes: &[u8]) {
        let uri = format!("http://e.org/{name}").parse().unwrap();
        self.held.push(ScrubItem {
            source: source(),
            uri,
            location,
            computed: Computed::of(bytes),
            version: None,
        });
    }

    async fn object(&mut self, name: &str, bytes: Vec<u8>) {
        let content = Bytes::from(bytes.clone());
        let location = self
            .store
            .put_bitstream(store::NewBitstream::Memory(Sha256::of(&content), content))
            .await
            .unwrap();
        self.holds(name, location, &bytes);
    }

    async fn pack(&mut self, names: &[&str], content: impl Fn(&str) -> Vec<u8>) {
        let limits = PackLimits::default();
        let mut builder = PackBuilder::new(source(), Timestamp::UNIX_EPOCH, limits).unwrap();
        for name in names {
            let (bytes, uri) = (content(name), format!("http://e.org/{name}").parse().unwrap());
            let computed = Computed::of(&bytes);
            let member = PackMember {
                uri: &uri,
                bytes: &bytes,
                computed: &computed,
                media_type: None,
                last_modified: None,
            };
            builder.add(member).unwrap();
        }
        let locations = self.store.put_pack(&builder.finish().unwrap()).await.unwrap();
        for (name, location) in names.iter().zip(locations) {
            self.holds(name, location, &content(name));
        }
    }

    /// A package with these members; the bytes of deflated ones are stored as given.
    async fn package(&mut self, members: &[(&str, Method, &[u8], &[u8])]) {
        let package = PackageId::fresh();
        let mut spool = self.store.spool(Hasher::new([])).await.unwrap();
        let mut offset = 0;
        for (name, method, stored, content) in members {
            spool.append(Bytes::copy_from_slice(stored)).await.unwrap();
            let method = *method;
            let stored_length = stored.len() as u64;
            let location = Location::Package { source: source(), package, offset, stored_length, method };
            self.holds(name, location, content);
            offset += stored_length;
        }
        let spooled = spool.finish().await.unwrap();
        self.store.put_beside_packages(&source(), package, spooled).await.unwrap();
    }

    /// Damages the object of a resource.
    async fn harm(&self, name: &str, harm: impl FnOnce(&mut Vec<u8>, usize)) {
        let held = self.held(name);
        let path = Key::of(&held.location).path();
        let objects = self.store.object_store();
        let mut bytes = objects.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
        harm(&mut bytes, held.location.span().map_or(0, |span| span.offset as usize));
        objects.put(&path, bytes.into()).await.unwrap();
    }

    async fn lose(&self, name: &str) {
        let path = Key::of(&self.held(name).location).path();
        self.store.object_store().delete(&path).await.unwrap();
    }

    fn held(&self, name: &str) -> &ScrubItem {
        self.held.iter().find(|held| held.uri.as_str().ends_with(&format!("/{name}"))).unwrap()
    }

    async fn scrub(&self, choice: Choice) -> (ScrubReport, BTreeMap<String, Damage>) {
        let mut scrub = Scrub::new(choice);
        self.held.iter().for_each(|held| scrub.offer(held.clone()).unwrap());
        let mut damaged = BTreeMap::new();
        let tell = |found: Damaged| {
            let name = found.held.uri.as_str().rsplit('/').next().unwrap().to_owned();
            assert!(damaged.insert(name, found.damage()).is_none(), "told twice");
            Ok(())
        };
        let report = scrub.run(&self.store, OPTIONS, tell).await.unwrap();
        (report, damaged)
    }
}

fn deflated(content: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut deflater = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    deflater.write_all(content).unwrap();
    deflater.finish().unwrap()
}

/// Objects small and large, a pack, a package with deflated members.
async fn filled() -> World {
    let mut world = World::new();
    world.object("small", b"small".to_vec()).await;
    world.object("empty", Vec::new()).await;
    world.object("large", vec![7; 3 << 20]).await;
    let names: Vec<String> = (0..50).map(|n| format!("p{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.pack(&names, |name| name.repeat(500).into_bytes()).await;
    let text = b"over and over ".repeat(1_000);
    let many = vec![3; 2 << 20];
    world
        .package(&[
            ("stored", Method::Stored, b"stored", b"stored"),
            ("text", Method::Deflated, &deflated(&text), &text),
            ("many", Method::Deflated, &deflated(&many), &many),
            ("last", Method::Stored, b"last", b"last"),
        ])
        .await;
    // Two resources with the same bytes.
    let same = world.held("small").clone();
    world.held.push(ScrubItem { uri: "http://e.org/same".parse().unwrap(), ..same });
    world
}

#[tokio::test]
async fn what_is_whole_is_read_once_and_nothing_is_told() {
    let world = filled().await;
    let (report, damaged) = world.scrub(Choice::All).await;
    assert!(damaged.is_empty(), "{damaged:?}");
    let mut places = BTreeMap::new();
    for held in &world.held {
        let offset = held.location.span().map_or(0, |span| span.offset);
        let stored = held.location.span().map_or(held.computed.length(), |span| span.stored_length);
        places.insert((Key::of(&held.location).to_string(), offset, stored), stored);
    }
    let expected = ScrubReport {
        held: 58,
        resources: 58,
        objects: 5,
        bytes: places.values().sum(),
        ..ScrubReport::default()
    };
    assert_eq!(report, expected);
}

#[tokio::test]
async fn a_flipped_byte_a_lost_object_and_a_cut_package_are_each_named_with_what_was_found() {
    let world = filled().await;
    world.harm("p17", |bytes, offset| bytes[offset + 3] ^= 1).await;
    world.lose("small").await;
    world.harm("large", |bytes, _| bytes[2 << 20] ^= 1).await;
    let many = world.held("many").location.span().unwrap();
    let cut = (many.offset + many.stored_length / 2) as usize;
    world.harm("many", |bytes, _| bytes.truncate(cut)).await;
    let (report, damaged) = world.scrub(Choice::All).await;
    let names: Vec<&str> = damaged.keys().map(String::as_str).collect();
    assert_eq!(names, ["large", "last", "many", "p17", "same", "small"]);
    assert_eq!((report.damaged, report.missing), (4, 2));
    assert_eq!(damaged["same"].found, DamageFound::default());

    let mut flipped = b"p17".repeat(500);
    flipped[3] ^= 1;
    let p17 = world.held("p17");
    let expected = Damage {
        key: Key::of(&p17.location).to_string(),
        offset: p17.location.span().unwrap().offset,
        expected_length: 1_500,
        expected_sha256: p17.computed.sha256(),
        found: DamageFound { is_there: true, length: Some(1_500), sha256: Some(Sha256::of(&flipped)) },
        set_aside: None,
    };
    assert_eq!(damaged["p17"], expected);
    assert_eq!(damaged["large"].found.length, Some(3 << 20));
    assert_eq!(damaged["last"].found.length, Some(0));
    let inflated = DamageFound { is_there: true, length: None, sha256: None };
    assert_eq!(damaged["many"].found, inflated);
}

#[tokio::test]
async fn kept_versions_are_read_beside_what_is_held_and_counted_apart() {
    let mut world = filled().await;
    let from = Timestamp::UNIX_EPOCH;
    for name in ["p1", "small"] {
        let version = ScrubItem { version: Some(from), ..world.held(name).clone() };
        world.held.push(version);
    }
    world.object("before", b"before".to_vec()).await;
    world.held.last_mut().unwrap().version = Some(from);
    let (report, damaged) = world.scrub(Choice::All).await;
    assert!(damaged.is_empty(), "{damaged:?}");
    assert_eq!((report.held, report.resources, report.versions, report.objects), (58, 58, 3, 6));
    world.harm("before", |bytes, _| bytes[0] ^= 1).await;
    let (report, damaged) = world.scrub(Choice::All).await;
    assert_eq!((report.damaged, report.missing, report.versions_damaged), (0, 0, 1));
    assert_eq!(damaged.keys().collect::<Vec<_>>(), ["before"]);
    // A sample covers current versions only.
    let (report, _) = world.scrub(Choice::Sample { size: 1_000, seed: 1 }).await;
    assert_eq!((report.held, report.resources, report.versions), (58, 58, 0));
}

#[tokio::test]
async fn records_that_speak_of_more_than_there_can_be_are_damage_and_no_end() {
    let mut world = World::new();
    world.pack(&["a", "b", "c"], |name| name.repeat(50).into_bytes()).await;
    for held in &mut world.held {
        let Location::Pack { stored_length, method, .. } = &mut held.location else { panic!("a pack") };
        (*stored_length, *method) = (u64::MAX, Method::Deflated);
    }
    let (report, damaged) = world.scrub(Choice::All).await;
    assert_eq!((report.damaged, damaged.len()), (3, 3));
}

#[tokio::test]
async fn a_lost_package_is_missing_for_each_of_its_members() {
    let world = filled().await;
    world.lose("text").await;
    let (report, damaged) = world.scrub(Choice::All).await;
    assert_eq!((report.missing, report.damaged, damaged.len()), (4, 0, 4));
}

#[tokio::test]
async fn a_sample_has_its_size_and_shares_of_all_days_are_everything_once() {
    let mut world = World::new();
    for n in 0..200 {
        world.object(&format!("{n}"), format!("content {n}").into_bytes()).await;
    }
    let (report, _) = world.scrub(Choice::Sample { size: 40, seed: 1 }).await;
    assert_eq!((report.held, report.resources), (200, 40));
    world.harm("7", |bytes, _| bytes[0] ^= 1).await;
    let days = std::num::NonZeroU32::new(5).unwrap();
    let mut resources = 0;
    let mut damaged = 0;
    for day in 20_000..20_005 {
        let (report, _) = world.scrub(Choice::Share(Share { days, day })).await;
        assert!((20..70).contains(&report.resources), "{report:?}");
        resources += report.resources;
        damaged += report.damaged;
    }
    assert_eq!((resources, damaged), (200, 1));
}

#[tokio::test(start_paused = true)]
async fn no_more_is_read_than_the_rate_allows() {
    let mut world = World::new();
    for n in 0..20_u8 {
        world.object(&format!("{n}"), vec![n; 500_000]).await;
    }
    let mut scrub = Scrub::new(Choice::All);
    world.held.iter().for_each(|held| scrub.offer(held.clone()).unwrap());
    let options = ScrubOptions { bytes_per_second: NonZeroU64::new(1_000_000), ..OPTIONS };
    let began = tokio::time::Instant::now();
    let report = scrub.run(&world.store, options, |_| Ok(())).await.unwrap();
    assert_eq!(report.bytes, 10_000_000);
    // Batches of 8 objects: the last begins when the two before have had their time.
    assert_eq!(began.elapsed().as_secs(), 8);
}

#[tokio::test]
async fn what_a_store_cannot_answer_ends_the_scrub() {
    let mut world = World::new();
    world.object("a", b"a".to_vec()).await;
    let mut scrub = Scrub::new(Choice::All);
    world.held.iter().for_each(|held| scrub.offer(held.clone()).unwrap());
    world.lose("a").await;
    let failed = scrub.run(&world.store, OPTIONS, |_| Err(std::io::Error::other("full").into())).await;
    assert!(matches!(failed, Err(ScrubError::ExternalSort(_))), "{failed:?}");
}
