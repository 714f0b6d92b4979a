//! Which publication is looked at when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::SourceId;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::mark::Mark;
use crate::follow::rest;
use crate::set::Set;

/// The least pause between two looks at a Source.
const LEAST_PAUSE: Duration = Duration::from_secs(1);
/// The pause after news. A catalog that is open for reading shows commits up to a second late, so what a run told before
/// may come only then.
const AFTER_NEWS: Duration = Duration::from_secs(3);
/// The pause after a first failure. It doubles.
const FIRST_FAILURE: Duration = Duration::from_secs(1);
/// The longest pause after failures.
const LONGEST_FAILURE: Duration = Duration::from_secs(60);
/// The pause while another publisher writes the publication.
const WHILE_HELD: Duration = Duration::from_secs(5);
/// How long after a change lists and files become old, so that they are closed or removed.
const AGING: Duration = Duration::from_secs(50 * 3_600);
/// How often a Source is looked at in that time.
const AGING_LOOKS: Duration = Duration::from_secs(3_600);
/// How often another Source is looked at, although no run tells of a change.
const IDLE_LOOKS: Duration = Duration::from_secs(24 * 3_600);

/// What came of a look at a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// It is published.
    Published {
        /// The changes that were told.
        changes: u64,
        /// The number of the next change of its catalog.
        next_change: Option<u64>,
        /// How long it took until they were told.
        telling: Duration,
        /// How long all of it took.
        whole: Duration,
    },
    /// Nothing of it is stored yet.
    Empty,
    /// Another publisher writes the publication.
    Held,
    /// It failed, and is tried again.
    Failed,
}

/// A publication, and when it is looked at.
pub(crate) struct Item {
    pub(crate) set: Set,
    /// Ends the tasks that tell its hubs, while they run.
    pub(crate) hubs: Option<CancellationToken>,
    /// Whether it is this publisher's to make.
    pub(crate) is_mine: bool,
    /// Whether its last look took long.
    pub(crate) is_slow: bool,
    /// Whether its last look failed.
    pub(crate) has_failed: bool,
    /// Whether nothing of it was stored at its last look.
    is_empty: bool,
    /// What was published, as far as runs tell.
    seen: Option<Mark>,
    /// What the look under way will have seen. None while there is no look.
    looking: Option<Option<Mark>>,
    /// The number of the next change of its catalog, after the last look.
    next_change: Option<u64>,
    /// Whether something else than its catalog has changed since its last look began.
    is_stale: bool,
    /// When old lists and files were looked for.
    tidied: Instant,
    changed: Option<Instant>,
    pause: Duration,
    due: Option<Instant>,
    /// No look begins before.
    not_before: Instant,
}

/// A look that begins.
pub(crate) struct Look {
    pub(crate) set: Set,
    /// Whether the last one took long.
    pub(crate) is_slow: bool,
    /// The number of the next change of the catalog that is published. None: also old lists and files are looked for.
    pub(crate) published: Option<u64>,
}

/// All publications, and the times of their next looks.
#[derive(Default)]
pub(crate) struct Agenda {
    items: BTreeMap<SourceId, Item>,
    due: BTreeSet<(Instant, SourceId)>,
}

impl Agenda {
    pub(crate) fn items(&self) -> impl Iterator<Item = (&SourceId, &Item)> {
        self.items.iter()
    }

    pub(crate) fn sources(&self) -> Vec<SourceId> {
        self.items.keys().cloned().collect()
    }

    pub(crate) fn get(&mut self, source: &SourceId) -> Option<&mut Item> {
        self.items.get_mut(source)
    }

    pub(crate) fn add(&mut self, source: SourceId, set: Set) {
        let now = Instant::now();
        let item = Item {
            set,
            hubs: None,
            is_mine: false,
            is_slow: false,
            has_failed: false,
            is_empty: false,
            seen: None,
            looking: None,
            next_change: None,
            is_stale: false,
            tidied: now,
            changed: None,
            pause: FIRST_FAILURE,
            due: None,
            not_before: now,
        };
        self.items.insert(source, item);
    }

    /// Removes a publication. A look under way ends by itself, and counts for nothing.
    pub(crate) fn remove(&mut self, source: &SourceId) {
        self.plan(source, None);
        if let Some(hubs) = self.items.remove(source).and_then(|item| item.hubs) {
            hubs.cancel();
        }
    }

    /// Has a Source looked at as soon as it may be.
    pub(crate) fn look_soon(&mut self, source: &SourceId) {
        let Some(item) = self.items.get(source).filter(|item| item.is_mine) else { return };
        let at = Instant::now().max(item.not_before);
        let at = item.due.map_or(at, |due| due.min(at));
        self.plan(source, Some(at));
    }

    /// The same, also if its catalog has not changed.
    pub(crate) fn look_anew(&mut self, source: &SourceId) {
        if let Some(item) = self.items.get_mut(source) {
            item.is_stale = true;
        }
        self.look_soon(source);
    }

