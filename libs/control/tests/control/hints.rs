use control::Hint;

use crate::support::{control, now, source};

fn hint(n: usize, by: &str) -> Hint {
    Hint { source: source(n), given_at: now(), by: by.to_owned() }
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
    // To do it twice does no harm.
    hints.take_up(&newer).await.unwrap();
    let waiting: Vec<_> = hints.view().await.unwrap().all().iter().map(|hint| hint.source.clone()).collect();
    assert_eq!(waiting, [source(2)]);
}
