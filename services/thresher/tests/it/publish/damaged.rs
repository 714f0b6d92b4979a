//! A resource that is damaged in the store, and a server that meets it.

use model::ResourceUri;
use publish::PublishedPath;
use reqwest::StatusCode;
use simulated_source::SourceSpec;
use testkit::waiting::found;

use super::Served;
use super::requests::{body, get};
use crate::common::{Destination, Inside, source};

/// The open Change List of a publication with one.
async fn changes(served: &Served) -> String {
    let index = body(get(&format!("{}changelist.xml", served.base), &[]).await).await;
    let index = String::from_utf8(index).unwrap();
    let list = index.rsplit("<loc>").next().and_then(|rest| rest.split("</loc>").next()).unwrap();
    String::from_utf8(body(get(list, &[]).await).await).unwrap()
}

#[tokio::test]
async fn what_a_server_cannot_send_is_told_as_deleted_soon_after() {
    let source = source(SourceSpec::default().resources(5)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let uri = source.resource_uri(2);
    let inside = Inside::of(&copy, &source.well_known()).await;
    inside.flip(&uri).await;
    inside.close().await;
    let served = Served::start(&copy);
    assert!(!changes(&served).await.contains("deleted"), "nothing has read it");

    let path = PublishedPath::of(&uri.parse::<ResourceUri>().unwrap());
    let url = format!("{}{}", served.base, path.as_str());
    assert_eq!(get(&url, &[]).await.status(), StatusCode::SERVICE_UNAVAILABLE);
    found("a deletion is told", async || changes(&served).await.contains("\"deleted\"").then_some(())).await;
    let reader = Destination::directory();
    reader.sync(&served.base).exits(0);
    assert_eq!(reader.present().len(), 4);
}
