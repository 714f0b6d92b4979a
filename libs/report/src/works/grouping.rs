//! Lays sorted claims beside the catalog, which has the same order, and makes works of them.

use std::collections::{HashMap, HashSet, VecDeque};

use catalog::{Lookups, PageScan, ResourceScan};
use futures::TryStreamExt;
use model::{Linked, Links, PageRecord, ResourceRecord, ResourceState, ResourceUri};
use resourcesync::{Link, relation};

use super::{MOST_MEMBERS, Member, Orphan, Part, Work, WorksError};
use crate::claims::{Kind, SortedClaims, is_metadata, kind, target};

/// Resources that are looked up together, at least.
const LOOKED_UP: usize = 512;
/// Landing pages that are looked up together: the links of each may have a megabyte.
const PAGES_LOOKED_UP: usize = 32;
/// HTML is the form of landing pages.
const HTML: [&str; 2] = ["text/html", "application/xhtml+xml"];

/// Makes works in the order of their heads.
pub(super) struct Grouping<'a> {
    catalog: &'a Lookups,
    heads: Heads,
    claims: SortedClaims,
    ready: VecDeque<Work>,
    is_at_end: bool,
}

/// Resources and landing pages, in the order of their URIs. A page is a group, and no resource.
pub(super) struct Heads {
    resources: ResourceScan,
    pages: PageScan,
    resource: Option<(ResourceUri, ResourceRecord)>,
    page: Option<(ResourceUri, PageRecord)>,
}

/// A resource or a landing page.
struct Head {
    uri: ResourceUri,
    links: Option<Links>,
    media_type: Option<String>,
    linked: Option<Box<Linked>>,
    /// Whether it is stored, or a page with links.
    counts: bool,
}

impl Heads {
    pub(super) fn new(resources: ResourceScan, pages: PageScan) -> Self {
        Self { resources, pages, resource: None, page: None }
    }

    async fn next(&mut self) -> Result<Option<Head>, WorksError> {
        if self.resource.is_none() {
            self.resource = self.resources.try_next().await?;
        }
        if self.page.is_none() {
            self.page = self.pages.try_next().await?;
        }
        if let (Some((resource, record)), Some((page, _))) = (&mut self.resource, &self.page)
            && page == resource
        {
            // It was, or is, taken for a resource too. The links of its entry win.
            let page = self.page.take();
            let links = record.listing.links.take();
            record.listing.links = links.or_else(|| page.and_then(|(_, page)| page.links));
        }
        let is_page = match (&self.resource, &self.page) {
            (Some((resource, _)), Some((page, _))) => page.as_str() < resource.as_str(),
            (resource, _) => resource.is_none(),
        };
        if is_page {
            return Ok(self.page.take().map(|(uri, page)| Head::of_page(uri, page)));
        }
        Ok(self.resource.take().map(|(uri, record)| Head::of_resource(uri, record)))
    }
}

impl Head {
    fn of_resource(uri: ResourceUri, record: ResourceRecord) -> Self {
        let (counts, media_type) = (record.is_present(), media_type(&record));
        Self { uri, media_type, counts, links: record.listing.links, linked: record.listing.linked }
    }

    fn of_page(uri: ResourceUri, page: PageRecord) -> Self {
        let media_type = Some(HTML[0].to_owned());
        Self { uri, media_type, counts: page.links.is_some(), links: page.links, linked: None }
    }
}

/// A resource, and what others say of it.
struct Candidate {
    uri: ResourceUri,
    links: Vec<Link>,
    media_type: Option<String>,
    linked: Option<Box<Linked>>,
    counts: bool,
    /// Resources that say that it is a member of their work.
    heads: Vec<Part>,
    /// Resources that say that they are members of its work.
    members: Vec<Part>,
    more: u64,
}

/// What a work needs to know of another resource.
struct Known {
    state: ResourceState,
    media_type: Option<String>,
    profile: Option<String>,
    is_linked: bool,
}

impl<'a> Grouping<'a> {
    pub(super) fn new(catalog: &'a Lookups, heads: Heads, claims: SortedClaims) -> Self {
        Self { catalog, heads, claims, ready: VecDeque::new(), is_at_end: false }
    }

