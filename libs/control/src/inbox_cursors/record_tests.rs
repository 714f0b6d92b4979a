use std::time::Duration;

use jiff::Timestamp;
use model::Validators;
use url::Url;

use super::record::*;

const EVERY: Duration = Duration::from_secs(300);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_772_366_400 + second).unwrap()
}

fn url(n: usize) -> Url {
    format!("https://e.org/inbox/{n}").parse().unwrap()
}

fn urls(all: impl IntoIterator<Item = usize>) -> Vec<Url> {
    all.into_iter().map(url).collect()
}

fn new() -> InboxCursor {
    InboxCursor::new("example-org-1".parse().unwrap(), "https://e.org/".parse().unwrap(), at(0))
}

fn etag() -> Validators {
    Validators { etag: Some("\"1\"".to_owned()), last_modified: None }
}

fn read(of: &InboxCursor, listed: &[Url], left: &[&Url]) -> InboxCursor {
    of.taken(EVERY, at(0)).read("https://e.org/inbox/".parse().unwrap(), listed, left, etag(), EVERY, at(1))
}

#[test]
fn what_was_read_is_not_read_again_and_what_is_not_listed_any_more_is_forgotten() {
    let listed = urls(0..5);
    assert_eq!(new().unseen(&listed), listed.iter().rev().collect::<Vec<_>>());
    let some = read(&new(), &listed, &[&listed[0], &listed[1]]);
    assert_eq!(some.unseen(&listed), [&listed[1], &listed[0]]);
    assert!(some.validators.is_empty(), "it has to be listed again");
    let all = read(&some, &listed, &[]);
    assert_eq!((all.unseen(&listed), &all.validators, all.seen.len()), (vec![], &etag(), 5));
    let later = read(&all, &urls(3..7), &[]);
    assert_eq!((later.seen.len(), later.next_at, later.tries), (4, at(301), 0));
    assert_eq!(later.unseen(&listed).len(), 3, "what comes back is new");
}

#[test]
fn an_inbox_without_an_end_takes_no_room_without_an_end() {
    let listed = urls(0..MOST_SEEN + 100);
    let all = read(&new(), &listed, &[]);
    assert_eq!((all.seen.len(), all.unseen(&listed).len()), (MOST_SEEN, 0));
    assert!(model::encode(&all).len() < 100_000, "it fits into a value");
}

#[test]
fn looks_that_come_to_nothing_are_ever_more_seldom_and_the_inbox_is_found_anew() {
    let mut now = at(0);
    let mut seen = read(&new(), &urls(0..2), &[]);
    let mut pauses = Vec::new();
    for _ in 0..6 {
        let taken = seen.taken(EVERY, now);
        assert!(taken.next_at > now, "nobody else looks meanwhile");
        seen = taken.failed("503", None, EVERY, now);
        pauses.push(seen.next_at.duration_since(now).as_secs());
        now = seen.next_at;
    }
    assert_eq!(pauses, [300, 600, 1200, 2400, 3600, 3600]);
    assert_eq!((seen.inbox.as_ref(), seen.seen.len(), seen.trouble.as_deref()), (None, 2, Some("503")));
    let wish = seen.failed("429", Some(at(99_999_999)), EVERY, at(0));
    assert_eq!(wish.next_at, at(24 * 3_600));
    let rare = Duration::from_secs(7_200);
    assert_eq!(new().taken(rare, at(0)).taken(rare, at(0)).next_at, at(7_200));
}