    /// Looks at a Source no more, since it is another publisher's.
    pub(crate) fn rest(&mut self, source: &SourceId) {
        self.plan(source, None);
    }

    /// What a run tells: the Source is looked at if there is news.
    pub(crate) fn note_run(&mut self, source: &SourceId, mark: &Mark) {
        let Some(item) = self.items.get(source) else { return };
        // The first publication has all of the first run, and not each part of it as a change.
        if item.is_empty && !mark.is_over() {
            return;
        }
        // A look that is under way may not see what came after its beginning.
        let known = item.looking.as_ref().unwrap_or(&item.seen);
        if mark.is_news(known.as_ref()) {
            self.look_soon(source);
        }
    }

    /// When the next look is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A Source that is due now. One whose look is still under way is due again after it.
    pub(crate) fn take_due(&mut self) -> Option<SourceId> {
        let (at, source) = self.due.first()?.clone();
        if at > Instant::now() {
            return None;
        }
        self.plan(&source, None);
        Some(source)
    }

    /// Begins a look at what runs tell by now. None if one is under way: another one follows it.
    pub(crate) fn begin(&mut self, source: &SourceId, mark: Option<Mark>) -> Option<Look> {
        let item = self.items.get_mut(source)?;
        if item.looking.is_some() {
            let at = Instant::now() + LEAST_PAUSE;
            self.plan(source, Some(at));
            return None;
        }
        item.looking = Some(mark);
        if std::mem::take(&mut item.is_stale) || item.tidied.elapsed() >= AGING_LOOKS {
            item.next_change = None;
        }
        Some(Look { set: item.set.clone(), is_slow: item.is_slow, published: item.next_change })
    }

    /// Notes what came of a look, and plans the next one, if the Source is still published.
    pub(crate) fn end(&mut self, source: &SourceId, looked: Looked, is_slow: bool) {
        let Some(item) = self.items.get_mut(source) else { return };
        let now = Instant::now();
        let mark = item.looking.take().flatten();
        item.is_slow = is_slow;
        item.has_failed = looked == Looked::Failed;
        item.is_empty = looked == Looked::Empty || item.is_empty && looked == Looked::Held;
        let pause = match looked {
            Looked::Published { changes, next_change, telling, whole } => {
                let is_news = item.seen != mark || changes > 0;
                if item.next_change.is_none() {
                    item.tidied = now;
                }
                item.seen = mark;
                item.next_change = next_change;
                item.pause = FIRST_FAILURE;
                let rest = LEAST_PAUSE.max(rest(telling, whole));
                item.not_before = now + rest;
                if changes > 0 {
                    item.changed = Some(now);
                }
                match item.changed {
                    _ if is_news => AFTER_NEWS.max(rest),
                    Some(changed) if changed.elapsed() < AGING => AGING_LOOKS,
                    _ => IDLE_LOOKS,
                }
            }
            // The next run tells.
            Looked::Empty => {
                item.not_before = now + LEAST_PAUSE;
                IDLE_LOOKS
            }
            Looked::Held => WHILE_HELD,
            Looked::Failed => {
                item.next_change = None;
                let pause = item.pause;
                item.pause = (pause * 2).min(LONGEST_FAILURE);
                item.not_before = now + pause;
                pause
            }
        };
        if item.is_mine {
            let at = item.due.map_or(now + pause, |due| due.max(item.not_before).min(now + pause));
            self.plan(source, Some(at));
        }
    }

