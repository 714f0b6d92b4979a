//! The history of one resource: the stored record, and its events in order.

use std::collections::VecDeque;

use ::report::history;
use api::{LinkEnd, ResourceHistory};
use maud::{Markup, html};
use model::{
    Action, Assurance, Bitstream, ChangeLogEntry, Declaration, HomeSite, Links, Listing, PendingRecord,
    ProblemRecord, ResourceRecord,
};
use serde::Deserialize;

use super::deadline::within_deadline;
use super::format;
use super::layout::{PageContext, source_url};
use super::resources::state;
use crate::api_error::ApiError;
use crate::extract::{self, Query, SourcePath};
use crate::resources;

/// Parameters of the page.
#[derive(Debug, Deserialize)]
pub(super) struct Params {
    uri: String,
    /// Whether the operator chose to wait for slow results.
    #[serde(default)]
    wait: bool,
}

/// The page.
pub(super) async fn page(
    context: PageContext,
    SourcePath(source): SourcePath,
    Query(params): Query<Params>,
) -> Result<Markup, ApiError> {
    let uri = extract::resource_uri(params.uri.trim())?;
    let catalog = context.gateway.catalogs.get(&source).await?;
    let mut found = resources::lookup(&catalog, &uri).await?;
    let reading = {
        let uri = uri.clone();
        async move { resources::events(&catalog, &uri).await }
    };
    let events = within_deadline(params.wait, reading).await.transpose()?;
    let has_events = events.is_some();
    if let Some(events) = events {
        (found.events, found.events_omitted) = events;
        if found.is_empty() {
            return Err(resources::unknown(&uri));
        }
    }
    let home = source_url(&source);
    let here = format!("{home}/resources");
    let called = context.called(&source);
    let parents = [(home, called.as_str()), (here.clone(), "Resources")];
    let query = format::query(uri.as_str());
    let spec = context.gateway.views.sources.get(&source);
    let is_foreign = spec.is_some_and(|spec| HomeSite::of(&spec.entry).is_foreign(uri.as_str()));
    let is_nothing_known = found.is_empty();
    let content = html! {
        p.uri { code { (uri) } }
        @if !is_nothing_known { p { (state(found.resource.state)) } }
        @if is_foreign { p { "This resource belongs to another site than the Source. Its own site may hold other bytes." } }
        @if found.record.as_ref().is_some_and(ResourceRecord::is_present) {
            p { a href={ (here) "/content?uri=" (query) } download { "Stored bytes" } }
        }
        (records(&found))
        section aria-labelledby="events" {
            h2 #events { "Events" }
            @if has_events { (event_list(&found.events, found.events_omitted)) } @else {
                p {
                    "The change log of this Source is large. Reading it takes a while. "
                    a href={ (here) "/history?wait=true&uri=" (query) } { "Read it and wait" }
                }
            }
        }
    };
    Ok(context.page_below(&parents, "Resource history", content))
}

fn records(found: &ResourceHistory) -> Markup {
    html! {
        @if let Some(record) = &found.record {
            (stored(record))
            @if let Some(links) = &found.resource.links { (link_list(links, &found.link_ends)) }
        }
        @if let Some(pending) = &found.pending { (pending_record(pending)) }
        @if let Some(problem) = &found.problem { (problem_record(problem)) }
    }
}

fn stored(record: &ResourceRecord) -> Markup {
    html! {
        section aria-labelledby="stored" {
            h2 #stored { "Stored" }
            dl {
                @match &record.bitstream {
                    Some(bitstream) => (described(bitstream)),
                    None => { dt { "Deleted" } dd { "by the Source" } },
                }
                (listed(&record.listing))
                (declared(&record.declaration))
                @if let Some(absence) = &record.absent {
                    dt { "Absent" } dd { "from " code { (absence.document) } ", seen " (format::time(absence.seen_at)) }
                }
            }
        }
    }
}

/// The links as text: a target is an address that the Source names, so it is no link of this page.
fn link_list(links: &Links, ends: &[LinkEnd]) -> Markup {
    html! {
        section aria-labelledby="links" {
            h2 #links { "Links" }
            dl {
                @for (number, link) in links.to_vec().into_iter().enumerate() {
                    dt { (link.rel) }
                    dd {
                        code { (link.href) }
                        @if let Some(kind) = &link.media_type { ", " (kind) }
                        @if let Some(length) = link.length { ", " (format::count(length)) " bytes" }
                        @if let Some(pri) = link.pri { ", priority " (pri) }
                        @if let Some(document) = link.other.get("document") { br; span.hint { "of " (document) } }
                        @if let Some(why) = ends.get(number).and_then(|end| end.not_followed.as_ref()) {
                            br; span.hint { (why) }
                        }
                    }
                }
            }
        }
    }
}

