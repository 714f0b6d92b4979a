use async_nats::jetstream;
use control::{Config, Control, ControlError};
use testkit::servers::NatsServer;

use crate::support::{Line, config, config_at, control, soon, source, spec};

#[tokio::test]
async fn connecting_again_changes_how_buckets_are_kept_and_nothing_that_is_in_them() {
    let config = config().await;
    let first = Control::connect(&config).await.unwrap();
    first.sources().create(&spec(1)).await.unwrap();
    let second = Control::connect(&Config { runs_kept: 7, ..config.clone() }).await.unwrap();
    assert_eq!(second.sources().list().await.unwrap().len(), 1);
    let client = async_nats::connect(&config.servers[0]).await.unwrap();
    let name = format!("KV_{}-runs-past", config.namespace);
    let mut stream = jetstream::new(client).get_stream(name).await.unwrap();
    let kept = stream.info().await.unwrap().config.clone();
    assert_eq!(kept.max_messages_per_subject, 7);
    assert_eq!(kept.storage, jetstream::stream::StorageType::File);
}

#[tokio::test]
async fn fleets_of_other_namespaces_do_not_see_each_other() {
    let one = control().await;
    let two = control().await;
    one.sources().create(&spec(1)).await.unwrap();
    assert_eq!(two.sources().list().await.unwrap().len(), 0);
}

#[tokio::test]
async fn no_server_and_a_wrong_configuration_are_told_apart() {
    let nobody = config_at("nats://127.0.0.1:9");
    let error = Control::connect(&nobody).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("nats://127.0.0.1:9"), "{error}");
    let error = Control::connect(&Config { namespace: "a.b".to_owned(), ..nobody }).await.unwrap_err();
    assert!(matches!(error, ControlError::Config(_)) && !error.is_temporary());
}

#[tokio::test]
async fn a_view_has_what_changed_while_its_line_was_cut() {
    let config = config().await;
    let others = Control::connect(&config).await.unwrap();
    let line = Line::to(&config.servers[0]).await;
    let ours = Control::connect(&Config { servers: vec![line.url()], ..config }).await.unwrap();
    let kept = others.sources().create(&spec(1)).await.unwrap();
    let deleted = others.sources().create(&spec(2)).await.unwrap();
    let mut view = ours.sources().view().await.unwrap();
    assert_eq!(view.all().len(), 2);

    line.cut();
    soon("the view notices", view.wait_for(|view| (!view.is_live()).then_some(()))).await;
    assert!(ours.health().await.is_err());
    assert_eq!(view.all().len(), 2, "what was known last is still there");
    let mut changed = spec(1);
    changed.strict = true;
    others.sources().update(&changed, kept).await.unwrap();
    others.sources().delete(&source(2), deleted).await.unwrap();
    others.sources().create(&spec(3)).await.unwrap();

    line.repair();
    soon("the view is live again", view.wait_for(|view| view.is_live().then_some(()))).await;
    assert!(view.get(&source(1)).unwrap().strict);
    assert!(view.get(&source(2)).is_none() && view.get(&source(3)).is_some());
    ours.health().await.unwrap();
    others.sources().create(&spec(4)).await.unwrap();
    soon("it goes on", view.wait_for(|view| view.get(&source(4)))).await;
}

#[tokio::test]
async fn everything_goes_on_when_the_server_was_killed_and_started_again() {
    let mut server = NatsServer::start().await.unwrap();
    let control = Control::connect(&config_at(server.url())).await.unwrap();
    control.sources().create(&spec(1)).await.unwrap();
    let mut view = control.sources().view().await.unwrap();
    server.kill();
    soon("the view notices", view.wait_for(|view| (!view.is_live()).then_some(()))).await;
    server.start_again().await.unwrap();
    soon("the view is live again", view.wait_for(|view| view.is_live().then_some(()))).await;
    assert_eq!(view.all().len(), 1);
    control.sources().create(&spec(2)).await.unwrap();
    soon("it goes on", view.wait_for(|view| view.get(&source(2)))).await;
    control.health().await.unwrap();
}
