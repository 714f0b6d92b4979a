use std::sync::Arc;
use std::time::Duration;

use control::{AskedBy, Run, RunSpec, RunState};
use jiff::Timestamp;
use model::{RunId, RunMode};
use object_store::memory::InMemory;
use publish::{Base, Place, Publication};
use store::{SourceMarker, Store};
use tokio::time::sleep;

use super::pauses::{AFTER_NEWS, AGING, AGING_LOOKS, IDLE_LOOKS, LEAST};
use super::*;
use crate::settings::Settings;
use crate::shared::{Held, Shared};

fn source() -> SourceId {
    "one".parse().unwrap()
}

/// The agenda of one Source, which is this publisher's.
fn agenda() -> Agenda {
    let mut agenda = Agenda::default();
    add(&mut agenda, source(), "http://e.org/");
    agenda
}

/// Adds a Source with this URL.
fn add(agenda: &mut Agenda, source: SourceId, url: &str) {
    let publication = Publication::of_documents(
        Place::bucket("memory", Arc::new(InMemory::new())),
        Base::new("http://mirror.example/one/".parse().unwrap()).unwrap(),
        SourceMarker::new(source.clone(), url),
    );
    let shared = Shared::of_held(publication, Held::Harvest(Store::in_memory()), &Settings::default());
    agenda.add(source.clone(), Set { shared, hub: None });
    agenda.get(&source).unwrap().is_mine = true;
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
    let took = Duration::from_millis(100);
    Looked::Published { changes, next_change: Some(7), until_told: took, in_all: took }
}

#[tokio::test(start_paused = true)]
async fn a_look_is_followed_by_a_rest_of_its_own_time_up_to_ten_seconds() {
    let mut agenda = agenda();
    agenda.look_soon(&source());
    for (took, rest) in [(7, 7), (60, 10)] {
        let (until_told, in_all) = (Duration::from_millis(100), Duration::from_secs(took));
        let looked = Looked::Published { changes: 5, next_change: Some(7), until_told, in_all };
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
    sleep(LEAST).await;
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
    assert_eq!(next, LEAST, "the changes of the last second are told together");
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_looked_at_anew_is_so_after_a_look_under_way() {
    let mut agenda = agenda();
    agenda.look_soon(&source());
    look(&mut agenda, None, published(5));
    sleep(LEAST).await;
    agenda.look_soon(&source());
    agenda.take_due().unwrap();
    assert_eq!(agenda.begin(&source(), None).unwrap().published, Some(7));
    agenda.look_anew(&source());
    agenda.end(&source(), published(0), false);
    sleep(LEAST).await;
    assert_eq!(agenda.take_due(), Some(source()));
    assert_eq!(agenda.begin(&source(), None).unwrap().published, None, "at everything");
}

#[tokio::test(start_paused = true)]
async fn of_all_sources_those_with_such_a_url_are_looked_at_first() {
    let mut agenda = agenda();
    let last: SourceId = "zebra".parse().unwrap();
    add(&mut agenda, last.clone(), "http://z.org/");
    agenda.look_anew_first(|url| url == "http://z.org/");
    assert_eq!(agenda.take_due(), Some(last.clone()));
    assert_eq!(agenda.take_due(), None);
    assert!(agenda.begin(&last, None).is_some());
    sleep(super::pauses::AFTER_FIRST).await;
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
    assert_eq!(agenda.next().unwrap().duration_since(Instant::now()), LEAST);
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