fn described(bitstream: &Bitstream) -> Markup {
    let proof = match bitstream.assurance {
        Assurance::Digest => "declared digest",
        Assurance::Length => "declared length; no digest was declared",
        Assurance::None => "nothing: no digest or length was declared",
    };
    html! {
        dt { "Length" } dd { (format::count(bitstream.computed.length())) " bytes" }
        dt { "Verified by" } dd { (proof) }
        dt { "Stored at" } dd { (format::time(bitstream.stored_at)) }
        @for digest in bitstream.computed.digests() { dt { "Computed" } dd { code { (digest) } } }
        @if let Some(kind) = &bitstream.media_type { dt { "Media type" } dd { (kind) } }
        @if let Some(url) = &bitstream.final_url { dt { "Final URL" } dd { code { (url) } } }
    }
}

fn listed(listing: &Listing) -> Markup {
    html! {
        dt { (listing.change.map_or("Listed".to_owned(), |change| format!("Listed as {change}"))) }
        dd { "by " code { (listing.document) } @if let Some(at) = listing.change_time.or(listing.as_of) { ", as of " (format::time(at)) } }
        @if let Some(linked) = &listing.linked {
            dt { "Linked from" }
            dd { code { (linked.from) } " as " (linked.rel) @if linked.shared { ", and from others" } ": no list names it" }
        }
    }
}

fn declared(declaration: &Declaration) -> Markup {
    html! {
        @for digest in &declaration.digests { dt { "Declared" } dd { code { (digest) } } }
        @for digest in &declaration.unjudged { dt { "Declared, unsupported" } dd { code { (digest) } } }
        @if let Some(length) = declaration.length { dt { "Declared length" } dd { (format::count(length)) " bytes" } }
        @if let Some(at) = declaration.lastmod { dt { "Last modified" } dd { (format::time(at)) } }
    }
}

fn pending_record(pending: &PendingRecord) -> Markup {
    let what = match pending.action {
        Action::Fetch { .. } if pending.repair => "replace the stored version",
        Action::Fetch { .. } => "fetch",
        Action::Delete => "delete",
    };
    html! {
        section aria-labelledby="pending" {
            h2 #pending { "Pending" }
            dl {
                dt { "Action" } dd { (what) }
                (listed(&pending.listing))
                (declared(&pending.declaration))
                @if let Some(at) = pending.next_attempt_at {
                    dt { "Next attempt" } dd { (format::time(at)) ", after " (pending.attempts) " failed attempts" }
                }
            }
            @if !pending.account.tried.is_empty() {
                ul { @for tried in &pending.account.tried { li { (format::time(tried.at)) ": " (history::failed(tried)) } } }
            }
        }
    }
}

fn problem_record(problem: &ProblemRecord) -> Markup {
    html! {
        section aria-labelledby="problem" {
            h2 #problem { "Problem" }
            dl {
                dt { "Reason" } dd { (problem.reason) }
                dt { "Message" } dd { (problem.message) }
                dt { "First seen" } dd { (format::time(problem.first_seen)) }
                dt { "Last seen" } dd { (format::time(problem.last_seen)) ", after " (problem.attempts) " attempts" }
                @if let Some(ignored) = &problem.ignored { dt { "Ignored" } dd { (ignored.note) ", since " (format::time(ignored.at)) } }
            }
        }
    }
}

fn event_list(changes: &VecDeque<ChangeLogEntry>, left_out: u64) -> Markup {
    html! {
        @if left_out > 0 { p { (format::counted(left_out, "event", "events")) " omitted." } }
        @if changes.is_empty() { p { "No events yet." } }
        ol.story {
            @for entry in changes {
                @for tried in &entry.account.tried { li { (format::time(tried.at)) " " (history::failed(tried)) } }
                li { (format::time(entry.at)) " " strong { (history::what(&entry.event)) } br; span.hint { (history::because(entry)) } }
            }
        }
    }
}
