//! Changes that come while a Resource List is made.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use jiff::Timestamp;
use model::ResourceUri;
use publish::{
    Base, BodyError, CatalogRecords, Changes, Named, PartSet, Pieces, Policy, PublishError, Published,
    PublishedPath, Records, Resources, Seen, Stored, Takedown,
};
use testkit::waiting::LONGEST_WAIT;
use tokio::sync::{Semaphore, mpsc};

use crate::dumps::held;
use crate::reader::{Follower, document};
use crate::takedown::has_bytes;
use crate::world::{BASE, World, small, uri};

/// Records whose pass over all resources stops before one of them, until it may go on.
pub(crate) struct Halting {
    records: CatalogRecords,
    before: usize,
    halted: mpsc::Sender<()>,
    go_on: Arc<Semaphore>,
}

impl Halting {
    /// The records of a world, what says that the pass has stopped before the resource of this number, and what lets it
    /// go on.
    pub(crate) fn before(number: usize, world: &World) -> (Self, mpsc::Receiver<()>, Arc<Semaphore>) {
        let (halted, halts) = mpsc::channel(1);
        let go_on = Arc::new(Semaphore::new(0));
        let records = CatalogRecords::new(&world.catalog, &world.store);
        (Self { records, before: number, halted, go_on: Arc::clone(&go_on) }, halts, go_on)
    }
}

#[async_trait]
impl Records for Halting {
    async fn next_change(&self) -> Result<u64, PublishError> {
        self.records.next_change().await
    }

    async fn continues(&self, from: u64) -> Result<bool, PublishError> {
        self.records.continues(from).await
    }

    async fn last_change(&self) -> Result<Option<Timestamp>, PublishError> {
        self.records.last_change().await
    }

    async fn resources<'a>(&'a self, after: Option<&ResourceUri>) -> Result<Resources<'a>, PublishError> {
        let all = self.records.resources(after).await?.enumerate();
        let halting = all.then(move |(number, found)| async move {
            if number == self.before {
                self.halted.send(()).await.unwrap();
                self.go_on.acquire().await.unwrap().forget();
            }
            found
        });
        Ok(halting.boxed())
    }

    async fn changes<'a>(&'a self, from: u64, end: u64) -> Result<Changes<'a>, PublishError> {
        self.records.changes(from, end).await
    }

    async fn is_present(&self, uri: &ResourceUri) -> Result<bool, PublishError> {
        self.records.is_present(uri).await
    }

    async fn find(&self, uris: &[ResourceUri]) -> Result<Vec<Option<Stored>>, PublishError> {
        self.records.find(uris).await
    }

    async fn open(&self, uri: &ResourceUri, stored: &Stored) -> Result<Pieces, BodyError> {
        self.records.open(uri, stored).await
    }

    fn path(&self, uri: &ResourceUri) -> PublishedPath {
        self.records.path(uri)
    }

    fn named(&self, base: &Base, url: &str) -> Option<Named> {
        self.records.named(base, url)
    }

    fn are_copies(&self) -> bool {
        self.records.are_copies()
    }
}

/// What a run shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Told(u64),
    Part,
}

/// Notes each time that changes are told, and how many.
fn tellings() -> (impl FnMut(Seen<'_>) + Send + Sync, mpsc::Receiver<u64>) {
    let (told, tellings) = mpsc::channel(8);
    let see = move |seen: Seen<'_>| {
        if let Seen::Told(changes) = seen {
            told.try_send(changes).unwrap();
        }
    };
    (see, tellings)
}

async fn an_hour_passes() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    tokio::time::resume();
}

/// A publication of 100 resources, of which six have changed, so that the next run makes a new Resource List. In the
/// middle of it, another resource changes, and an hour passes.
async fn run(tell_every: Duration) -> (Vec<Event>, Published, World) {
    let policy = Policy { tell_every, ..small() };
    let mut world = World::with(100, policy).await;
    world.publish().await;
    for number in 0..6 {
        world.put(&format!("{number:03}"), "changed before").await;
    }
    let (records, mut halts, go_on) = Halting::before(50, &world);
    let (publication, now) = (world.publication.clone(), world.now());
    let mut events = Vec::new();
    let mut see = |seen: Seen<'_>| match seen {
        Seen::Told(changes) => events.push(Event::Told(changes)),
        Seen::Part(_) => events.push(Event::Part),
        _ => {}
    };
    let meanwhile = async {
        halts.recv().await.unwrap();
        world.put("050", "changed meanwhile").await;
        an_hour_passes().await;
        go_on.add_permits(1);
    };
    let (done, ()) = tokio::join!(publication.run(&records, now, &mut see), meanwhile);
    (events, done.unwrap(), world)
}

/// How many parts were completed after the last change was told.
fn parts_after_it(events: &[Event]) -> usize {
    assert_eq!(events[0], Event::Told(6), "what there was at the beginning comes first");
    let told = events.iter().rposition(|event| *event == Event::Told(1)).expect("it is told");
    events.len() - 1 - told
}

