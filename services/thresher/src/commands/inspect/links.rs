//! `thresher inspect --links`: print the typed links of a landing page as JSON lines.

use std::collections::BTreeMap;
use std::io;

use discovery::Landing;
use links::landing::{Finding, Place, TypedLink};
use serde::Serialize;
use url::Url;

use crate::cli::InspectArgs;
use crate::exit::{CommandResult, Exit, usage};
use crate::terminal::Out;
use crate::{crawl_delays, http};

/// A link.
#[derive(Serialize)]
struct LinkLine<'a> {
    context: &'a Url,
    rel: &'a str,
    href: &'a Url,
    #[serde(rename = "in")]
    places: Vec<Place>,
    /// All values of each attribute.
    attributes: BTreeMap<&'a str, Vec<&'a str>>,
}

/// The last line.
#[derive(Serialize)]
struct SummaryLine<'a> {
    page: &'a Url,
    links: usize,
    /// Links about other resources, or beyond the limits.
    others: u64,
    unread: Vec<UnreadLine<'a>>,
    faults: &'a BTreeMap<&'static str, u64>,
    findings: &'a [Finding],
    requests: u64,
}

#[derive(Serialize)]
struct UnreadLine<'a> {
    url: &'a Url,
    why: &'a str,
}

/// Runs the command. It ends with problems if a link set could not be read.
pub(super) async fn run(args: &InspectArgs) -> CommandResult {
    let page = Url::parse(&args.document).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(page) = page else {
        return Err(usage(format!("--links needs the URL of a page, and not {}", args.document)));
    };
    let client = http::client(super::web(args, &page)?)?;
    let found = crawl_delays::print_during(&client, discovery::landing(&client, &page)).await?;
    print(&found)?;
    Ok(if found.unread.is_empty() { Exit::Good } else { Exit::Problems })
}

fn print(found: &Landing) -> io::Result<()> {
    let mut out = Out::new();
    for link in &found.links {
        out.json(&line(link))?;
    }
    let unread = found.unread.iter().map(|(url, why)| UnreadLine { url, why });
    let Landing { url: page, others, faults, findings, requests, .. } = found;
    let summary = SummaryLine {
        page,
        links: found.links.len(),
        others: *others,
        unread: unread.collect(),
        faults,
        findings,
        requests: *requests,
    };
    out.json(&summary)?;
    out.finish()
}

fn line(link: &TypedLink) -> LinkLine<'_> {
    let mut attributes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in &link.attributes {
        attributes.entry(name).or_default().push(value);
    }
    let places = link.places.iter().copied().collect();
    LinkLine { context: &link.context, rel: &link.rel, href: &link.target, places, attributes }
}
