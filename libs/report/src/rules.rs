//! Rules of the specifications besides the quirks of documents: remarks of discovery, facts of the catalog, and reasons
//! of problems.

use model::{ProblemReason, Subject};
use resourcesync::{Force, Rule, Section};

/// A finding that is no quirk: its name, what was found, and its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) rule: Rule,
}

const fn fact(name: &'static str, what: &'static str, rule: Rule) -> Fact {
    Fact { name, what, rule }
}

const fn must(section: Section, advice: &'static str) -> Rule {
    Rule::new(Force::Must, section, advice)
}

const fn should(section: Section, advice: &'static str) -> Rule {
    Rule::new(Force::Should, section, advice)
}

const fn hint(section: Section, advice: &'static str) -> Rule {
    Rule::new(Force::Hint, section, advice)
}

/// How the report treats a remark of discovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remarked {
    /// It is a finding.
    Finding,
    /// A quirk of the same document says the same.
    Quirk,
    /// It helps the operator of the harvester, and does not concern the Source.
    Unsaid,
}

/// The treatment of the remark with this name (`HintKind::as_str` of discovery); none for an unknown name.
pub fn remarked(name: &str) -> Option<Remarked> {
    match name {
        "entries-without-capability" | "no-capability" | "plain-sitemap" | "no-at" | "no-from" => {
            Some(Remarked::Quirk)
        }
        "up" | "index" | "link-header" | "again" | "left-alone" | "not-named-above" | "other-host" => {
            Some(Remarked::Unsaid)
        }
        _ => remark(name).map(|_| Remarked::Finding),
    }
}

/// The finding for a remark of discovery.
pub(crate) fn remark(name: &str) -> Option<Fact> {
    Some(match name {
        "no-resource-list" => fact(
            "no-resource-list",
            "a set offers neither a Resource List nor a Resource Dump, so resources that do not change are not found",
            hint(Section::RESOURCE_LIST, "Offer a Resource List of each set."),
        ),
        "no-change-list" => fact(
            "no-change-list",
            "a set offers neither a Change List nor a Change Dump, so all of it has to be read each time",
            hint(Section::CHANGE_LIST, "Offer a Change List of each set."),
        ),
        "no-entries" => fact(
            "no-entries",
            "a Source Description or Capability List has no entry that can be used",
            must(
                Section::CAPABILITY_LIST,
                "Name each Capability List in the Source Description, and each capability in its Capability List.",
            ),
        ),
        "bad-entries" => fact(
            "bad-entries",
            "entries of a Source Description or Capability List cannot be used",
            must(Section::FORMATS, "Give each entry one loc that holds one whole URI."),
        ),
        "not-listed-above" => fact(
            "not-listed-above",
            "a Capability List leads up to a Source Description that does not name it",
            must(Section::SOURCE_DESCRIPTION, "Name every Capability List in the Source Description."),
        ),
        "closed-without-next" => fact(
            "closed-without-next",
            "a closed Change List or Change Dump links to no document that tells later changes",
            should(
                Section::CHANGE_LIST,
                "Link each closed Change List to its index, or up to the Capability List.",
            ),
        ),
        "other-kind" => fact(
            "other-kind",
            "a link or a well-known place leads to another kind of document than it should",
            should(
                Section::NAVIGATION,
                "Let the well-known place lead to the Source Description, and links of pages to Capability Lists.",
            ),
        ),
        _ => return None,
    })
}

