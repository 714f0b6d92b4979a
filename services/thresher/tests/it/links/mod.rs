//! Links of resources: kept, shown, and acted on. Each test is named after the rule that it shows.

mod acceptance;
mod api;
mod archived;
mod backfill;
mod documents;
mod follow;
mod kept;
mod memento;
mod mirrors;
mod only;
mod onward;
mod pairs;
mod patches;
mod repository;
mod rules;
mod works;

use crate::common::{Destination, Run, Site, resource, urlset};
use fixity::Sha256;
use serde_json::Value;

/// A Source made by hand, and a copy of it.
struct Case {
    site: Site,
    copy: Destination,
}

impl Case {
    async fn new() -> Self {
        Self { site: Site::start().await, copy: Destination::directory() }
    }

    /// Serves a Resource List of this day of January, and returns its URI.
    fn list(&self, day: u8, entries: &[String]) -> String {
        self.site
            .serve("/list.xml", urlset(&format!("capability=\"resourcelist\" at=\"{}\"", time(day)), entries))
    }

    #[track_caller]
    fn sync(&self, url: &str) -> Run {
        self.copy.sync(url)
    }

    /// The links of a resource, as `ls --json` shows them.
    #[track_caller]
    fn links(&self, uri: &str) -> Vec<Value> {
        let lines = self.copy.listed();
        let line =
            lines.iter().find(|line| line["uri"] == uri).unwrap_or_else(|| panic!("{uri} is not listed"));
        line["links"].as_array().cloned().unwrap_or_default()
    }

    /// The targets of a resource's links.
    #[track_caller]
    fn targets(&self, uri: &str) -> Vec<String> {
        self.links(uri).iter().map(|link| link["href"].as_str().expect("a target").to_owned()).collect()
    }
}

/// A moment of a day of January.
fn time(day: u8) -> String {
    format!("2026-01-{day:02}T00:00:00Z")
}

/// What an entry declares of these bytes.
fn declares(content: &str) -> String {
    format!("hash=\"sha-256:{}\" length=\"{}\"", Sha256::of(content.as_bytes()), content.len())
}

/// An entry with links.
fn linked(uri: &str, md: &str, links: &[&str]) -> String {
    resource(uri, md).replace("</url>", &(links.concat() + "</url>"))
}

/// A link of this relation and target, with more attributes.
fn ln(rel: &str, href: &str, more: &str) -> String {
    format!("<rs:ln rel=\"{rel}\" href=\"{href}\" {more}/>")
}
