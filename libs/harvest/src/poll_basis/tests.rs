use catalog::{Catalog, CatalogConfig};
use model::PollBasis;
use store::Store;
use testkit::scripted::{Reply, ScriptedServer};

use crate::{Harvest, Parts};

/// A document with this metadata and these entries.
fn urlset(md: &str, entries: &str) -> String {
    format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md {md}/>{entries}</urlset>"
    )
}

/// A Source whose Capability List leads to an empty Resource List at this path.
async fn source(list: &str) -> ScriptedServer {
    let server = ScriptedServer::start().await.unwrap();
    let entry = format!("<url><loc>{}</loc><rs:md capability=\"resourcelist\"/></url>", server.uri(list));
    server.always("/caps.xml", Reply::ok(urlset("capability=\"capabilitylist\"", &entry)));
    let empty = urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", "");
    server.always("/list.xml", Reply::ok(empty));
    server.always("/moved.xml", Reply::status(302).header("location", "/list.xml"));
    server
}

/// A run, and what it leaves for a poll.
async fn run(server: &ScriptedServer, store: &Store) -> Option<PollBasis> {
    let entry: url::Url = server.uri("/caps.xml").parse().unwrap();
    let catalog = Catalog::open(store.object_store(), "catalog", CatalogConfig::default()).await.unwrap();
    let parts = Parts::of_test(entry, catalog, store);
    let report = Harvest::open(parts).await.unwrap().run().await.unwrap();
    assert!(report.in_sync(), "{:?}", report.first_problems);
    report.poll
}

#[tokio::test]
async fn a_document_that_was_redirected_leaves_nothing_to_poll() {
    let store = Store::in_memory();
    let server = source("/moved.xml").await;
    assert_eq!(run(&server, &store).await, None);
    assert_eq!(run(&server, &store).await, None, "an idle run is redirected too");
    let direct = source("/list.xml").await;
    let basis = run(&direct, &Store::in_memory()).await.unwrap();
    assert_eq!(basis.documents.len(), 1);
    assert_eq!(basis.documents[0].uri, direct.uri("/list.xml"));
}