/// The finding for a problem, if the Source contributes to it and a specification covers that.
pub(crate) fn problem(reason: ProblemReason, subject: &Subject) -> Option<Fact> {
    let is_document = matches!(subject, Subject::Document(_));
    let mut name = reason.as_str();
    let (what, rule) = match reason {
        ProblemReason::DigestMismatch => (
            "a resource has another digest than its hash declares",
            must(
                Section::FORMATS,
                "Declare the digest of the bytes that the server sends, and renew the list when they change.",
            ),
        ),
        ProblemReason::LengthMismatch => (
            "a resource has another length than is declared",
            must(
                Section::FORMATS,
                "Declare the length of the bytes that the server sends, and renew the list when they change.",
            ),
        ),
        ProblemReason::Malformed if is_document => (
            "a document cannot be understood to its end",
            must(Section::XML_WELL_FORMED, "Write well-formed XML."),
        ),
        ProblemReason::Malformed => {
            name = "bad-entry";
            (
                "an entry cannot be understood, and was left out",
                must(
                    Section::FORMATS,
                    "Give each entry one loc with a whole URI, and only values that the specification knows.",
                ),
            )
        }
        ProblemReason::Truncated => (
            "a document ends before its root element does",
            must(
                Section::XML_WELL_FORMED,
                "Send the document whole: put it in place only when all of it is written.",
            ),
        ),
        ProblemReason::WrongKind => (
            "a document is something else than was announced",
            must(
                Section::FORMATS,
                "Let each capability lead to a document of that kind, and answer errors with an error status.",
            ),
        ),
        ProblemReason::BadUri => (
            "a URI cannot be understood, or is of a kind that cannot be fetched",
            must(
                Section::URI_SYNTAX,
                "Write whole http or https URIs, with everything percent-encoded that has to be.",
            ),
        ),
        ProblemReason::Gap => (
            "changes begin later than all that was known of before, and no newer Resource List tells what came between",
            hint(Section::CHANGE_LIST, "Keep changes listed at least until a newer Resource List is out."),
        ),
        ProblemReason::Redirect => (
            "a URI is redirected too often, in a circle, or to nowhere",
            hint(Section::HTTP_REDIRECTION, "List the URI that answers, or redirect to it at once."),
        ),
        ProblemReason::HttpClientError => (
            "what is listed is answered with a 4xx status",
            hint(
                Section::HTTP_CLIENT_ERROR,
                "List only what the server hands out to all readers of the list, and tell deletions in a Change List.",
            ),
        ),
        ProblemReason::HttpServerError => (
            "what is listed is answered with a 5xx status",
            hint(Section::HTTP_SERVER_ERROR, "Look into the server's log for these URIs."),
        ),
        ProblemReason::Disallowed => (
            "what is listed is disallowed by robots.txt",
            hint(Section::ROBOTS, "Allow in robots.txt what is listed."),
        ),
        ProblemReason::Challenged => (
            "a bot defence answers in the place of what is listed",
            hint(
                Section::HTTP_CLIENT_ERROR,
                "Let the harvester in: the last section says what it is known by.",
            ),
        ),
        ProblemReason::LoginPage => (
            "a form to log in answers in the place of what is listed",
            hint(
                Section::HTTP_REDIRECTION,
                "List only what the server hands out to all readers of the list, and answer 401 or 403 otherwise.",
            ),
        ),
        ProblemReason::UnexpectedHtml => (
            "an HTML page answers in the place of what is listed with another media type",
            hint(
                Section::FORMATS,
                "Declare the media type that the server sends, and answer errors with an error status.",
            ),
        ),
        ProblemReason::RefusedAddress => (
            "a URI leads to an address that only the Source's own network can reach",
            hint(Section::RESOURCE_LIST, "List URIs by the name that others reach the server by."),
        ),
        ProblemReason::RefusedPort => (
            "a URI names a port of another service than HTTP",
            hint(Section::RESOURCE_LIST, "List URIs at ports that browsers ask at, too."),
        ),
        _ => return None,
    };
    Some(Fact { name, what, rule })
}

/// Whether the harvester causes the problem, so that the Source can do nothing about it.
pub(crate) fn is_own(reason: ProblemReason) -> bool {
    matches!(
        reason,
        ProblemReason::Guard
            | ProblemReason::NotListed
            | ProblemReason::Uncompared
            | ProblemReason::MissingBytes
            | ProblemReason::DamagedBytes
            | ProblemReason::Poison
            | ProblemReason::TooLarge
            | ProblemReason::LimitIndexLevels
            | ProblemReason::LimitDocuments
            | ProblemReason::LimitEntries
            | ProblemReason::LimitDocumentBytes
            | ProblemReason::LimitInflation
            | ProblemReason::LimitLinks
    )
}

