use control::{ActionKind, ProblemActionRequest, SourceSpec, WordAbout};

use crate::support::{control, now};

#[tokio::test]
async fn words_wait_in_their_order_for_the_owner_of_their_source_and_are_gone_when_taken_up() {
    let control = control().await;
    let source = |url: &str| SourceSpec::new(url.parse().unwrap()).id;
    let one = source("https://one.example/");
    let other = source("https://other.example/");
    let about = || WordAbout { prefix: Some("https://one.example/".to_owned()), ..WordAbout::default() };
    let ignore =
        ProblemActionRequest::new(one.clone(), about(), ActionKind::Ignore { note: "old".to_owned() }, now());
    // IDs of the same millisecond have no defined order.
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    let retry = ProblemActionRequest::new(one.clone(), about(), ActionKind::Retry { ignored: false }, now());
    for word in [&retry, &ignore, &ProblemActionRequest::new(other.clone(), about(), ActionKind::Undo, now())]
    {
        control.words().say(word).await.unwrap();
    }
    let waiting = control.words().of(&one).await.unwrap();
    assert_eq!(waiting.iter().map(|word| &*word.value).collect::<Vec<_>>(), [&ignore, &retry]);
    control.words().forget(&waiting[0]).await.unwrap();
    let waiting = control.words().of(&one).await.unwrap();
    assert_eq!(waiting.iter().map(|word| &*word.value).collect::<Vec<_>>(), [&retry]);
    assert_eq!(control.words().of(&other).await.unwrap().len(), 1);
}
