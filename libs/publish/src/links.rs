//! The links of an entry that are passed on: those that stay true where the copy is published (§14.8).

use model::{Links, ResourceRecord, ResourceUri};
use resourcesync::{Link, is_xml_text, relation};

use crate::records::PassedLink;

/// Relations to another resource that a copy may have, too.
const TO_RESOURCES: [&str; 3] = [relation::DESCRIBED_BY, relation::DESCRIBES, relation::ALTERNATE];
/// Relations to something that is the same wherever a copy is.
const TO_OTHERS: [&str; 2] = [relation::PROFILE, relation::LICENSE];

/// The links with which a resource came, as far as XML can hold them. Links come from HTTP and JSON, too, and what an
/// earlier version read of documents may have characters that no document has.
pub(crate) fn own(record: &ResourceRecord) -> Vec<Link> {
    let links = record.listing.links.as_ref().map(Links::to_vec).unwrap_or_default();
    links.into_iter().filter_map(writable).collect()
}

/// A link without the values that XML cannot hold. None if its relation or its target is one.
fn writable(mut link: Link) -> Option<Link> {
    if !is_xml_text(&link.rel) || !is_xml_text(&link.href) {
        return None;
    }
    for value in [&mut link.hash, &mut link.media_type, &mut link.encoding, &mut link.path] {
        value.take_if(|text| !is_xml_text(text));
    }
    link.other.retain(|_, text| is_xml_text(text));
    Some(link)
}

/// The link to the first Source (the first `via` with which a resource came, unchanged), and those of its own links that
/// are passed on. A mirror, a patch, a version, a collection
/// and a persistent identifier are the original's; so are digest, length and time of a target.
pub(crate) fn of(own: Vec<Link>, first_source: Link) -> Vec<PassedLink> {
    let passed = own.into_iter().filter(|link| is_one_of(&TO_RESOURCES, link) || is_one_of(&TO_OTHERS, link));
    let passed = passed.map(|link| Link { media_type: link.media_type, ..Link::new(link.rel, link.href) });
    std::iter::once(first_source).chain(passed).map(|link| PassedLink { link, published: None }).collect()
}

/// The first link to a Source from which a resource was copied: that to the first Source of all.
pub(crate) fn via(links: &[Link]) -> Option<&Link> {
    links.iter().find(|link| link.rel == relation::VIA)
}

/// The resource that a link may lead to.
pub(crate) fn target(passed: &PassedLink) -> Option<ResourceUri> {
    is_one_of(&TO_RESOURCES, &passed.link).then(|| passed.link.href.parse().ok()).flatten()
}

/// Leads links to what is published. An alternate that is not is left out: readers would find another Source's.
pub(crate) fn lead(links: &mut Vec<PassedLink>, is_published: impl Fn(&ResourceUri) -> bool) {
    links.retain_mut(|passed| {
        passed.published = target(passed).filter(&is_published);
        passed.published.is_some() || passed.link.rel != relation::ALTERNATE
    });
}

fn is_one_of(relations: &[&str], link: &Link) -> bool {
    relations.contains(&link.rel.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(rel: &str, href: &str) -> PassedLink {
        PassedLink { link: Link::new(rel, href), published: None }
    }

    #[test]
    fn links_lead_to_what_is_published_and_no_alternate_leads_elsewhere() {
        let mut links = ["describedby", "describes", "alternate", "license", "via"]
            .iter()
            .flat_map(|rel| ["http://e.org/here", "http://e.org/away"].map(|href| passed(rel, href)))
            .collect();
        lead(&mut links, |uri| uri.as_str().ends_with("here"));
        let led: Vec<_> = links
            .iter()
            .map(|passed| (passed.link.rel.as_str(), &passed.link.href[13..], passed.published.is_some()))
            .collect();
        let expected = [
            ("describedby", "here", true),
            ("describedby", "away", false),
            ("describes", "here", true),
            ("describes", "away", false),
            ("alternate", "here", true),
            ("license", "here", false),
            ("license", "away", false),
            ("via", "here", false),
            ("via", "away", false),
        ];
        assert_eq!(led, expected);
    }
}
