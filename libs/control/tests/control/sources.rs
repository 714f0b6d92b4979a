use async_nats::jetstream;
use control::{Control, ControlError, Revision, Schedule};

use crate::support::{self, config, control, soon, source, spec};

#[tokio::test]
async fn a_source_is_created_read_changed_and_deleted() {
    let control = control().await;
    let sources = control.sources();
    let created = sources.create(&spec(1)).await.unwrap();
    let read = sources.get(&source(1)).await.unwrap();
    assert_eq!((&*read.value, read.revision), (&spec(1), created));
    let mut changed = spec(1);
    changed.schedule = Some(Schedule::every(600));
    let updated = sources.update(&changed, created).await.unwrap();
    assert!(updated > created);
    assert_eq!(*sources.get(&source(1)).await.unwrap().value, changed);
    sources.delete(&source(1), updated).await.unwrap();
    assert!(matches!(sources.get(&source(1)).await, Err(ControlError::Absent { .. })));
    sources.create(&spec(1)).await.unwrap();
    assert_eq!(sources.list().await.unwrap().len(), 1, "what was deleted can be added again");
}

#[tokio::test]
async fn nobody_overwrites_what_another_has_written() {
    let control = control().await;
    let sources = control.sources();
    let first = sources.create(&spec(1)).await.unwrap();
    assert!(matches!(sources.create(&spec(1)).await, Err(ControlError::Exists { .. })));
    let second = sources.update(&spec(1), first).await.unwrap();
    for read in [first, Revision::new(0), Revision::new(second.get() + 1)] {
        assert!(matches!(sources.update(&spec(1), read).await, Err(ControlError::Conflict { .. })));
        assert!(matches!(sources.delete(&source(1), read).await, Err(ControlError::Conflict { .. })));
    }
    sources.delete(&source(1), second).await.unwrap();
    assert!(matches!(sources.update(&spec(1), second).await, Err(ControlError::Conflict { .. })));
}

#[tokio::test]
async fn what_makes_no_sense_is_not_written() {
    let control = control().await;
    let mut wrong = spec(1);
    wrong.include = Some("(".to_owned());
    assert!(matches!(control.sources().create(&wrong).await, Err(ControlError::Invalid(_))));
    let read = control.sources().create(&spec(1)).await.unwrap();
    assert!(matches!(control.sources().update(&wrong, read).await, Err(ControlError::Invalid(_))));
    assert_eq!(*control.sources().get(&source(1)).await.unwrap().value, spec(1));
}

#[tokio::test]
async fn a_view_follows_every_change() {
    let control = control().await;
    for n in 0..50 {
        control.sources().create(&spec(n)).await.unwrap();
    }
    let mut view = control.sources().view().await.unwrap();
    assert_eq!(view.all().len(), 50, "it is whole from the beginning");
    let created = control.sources().create(&spec(50)).await.unwrap();
    let seen = soon("it is seen", view.wait_for(|view| view.get(&source(50)))).await;
    assert_eq!(seen.revision, created);
    control.sources().delete(&source(50), created).await.unwrap();
    soon("it is gone", view.wait_for(|view| view.get(&source(50)).is_none().then_some(()))).await;
    assert_eq!(view.all().len(), 50);
}

#[tokio::test]
async fn a_value_of_a_later_release_is_told_and_hides_no_other() {
    let config = config().await;
    let control = Control::connect(&config).await.unwrap();
    control.sources().create(&spec(1)).await.unwrap();
    let client = async_nats::connect(&config.servers[0]).await.unwrap();
    let bucket = jetstream::new(client).get_key_value(format!("{}-sources", config.namespace)).await.unwrap();
    let later = r#"{"kind":"source-spec","version":99,"body":{}}"#;
    bucket.put(source(2).to_string(), later.into()).await.unwrap();
    let view = control.sources().view().await.unwrap();
    assert_eq!(view.all().len(), 1);
    let unreadable = view.unreadable();
    assert!(unreadable[source(2).as_str()].contains("found source-spec 99"), "{unreadable:?}");
    let error = control.sources().get(&source(2)).await.unwrap_err();
    assert!(
        matches!(error, ControlError::Unreadable { .. }) && error.to_string().contains("-sources"),
        "{error}"
    );
    assert!(control.sources().create(&spec(2)).await.is_err(), "and it is not overwritten");
}

/// The view of another namespace never gets the Source, like a view that lags.
#[tokio::test]
async fn a_source_that_a_view_does_not_have_yet_is_there() {
    let control = control().await;
    let behind = support::control().await.sources().view().await.unwrap();
    let sources = control.sources();
    assert!(!sources.is_there(&source(1), &behind).await.unwrap());
    sources.create(&spec(1)).await.unwrap();
    assert!(behind.get(&source(1)).is_none());
    assert!(sources.is_there(&source(1), &behind).await.unwrap());
}
