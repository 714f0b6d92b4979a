//! Keeps the report of a discovery in the catalog, so that showing it needs no request to the Source.

use jiff::Timestamp;
use model::{DiscoveryReport, Links, Remark, VisitedDocument};

use crate::found::{Discovery, Route, Visited};
use crate::hint::Hint;

/// The report of a discovery that ended at `at`. Its parts have the same bounds as the discovery's.
pub fn discovery_report(found: &Discovery, at: Timestamp) -> DiscoveryReport {
    let well_known_missing =
        found.tried.iter().find(|tried| tried.route == Route::WellKnown).map(|tried| tried.url.clone());
    DiscoveryReport {
        at,
        documents: found.documents.iter().map(looked_at).collect(),
        remarks: found.hints.iter().map(remark).collect(),
        well_known_missing,
        title: found.title.clone(),
        oai: found.oai.clone(),
    }
}

fn looked_at(visited: &Visited) -> VisitedDocument {
    VisitedDocument {
        url: visited.url.clone(),
        capability: visited.capability.clone(),
        root: visited.root,
        entries: visited.entries,
        has_up: visited.up.is_some(),
        has_validators: !visited.validators.is_empty(),
        quirks: visited.quirks.iter().map(|(quirk, times)| (quirk.as_str().to_owned(), times)).collect(),
        links: Links::of(&visited.links),
    }
}

fn remark(hint: &Hint) -> Remark {
    Remark { url: hint.url.clone(), hint: hint.kind.as_str().to_owned(), text: hint.kind.to_string() }
}

#[cfg(test)]
mod tests {
    use resourcesync::{Link, Quirk, Quirks, Root};

    use super::*;
    use crate::found::Tried;
    use crate::hint::HintKind;

    #[test]
    fn what_was_seen_missing_or_odd_is_kept_with_its_names() {
        let mut quirks = Quirks::default();
        quirks.add_many(Quirk::RelationCase, 2);
        let url = "http://h/caps.xml".to_owned();
        let visited = Visited {
            url: url.clone(),
            route: Route::Given,
            parent: None,
            capability: Some(resourcesync::Capability::CapabilityList),
            root: Root::UrlSet,
            entries: Some(3),
            at: None,
            up: Some("http://h/d.xml".to_owned()),
            index: None,
            validators: Default::default(),
            content_length: None,
            quirks,
            links: vec![Link::new("describedby", "http://h/about.xml")],
        };
        let tried = |route, url: &str| Tried { route, url: url.to_owned(), why: "404".to_owned() };
        let found = Discovery {
            documents: vec![visited],
            hints: vec![Hint { url: url.clone(), kind: HintKind::NoChangeList }],
            tried: vec![tried(Route::Robots, "http://h/robots.txt"), tried(Route::WellKnown, "http://h/w")],
            title: Some("A title".to_owned()),
            ..Discovery::default()
        };
        let record = discovery_report(&found, Timestamp::UNIX_EPOCH);
        assert_eq!(record.well_known_missing.as_deref(), Some("http://h/w"));
        assert_eq!(record.title.as_deref(), Some("A title"));
        assert_eq!(
            (record.remarks[0].url.as_str(), record.remarks[0].hint.as_str()),
            (&*url, "no-change-list")
        );
        let seen = &record.documents[0];
        assert!(seen.has_up && !seen.has_validators);
        assert_eq!((seen.entries, seen.quirks["relation-case"]), (Some(3), 2));
        assert_eq!(seen.links.as_ref().map(Links::to_vec), Some(found.documents[0].links.clone()));
    }
}
