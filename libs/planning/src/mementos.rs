//! Where the listed version of a resource is, when the resource itself has changed again since. Pure.

use model::{Declaration, Listing, Mirror, ResourceUri, Versions};
use resourcesync::{Change, relation};

use crate::filter::Filter;
use crate::mirrors::contradicts;

/// The memento that an entry names for the version of its own change (ResourceSync 1.1, section 14.6).
///
/// Only where a digest is declared: nothing else proves that the memento is the listed version. Never for a deletion. A
/// link that contradicts the declaration is of another version.
pub fn usable(
    uri: &ResourceUri,
    declaration: &Declaration,
    listing: &Listing,
    filter: &Filter,
) -> Option<Mirror> {
    if declaration.digests.is_empty() || listing.change == Some(Change::Deleted) {
        return None;
    }
    let links = listing.links.as_ref()?.to_vec();
    let fitting =
        links.into_iter().filter(|link| link.rel == relation::MEMENTO && !contradicts(link, declaration));
    let mut urls = fitting.filter_map(|link| ResourceUri::try_from(link.href).ok());
    let url = urls.find(|url| {
        let is_foreign = filter.only_of.as_ref().is_some_and(|home| home.is_foreign(url.as_str()));
        url != uri && !is_foreign && url.origin().is_ok()
    })?;
    Some(Mirror { url, pri: None })
}

/// Whether a version with a declared digest is kept, so that it need not be requested.
pub fn is_kept(versions: Option<&Versions>, declaration: &Declaration) -> bool {
    let is_declared = |computed: &fixity::Computed| {
        declaration.digests.iter().any(|digest| computed.get(digest.algorithm()) == Some(digest))
    };
    let mut kept = versions.into_iter().flat_map(|versions| &versions.kept);
    kept.any(|version| version.lost.is_none() && is_declared(&version.bitstream.computed))
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use model::HomeSite;
    use resourcesync::Link;

    use super::*;
    use crate::fixtures::listing;

    fn found(links: &[Link], digest: bool, change: Option<Change>, filter: &Filter) -> Option<String> {
        let digests = if digest { vec![Sha256::of(b"x").into()] } else { Vec::new() };
        let declaration = Declaration { digests, length: Some(1), ..Declaration::default() };
        let uri = "http://e.org/v".parse().unwrap();
        usable(&uri, &declaration, &listing(links, change), filter).map(|memento| memento.url.to_string())
    }

    #[test]
    fn the_first_memento_that_may_be_the_listed_version_is_used() {
        let links = [
            Link::new(relation::TIMEGATE, "http://e.org/tg/v"),
            Link { length: Some(9), ..Link::new(relation::MEMENTO, "http://e.org/other") },
            Link::new(relation::MEMENTO, "http://e.org/v"),
            Link::new(relation::MEMENTO, "ftp://e.org/20260102/v"),
            Link::new(relation::MEMENTO, "http://e.org/20260102/v"),
            Link::new(relation::MEMENTO, "http://e.org/20260103/v"),
        ];
        let all = Filter::default();
        let first = Some("http://e.org/20260102/v".to_owned());
        assert_eq!(found(&links, true, None, &all), first);
        assert_eq!(found(&links, true, Some(Change::Updated), &all), first);
        assert_eq!(found(&links, true, Some(Change::Deleted), &all), None);
        assert_eq!(found(&links, false, None, &all), None);
        assert_eq!(found(&links[..4], true, None, &all), None);
        let elsewhere =
            Filter { only_of: Some(HomeSite::of_text("http://example.com/")), ..Filter::default() };
        assert_eq!(found(&links, true, None, &elsewhere), None);
    }
}
