use control::{Change, OutboxState};
use model::RunId;
use url::Url;

use crate::support::{control, now, source};

fn change(stored: u64) -> Change {
    Change { run: RunId::fresh(), from: now(), until: now(), stored, deleted: 0 }
}

fn target(n: usize) -> Url {
    format!("https://{n}.example/").parse().unwrap()
}

#[tokio::test]
async fn each_target_has_its_own_and_one_that_was_sent_is_gone_unless_there_is_more() {
    let control = control().await;
    let outbox = control.outbox();
    for n in [1, 2] {
        outbox.tell(&source(1), &target(n), &change(3), now()).await.unwrap();
    }
    let mut view = outbox.view().await.unwrap();
    let [one, two] = view.all().try_into().unwrap();
    assert!(one.is_waiting() && two.is_waiting() && one.target != two.target);

    let taken = outbox.take(&one, now()).await.unwrap().expect("nobody else has it");
    assert!(outbox.take(&one, now()).await.unwrap().is_none(), "somebody has it");
    outbox.forget(&taken).await.unwrap();
    let taken = outbox.take(&two, now()).await.unwrap().expect("nobody else has it");
    outbox.tell(&source(1), &two.target, &change(4), now()).await.unwrap();
    outbox.forget(&taken).await.unwrap();
    let left = view
        .wait_for(|view| <[_; 1]>::try_from(view.all()).ok().filter(|[left]| left.earlier.is_some()))
        .await;
    assert_eq!((left[0].target.clone(), left[0].change().stored), (two.target.clone(), 7));
}

#[tokio::test]
async fn what_was_refused_stays_to_be_seen_until_there_is_more_to_be_told() {
    let control = control().await;
    let outbox = control.outbox();
    outbox.tell(&source(1), &target(1), &change(1), now()).await.unwrap();
    let view = outbox.view().await.unwrap();
    let taken = outbox.take(&view.all()[0], now()).await.unwrap().expect("nobody else has it");
    let refused = outbox.failed(&taken, taken.refused("403")).await.unwrap().expect("nothing else was told");
    assert_eq!((refused.state, refused.trouble.as_deref()), (OutboxState::Refused, Some("403")));
    outbox.tell(&source(1), &target(1), &change(2), now()).await.unwrap();
    let again = outbox.view().await.unwrap().all();
    assert_eq!((again.len(), again[0].state, again[0].change().stored), (1, OutboxState::Waiting, 3));
    assert!(outbox.failed(&taken, taken.refused("403")).await.unwrap().is_none(), "it has changed");
}
