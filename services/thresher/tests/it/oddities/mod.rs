//! Documents of real Sources: one test for each oddity, named after its number. Each runs the whole pipeline against a
//! server. It checks what is stored, and that no guess deleted, skipped or advanced anything. It also checks that the
//! quirk was counted by its name. The reader's own tests cover the parsing of a document.
//!
//! | Oddity | What the Source does | Quirk |
//! |---|---|---|
//! | [`core_fastsync`] | CORE FastSync | |
//! | 01 | its Change List names packages, without a change, a time or a link upwards | `package-in-change-list` |
//! | 02 | its packages are xz archives of many gigabytes | |
//! | 03 | its times have no zone; some have microseconds, or a blank for the T | `zone-less-time`, `space-for-t` |
//! | 04 | its packages stand in no order, their intervals overlap or are empty | `out-of-order`, `overlapping-intervals`, `empty-interval` |
//! | 05 | its URIs hold colons, and names that are encoded twice | |
//! | 06 | blanks surround a URI, relations are in camel case, paths begin with a slash | `whitespace-in-loc`, `relation-case` |
//! | [`hyrax`] | Hyrax repositories | |
//! | 07 | a Change List runs from new to old | `newest-first`, `out-of-order` |
//! | 08 | a Change List begins at its oldest change, never ends, and has times in `lastmod` only | |
//! | 09 | deletions are never told | |
//! | 10 | a change is called `created` until there was another one | |
//! | 11 | what is listed is a web page; its metadata come by content negotiation | |
//! | 12 | a list is dated by the request, so it always looks new | |
//! | 13 | more than 50,000 entries stand in one list | `too-many-entries` |
//! | [`pod4lib`] | POD, the pod4lib aggregator | |
//! | 14 | metadata stand before the URI | `metadata-before-loc` |
//! | 15 | deltas and files of deletions are listed as resources | |
//! | 16 | entries say nothing but a URI | `entry-without-metadata` |
//! | 17 | a `urlset` lists lists | `urlset-as-index` |
//! | 18 | no answer has a length, and bodies come from signed addresses elsewhere | |
//! | 19 | a token that is not accepted is answered with 500 | |
//! | [`weko`] | WEKO repositories | |
//! | 20 | one Capability List has several Resource Lists and Dumps | `repeated-capability` |
//! | 21 | a dump has a package for each record | |
//! | 22 | times of last modification are those of the request | |
//! | 23 | a digest stands under another algorithm's name | |
//! | 24 | private query parameters choose an interval | |
//! | 25 | its TLS is too old | |
//! | [`dspace`] | DSpace repositories with ResourceSyncJava | |
//! | 26 | local time is written with a `Z` | `future-time` |
//! | 27 | a capability is named `changelistindex` | `odd-capability-name` |
//! | 28 | `describedby` links lead nowhere | `link-without-target`, `empty-value` |
//! | [`resync`] | Sources made with early versions of resync | |
//! | 29 | digests are in base64, or of a length that no algorithm has | |
//! | [`ualberta`] | the University of Alberta's HydraNorth | |
//! | 30 | digests are URNs or those of something else, targets are relative, relations unknown | `relative-uri` |
//! | [`rails`] | sites made with the rails-sitemap gem | |
//! | 31 | `at` has an offset, links are never closed, and later all metadata are gone | `no-capability` |
//! | [`timbuctoo`] | Timbuctoo | |
//! | 32 | a list names one file that is made when it is asked for, and a link its changes | |
//! | [`sitemaps`] | sitemaps at large | |
//! | 33 | a newline or a byte order mark precedes the prolog | `blank-before-prolog`, `byte-order-mark` |
//! | 34 | gzip is called something else, or forbidden to agents that are not known | `gzip` |
//! | 35 | the namespace is misspelt, missing, prefixed or old | `odd-`, `missing-` and `prefixed-sitemap-namespace` |
//! | 36 | other vocabularies have a `loc` too | `foreign-loc` |
//! | 37 | files are cut short | |
//! | 38 | an error page is served as if it were what was asked for | |

mod core_fastsync;
mod dspace;
mod hyrax;
mod pod4lib;
mod rails;
mod resync;
mod sitemaps;
mod timbuctoo;
mod ualberta;
mod weko;

use crate::common::{Destination, Run, Site, resource, urlset};
use jiff::{SignedDuration, Timestamp};
use testkit::scripted::Reply;

/// What a Resource List of the first of January says of itself.
const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
/// What the Change List that follows it says of itself.
const CHANGES: &str = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";

/// A Source made by hand, and a copy of it.
struct Case {
    site: Site,
    copy: Destination,
}

