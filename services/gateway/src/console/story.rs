//! The history of one resource: the stored record, and its events in order.

use std::collections::VecDeque;

use ::report::history;
use api::ResourceHistory;
use axum::Extension;
use axum::extract::{Path, State};
use maud::{Markup, html};
use model::{
    Action, Assurance, Bitstream, ChangeLogEntry, Declaration, HomeSite, Listing, PendingRecord,
    ProblemRecord, ResourceRecord,
};
use serde::Deserialize;

use super::layout::{self, Frame};
use super::patience::at_once;
use super::resources::state;
use super::{HOME, tell};
use crate::ask::{self, Asked};
use crate::refusal::Refusal;
use crate::resources;
use crate::state::Gateway;
use crate::tokens::Caller;

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
    State(gateway): State<Gateway>,
    Extension(caller): Extension<Caller>,
    Path(source): Path<String>,
    Asked(params): Asked<Params>,
) -> Result<Markup, Refusal> {
    let (id, uri) = (ask::source(&source)?, ask::resource(params.uri.trim())?);
    let catalog = gateway.catalogs().get(&id).await?;
    let mut story = resources::known(&catalog, &uri).await?;
    let reading = {
        let uri = uri.clone();
        async move { resources::happened(&catalog, &uri).await }
    };
    let happened = at_once(params.wait, reading).await.transpose()?;
    let is_told = happened.is_some();
    if let Some(happened) = happened {
        (story.events, story.events_omitted) = happened;
        if story.is_empty() {
            return Err(resources::unknown(&uri));
        }
    }
    let home = format!("{HOME}/sources/{source}");
    let here = format!("{home}/resources");
    let path = [(home, source.as_str()), (here.clone(), "Resources")];
    let frame = Frame { title: "Resource history", caller: Some(&caller), path: &path, now: gateway.now() };
    let query = tell::query(uri.as_str());
    let spec = gateway.views().sources.get(&id);
    let is_foreign = spec.is_some_and(|spec| HomeSite::of(&spec.entry).is_foreign(uri.as_str()));
    let is_nothing_known = story.is_empty();
    Ok(layout::page(
        &frame,
        html! {
            p.uri { code { (uri) } }
            @if !is_nothing_known { p { (state(story.resource.state)) } }
            @if is_foreign { p { "This resource belongs to another site than the Source. Its own site may hold other bytes." } }
            @if story.record.as_ref().is_some_and(ResourceRecord::is_present) {
                p { a href={ (here) "/content?uri=" (query) } download { "Stored bytes" } }
            }
            (now_held(&story))
            section aria-labelledby="happened" {
                h2 #happened { "Events" }
                @if is_told { (events(&story.events, story.events_omitted)) } @else {
                    p {
                        "The change log of this Source is large. Reading it takes a while. "
                        a href={ (here) "/history?wait=true&uri=" (query) } { "Read it and wait" }
                    }
                }
            }
        },
    ))
}

fn now_held(story: &ResourceHistory) -> Markup {
    html! {
        @if let Some(record) = &story.record { (held(record)) }
        @if let Some(pending) = &story.pending { (planned(pending)) }
        @if let Some(problem) = &story.problem { (why_not(problem)) }
    }
}

fn held(record: &ResourceRecord) -> Markup {
    html! {
        section aria-labelledby="held" {
            h2 #held { "Stored" }
            dl {
                @match &record.bitstream {
                    Some(bitstream) => (described(bitstream)),
                    None => { dt { "Deleted" } dd { "by the Source" } },
                }
                (listed(&record.listing))
                (declared(&record.declaration))
                @if let Some(absence) = &record.absent {
                    dt { "Absent" } dd { "from " code { (absence.document) } ", seen " (tell::time(absence.seen_at)) }
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
        dt { "Length" } dd { (tell::count(bitstream.computed.length())) " bytes" }
        dt { "Verified by" } dd { (proof) }
        dt { "Stored at" } dd { (tell::time(bitstream.stored_at)) }
        @for digest in bitstream.computed.digests() { dt { "Computed" } dd { code { (digest) } } }
        @if let Some(kind) = &bitstream.media_type { dt { "Media type" } dd { (kind) } }
        @if let Some(url) = &bitstream.final_url { dt { "Final URL" } dd { code { (url) } } }
    }
}

fn listed(listing: &Listing) -> Markup {
    html! {
        dt { (listing.change.map_or("Listed".to_owned(), |change| format!("Listed as {change}"))) }
        dd { "by " code { (listing.document) } @if let Some(at) = listing.change_time.or(listing.as_of) { ", as of " (tell::time(at)) } }
    }
}

fn declared(declaration: &Declaration) -> Markup {
    html! {
        @for digest in &declaration.digests { dt { "Declared" } dd { code { (digest) } } }
        @for digest in &declaration.unjudged { dt { "Declared, unsupported" } dd { code { (digest) } } }
        @if let Some(length) = declaration.length { dt { "Declared length" } dd { (tell::count(length)) " bytes" } }
        @if let Some(at) = declaration.lastmod { dt { "Last modified" } dd { (tell::time(at)) } }
    }
}

fn planned(pending: &PendingRecord) -> Markup {
    let what = match pending.action {
        Action::Fetch { .. } if pending.mend => "replace the stored version",
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
                    dt { "Next attempt" } dd { (tell::time(at)) ", after " (pending.attempts) " failed attempts" }
                }
            }
            @if !pending.account.tried.is_empty() {
                ul { @for tried in &pending.account.tried { li { (tell::time(tried.at)) ": " (history::failed(tried)) } } }
            }
        }
    }
}

fn why_not(problem: &ProblemRecord) -> Markup {
    html! {
        section aria-labelledby="problem" {
            h2 #problem { "Problem" }
            dl {
                dt { "Reason" } dd { (problem.reason) }
                dt { "Message" } dd { (problem.message) }
                dt { "First seen" } dd { (tell::time(problem.first_seen)) }
                dt { "Last seen" } dd { (tell::time(problem.last_seen)) ", after " (problem.attempts) " attempts" }
                @if let Some(ignored) = &problem.ignored { dt { "Ignored" } dd { (ignored.note) ", since " (tell::time(ignored.at)) } }
            }
        }
    }
}

fn events(changes: &VecDeque<ChangeLogEntry>, left_out: u64) -> Markup {
    html! {
        @if left_out > 0 { p { (tell::of(left_out, "event", "events")) " omitted." } }
        @if changes.is_empty() { p { "No events yet." } }
        ol.story {
            @for entry in changes {
                @for tried in &entry.account.tried { li { (tell::time(tried.at)) " " (history::failed(tried)) } }
                li { (tell::time(entry.at)) " " strong { (history::what(&entry.event)) } br; span.hint { (history::because(entry)) } }
            }
        }
    }
}
