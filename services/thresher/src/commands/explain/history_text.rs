//! The text of a history: sections, each with a title and indented lines.

use std::fmt::Display;

use model::{
    Absence, Action, Assurance, Bitstream, Declaration, Linked, Listing, Location, PendingRecord,
    ProblemReason, ProblemRecord, ResourceRecord, StoredBitstream, Version, bytes, counted, displayed,
};
use report::history;
use resourcesync::{Link, relation};
use store::Key;

use super::ResourceHistory;
use super::content::Named;
use super::copies::Copies;
use super::pairs::End;
use crate::commands::problems;

/// A text in sections.
pub(super) struct Text(Vec<String>);

impl Text {
    /// A text about `subject`, of a Source.
    pub(super) fn about(subject: &impl Display, source: &str) -> Self {
        let mut text = Self(vec![subject.to_string()]);
        text.line(format!("of the Source {source}"));
        text
    }

    /// Begins a section.
    pub(super) fn section(&mut self, title: impl Into<String>) {
        self.0.push(String::new());
        self.0.push(title.into());
    }

    /// A line of the section.
    pub(super) fn line(&mut self, line: impl Display) {
        self.0.push(format!("  {line}"));
    }

    /// Lines of the section.
    pub(super) fn lines<T: Display>(&mut self, lines: impl IntoIterator<Item = T>) {
        lines.into_iter().for_each(|line| self.line(line));
    }

    /// The whole text, cleaned line by line.
    pub(super) fn finish(self) -> String {
        self.0.iter().map(|line| displayed(line).into_owned() + "\n").collect()
    }
}

/// A link of a record's metadata, and the rule that classed it.
fn named(named: &Named) -> String {
    let open = named.open_from.as_ref().map_or(String::new(), |from| format!("; open from {from}"));
    format!("{} {} ({}{open})", named.role, named.href, named.rule)
}

/// The text of a resource's history.
pub(super) fn of(history: &ResourceHistory) -> String {
    let mut text = Text::about(&history.uri, &history.source);
    if history.foreign {
        text.line("which is another site: its bytes may differ from those of the URI's owner");
    }
    for former in &history.formerly {
        text.line(format!("which was {} until it was moved, at {}", former.url, former.until));
    }
    if let Some(header) = &history.oai {
        let sets = if header.sets.is_empty() { "no set".to_owned() } else { header.sets.join(", ") };
        text.line(format!("record {} of OAI-PMH, as {}, in {sets}", header.identifier, header.prefix));
    }
    text.section("History");
    text.lines(history.events.iter().flat_map(history::lines));
    if history.events.is_empty() {
        text.line("no events yet");
    }
    if let Some(record) = &history.record {
        text.section("Stored");
        match &record.bitstream {
            Some(bitstream) => stored(&mut text, bitstream),
            None => text.line(gone(record)),
        }
        listed(&mut text, &record.listing, &record.declaration);
        if let Some(origin) = first_source(&record.listing) {
            text.line(format!("first Source: {origin}"));
        }
        if let Some(absence) = &record.absent {
            text.line(absent(history, absence));
        }
    }
    if let Some(links) = history.record.as_ref().and_then(|record| record.listing.links.as_ref()) {
        text.section("Links");
        let ends = history.pairs.as_ref().map(|pairs| pairs.to.as_slice()).unwrap_or_default();
        let ends = ends.iter().map(Some).chain(std::iter::repeat(None));
        for (one, end) in links.to_vec().iter().zip(ends) {
            let state = end.and_then(|end| end.state).map(|state| format!(": {state}"));
            text.line(format!("{}{}", link(one), state.unwrap_or_default()));
            text.lines(end.and_then(|end| end.not_followed.as_ref()).map(|why| format!("    {why}")));
        }
    }
    if !history.named.is_empty() {
        text.section("Named in its metadata");
        text.lines(history.named.iter().map(named));
    }
    if let Some(page) = &history.landing_page {
        text.section("Landing page");
        text.lines(page.lines());
    }
    if let Some(pairs) = history.pairs.as_ref().filter(|pairs| !pairs.from.is_empty()) {
        let versions = pairs.versions();
        if !versions.is_empty() {
            text.section("Versions that are resources of their own");
            text.lines(versions.iter().map(|end| version(end)));
        }
        let others = pairs.from.iter().filter(|end| end.rel != relation::ORIGINAL);
        let mut others = others.map(|end| format!("{} as {}", end.uri, end.rel)).peekable();
        if others.peek().is_some() || pairs.is_cut {
            text.section("Linked from");
        }
        text.lines(others);
        if pairs.is_cut {
            text.line(
                "perhaps more: not all resources were searched; `thresher ls --link REL=URI` finds them all",
            );
        }
    }
    if let Some(copies) = &history.copies {
        copies_of(&mut text, copies);
    }
    if !history.versions.is_empty() {
        text.section("Kept versions");
        history.versions.iter().for_each(|version| kept(&mut text, version));
    }
    if let Some(record) = &history.pending {
        pending(&mut text, record);
    }
    if let Some(record) = &history.problem {
        problem(&mut text, record);
    }
    for (document, problem) in &history.document_problems {
        text.section(format!("Document problem: {} ({})", document, problem.reason));
        text.line(&problem.message);
    }
    text.finish()
}

