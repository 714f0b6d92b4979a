use std::time::Duration;

use control::{Submission, SubmissionKey};
use model::RunId;

use crate::support::control;

const LASTS: Duration = Duration::from_secs(60);

fn submission(content: &str) -> Submission {
    Submission { content: content.to_owned(), run: RunId::fresh(), answer: None }
}

#[tokio::test]
async fn the_first_submission_with_a_key_is_the_one_and_keeps_its_answer() {
    let control = control().await;
    let submissions = control.submissions();
    let key = SubmissionKey::new("one", "key");
    let first = submissions.begin(&key, submission("a"), LASTS).await.unwrap();
    let second = submissions.begin(&key, submission("b"), LASTS).await.unwrap();
    assert_eq!((&second.content, second.run, &second.answer), (&"a".to_owned(), first.run, &None));
    submissions.answered(&key, &first, "done".to_owned(), LASTS).await.unwrap();
    // The slower process does not overwrite it.
    submissions.answered(&key, &second, "later".to_owned(), LASTS).await.unwrap();
    let again = submissions.begin(&key, submission("b"), LASTS).await.unwrap();
    assert_eq!((again.run, again.answer.as_deref()), (first.run, Some("done")));
    let other = submissions.begin(&SubmissionKey::new("two", "key"), submission("b"), LASTS).await.unwrap();
    assert_eq!(other.content, "b", "each submitter has keys of its own");
}

#[tokio::test]
async fn a_key_may_be_used_again_when_its_time_is_over() {
    let control = control().await;
    let submissions = control.submissions();
    let key = SubmissionKey::new("one", "key");
    submissions.begin(&key, submission("a"), Duration::from_secs(1)).await.unwrap();
    testkit::waiting::found("the key is free", async || {
        let begun = submissions.begin(&key, submission("b"), LASTS).await.unwrap();
        (begun.content == "b").then_some(())
    })
    .await;
}
