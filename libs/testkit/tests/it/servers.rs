//! The real servers start, answer, and do not disturb each other.

use std::collections::BTreeSet;

use object_store::{Error, ObjectStore as _, ObjectStoreExt as _, PutMode, PutOptions};
use testkit::servers::{NatsFixture, S3Fixture, Venv};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;

#[tokio::test]
async fn nats_answers_with_jetstream() {
    let fixture = NatsFixture::get().await;
    let address = fixture.url.strip_prefix("nats://").unwrap();
    let mut greeting = String::new();
    let stream = TcpStream::connect(address).await.unwrap();
    BufReader::new(stream).read_line(&mut greeting).await.unwrap();
    assert!(greeting.starts_with("INFO {") && greeting.contains("\"jetstream\":true"), "{greeting}");
    assert!(greeting.contains("\"version\":\"2.15.1\""), "{greeting}");
}

#[tokio::test]
async fn s3_keeps_objects_and_honours_conditional_puts() {
    let store = S3Fixture::get().await.store().unwrap();
    let create = || PutOptions::from(PutMode::Create);
    store.put_opts(&"a/b".into(), "first".into(), create()).await.unwrap();
    let second = store.put_opts(&"a/b".into(), "second".into(), create()).await;
    assert!(matches!(second, Err(Error::AlreadyExists { .. })), "{second:?}");
    let held = store.get(&"a/b".into()).await.unwrap().bytes().await.unwrap();
    assert_eq!(held, "first");
}

#[tokio::test]
async fn every_s3_fixture_has_a_bucket_of_its_own_and_many_fit() {
    let mut buckets = BTreeSet::new();
    for _ in 0..12 {
        let fixture = S3Fixture::get().await;
        let store = fixture.store().unwrap();
        assert!(store.head(&"one".into()).await.is_err(), "nobody has put anything there");
        store.put(&"one".into(), "object".into()).await.unwrap();
        buckets.insert(fixture.bucket);
    }
    assert_eq!(buckets.len(), 12);
}

#[tokio::test]
async fn s3_refuses_a_wrong_key() {
    let mut fixture = S3Fixture::get().await;
    fixture.secret_key = "guessed".to_owned();
    assert!(fixture.store().unwrap().put(&"one".into(), "object".into()).await.is_err());
}

#[test]
fn what_is_installed_is_found_again() {
    let venv = Venv::servers().unwrap();
    assert!(venv.program("weed").exists() && venv.program("nats-server").exists());
}
