use control::{ActionKind, ActionSelector, ProblemActionRequest, SourceSpec};

use crate::support::{control, now};

#[tokio::test]
async fn words_wait_in_their_order_for_the_owner_of_their_source_and_are_gone_when_taken_up() {
    let control = control().await;
    let source = |url: &str| SourceSpec::new(url.parse().unwrap()).id;
    let one = source("https://one.example/");
    let other = source("https://other.example/");
    let about =
        || ActionSelector { prefix: Some("https://one.example/".to_owned()), ..ActionSelector::default() };
    let ignore =
        ProblemActionRequest::new(one.clone(), about(), ActionKind::Ignore { note: "old".to_owned() }, now());
    // IDs of the same millisecond have no defined order.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let retry = ProblemActionRequest::new(one.clone(), about(), ActionKind::Retry { ignored: false }, now());
    for word in [&retry, &ignore, &ProblemActionRequest::new(other.clone(), about(), ActionKind::Undo, now())]
    {
        control.problem_actions().say(word).await.unwrap();
    }
    let waiting = control.problem_actions().of(&one).await.unwrap();
    assert_eq!(waiting.iter().map(|word| &*word.value).collect::<Vec<_>>(), [&ignore, &retry]);
    control.problem_actions().forget(&waiting[0]).await.unwrap();
    let waiting = control.problem_actions().of(&one).await.unwrap();
    assert_eq!(waiting.iter().map(|word| &*word.value).collect::<Vec<_>>(), [&retry]);
    assert_eq!(control.problem_actions().of(&other).await.unwrap().len(), 1);
}