    fn plan(&mut self, source: &SourceId, at: Option<Instant>) {
        let Some(item) = self.items.get_mut(source) else { return };
        if let Some(before) = std::mem::replace(&mut item.due, at) {
            self.due.remove(&(before, source.clone()));
        }
        if let Some(at) = at {
            self.due.insert((at, source.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use control::{AskedBy, Run, RunSpec, RunState};
    use jiff::Timestamp;
    use model::{RunId, RunMode};
    use object_store::memory::InMemory;
    use publish::{Base, Place, Publication};
    use store::{SourceMarker, Store};
    use tokio::time::sleep;

    use super::*;
    use crate::settings::Settings;
    use crate::shared::{Held, Shared};

    fn source() -> SourceId {
        "one".parse().unwrap()
    }

    /// The agenda of one Source, which is this publisher's.
    fn agenda() -> Agenda {
        let publication = Publication::of_documents(
            Place::bucket("memory", Arc::new(InMemory::new())),
            Base::new("http://mirror.example/one/".parse().unwrap()).unwrap(),
            SourceMarker::new(source(), "http://e.org/"),
        );
        let shared = Shared::of_held(publication, Held::Harvest(Store::in_memory()), &Settings::default());
        let mut agenda = Agenda::default();
        agenda.add(source(), Set { shared, hub: None });
        agenda.get(&source()).unwrap().is_mine = true;
        agenda
    }

    fn run(stored: u64, is_over: bool) -> Mark {
        let spec = RunSpec {
            id: RunId::fresh(),
            source: source(),
            mode: RunMode::Auto,
            asked_by: AskedBy::Schedule,
            asked_at: Timestamp::UNIX_EPOCH,
            allow_deletes: false,
            repair: false,
            task: None,
        };
        let mut run = Run::submitted(spec);
        run.progress.counters.stored = stored;
        if is_over {
            run.state = RunState::Finished { in_sync: true };
        }
        Mark::of(&run)
    }

    /// A look that ends so, and the time until the next one.
    fn look(agenda: &mut Agenda, mark: Option<&Mark>, looked: Looked) -> Duration {
        assert_eq!(agenda.take_due(), Some(source()));
        assert!(agenda.begin(&source(), mark.cloned()).is_some());
        agenda.end(&source(), looked, false);
        agenda.next().unwrap().duration_since(Instant::now())
    }

    fn published(changes: u64) -> Looked {
        let telling = Duration::from_millis(100);
        Looked::Published { changes, next_change: Some(7), telling, whole: telling }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_is_followed_by_a_rest_of_its_own_time_up_to_ten_seconds() {
        let mut agenda = agenda();
        agenda.look_soon(&source());
        for (took, rest) in [(7, 7), (60, 10)] {
            let (telling, whole) = (Duration::from_millis(100), Duration::from_secs(took));
            let looked = Looked::Published { changes: 5, next_change: Some(7), telling, whole };
            assert_eq!(look(&mut agenda, None, looked).as_secs(), rest);
            sleep(Duration::from_secs(rest)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn news_have_a_look_and_another_and_an_idle_source_none_for_a_day() {
        let mut agenda = agenda();
        agenda.look_soon(&source());
        let first = run(5, true);
        assert_eq!(look(&mut agenda, Some(&first), published(5)), AFTER_NEWS);
        sleep(AFTER_NEWS).await;
        assert_eq!(look(&mut agenda, Some(&first), published(0)), AGING_LOOKS, "its lists grow old");
        // Runs without changes, and the same run again, are no news.
        agenda.note_run(&source(), &first);
        agenda.note_run(&source(), &run(0, true));
        assert_eq!(agenda.next().unwrap().duration_since(Instant::now()), AGING_LOOKS);
        let second = run(1, false);
        agenda.note_run(&source(), &second);
        sleep(LEAST_PAUSE).await;
        assert_eq!(look(&mut agenda, Some(&second), published(0)), AFTER_NEWS, "commits may come late");
        sleep(AGING + AGING_LOOKS).await;
        assert_eq!(look(&mut agenda, Some(&second), published(0)), IDLE_LOOKS);
    }

    #[tokio::test(start_paused = true)]
    async fn what_runs_tell_during_a_look_has_another_one() {
        let mut agenda = agenda();
        agenda.look_soon(&source());
        let before = run(5, false);
        agenda.take_due().unwrap();
        let begun = agenda.begin(&source(), Some(before.clone())).unwrap();
        assert_eq!(begun.published, None, "the first look is at everything");
        agenda.note_run(&source(), &before);
        assert_eq!(agenda.next(), None);
        agenda.note_run(&source(), &run(6, true));
        agenda.end(&source(), published(5), false);
        let next = agenda.next().unwrap().duration_since(Instant::now());
        assert_eq!(next, LEAST_PAUSE, "the changes of the last second are told together");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_to_be_looked_at_anew_is_so_after_a_look_under_way() {
        let mut agenda = agenda();
        agenda.look_soon(&source());
        look(&mut agenda, None, published(5));
        sleep(LEAST_PAUSE).await;
        agenda.look_soon(&source());
        agenda.take_due().unwrap();
        assert_eq!(agenda.begin(&source(), None).unwrap().published, Some(7));
        agenda.look_anew(&source());
        agenda.end(&source(), published(0), false);
        sleep(LEAST_PAUSE).await;
        assert_eq!(agenda.take_due(), Some(source()));
        assert_eq!(agenda.begin(&source(), None).unwrap().published, None, "at everything");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_publication_waits_for_the_end_of_the_first_run() {
        let mut agenda = agenda();
        agenda.look_soon(&source());
        assert_eq!(look(&mut agenda, None, Looked::Empty), IDLE_LOOKS);
        agenda.note_run(&source(), &run(5, false));
        assert_eq!(agenda.next().unwrap().duration_since(Instant::now()), IDLE_LOOKS);
        agenda.note_run(&source(), &run(0, true));
        assert_eq!(agenda.next().unwrap().duration_since(Instant::now()), LEAST_PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_after_pauses_that_grow_to_a_minute() {
        let mut agenda = agenda();
        agenda.look_soon(&source());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            let pause = look(&mut agenda, None, Looked::Failed);
            pauses.push(pause.as_secs());
            sleep(pause).await;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        // News do not shorten them.
        agenda.look_soon(&source());
        look(&mut agenda, None, Looked::Failed);
        agenda.note_run(&source(), &run(1, true));
        assert_eq!(agenda.next().unwrap().duration_since(Instant::now()).as_secs(), 60);
        // What is another publisher's, or not published any more, is looked at no more.
        agenda.remove(&source());
        assert_eq!(agenda.next(), None);
    }
}
