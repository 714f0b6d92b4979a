//! Which mirrors of a resource to request, and in which order. Pure.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use model::{
    Declaration, Failure, Listing, Mirror, MirrorPlan, Mirrors, Origin, PendingRecord, ProblemReason,
    ResourceUri,
};
use resourcesync::{Change, Link, relation};

use crate::filter::Filter;

/// The most mirrors of a resource that are tried in a run, one attempt each.
const MOST: usize = 3;
/// The priority of a link that states none.
const LAST: u32 = 999_999;

/// The mirrors of a resource that may be requested, in their order: by priority, then as listed.
///
/// Only where a digest is declared, since nothing else proves that a mirror has the same bytes; never for a deletion.
/// A link that contradicts the declaration is no mirror of the declared version.
pub fn usable(
    mode: Mirrors,
    uri: &ResourceUri,
    declaration: &Declaration,
    listing: &Listing,
    filter: &Filter,
) -> Vec<Mirror> {
    let is_asked_for = mode != Mirrors::Off && listing.change != Some(Change::Deleted);
    let Some(links) = listing.links.as_ref().filter(|_| is_asked_for && !declaration.digests.is_empty())
    else {
        return Vec::new();
    };
    let mut mirrors: Vec<Mirror> = Vec::new();
    for link in links.to_vec() {
        if link.rel != relation::DUPLICATE || contradicts(&link, declaration) {
            continue;
        }
        let Ok(url) = ResourceUri::try_from(link.href) else { continue };
        let is_other = url != *uri && mirrors.iter().all(|mirror| mirror.url != url);
        let is_foreign = filter.only_of.as_ref().is_some_and(|home| home.is_foreign(url.as_str()));
        if is_other && !is_foreign && url.origin().is_ok() {
            mirrors.push(Mirror { url, pri: link.pri });
        }
    }
    mirrors.sort_by_key(priority);
    if mode == Mirrors::Spread {
        let first = first_place(uri, &mirrors);
        let best = best(&mirrors);
        // 0 is the resource's own URI.
        mirrors[..best].rotate_left(first.saturating_sub(1));
    }
    mirrors.truncate(MOST);
    mirrors
}

/// The mirrors to begin with, before the resource's own URI; none to begin with that.
pub fn begin(mode: Mirrors, uri: &ResourceUri, mirrors: &[Mirror]) -> Option<MirrorPlan> {
    let is_first = match mode {
        Mirrors::Prefer => true,
        Mirrors::Spread => first_place(uri, mirrors) > 0,
        Mirrors::Off | Mirrors::Fallback => false,
    };
    let at = mirrors.first().filter(|_| is_first)?.clone();
    Some(MirrorPlan { at: Some(at), begun: 1, ..MirrorPlan::default() })
}

/// The next mirror of a pending resource that is not left out; none when all were begun.
pub fn next<'m>(
    pending: &PendingRecord,
    mirrors: &'m [Mirror],
    is_left_out: impl Fn(&Origin) -> bool,
) -> Option<(usize, &'m Mirror)> {
    let begun = pending.mirror.as_ref().map_or(0, |plan| plan.begun);
    let may_be_asked = |mirror: &Mirror| mirror.url.origin().is_ok_and(|origin| !is_left_out(&origin));
    let (n, mirror) = mirrors.iter().enumerate().skip(begun).find(|(_, mirror)| may_be_asked(mirror))?;
    Some((n + 1, mirror))
}

/// Whether a failure at a resource's own URI says nothing about its mirrors. 404 and 410 are about the resource itself.
pub fn may_help(failure: &Failure) -> bool {
    use ProblemReason::{
        Challenged, Connect, DigestMismatch, Dns, HttpServerError, Interrupted, LengthMismatch, LoginPage,
        Throttled, Timeout, Tls, TooSlow, UnexpectedHtml,
    };
    matches!(
        failure.reason,
        Connect
            | Dns
            | Tls
            | Timeout
            | Interrupted
            | TooSlow
            | HttpServerError
            | Throttled
            | Challenged
            | LoginPage
            | UnexpectedHtml
            | DigestMismatch
            | LengthMismatch
    )
}

fn priority(mirror: &Mirror) -> u32 {
    mirror.pri.unwrap_or(LAST)
}

/// How many of these share the first priority.
fn best(mirrors: &[Mirror]) -> usize {
    let first = mirrors.first().map(priority);
    mirrors.iter().take_while(|mirror| Some(priority(mirror)) == first).count()
}

/// Which place a resource is requested from first, the same each time: 0 is its own URI, others are mirrors.
fn first_place(uri: &ResourceUri, mirrors: &[Mirror]) -> usize {
    let mut hasher = DefaultHasher::new();
    uri.as_str().hash(&mut hasher);
    let places = best(mirrors).min(MOST) as u64 + 1;
    usize::try_from(hasher.finish() % places).unwrap_or_default()
}

