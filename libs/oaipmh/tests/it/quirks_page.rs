//! `docs/QUIRKS-OAI-PMH.md` agrees with the code. This test writes the page:
//! `WRITE_QUIRKS_PAGE=1 cargo test -p oaipmh quirks_page`.

use std::fmt::Write;

use oaipmh::Quirk;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/QUIRKS-OAI-PMH.md");

const OPENING: &str = "\
# Quirks of OAI-PMH

Repositories break OAI-PMH, and can mostly be understood nevertheless. What is tolerated is counted under one of these
names, for each Source. The columns are those of [Quirks](QUIRKS.md). Names that both pages have mean the same.

The reader counts what one answer shows. What takes several answers, such as `short-list`, a harvest counts.

A record that cannot be understood at all is no quirk: it becomes a problem of that record, with its place and reason,
and the list goes on.

| Quirk | What it means | Casts doubt | Strict refuses | Force | Section | Where it was seen |
|---|---|---|---|---|---|---|
";

const CLOSING: &str = "
This page is written from the code: `WRITE_QUIRKS_PAGE=1 cargo test -p oaipmh quirks_page`.
";

#[test]
fn page_and_code_say_the_same() {
    let page = page();
    if std::env::var_os("WRITE_QUIRKS_PAGE").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let found = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = page.lines().zip(found.lines()).find(|(code, page)| code != page);
    assert!(
        found == page,
        "docs/QUIRKS-OAI-PMH.md is not what the code says (first difference: {differs:?}). \
         Write it anew: WRITE_QUIRKS_PAGE=1 cargo test -p oaipmh quirks_page"
    );
}

fn page() -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let mut page = OPENING.to_owned();
    for &quirk in Quirk::ALL {
        assert!(
            !quirk.meaning().contains('|') && !seen(quirk).contains('|'),
            "{quirk} would break the table"
        );
        writeln!(
            page,
            "| `{quirk}` | {} | {} | {} | {} | {} | {} |",
            quirk.meaning(),
            yes(quirk.casts_doubt()),
            yes(quirk.is_refused_when_strict()),
            quirk.force(),
            quirk.section(),
            seen(quirk)
        )
        .unwrap();
    }
    page + CLOSING
}

/// The kind of repository that has it.
fn seen(quirk: Quirk) -> &'static str {
    match quirk {
        Quirk::NoCompression => "repositories behind proxies, as harvesters report",
        Quirk::InvalidUtf8 => "a library's journals: ISO 8859-1 labelled UTF-8",
        Quirk::IllegalCharacter => "TreeBASE, DOAJ: control characters and U+FFFE in titles",
        Quirk::UndeclaredPrefix => "OPUS 4: `xsi` used and not declared",
        Quirk::InnerXmlDeclaration => "Dataverse",
        Quirk::TrailingBytes => "repositories in PHP: notices behind the last tag",
        Quirk::CutDocument => "eScholarship",
        Quirk::BrokenRecord => "Dataverse: one record cut in a whole page",
        Quirk::PrefixedOaiNamespace => "pycsw",
        Quirk::OddResponseDate => "University of Alberta (HydraNorth)",
        Quirk::OddGranularity => "digitization centres, as harvesters report",
        Quirk::GranularityLie => "Dataverse",
        Quirk::DatestampPrecision => "DOAJ, OpenSKOS: fractions of a second",
        Quirk::FutureTime => "DSpace: local time written with a Z",
        Quirk::LateEarliestDatestamp => "DOAJ",
        Quirk::ExclusiveBounds => "DSpace: from and until on one day find nothing",
        Quirk::DatestampIsNow => "OJS",
        Quirk::DatestampNotMoved => "OJS; DSpace at the end of an embargo",
        Quirk::LateDatestamp => "University of Alberta (HydraNorth): an index that lags by hours",
        Quirk::StaleAnswer => "DSpace: a cache of answers",
        Quirk::NoSelectiveHarvest => "portals of digitized prints",
        Quirk::TokenLoop => "REPOX, ConedaKOR",
        Quirk::UnchangedToken => "servers that keep the cursor",
        Quirk::TokenAfterEnd => "InvenioRDM, pyoai",
        Quirk::TokenMissing => "OJS",
        Quirk::TokenNotExclusive => "Zenodo, for a time",
        Quirk::TokenVerbatim => "institutional repositories, as harvesters report",
        Quirk::EncodedToken => "Janeway, pyoai",
        Quirk::ShortTokenLife => "Invenio: one minute; figshare: five",
        Quirk::TokenLosesSet => "SobekCM",
        Quirk::DeepPageFails => "Zenodo, DataCite: lists of more than 10,000 records",
        Quirk::TokenAdvances => "Invenio, whose pages are scrolls of a search engine",
        Quirk::WrongCompleteListSize => "DOAJ; aggregators that count all sets",
        Quirk::ShortList => "DOAJ: 0.76 of 2.68 million records",
        Quirk::RepeatedRecord => "DOAJ",
        Quirk::EmptyPage => "Libris: over 30 in a row",
        Quirk::WindowTooLarge => "indexes that allow 100,000 records",
        Quirk::ErrorWithStatus => "Invenio (422), FOLIO (400, 404, 422)",
        Quirk::WrongErrorCode => "Learning Registry",
        Quirk::Challenged => "DSpace and others behind bot defences",
        Quirk::BaseUrlMismatch => "Scholars Archive, Finds",
        Quirk::VerbMissing => "POD (pod4lib aggregator)",
        Quirk::SetIgnored => "pycsw",
        Quirk::SetVanished => "Dataverse",
        Quirk::SetsUnreadable => "Zenodo",
        Quirk::EmptyMetadata => "B2SHARE",
        Quirk::PromisedDeletesMissing => "Invenio 1",
        Quirk::DeletedUnknown => "OpenWIS, Zenodo",
        Quirk::DeletedAndLive => "OJS",
        Quirk::DeletedInOneSet => "FairArchive",
        Quirk::DeletesInFirstList => "POD (pod4lib aggregator): 400,000 of them",
        Quirk::BareDoi => "InvenioRDM",
        _ => "—",
    }
}