impl Case {
    async fn new() -> Self {
        Self { site: Site::start().await, copy: Destination::directory() }
    }

    /// `thresher sync`, asking anew what the Source offers.
    #[track_caller]
    fn sync(&self, url: &str) -> Run {
        self.sync_with(url, &[])
    }

    #[track_caller]
    fn sync_with(&self, url: &str, options: &[&str]) -> Run {
        self.copy.sync_with(url, &[&["--rediscover"], options].concat())
    }

    /// Serves resources whose bodies are their paths, and gives their URIs.
    fn bodies<const N: usize>(&self, paths: [&str; N]) -> [String; N] {
        paths.map(|path| self.site.serve(path, path))
    }

    /// Serves `/list.xml`, and gives its URI.
    fn list(&self, md: &str, entries: &[String]) -> String {
        self.site.serve("/list.xml", urlset(md, entries))
    }

    /// Serves a set of a Resource List and a Change List; gives its Capability List's URI.
    fn set(&self, list: &[String], changes: &[String]) -> String {
        self.list(LIST, list);
        self.changes(CHANGES, changes);
        self.capabilities(&[("/list.xml", "resourcelist"), ("/changes.xml", "changelist")])
    }

    /// Serves `/changes.xml`.
    fn changes(&self, md: &str, entries: &[String]) -> String {
        self.site.serve("/changes.xml", urlset(md, entries))
    }

    /// Serves a Capability List of these paths; gives its URI.
    fn capabilities(&self, documents: &[(&str, &str)]) -> String {
        let entry =
            |(path, name): &(&str, &str)| resource(&self.site.uri(path), &format!("capability=\"{name}\""));
        let entries: Vec<String> = documents.iter().map(entry).collect();
        self.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &entries))
    }

    /// Checks that a resource is held, with these bytes.
    #[track_caller]
    fn holds(&self, uri: &str, bytes: &str) {
        assert_eq!(self.copy.state(uri).as_deref(), Some("present"), "{uri}");
        assert_eq!(String::from_utf8_lossy(&self.copy.cat(uri)), bytes, "{uri}");
        assert_eq!(self.copy.file(uri).as_deref(), Some(bytes.as_bytes()), "{uri}");
    }

    /// Checks that these are held with their paths as bodies, and nothing else is listed in whatever state.
    #[track_caller]
    fn holds_only(&self, uris: &[String]) {
        let held = self.copy.ls();
        let mut expected = uris.to_vec();
        expected.sort();
        assert_eq!(held.keys().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        for (uri, held) in held {
            let path = uri.strip_prefix(&self.site.uri("")).expect("of this site");
            assert_eq!((held.state.as_str(), held.length), ("present", Some(path.len() as u64)), "{uri}");
            assert_eq!(self.copy.file(&uri).as_deref(), Some(path.as_bytes()), "{uri}");
        }
    }
}

/// Checks that these quirks were counted so often, and no others.
#[track_caller]
fn counted(run: &Run, expected: &[(&str, u64)]) {
    let json = run.json();
    let found: Vec<(&str, u64)> = json["quirks"]
        .as_object()
        .expect("quirks")
        .iter()
        .map(|(name, times)| (name.as_str(), times.as_u64().expect("a count")))
        .collect();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "{run}");
}

/// Checks that nothing was deleted, and nothing found missing.
#[track_caller]
fn nothing_lost(run: &Run) {
    assert_eq!((run.count("deleted"), run.count("absent")), (0, 0), "{run}");
}

/// An entry with a `lastmod`.
fn dated(uri: &str, lastmod: &str, md: &str) -> String {
    resource(uri, md).replace("</loc>", &format!("</loc><lastmod>{lastmod}</lastmod>"))
}

/// A time so many minutes from now, as a Source writes it.
fn from_now(minutes: i64) -> String {
    Timestamp::now().saturating_add(SignedDuration::from_mins(minutes)).expect("a time").to_string()
}

/// A `sitemapindex` instead of a `urlset`.
fn index_of(md: &str, entries: &[String]) -> String {
    urlset(md, entries)
        .replace("<urlset", "<sitemapindex")
        .replace("</urlset", "</sitemapindex")
        .replace("<url>", "<sitemap>")
        .replace("</url>", "</sitemap>")
}

/// `thresher inspect`, as JSON lines: the document, its entries, the summary.
#[track_caller]
fn inspect(url: &str) -> Vec<serde_json::Value> {
    Run::of(crate::common::thresher().args(["inspect", url])).exits(0).json_lines()
}

/// A reply that only those get who have this version already.
fn not_modified() -> Reply {
    Reply::status(304)
}
