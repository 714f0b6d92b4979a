use std::time::Duration;

use control::{Session, SessionKey};

use crate::support::control;

fn session() -> Session {
    Session { mark: "ab".repeat(32) }
}

#[tokio::test]
async fn a_session_is_known_until_somebody_ends_it() {
    let control = control().await;
    let sessions = control.sessions();
    let key = SessionKey::of("secret");
    assert!(sessions.get(&key).await.unwrap().is_none());
    sessions.begin(&key, &session(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(*sessions.get(&key).await.unwrap().expect("it was begun").value, session());
    assert!(sessions.get(&SessionKey::of("another secret")).await.unwrap().is_none());
    sessions.end(&key).await.unwrap();
    assert!(sessions.get(&key).await.unwrap().is_none());
    sessions.end(&key).await.unwrap();
}

#[tokio::test]
async fn a_session_ends_by_itself_when_its_time_is_over() {
    let control = control().await;
    let sessions = control.sessions();
    let key = SessionKey::of("secret");
    sessions.begin(&key, &session(), Duration::from_secs(1)).await.unwrap();
    testkit::waiting::found("the session is over", async || {
        sessions.get(&key).await.unwrap().is_none().then_some(())
    })
    .await;
}
