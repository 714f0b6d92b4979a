//! The header of an OAI-PMH record, as its resource tells it: the identifier by its URI, the sets by its links. Its
//! datestamp is the time of its change, and its status the state of the resource.

use model::Links;
use oaipmh::{Pasted, Verb};
use resourcesync::relation;
use serde::Serialize;
use url::Url;

/// A header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct OaiHeader {
    /// The identifier in the repository.
    pub(crate) identifier: String,
    /// The metadata prefix.
    pub(crate) prefix: String,
    /// The sets that the record says it is in, in its order.
    pub(crate) sets: Vec<String>,
}

impl OaiHeader {
    /// The header of a resource; none if it is no record.
    pub(crate) fn of(uri: &str, links: Option<&Links>) -> Option<Self> {
        // Most resources are of ResourceSync, and a harvest has millions.
        if !uri.contains("verb=GetRecord") {
            return None;
        }
        let Pasted {
            verb: Some(Verb::GetRecord), identifier: Some(identifier), prefix: Some(prefix), ..
        } = pasted(uri)?
        else {
            return None;
        };
        let links = links.map(Links::to_vec).unwrap_or_default();
        let of_records = links
            .iter()
            .filter(|link| link.rel == relation::COLLECTION)
            .filter_map(|link| pasted(&link.href));
        let sets = of_records.filter(|list| list.verb == Some(Verb::ListRecords)).filter_map(|list| list.set);
        Some(Self { identifier, prefix, sets: sets.collect() })
    }
}

fn pasted(url: &str) -> Option<Pasted> {
    Pasted::read(&Url::parse(url).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use resourcesync::Link;

    use super::*;

    #[test]
    fn a_record_tells_its_identifier_and_its_sets() {
        let link = |rel: &str, href: &str| Link::new(rel, href);
        let links = Links::of(&[
            link("collection", "https://e.org/oai?verb=ListRecords&metadataPrefix=oai_dc&set=a%3Ab"),
            link("collection", "https://e.org/oai?verb=ListRecords&metadataPrefix=oai_dc"),
            link("collection", "https://e.org/shelf"),
            link("describedby", "https://e.org/oai?verb=ListRecords&metadataPrefix=oai_dc&set=c"),
        ]);
        let uri = "https://e.org/oai?verb=GetRecord&identifier=oai%3Ae%3A1&metadataPrefix=oai_dc";
        let header = OaiHeader::of(uri, links.as_ref()).unwrap();
        assert_eq!((header.identifier.as_str(), header.prefix.as_str()), ("oai:e:1", "oai_dc"));
        assert_eq!(header.sets, ["a:b"]);
        assert_eq!(OaiHeader::of("https://e.org/a.pdf", links.as_ref()), None);
    }
}