/// Absence alone deletes nothing.
fn absent(history: &ResourceHistory, absence: &Absence) -> String {
    let problem = history.document_problems.get(&absence.document);
    let is_guarded = problem.is_some_and(|problem| problem.reason == ProblemReason::Guard);
    let kept = if is_guarded { "the deletion guard keeps it" } else { "kept until a later list confirms it" };
    format!("absent from {}, seen {}; {kept}", absence.document, absence.seen_at)
}

fn gone(record: &ResourceRecord) -> String {
    let what = match (&record.deleted, record.collected) {
        (Some(_), _) => "; its bytes can be restored until `thresher gc` removes them",
        (None, Some(at)) => &format!("; `thresher gc` removed its bytes at {at}, so it cannot be restored"),
        (None, None) => "",
    };
    format!("nothing: the Source deleted it{what}")
}

fn stored(text: &mut Text, bitstream: &Bitstream) {
    let proof = match bitstream.assurance {
        Assurance::Digest => "its digest matches the declared one",
        Assurance::Length => "its length matches the declared one; no digest was declared",
        Assurance::None => "no digest or length was declared",
    };
    text.line(format!("{}, stored {}: {proof}", bytes(bitstream.computed.length()), bitstream.stored_at));
    text.line(format!("stored at {}", place(&bitstream.location)));
    text.lines(bitstream.computed.digests().iter().map(|digest| format!("computed {digest}")));
    text.lines(bitstream.final_url.iter().map(|url| format!("final URL {url}")));
    text.lines(bitstream.media_type.iter().map(|media_type| format!("media type {media_type}")));
}

/// An earlier version: its time, content and location.
fn kept(text: &mut Text, version: &Version) {
    let Version { bitstream, from, until, lost, .. } = version;
    let length = bytes(bitstream.computed.length());
    let sha256 = bitstream.computed.sha256();
    let option = if version.was_stored() {
        text.line(format!("{from}  stored until {until}: {length}, sha-256 {sha256}"));
        format!("--at {from}")
    } else {
        let time = version.time();
        text.line(format!("{time}  of the Source, never the stored one: {length}, sha-256 {sha256}"));
        if let Some(url) = &bitstream.final_url {
            text.line(format!("    from {url}"));
        }
        format!("--source-at {time}")
    };
    text.line(match lost {
        Some(lost) => format!("    its bytes were damaged, and discarded at {lost}"),
        None => format!("    stored at {}; `thresher cat {option}` prints it", place(&bitstream.location)),
    });
}

fn pending(text: &mut Text, pending: &PendingRecord) {
    text.section(match pending.action {
        Action::Fetch { .. } if pending.repair => "Pending: to be refetched and replaced",
        Action::Fetch { .. } => "Pending: to be fetched",
        Action::Delete => "Pending: to be deleted",
    });
    listed(text, &pending.listing, &pending.declaration);
    if let Some(kept) = &pending.candidate {
        candidate(text, kept);
    }
    text.lines(pending.account.tried.iter().map(history::attempt));
    if let Some(next) = pending.next_attempt_at {
        let attempts = counted(pending.attempts.into(), "attempt", "attempts");
        text.line(format!("{attempts} failed; the next is due at {next}"));
    }
}

