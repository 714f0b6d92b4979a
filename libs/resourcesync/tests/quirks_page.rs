//! `docs/QUIRKS.md` agrees with the code. This test generates the page: `WRITE_QUIRKS_PAGE=1 cargo test -p
//! resourcesync --test quirks_page`.

use std::fmt::Write;

use resourcesync::Quirk;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/QUIRKS.md");

const OPENING: &str = "\
# Quirks

Sources break the specification, and can mostly be understood nevertheless. Whatever the reader tolerates it counts under one of
these names, for each source; they stand in reports and in `--json` output, and do not change.

- **Casts doubt**: conclusions from the document would rest on a guess: that a resource absent from it is gone, or when something
  happened.
- **Strict refuses**: strict reading ends there, naming document, line and column.
- **Force**: how strongly the specification speaks against it: it breaks a MUST, goes against a SHOULD, or would better not be (a hint).
  What is allowed is only counted. **Section** is where it says so.
- **Where it was seen**: the kind of source or software that sends it. A dash: no such Source was met yet; the reader is ready.

An entry that cannot be understood at all is no quirk: it becomes a problem of that entry, with its place and reason, and the list
goes on. [Quirks of OAI-PMH](QUIRKS-OAI-PMH.md) and
[of Signposting](QUIRKS-SIGNPOSTING.md) have pages of their own.

| Quirk | What it means | Casts doubt | Strict refuses | Force | Section | Where it was seen |
|---|---|---|---|---|---|---|
";

const CLOSING: &str = "
This page is written from the code: `WRITE_QUIRKS_PAGE=1 cargo test -p resourcesync --test quirks_page`.
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
        "docs/QUIRKS.md is not what the code says (first difference: {differs:?}). \
         Write it anew: WRITE_QUIRKS_PAGE=1 cargo test -p resourcesync --test quirks_page"
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

/// The kind of source that sends it.
fn seen(quirk: Quirk) -> &'static str {
    match quirk {
        Quirk::Gzip => "sitemaps at large: gzip under `.xml`, or with a wrong media type",
        Quirk::ByteOrderMark => "sitemaps at large",
        Quirk::BlankBeforeProlog => "sitemaps at large: templates that begin with a newline",
        Quirk::OtherEncoding => "—",
        Quirk::InvalidUtf8 => "—",
        Quirk::BareAmpersand => "—",
        Quirk::TrailingBytes => "OAI-PMH repositories in PHP: notices behind the last tag",
        Quirk::DamagedGzipEnd => "—",
        Quirk::OddSitemapNamespace => "sitemaps at large: `https`, a trailing slash, the older version 0.84",
        Quirk::MissingSitemapNamespace => "sitemaps at large",
        Quirk::PrefixedSitemapNamespace => "sitemaps at large: `sit:urlset`",
        Quirk::OddResourceSyncNamespace => "—",
        Quirk::UndeclaredPrefix => "—",
        Quirk::ForeignLoc => "sitemaps at large: images and videos in the same file",
        Quirk::NoCapability => {
            "sites that strip all `rs:md` after trouble with malformed ones; plain sitemaps"
        }
        Quirk::UnknownCapability => "—",
        Quirk::OddCapabilityName => "DSpace (ResourceSyncJava): `changelistindex`",
        Quirk::TooManyEntries => "Hyrax: the whole repository in one list",
        Quirk::RepeatedCapability => "WEKO: several Resource Lists and Dumps in one Capability List",
        Quirk::MissingEntryCapability => "—",
        Quirk::UrlsetAsIndex => "POD (pod4lib aggregator): lists listed in a `urlset`",
        Quirk::IndexAsUrlset => "—",
        Quirk::IndexNotAllowed => "—",
        Quirk::WrongEntryElement => "—",
        Quirk::LateHeader => "—",
        Quirk::RepeatedMetadata => "—",
        Quirk::MissingAt => "—",
        Quirk::MissingFrom => "—",
        Quirk::MissingUntil => "—",
        Quirk::EntryWithoutMetadata => "POD (pod4lib aggregator)",
        Quirk::MetadataBeforeLoc => "POD (pod4lib aggregator)",
        Quirk::WhitespaceInLoc => "CORE FastSync: newlines round `loc`",
        Quirk::SpaceInUri => "—",
        Quirk::NonAsciiUri => "sources with file names beyond ASCII",
        Quirk::RelativeUri => "University of Alberta (HydraNorth): relative `href`",
        Quirk::RepeatedLoc => "—",
        Quirk::MissingChange => "—",
        Quirk::UnreadableChange => "—",
        Quirk::OddChangeCase => "—",
        Quirk::ChangeInResourceList => "—",
        Quirk::PackageInChangeList => "CORE FastSync: a Change List of `.tar.xz` packages",
        Quirk::MissingPath => "—",
        Quirk::ManifestElsewhere => "—",
        Quirk::ContentsDiffers => "—",
        Quirk::EmptyValue => "DSpace (ResourceSyncJava): empty `describedby` links",
        Quirk::UnreadableLength => "—",
        Quirk::UnreadablePriority => "—",
        Quirk::LinkInLoc => "the text of Signmap; its example has it beside `loc`",
        Quirk::LinkWithoutTarget => "DSpace (ResourceSyncJava): empty `describedby` links",
        Quirk::LinksTruncated => "—",
        Quirk::LinkContradicts => "—",
        Quirk::RelationCase => "CORE FastSync: `describedBy`",
        Quirk::UnreadableTime => "—",
        Quirk::ZoneLessTime => "CORE FastSync: `2020-06-02T00:00:00`, with and without microseconds",
        Quirk::SpaceForT => "CORE FastSync: manifests with `2020-03-18 01:20:10`",
        Quirk::OddTimeFormat => "—",
        Quirk::FutureTime => "DSpace (ResourceSyncJava): local time written with a `Z`, east of Greenwich",
        Quirk::LeapSecond => "—",
        Quirk::NoChangeTime => "—",
        Quirk::OutOfOrder => "CORE FastSync: packages in no order of time",
        Quirk::NewestFirst => "Hyrax: Change Lists sorted newest first",
        Quirk::ChangeOutsideInterval => "—",
        Quirk::OverlappingIntervals => "CORE FastSync: days that lie inside a week's package",
        Quirk::EmptyInterval => "CORE FastSync: packages that end where they begin",
        Quirk::ReversedInterval => "—",
    }
}