    /// The next work.
    pub(super) async fn next(&mut self) -> Result<Option<Work>, WorksError> {
        while self.ready.is_empty() && !self.is_at_end {
            let candidates = self.candidates().await?;
            let known = look_up(self.catalog, &candidates).await?;
            self.ready.extend(candidates.into_iter().filter_map(|candidate| candidate.work(&known)));
        }
        Ok(self.ready.pop_front())
    }

    /// The next resources, as many as have enough others to look up.
    async fn candidates(&mut self) -> Result<Vec<Candidate>, WorksError> {
        let (mut candidates, mut others) = (Vec::new(), 0);
        while others < LOOKED_UP {
            let Some(head) = self.heads.next().await? else {
                self.is_at_end = true;
                break;
            };
            let candidate = self.candidate(head)?;
            if candidate.counts {
                others += 1 + candidate.links.len() + candidate.members.len();
                candidates.push(candidate);
            }
        }
        Ok(candidates)
    }

    fn candidate(&mut self, head: Head) -> Result<Candidate, WorksError> {
        let Head { uri, links, media_type, linked, counts } = head;
        let links = links.as_ref().map(Links::to_vec).unwrap_or_default();
        let (heads, members, more) = (Vec::new(), Vec::new(), 0);
        let mut found = Candidate { uri, links, media_type, linked, counts, heads, members, more };
        while self.claims.about().is_some_and(|about| about <= found.uri.as_str()) {
            let Some(claim) = self.claims.next()? else { break };
            if claim.about != found.uri.as_str() {
                // Of what is not stored.
                continue;
            }
            let to = match claim.kind {
                Kind::IsMember => &mut found.heads,
                Kind::HasMember => &mut found.members,
            };
            if to.len() < MOST_MEMBERS {
                to.push(Part { uri: claim.by, rel: claim.rel });
            } else if claim.kind == Kind::HasMember {
                found.more += 1;
            }
        }
        Ok(found)
    }
}

/// The other ends of the links of these resources, and the members that link to them.
async fn look_up(catalog: &Lookups, candidates: &[Candidate]) -> Result<HashMap<String, Known>, WorksError> {
    let linked = candidates.iter().flat_map(|candidate| {
        let ends = candidate.links.iter().filter(|link| kind(&link.rel).is_some()).map(target);
        let from = candidate.linked.iter().map(|linked| linked.from.as_str());
        ends.chain(candidate.members.iter().map(|member| member.uri.as_str())).chain(from)
    });
    let uris: HashSet<&str> = linked.collect();
    let uris: Vec<ResourceUri> = uris.into_iter().filter_map(|uri| uri.parse().ok()).collect();
    let mut known = HashMap::with_capacity(uris.len());
    for some in uris.chunks(LOOKED_UP) {
        let records = catalog.resources_many(some).await?;
        let found = some.iter().zip(records).filter_map(|(uri, record)| Some((uri, record?)));
        for few in some.chunks(PAGES_LOOKED_UP) {
            let pages = catalog.pages_many(few).await?;
            let pages = few.iter().zip(pages).filter(|(_, page)| page.is_some());
            known.extend(pages.map(|(uri, _)| (uri.to_string(), Known::of_page())));
        }
        known.extend(found.map(|(uri, record)| (uri.to_string(), Known::of(&record))));
    }
    Ok(known)
}

impl Known {
    fn of(record: &ResourceRecord) -> Self {
        let links = record.listing.links.as_ref().map(Links::to_vec).unwrap_or_default();
        let profile = links.into_iter().find(|link| link.rel == relation::PROFILE).map(|link| link.href);
        Self {
            state: if record.is_present() { ResourceState::Present } else { ResourceState::Deleted },
            media_type: media_type(record),
            profile,
            is_linked: record.listing.linked.is_some(),
        }
    }

    /// A landing page: it is known, and nothing of it is stored.
    fn of_page() -> Self {
        Self { state: ResourceState::Present, media_type: None, profile: None, is_linked: false }
    }

    fn is_present(&self) -> bool {
        self.state == ResourceState::Present
    }
}

fn media_type(record: &ResourceRecord) -> Option<String> {
    let sent = record.bitstream.as_ref().and_then(|bitstream| bitstream.media_type.as_ref());
    sent.or(record.declaration.media_type.as_ref()).cloned()
}

fn is_html(media_type: Option<&str>) -> bool {
    let essence = media_type.and_then(|media_type| media_type.split(';').next()).unwrap_or_default().trim();
    HTML.iter().any(|html| html.eq_ignore_ascii_case(essence))
}

