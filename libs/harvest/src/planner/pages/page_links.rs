//! The links of a landing page that was read, as its record keeps them.

use std::collections::{BTreeMap, HashSet};

use discovery::Landing;
use links::landing::TypedLink;
use model::{Disposition, Failure, ProblemReason};
use planning::pages::{self, LINK_SET};
use resourcesync::{Link, relation};

/// The quirk of an item on another host, which no rule names.
pub(super) const ELSEWHERE: &str = "item-elsewhere";
/// The quirk of a page that has no links of a landing page.
const NO_SIGNPOSTING: &str = "no-signposting";
/// The quirk of what stands where a page should be, such as a file.
const NOT_A_PAGE: &str = "not-a-page";

/// What was read of a page.
pub(super) struct ReadLinks {
    pub(super) links: Vec<Link>,
    /// What was tolerated, by name.
    pub(super) quirks: BTreeMap<String, u64>,
    /// Why not all of it could be read.
    pub(super) trouble: Option<Failure>,
}

/// The links that count. `before` are those that were known: the link sets among them stay known where the page did not
/// answer.
pub(super) fn read(landing: &Landing, before: &[Link]) -> ReadLinks {
    let of_page = landing.links.iter().filter(|link| link.context == landing.url);
    let parts: HashSet<&url::Url> =
        of_page.filter(|link| leads_to_part(&link.rel)).map(|link| &link.target).collect();
    let counts = |link: &&TypedLink| link.context == landing.url || parts.contains(&link.context);
    let of_part = |link: &TypedLink| link.context != landing.url;
    let mut links: Vec<Link> = landing
        .links
        .iter()
        .filter(counts)
        // A page is no part of itself.
        .filter(|link| !(leads_to_part(&link.rel) && link.target == landing.url))
        // What a part is cited by, or licensed under, says nothing of the page.
        .filter(|link| if of_part(link) { leads_to_part(&link.rel) } else { pages::is_kept(&link.rel) })
        .map(kept)
        .collect();
    if !links.iter().any(|link| link.rel == LINK_SET) {
        links.extend(before.iter().filter(|link| link.rel == LINK_SET && is_still_known(landing)).cloned());
    }
    let mut quirks: BTreeMap<String, u64> =
        landing.faults.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect();
    for finding in &landing.findings {
        quirks.insert(finding.as_str().to_owned(), 1);
    }
    if !landing.is_page {
        quirks.insert(NOT_A_PAGE.to_owned(), 1);
    } else if !links.iter().any(|link| leads_to_part(&link.rel)) {
        quirks.insert(NO_SIGNPOSTING.to_owned(), 1);
    }
    let trouble = landing.unread.first().map(|(url, why)| Failure {
        reason: ProblemReason::Malformed,
        message: format!("{url}: {why}"),
        disposition: Disposition::Retry { after: None },
        evidence: Default::default(),
    });
    ReadLinks { links, quirks, trouble }
}

/// Whether the links were read without the page.
fn is_still_known(landing: &Landing) -> bool {
    landing.faults.contains_key(links::Fault::NoPage.as_str())
}

fn leads_to_part(rel: &str) -> bool {
    rel == relation::ITEM || rel == relation::DESCRIBED_BY
}

/// A link as records keep it.
fn kept(link: &TypedLink) -> Link {
    let attribute = |name: &str| link.attribute(name).filter(|value| !value.is_empty()).map(str::to_owned);
    let mut kept = Link::new(link.rel.clone(), link.target.as_str());
    kept.media_type = attribute("type");
    kept.length = attribute("length").and_then(|length| length.parse().ok());
    kept.other.extend(attribute("profile").map(|profile| ("profile".to_owned(), profile)));
    kept
}