#[tokio::test]
async fn changes_are_told_while_a_resource_list_is_made_and_nothing_is_mixed() {
    let (events, done, mut world) = run(Duration::from_secs(600)).await;
    assert!(parts_after_it(&events) > 5, "{events:?}");
    assert_eq!(done.changes, 7);
    assert!(done.telling < Duration::from_secs(600), "{:?} of a run of an hour", done.telling);
    for changes in ["changed once more", "and again"] {
        let mut reader = Follower::new(&world.objects);
        reader.follow().await;
        assert_eq!(reader.held, world.stored().await);
        world.put("051", changes).await;
        world.publish().await;
        reader.follow().await;
        assert_eq!(reader.held, world.stored().await);
    }
}

#[tokio::test]
async fn a_list_is_complete_at_its_end_and_what_it_replaces_stays_from_then_on() {
    let (_, _, mut world) = run(Duration::from_secs(600)).await;
    let list = document(&world.objects, &format!("{BASE}resourcelist.xml")).await;
    let (at, completed) = (list.header.at.unwrap().instant(), list.header.completed.unwrap().instant());
    assert!(completed.duration_since(at) >= jiff::SignedDuration::from_hours(1), "{at} to {completed}");
    let named: Vec<String> = list.entries.into_iter().map(|part| part.loc).collect();
    let parts = async |world: &World| {
        let files = world.files().await.into_iter().map(|(path, _)| path);
        files.filter(|path| path.starts_with("resourcelist/")).count()
    };
    let with_replaced = parts(&world).await;
    assert!(with_replaced > named.len());
    // 48 hours after the begin of that run are 47 hours after its end.
    world.passes(48);
    world.publish().await;
    assert_eq!(parts(&world).await, with_replaced);
    world.passes(2);
    world.publish().await;
    assert_eq!(parts(&world).await, named.len());
}

#[tokio::test]
async fn what_is_withdrawn_while_a_resource_list_is_made_is_told_and_in_no_package() {
    let policy = Policy { package_entries: 4, dump_changed_percent: 0, ..small() };
    let mut world = World::with(100, policy).await;
    world.publication.dumps = true;
    world.publish().await;
    let mut reader = Follower::new(&world.objects);
    reader.follow().await;
    for number in 0..6 {
        world.put(&format!("{number:03}"), "changed before").await;
    }
    let (records, mut halts, go_on) = Halting::before(50, &world);
    let (publication, now) = (world.publication.clone(), world.now());
    let (mut see, mut tellings) = tellings();
    // The catalog does not change meanwhile.
    let meanwhile = async {
        halts.recv().await.unwrap();
        assert_eq!(tellings.recv().await, Some(6));
        publication.takedown.replace(&Takedown::parse(uri("010").as_str()).unwrap());
        an_hour_passes().await;
        let one = tokio::time::timeout(LONGEST_WAIT, tellings.recv()).await;
        assert_eq!(one.expect("it is told before the list goes on"), Some(1));
        reader.follow().await;
        go_on.add_permits(1);
    };
    let (done, ()) = tokio::join!(publication.run(&records, now, &mut see), meanwhile);
    done.unwrap();
    assert!(!has_bytes(&world, "body 10").await);
    let mut expected = world.stored().await;
    expected.remove(uri("010").as_str());
    assert_eq!(reader.held, expected);
    world.publish().await;
    assert_eq!(held(&world.objects).await, expected);
    assert!(!has_bytes(&world, "body 10").await);
    let mut fresh = Follower::new(&world.objects);
    fresh.follow().await;
    assert_eq!(fresh.held, expected);
}

#[tokio::test]
async fn changes_that_are_not_due_are_told_with_the_list() {
    let (events, done, _) = run(Duration::from_secs(7_200)).await;
    assert_eq!((parts_after_it(&events), done.changes), (0, 7), "{events:?}");
}

#[tokio::test]
async fn changes_are_told_while_the_records_give_nothing_for_the_list_of_a_set() {
    let mut world = World::with(100, small()).await;
    world.publication.with_bytes = false;
    world.publication.sets = vec![PartSet::new("low=/00[0-9]".parse().unwrap()).unwrap()];
    world.publish().await;
    // A third of the set, and little of the whole: only the set gets a new Resource List.
    for number in 0..3 {
        world.put(&format!("{number:03}"), "changed before").await;
    }
    let (records, mut halts, go_on) = Halting::before(5, &world);
    let (publication, now) = (world.publication.clone(), world.now());
    let (mut see, mut tellings) = tellings();
    let meanwhile = async {
        halts.recv().await.unwrap();
        assert_eq!(tellings.recv().await, Some(3));
        world.put("050", "changed meanwhile").await;
        an_hour_passes().await;
        let one = tokio::time::timeout(LONGEST_WAIT, tellings.recv()).await;
        assert_eq!(one.expect("it is told before the list goes on"), Some(1));
        let mut reader = Follower::of_set(&world.objects, 0);
        reader.follow().await;
        assert_eq!(reader.held, world.stored().await);
        go_on.add_permits(1);
    };
    let (done, ()) = tokio::join!(publication.run(&records, now, &mut see), meanwhile);
    assert_eq!(done.unwrap().changes, 4);
    let mut low = Follower::of_set(&world.objects, 1);
    low.follow().await;
    assert_eq!(low.held.len(), 10);
    // What was told beside the list is not told again.
    assert_eq!(world.publish().await.changes, 0);
}