/// There is no document at the well-known URI. If a Source Description was found elsewhere, it is only in the wrong
/// place.
pub(crate) fn no_well_known(has_description: bool) -> Fact {
    fact(
        "no-well-known",
        "nothing is found at the host's well-known place",
        Rule::new(
            if has_description { Force::Should } else { Force::Must },
            Section::WELL_KNOWN,
            "Publish the Source Description at /.well-known/resourcesync.",
        ),
    )
}

pub(crate) const NO_UP_LINK: Fact = fact(
    "no-up-link",
    "a document has no link to the one above it",
    must(
        Section::NAVIGATION,
        "Give each list an rs:ln with rel=\"up\" to its Capability List, and each Capability List one to the Source Description.",
    ),
);

pub(crate) const NO_VALIDATORS: Fact = fact(
    "no-validators",
    "a document comes without an ETag, and without a Last-Modified that is older than the answer, so each look costs all of it",
    should(
        Section::HTTP_VALIDATORS,
        "Send an ETag or Last-Modified with each document, and answer 304 when nothing has changed.",
    ),
);

pub(crate) const GAP_BETWEEN_CHANGES: Fact = fact(
    "gap-between-changes",
    "there is time between two closed change documents of which no document tells",
    hint(Section::CHANGE_LIST_INDEX, "Let each Change List begin where the one before it ends."),
);

pub(crate) const NO_DIGEST: Fact = fact(
    "no-digest",
    "a resource is listed without a digest that can be judged, so its bytes cannot be verified",
    hint(Section::FORMATS, "Declare a hash for each resource, best with sha-256."),
);

pub(crate) const UNJUDGED_DIGEST: Fact = fact(
    "unjudged-digest",
    "a hash is no digest of a known algorithm",
    should(
        Section::FORMATS,
        "Write each hash as algorithm:digest, the digest in hexadecimal, as in sha-256:854f61….",
    ),
);

pub(crate) const NO_LASTMOD: Fact = fact(
    "no-lastmod",
    "a resource is listed without lastmod",
    hint(Section::FORMATS, "Give each entry a lastmod, so that it is plain what need not be fetched again."),
);

pub(crate) const UNLISTED_TARGET: Fact = fact(
    "unlisted-target",
    "a link leads to a resource that no list names, so it is not harvested unless the harvester is told to follow links",
    hint(
        Section::LINKING,
        "Give what describedby, describes, item, alternate and canonical lead to entries of their own.",
    ),
);

#[cfg(test)]
mod tests {
    use super::*;

    const REMARKS: [&str; 7] = [
        "no-resource-list",
        "no-change-list",
        "no-entries",
        "bad-entries",
        "not-listed-above",
        "closed-without-next",
        "other-kind",
    ];

    #[test]
    fn a_remark_is_found_under_its_own_name() {
        for name in REMARKS {
            assert_eq!(remark(name).map(|fact| fact.name), Some(name));
            assert_eq!(remarked(name), Some(Remarked::Finding));
        }
        assert_eq!(remarked("no-at"), Some(Remarked::Quirk));
        assert_eq!(remarked("nothing of the kind"), None);
    }

    #[test]
    fn what_lies_with_the_harvester_is_no_finding() {
        let subject = Subject::Resource("https://example.org/a".to_owned());
        for reason in [ProblemReason::Guard, ProblemReason::MissingBytes, ProblemReason::Poison] {
            assert!(is_own(reason) && problem(reason, &subject).is_none(), "{reason}");
        }
    }

    #[test]
    fn an_entry_and_a_document_that_cannot_be_understood_are_two_findings() {
        let entry = Subject::Entry("https://example.org/list.xml#3:5".to_owned());
        let document = Subject::Document("https://example.org/list.xml".to_owned());
        assert_eq!(problem(ProblemReason::Malformed, &entry).unwrap().name, "bad-entry");
        assert_eq!(problem(ProblemReason::Malformed, &document).unwrap().name, "malformed");
    }
}
