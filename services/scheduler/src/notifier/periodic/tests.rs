//! What a change costs, on a real control store.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use control::{Config, Control, Hint, Member, MemberId, Role, SourceSpec, Spec, WatchCache};
use model::{ManualClock, RunId};
use testkit::servers::NatsFixture;
use testkit::waiting::{found, until};

use super::*;

const SOURCES: usize = 300;

/// Each hint is a row whose task is due at once, and ends by removing the row. Every third Source has one.
#[derive(Clone)]
struct Counting {
    me: MemberId,
    control: Control,
    sources: WatchCache<SourceSpec>,
    hints: WatchCache<Hint>,
    members: WatchCache<Member>,
    looks: Arc<AtomicUsize>,
    listings: Arc<AtomicUsize>,
    done: Arc<Mutex<Vec<SourceId>>>,
}

impl Periodic for Counting {
    type Errand = Hint;

    fn feed(&self) -> Feed {
        Feed::new(&self.sources, self.hints.changed_keys(), &self.me, &self.members)
    }

    fn rows(&self) -> Vec<Key> {
        self.listings.fetch_add(1, Ordering::Relaxed);
        self.hints.keys()
    }

    fn source_of(&self, row: &str) -> Option<SourceId> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.hints.row(row).map(|hint| hint.source.clone())
    }

    fn due(&self, row: &str, now: Timestamp) -> Option<(Timestamp, Hint)> {
        let source = self.sources.row(row)?;
        self.hints.row(row).filter(|_| source.enabled).map(|hint| (now, Hint::clone(&hint)))
    }

    fn count(&self, _is_ours: &dyn Fn(&SourceId) -> bool, _now: Timestamp) {}

    async fn run(&self, hint: Hint) {
        self.done.lock().unwrap().push(hint.source.clone());
        let known = self.control.hints().get(&hint.source).await.unwrap().unwrap();
        self.control.hints().take_up(&known).await.unwrap();
    }
}

struct Case {
    control: Control,
    counting: Counting,
    clock: Arc<ManualClock>,
    stop: CancellationToken,
}

impl Case {
    async fn start() -> Self {
        let config = Config {
            servers: vec![NatsFixture::get().await.url],
            namespace: format!("t-{}", RunId::fresh()),
            ..Config::default()
        };
        let control = Control::connect(&config).await.unwrap();
        let counting = Counting {
            me: MemberId::fresh("me"),
            sources: control.sources().view().await.unwrap(),
            hints: control.hints().view().await.unwrap(),
            members: control.members().view().await.unwrap(),
            looks: Arc::default(),
            listings: Arc::default(),
            done: Arc::default(),
            control: control.clone(),
        };
        let clock = Arc::new(ManualClock::new("2026-03-01T12:00:00Z".parse().unwrap()));
        let stop = CancellationToken::new();
        tokio::spawn(make(counting.clone(), Arc::clone(&clock) as Arc<dyn Clock>, stop.clone()));
        until("it has looked at all once", || counting.listings.load(Ordering::Relaxed) == 1).await;
        Self { control, counting, clock, stop }
    }

    async fn hint(&self, source: &SourceSpec) {
        let by = "a test".to_owned();
        let hint = Hint { source: source.id.clone(), given_at: self.clock.now(), by, unproved: false };
        self.control.hints().give(&hint).await.unwrap();
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn source(n: usize) -> SourceSpec {
    SourceSpec::new(format!("http://h{n}.example.com/").parse().unwrap())
}

#[tokio::test]
async fn looks_grow_with_changes_and_not_with_their_square() {
    let case = Case::start().await;
    let all: Vec<SourceSpec> = (0..SOURCES).map(source).collect();
    for (n, source) in all.iter().enumerate() {
        case.control.sources().create(source).await.unwrap();
        if n % 3 == 0 {
            case.hint(source).await;
        }
    }
    let done = || case.counting.done.lock().unwrap().len();
    until("each hint was taken up", || done() == SOURCES.div_ceil(3)).await;
    // A heartbeat of another kind of member is no reason to look at any row.
    let other = MemberId::fresh("fetcher");
    let _member = case.control.members().join(other, Role::Fetcher, case.clock.now()).await.unwrap();
    let gone = async || (case.counting.hints.keys().is_empty()).then_some(());
    found("all rows are gone", gone).await;
    let looks = case.counting.looks.load(Ordering::Relaxed);
    // Each Source once, and each hint when it comes, when its task has ended, and when it goes.
    assert!(looks <= SOURCES * 3, "{looks} looks at {SOURCES} Sources");
    assert_eq!(case.counting.listings.load(Ordering::Relaxed), 1, "all rows are listed once");
    assert_eq!(done(), SOURCES.div_ceil(3), "none twice");
}

#[tokio::test]
async fn rows_of_a_source_are_looked_at_when_it_changes_and_all_when_schedulers_come() {
    let case = Case::start().await;
    let paused = SourceSpec::from(Spec { enabled: false, ..source(0).spec });
    case.control.sources().create(&paused).await.unwrap();
    case.hint(&paused).await;
    until("the row was looked at", || case.counting.looks.load(Ordering::Relaxed) >= 2).await;
    let read = case.control.sources().get(&paused.id).await.unwrap();
    case.control.sources().update(&source(0), read.revision).await.unwrap();
    until("its task is done", || case.counting.done.lock().unwrap().len() == 1).await;
    let other = MemberId::fresh("other");
    let _member = case.control.members().join(other, Role::Scheduler, case.clock.now()).await.unwrap();
    until("all rows are listed anew", || case.counting.listings.load(Ordering::Relaxed) == 2).await;
}
