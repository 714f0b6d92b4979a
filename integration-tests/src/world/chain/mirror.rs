//! The place of a publication as a server shows it, and what is to hold of its documents.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use fixity::Sha256;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use object_store::ObjectStoreExt;
use object_store::path::Path;
use resourcesync::{Capability, Entry, Header, Item, Options, ReadError, Reader};
use web::{Carried, Transport};

use super::BASE;
use crate::effects::Effects;
use crate::sim_objects::SimObjects;
use crate::world::words;

const CAPABILITIES: &str = "capabilitylist.xml";

/// The connection between a process and the place of a publication.
#[derive(Debug)]
pub(super) struct Mirror {
    pub(super) objects: SimObjects,
    pub(super) effects: Arc<Effects>,
}

impl Mirror {
    async fn answer(&self, request: http::Request<()>) -> io::Result<Carried> {
        let path = request.uri().path().trim_start_matches('/').to_owned();
        let begun = self.effects.begin(format!("GET {BASE}{path}")).await;
        let found = read(&self.objects, &path).await;
        self.effects.end(begun).await;
        let Ok(body) = found else { return Ok(carried(http::Response::builder().status(404), Bytes::new())) };
        let etag = format!("\"{}\"", Sha256::of(&body));
        let is_known = request.headers().get("if-none-match").is_some_and(|known| *known == etag.as_str());
        let media_type = if path.starts_with("resources/") { "text/plain" } else { "application/xml" };
        let answer = http::Response::builder().header("etag", etag).header("content-type", media_type);
        Ok(if is_known {
            carried(answer.status(304), Bytes::new())
        } else {
            carried(answer.header("content-length", body.len()), body)
        })
    }
}

impl Transport for Mirror {
    fn carry(&self, request: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>> {
        Box::pin(self.answer(request))
    }
}

fn carried(answer: http::response::Builder, body: Bytes) -> Carried {
    answer.body(stream::iter([Ok(body)]).boxed()).expect("plain headers")
}

/// Each document that another one names is at the place, and each resource of the Resource List.
///
/// # Errors
/// What is not.
pub(super) async fn all_that_is_named_is_there(objects: &SimObjects) -> Result<(), String> {
    let mut left = Vec::new();
    if objects.head(&Path::from(CAPABILITIES)).await.is_ok() {
        left.push(CAPABILITIES.to_owned());
    }
    while let Some(path) = left.pop() {
        let (header, entries) = document(&path, &read(objects, &path).await?)?;
        let names_documents = header.is_index() || header.capability == Some(Capability::CapabilityList);
        for Entry { loc, .. } in entries {
            let named = loc.strip_prefix(BASE).ok_or_else(|| format!("{path} names {loc}"))?;
            if names_documents {
                left.push(named.to_owned());
            } else if header.capability == Some(Capability::ResourceList) {
                read(objects, named).await.map_err(|why| format!("{path} names it: {why}"))?;
            }
        }
    }
    Ok(())
}

async fn read(objects: &SimObjects, path: &str) -> Result<Bytes, String> {
    let key = Path::parse(path).map_err(words)?;
    let found = objects.get(&key).await.map_err(|error| format!("{path} cannot be read: {error}"))?;
    found.bytes().await.map_err(words)
}

fn document(path: &str, bytes: &[u8]) -> Result<(Header, Vec<Entry>), String> {
    let wrong = |error: ReadError| format!("{path} is no document: {error}");
    let mut reader = Reader::new(bytes, Options::default()).map_err(wrong)?;
    let header = reader.header().map_err(wrong)?.clone();
    let mut entries = Vec::new();
    while let Some(item) = reader.next().map_err(wrong)? {
        match item {
            Item::Entry(entry) => entries.push(*entry),
            Item::Bad(bad) => return Err(format!("{path} has a bad entry: {}", bad.reason)),
        }
    }
    Ok((header, entries))
}