impl Candidate {
    /// The work of which it is the head; none if it is only a member of another one.
    fn work(self, known: &HashMap<String, Known>) -> Option<Work> {
        let is_held = |uri: &str| known.get(uri).is_some_and(Known::is_present);
        let (own, up): (Vec<&Link>, Vec<&Link>) = self
            .links
            .iter()
            .filter(|link| kind(&link.rel).is_some() && target(link) != self.uri.as_str())
            .partition(|link| kind(&link.rel) == Some(Kind::IsMember));
        let has_own = |uri: &str| own.iter().any(|link| target(link) == uri);
        // Two that name each other as members: the first one is the head.
        let is_above = |uri: &str| !(has_own(uri) && self.uri.as_str() < uri);
        let said = up.iter().filter(|link| is_held(target(link)));
        let mut part_of: Vec<Part> = self.heads.iter().filter(|head| is_above(&head.uri)).cloned().collect();
        for link in said {
            if is_above(target(link)) && !part_of.iter().any(|part| part.uri == target(link)) {
                part_of.push(Part { uri: target(link).to_owned(), rel: link.rel.clone() });
            }
        }
        let is_part_of = |uri: &str| part_of.iter().any(|part| part.uri == uri);
        let mut members: Vec<Member> = Vec::new();
        for link in own.iter().filter(|link| !is_part_of(target(link))) {
            if !members.iter().any(|member| member.uri == target(link)) && members.len() < MOST_MEMBERS {
                let member = Member::new(target(link), &link.rel, known);
                let media_type = member.media_type.or_else(|| link.media_type.clone());
                let profile = member.profile.or_else(|| link.other.get("profile").cloned());
                members.push(Member { media_type, profile, ..member });
            }
        }
        let complete = members.iter().all(|member| member.state == Some(ResourceState::Present));
        let mut more = self.more;
        let named: HashSet<String> = members.iter().map(|member| member.uri.clone()).collect();
        for member in
            self.members.iter().filter(|member| !is_part_of(&member.uri) && !named.contains(&member.uri))
        {
            if members.len() < MOST_MEMBERS {
                members.push(Member::new(&member.uri, &member.rel, known));
            } else {
                more += 1;
            }
        }
        if members.is_empty() && !part_of.is_empty() {
            return None;
        }
        let (metadata, files): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|member| is_metadata(&member.rel));
        let orphan = if part_of.is_empty() { self.orphan(&up, is_held) } else { None };
        let targets = |rel: &str| -> Vec<String> {
            self.links.iter().filter(|link| link.rel == rel).map(|link| link.href.clone()).collect()
        };
        let is_page =
            own.iter().any(|link| link.rel == relation::ITEM) || is_html(self.media_type.as_deref());
        let page = files.iter().find(|file| is_html(file.media_type.as_deref())).map(|file| file.uri.clone());
        Some(Work {
            landing_page: if is_page { Some(self.uri.to_string()) } else { page },
            collections: targets(relation::COLLECTION),
            licenses: targets(relation::LICENSE),
            cite_as: targets(relation::CITE_AS),
            authors: targets(relation::AUTHOR),
            uri: self.uri.to_string(),
            metadata,
            files,
            part_of,
            more,
            complete,
            orphan,
        })
    }

    /// The link whose other end is not stored, although the resource is nothing without it: metadata without what it
    /// describes, and what a link alone led to.
    fn orphan(&self, up: &[&Link], is_held: impl Fn(&str) -> bool) -> Option<Orphan> {
        let described = up.iter().find(|link| link.rel == relation::DESCRIBES);
        let described = described.map(|link| Orphan { rel: link.rel.clone(), uri: target(link).to_owned() });
        described.or_else(|| {
            let linked = self.linked.as_ref()?;
            let orphan = Orphan { rel: linked.rel.clone(), uri: linked.from.to_string() };
            (!is_held(&orphan.uri)).then_some(orphan)
        })
    }
}

impl Member {
    fn new(uri: &str, rel: &str, known: &HashMap<String, Known>) -> Self {
        let found = known.get(uri);
        Self {
            uri: uri.to_owned(),
            rel: rel.to_owned(),
            state: found.map(|found| found.state),
            media_type: found.and_then(|found| found.media_type.clone()),
            profile: found.and_then(|found| found.profile.clone()),
            linked: found.is_some_and(|found| found.is_linked),
        }
    }
}
