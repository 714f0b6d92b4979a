//! `thresher discover`: show what a Source offers.

use std::collections::HashSet;

use discovery::{Archive, Discovery, Visited};
use indicatif::HumanBytes;
use jiff::Timestamp;
use model::{OaiRepository, PageList, counted, displayed};
use resourcesync::Mode;

use crate::cli::DiscoverArgs;
use crate::exit::{CommandResult, Exit};
use crate::{crawl_delays, http, terminal};

/// Runs the command.
pub(crate) async fn run(args: DiscoverArgs) -> CommandResult {
    let client = http::client(args.http.config(&args.url)?)?;
    let options = documents::read_options(Mode::Tolerant, Timestamp::now());
    let wanted = args.oai.into();
    let search =
        discovery::discover_source(&client, &args.url, &options, Vec::new(), &wanted, args.landing_pages);
    let (mut found, _) = crawl_delays::print_during(&client, search).await?;
    let archives = discovery::archives(&client, &mut found, &options);
    found.archives = crawl_delays::print_during(&client, archives).await;
    if args.json {
        terminal::json(&found)?;
    } else {
        terminal::text(&draw(&found))?;
    }
    Ok(if found.failures.is_empty() { Exit::Good } else { Exit::Problems })
}

/// Sets of an OAI-PMH repository that are shown.
const SHOWN_SETS: usize = 20;

/// A line of the tree, and the nodes below it.
struct Node {
    text: String,
    below: Vec<Node>,
}

/// The tree as text, followed by remarks.
fn draw(found: &Discovery) -> String {
    let mut lines = Vec::new();
    let mut drawn = HashSet::new();
    let urls: HashSet<&str> = found.documents.iter().map(|document| document.url.as_str()).collect();
    let is_top = |document: &&Visited| document.parent.as_deref().is_none_or(|parent| !urls.contains(parent));
    for top in found.documents.iter().filter(is_top) {
        let node = node(found, top, &mut drawn);
        lines.push(node.text);
        branches(&node.below, "", &mut lines);
    }
    if let Some(repository) = &found.oai {
        lines.extend(repository_lines(repository));
        lines.extend(found.sets.iter().map(|(id, _)| format!("list      {id}")));
    }
    for interface in &found.interfaces {
        lines.push(format!("interface {}  {}", interface.kind.as_str(), interface.url));
    }
    for (id, set) in &found.sets {
        let kind = match set.pages {
            Some(PageList::Page) => "landing page",
            Some(PageList::Sitemap) => "list of landing pages",
            None => continue,
        };
        lines.push(format!("Signposting  {kind} {id}"));
    }
    for hint in &found.hints {
        lines.push(format!("note      {}  {}: {}", hint.kind.as_str(), hint.url, hint.kind));
    }
    for tried in &found.tried {
        lines.push(format!("attempted {}  {}", tried.route, tried.why));
    }
    for failure in &found.failures {
        lines.push(format!("problem   {}: {}", failure.url, failure.why));
    }
    lines.push(format!(
        "{} of resources, {}",
        counted(found.sets.len() as u64, "set", "sets"),
        counted(found.requests, "request", "requests")
    ));
    lines.iter().map(|line| displayed(line).into_owned() + "\n").collect()
}

/// What an OAI-PMH repository offers.
fn repository_lines(repository: &OaiRepository) -> Vec<String> {
    let formats: Vec<String> = repository.formats.iter().map(model::OaiFormat::told).collect();
    let mut lines = vec![
        format!("OAI-PMH repository  {}  ({})", repository.base, repository.name),
        format!("formats   {}; harvested: {}", formats.join(", "), repository.prefix),
        format!("times     {}, from {}", repository.granularity, repository.earliest),
        format!("deletions {}", repository.deletions.as_str()),
    ];
    lines.extend(repository.resourcesync.as_ref().map(|url| {
        format!("offers    ResourceSync too, at {url}; `thresher source move` moves a harvest there")
    }));
    lines.extend(repository.other_base.as_ref().map(|base| format!("base URL  it calls itself {base}")));
    let more = if repository.more_sets { ", and more" } else { "" };
    let sets: Vec<String> =
        repository.sets.iter().take(SHOWN_SETS).map(|set| format!("{} ({})", set.spec, set.name)).collect();
    let rest = repository.sets.len().saturating_sub(SHOWN_SETS);
    if !sets.is_empty() {
        let rest = if rest > 0 { format!(", and {rest} more") } else { String::new() };
        lines.push(format!("sets      {}{rest}{more}", sets.join(", ")));
    }
    lines.extend(repository.quirks.iter().map(|(quirk, times)| format!("quirk     {quirk} ×{times}")));
    lines
}