/// Whether a link states another digest, length or coding than the entry declares.
pub(crate) fn contradicts(link: &Link, declaration: &Declaration) -> bool {
    let digests = link.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default().known;
    let is_other_digest = digests.iter().any(|digest| {
        let of_same = |declared: &&fixity::Digest| declared.algorithm() == digest.algorithm();
        declaration.digests.iter().find(of_same).is_some_and(|declared| declared != digest)
    });
    let is_other_length =
        link.length.zip(declaration.length).is_some_and(|(linked, declared)| linked != declared);
    let is_other_coding = link
        .encoding
        .as_deref()
        .zip(declaration.encoding.as_deref())
        .is_some_and(|(linked, declared)| !linked.eq_ignore_ascii_case(declared));
    is_other_digest || is_other_length || is_other_coding
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use model::{Disposition, HomeSite};

    use super::*;
    use crate::fixtures::listing;

    fn declares(content: &[u8]) -> Declaration {
        Declaration {
            digests: vec![Sha256::of(content).into()],
            length: Some(content.len() as u64),
            ..Declaration::default()
        }
    }

    fn duplicate(href: &str, pri: Option<u32>) -> Link {
        Link { pri, ..Link::new(relation::DUPLICATE, href) }
    }

    fn uri() -> ResourceUri {
        "http://h/a".parse().unwrap()
    }

    fn urls(mode: Mirrors, links: &[Link]) -> Vec<String> {
        let filter = Filter::default();
        let mirrors = usable(mode, &uri(), &declares(b"x"), &listing(links, None), &filter);
        mirrors.iter().map(|mirror| mirror.url.to_string()).collect()
    }

    #[test]
    fn mirrors_come_by_priority_then_as_listed_and_three_at_most() {
        let links = [
            duplicate("gsiftp://g/a", Some(1)),
            duplicate("http://m2/a", None),
            duplicate("http://h/a", Some(1)),
            duplicate("http://m1/a", Some(7)),
            Link::new("describedby", "http://d/a"),
            duplicate("http://m1/a", Some(8)),
            duplicate("http://m3/a", None),
            duplicate("http://m4/a", None),
        ];
        assert_eq!(urls(Mirrors::Fallback, &links), ["http://m1/a", "http://m2/a", "http://m3/a"]);
        assert_eq!(urls(Mirrors::Off, &links), [""; 0]);
    }

    #[test]
    fn only_a_declared_digest_makes_a_mirror_usable() {
        let links = [duplicate("http://m/a", None)];
        let filter = Filter::default();
        let usable = |declaration: &Declaration, change| {
            usable(Mirrors::Fallback, &uri(), declaration, &listing(&links, change), &filter).len()
        };
        assert_eq!(usable(&declares(b"x"), None), 1);
        assert_eq!(usable(&declares(b"x"), Some(Change::Updated)), 1);
        assert_eq!(usable(&declares(b"x"), Some(Change::Deleted)), 0);
        assert_eq!(usable(&Declaration { digests: Vec::new(), ..declares(b"x") }, None), 0);
    }

    #[test]
    fn a_link_that_contradicts_its_entry_is_no_mirror() {
        let with = |hash: Option<String>, length, encoding: Option<&str>| Link {
            hash,
            length,
            encoding: encoding.map(str::to_owned),
            ..duplicate("http://m/a", None)
        };
        let hash = |content: &[u8]| Some(format!("sha-256:{}", Sha256::of(content)));
        for (link, is_usable) in [
            (with(hash(b"x"), Some(1), None), true),
            (with(Some("md5:900150983cd24fb0d6963f7d28e17f72".to_owned()), None, Some("gzip")), true),
            (with(hash(b"y"), None, None), false),
            (with(None, Some(2), None), false),
        ] {
            assert_eq!(
                urls(Mirrors::Fallback, std::slice::from_ref(&link)).len(),
                usize::from(is_usable),
                "{link:?}"
            );
        }
    }

    #[test]
    fn a_mirror_of_another_site_is_left_out_where_only_the_sources_own_is_wanted() {
        let links = [duplicate("http://m.example.com/a", None), duplicate("http://m.example.org/a", None)];
        let filter = Filter { only_of: Some(HomeSite::of_text("http://example.org/")), ..Filter::default() };
        let found = usable(Mirrors::Fallback, &uri(), &declares(b"x"), &listing(&links, None), &filter);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].url.as_str(), "http://m.example.org/a");
    }

    #[test]
    fn prefer_begins_with_the_first_mirror_and_spread_with_any_place() {
        let links = [duplicate("http://m1/a", None), duplicate("http://m2/a", None)];
        let mut first = std::collections::BTreeMap::new();
        for n in 0..300 {
            let uri: ResourceUri = format!("http://h/{n}").parse().unwrap();
            let found =
                |mode| usable(mode, &uri, &declares(b"x"), &listing(&links, None), &Filter::default());
            let plan = begin(Mirrors::Spread, &uri, &found(Mirrors::Spread));
            let place = plan.and_then(|plan| plan.at).map(|mirror| mirror.url.to_string());
            *first.entry(place).or_insert(0) += 1;
            let preferred = begin(Mirrors::Prefer, &uri, &found(Mirrors::Prefer)).unwrap();
            assert_eq!(preferred.at.unwrap().url.as_str(), "http://m1/a");
            assert_eq!(begin(Mirrors::Fallback, &uri, &found(Mirrors::Fallback)), None);
        }
        assert!(first.len() == 3 && first.values().all(|times| *times > 50), "{first:?}");
    }

    #[test]
    fn a_missing_resource_is_missing_at_its_mirrors_too() {
        let failure = |reason| Failure {
            reason,
            message: String::new(),
            disposition: Disposition::Refuse,
            evidence: Default::default(),
        };
        assert!(may_help(&failure(ProblemReason::HttpServerError)));
        assert!(may_help(&failure(ProblemReason::DigestMismatch)));
        assert!(!may_help(&failure(ProblemReason::HttpClientError)));
        assert!(!may_help(&failure(ProblemReason::ChangedAgain)));
        assert!(!may_help(&failure(ProblemReason::Disallowed)));
    }
}