fn problem(text: &mut Text, problem: &ProblemRecord) {
    let ProblemRecord { reason, message, first_seen, last_seen, .. } = problem;
    let attempts = counted(problem.attempts.into(), "attempt", "attempts");
    let next = problems::next(false, problem.ignored.as_ref(), problem.next_attempt_at);
    text.section(format!("Problem: {reason}"));
    text.line(message);
    text.line(format!("first seen {first_seen}, last seen {last_seen}, {attempts}; {next}"));
    text.lines(problem.listing.iter().filter_map(|listing| listing.linked.as_deref()).map(linked_from));
    if problem.repair {
        text.line("its stored bytes are doubtful, and are to be replaced");
    }
    text.lines(problems::evidence(&problem.evidence));
    if let Some(kept) = &problem.evidence.candidate {
        candidate(text, kept);
        text.line(
            "it is not served, because no list has declared it yet. A list that declares its digest makes it \
             current without another request; a list that declares another one starts a new fetch",
        );
    }
}

fn place(location: &Location) -> String {
    let key = Key::of(location);
    match location.span() {
        None => key.to_string(),
        Some(span) => format!("{key}, {} at {}", bytes(span.stored_length), span.offset),
    }
}

/// The copies of one origin: those with the same bytes are told together.
fn copies_of(text: &mut Text, copies: &Copies) {
    let (same, other): (Vec<_>, Vec<_>) = copies.copies.iter().partition(|copy| copy.is_same);
    text.section(format!("Copies of one origin, {}", copies.origin));
    text.line(counted(same.len() as u64, "copy with these bytes:", "copies with the same bytes:"));
    text.lines(same.iter().map(|copy| format!("    {} of the Source {}", copy.uri, copy.source)));
    if !other.is_empty() {
        text.line("with other bytes, older or edited:");
        text.lines(other.iter().map(|copy| format!("    {} of the Source {}", copy.uri, copy.source)));
    }
    if copies.is_cut {
        text.line("perhaps more: not all resources were searched");
    }
}

/// A version with a URI of its own.
fn version(end: &End) -> String {
    let time = end.source_from.map_or("of no known time".to_owned(), |time| time.to_string());
    let state = end.state.map_or(String::new(), |state| format!(": {state}"));
    format!("{time}  {}{state}", end.uri)
}

/// The candidate that waits for a list that declares it.
fn candidate(text: &mut Text, kept: &StoredBitstream) {
    let modified = kept.modified.map_or(String::new(), |time| format!(", last modified {time}"));
    text.line(format!("kept as a candidate: {}{modified}", bytes(kept.computed.length())));
    text.line(format!("the candidate is stored at {}", place(&kept.location)));
    text.lines(kept.computed.digests().iter().map(|digest| format!("the candidate has {digest}")));
}

/// Where the resource was first published, if its Source took it from there.
fn first_source(listing: &Listing) -> Option<String> {
    let links = listing.links.as_ref()?.to_vec();
    links.into_iter().find(|link| link.rel == relation::VIA).map(|link| link.href)
}

/// A link in one line: the relation, the target, and what the entry says of the target.
fn link(link: &Link) -> String {
    let mut said: Vec<String> =
        [&link.media_type, &link.hash, &link.encoding, &link.path].into_iter().flatten().cloned().collect();
    said.extend(link.length.map(bytes));
    said.extend(link.modified.map(|time| format!("modified {time}")));
    said.extend(link.pri.map(|pri| format!("pri {pri}")));
    said.extend(link.other.iter().map(|(name, value)| format!("{name} {value}")));
    let said = if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) };
    format!("{} {}{said}", link.rel, link.href)
}

/// The link that leads to a resource that no list names.
fn linked_from(linked: &Linked) -> String {
    let others = if linked.shared { ", and from others" } else { "" };
    format!("linked from {} as {}{others}", linked.from, linked.rel)
}

/// What a document says of the resource.
fn listed(text: &mut Text, listing: &Listing, declaration: &Declaration) {
    let change = listing.change.map_or("listed".to_owned(), |change| change.to_string());
    let when = listing.change_time.or(listing.as_of).map_or(String::new(), |time| format!(" as of {time}"));
    match &listing.linked {
        Some(linked) => text.lines([
            format!("{change}{when} by {}, through a link: no list names it", listing.document),
            linked_from(linked),
        ]),
        None => text.line(format!("{change}{when} by {}", listing.document)),
    }
    text.lines(declaration.digests.iter().map(|digest| format!("declared {digest}")));
    text.lines(declaration.unjudged.iter().map(|value| format!("declared {value} (unsupported)")));
    text.lines(declaration.length.map(|length| format!("declared length {length}")));
    text.lines(declaration.lastmod.map(|lastmod| format!("last modified {lastmod}")));
}
