use control::{ChangedKey, Hint, HubHint};

use crate::support::{control, now, source};

#[tokio::test]
async fn each_hint_to_a_hub_is_seen_also_one_like_that_before() {
    let control = control().await;
    let hints = control.hub_hints();
    let view = hints.view().await.unwrap();
    let mut keys = view.changed_keys();
    let given_at = now();
    for _ in 0..2 {
        hints.give(&source(1), given_at).await.unwrap();
        let ChangedKey::One(key) = keys.next().await else { panic!("the view is the same") };
        let hint = view.row(&key).expect("it stays for a while");
        assert_eq!(*hint, HubHint { source: source(1), given_at });
    }
}

fn hint(n: usize, by: &str) -> Hint {
    Hint { source: source(n), given_at: now(), by: by.to_owned(), unproved: false }
}

#[tokio::test]
async fn a_hint_that_is_taken_up_is_gone_and_one_that_came_meanwhile_stays() {
    let control = control().await;
    let hints = control.hints();
    hints.give(&hint(1, "a")).await.unwrap();
    hints.give(&hint(2, "a")).await.unwrap();
    let seen = hints.get(&source(1)).await.unwrap().expect("it was given");
    hints.give(&hint(1, "b")).await.unwrap();
    hints.take_up(&seen).await.unwrap();
    let newer = hints.get(&source(1)).await.unwrap().expect("it was given while the other was taken up");
    assert_eq!(newer.by, "b");
    hints.take_up(&newer).await.unwrap();
    assert!(hints.get(&source(1)).await.unwrap().is_none());
    // A repetition is harmless.
    hints.take_up(&newer).await.unwrap();
    let waiting: Vec<_> = hints.view().await.unwrap().all().iter().map(|hint| hint.source.clone()).collect();
    assert_eq!(waiting, [source(2)]);
}

#[tokio::test]
async fn an_unproved_hint_does_not_take_the_place_of_a_proved_one() {
    let control = control().await;
    let hints = control.hints();
    let waiting = async || hints.get(&source(3)).await.unwrap().map(|hint| (hint.by.clone(), hint.unproved));
    let unproved = |by: &str| Hint { unproved: true, ..hint(3, by) };
    hints.give(&unproved("a")).await.unwrap();
    assert_eq!(waiting().await, Some(("a".to_owned(), true)));
    hints.give(&unproved("b")).await.unwrap();
    assert_eq!(waiting().await, Some(("b".to_owned(), true)));
    hints.give(&hint(3, "c")).await.unwrap();
    hints.give(&unproved("d")).await.unwrap();
    assert_eq!(waiting().await, Some(("c".to_owned(), false)));
}