fn node<'a>(found: &'a Discovery, document: &'a Visited, drawn: &mut HashSet<&'a str>) -> Node {
    let mut text = format!("{}  {}", kind(document), document.url);
    let details = details(document);
    if !details.is_empty() {
        text = format!("{text}  ({})", details.join(", "));
    }
    let mut below = Vec::new();
    if !drawn.insert(&document.url) {
        return Node { text, below };
    }
    // Told like what lies below it, since a target may be long.
    below.extend(document.links.iter().map(|link| {
        let kind = link.media_type.as_ref().map_or(String::new(), |kind| format!("  ({kind})"));
        Node { text: format!("{}  {}{kind}", link.rel, link.href), below: Vec::new() }
    }));
    let set = found.sets.iter().find(|(id, _)| id.as_str() == document.url).map(|(_, set)| set);
    let links = set.map(|set| set.capabilities.as_slice()).unwrap_or_default();
    for link in links.iter().filter(|link| link.uri != document.url) {
        // A list above the sets was read itself.
        match found.documents.iter().find(|document| document.url == link.uri) {
            Some(list) if !drawn.contains(list.url.as_str()) => below.push(node(found, list, drawn)),
            _ => {
                let archive = found.archives.iter().find(|archive| archive.url == link.uri);
                let text = format!(
                    "{}  {}{}",
                    link.capability,
                    link.uri,
                    archive.map_or_else(String::new, of_archive)
                );
                below.push(Node { text, below: Vec::new() });
            }
        }
    }
    for child in found.documents.iter().filter(|child| child.parent.as_deref() == Some(&document.url)) {
        if !drawn.contains(child.url.as_str()) {
            below.push(node(found, child, drawn));
        }
    }
    Node { text, below }
}

/// What an Archive offers, in brackets.
fn of_archive(archive: &Archive) -> String {
    let mut details = vec![counted(archive.documents, "document", "documents")];
    details.extend(archive.from.map(|from| format!("from {from}")));
    details.extend(archive.until.map(|until| format!("until {until}")));
    details.extend(archive.trouble.as_ref().map(|trouble| format!("not read to its end: {trouble}")));
    format!("  ({})", details.join(", "))
}

fn branches(nodes: &[Node], indent: &str, lines: &mut Vec<String>) {
    for (at, node) in nodes.iter().enumerate() {
        let (branch, deeper) = if at + 1 == nodes.len() { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lines.push(format!("{indent}{branch}{}", node.text));
        branches(&node.below, &format!("{indent}{deeper}"), lines);
    }
}

fn kind(document: &Visited) -> String {
    let kind =
        document.capability.as_ref().map_or("sitemap (no capability given)".into(), ToString::to_string);
    if document.root == resourcesync::Root::SitemapIndex { format!("{kind} index") } else { kind }
}

fn details(document: &Visited) -> Vec<String> {
    let mut details = vec![document.route.to_string()];
    details.extend(document.entries.map(|n| counted(n, "entry", "entries")));
    details.extend(document.at.as_ref().map(|at| format!("from {at}")));
    details.extend(document.content_length.map(|length| HumanBytes(length).to_string()));
    details.extend(document.validators.etag.as_ref().map(|etag| format!("ETag {etag}")));
    details.extend(document.validators.last_modified.as_ref().map(|time| format!("modified {time}")));
    details.extend(document.quirks.iter().map(|(quirk, times)| format!("{quirk} ×{times}")));
    details
}
