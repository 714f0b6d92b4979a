//! ACC-1: three Threshers that publish, one behind the other, and a reader of the last one. Entries have links, and the
//! Source changes.

use std::collections::{BTreeMap, BTreeSet};

use fixity::Sha256;
use serde_json::{Value, json};

use super::{Files, original};
use crate::common::{Destination, Site, resource, urlset};

/// Resources of the Source. `THRESHER_TEST_CHAIN=10000` tests as many.
const RESOURCES: usize = 60;
const VARIABLE: &str = "THRESHER_TEST_CHAIN";
/// Rounds of changes, of 1 % each.
const ROUNDS: usize = 3;
const NO_VIEW: [&str; 2] = ["--view", "none"];

/// A Source of works: a page, its metadata, and its text. The page of a work changes.
struct Works {
    site: Site,
    /// The edition of each work that is there.
    present: BTreeMap<usize, usize>,
    gone: BTreeSet<usize>,
    lists: usize,
}

/// What has changed: resources that are to be stored, and those that are deleted.
struct Changed {
    stored: u64,
    deleted: u64,
}

impl Works {
    async fn new(count: usize) -> Self {
        let present = (0..count).map(|work| (work, 0)).collect();
        Self { site: Site::start().await, present, gone: BTreeSet::new(), lists: 0 }
    }

    /// The paths and bodies of a work.
    fn resources(work: usize, edition: usize) -> [(String, String); 3] {
        [
            (format!("/{work}"), format!("The page of {work}, edition {edition}")),
            (format!("/{work}.xml"), format!("<dc>{work}</dc>")),
            (format!("/{work}.txt"), format!("The text of {work}")),
        ]
    }

    /// Whether the Source has a page from elsewhere.
    fn is_from_elsewhere(work: usize) -> bool {
        work.is_multiple_of(2)
    }

    /// The first Source of a resource, as its entry says it.
    fn origin(&self, work: usize, path: &str) -> String {
        let is_page = !path.contains('.');
        if is_page && Self::is_from_elsewhere(work) {
            format!("http://origin.test{path}")
        } else {
            self.site.uri(path)
        }
    }

    /// The entries of a work, which it serves.
    fn entries(&self, work: usize, edition: usize) -> Vec<String> {
        let uri = |path: &str| self.site.uri(path);
        let ln = |rel: &str, href: &str| format!("<rs:ln rel=\"{rel}\" href=\"{href}\"/>");
        let entry = |(path, body): &(String, String), links: &str| {
            self.site.serve(path, body.clone());
            let md = format!("hash=\"sha-256:{}\" length=\"{}\"", Sha256::of(body.as_bytes()), body.len());
            resource(&uri(path), &md).replace("</url>", &format!("{links}</url>"))
        };
        let [page, metadata, text] = &Self::resources(work, edition);
        let mut of_page = [
            ln("describedby", &uri(&metadata.0)),
            ln("alternate", &uri(&text.0)),
            ln("collection", &format!("http://collection.test/{}", work % 7)),
            ln("duplicate", &format!("http://mirror.test/{work}")),
            ln("profile", "http://profile.test/page"),
        ]
        .concat();
        if Self::is_from_elsewhere(work) {
            of_page.push_str(&format!("<rs:ln rel=\"via\" {}/>", Self::attributes(work)));
            of_page.push_str(&ln("via", "http://later.test/copy"));
        }
        vec![
            entry(page, &of_page),
            entry(metadata, &ln("describes", &uri(&page.0))),
            entry(text, &ln("collection", "http://collection.test/texts")),
        ]
    }

    /// The link of a page to its first Source, as the Source writes it.
    fn attributes(work: usize) -> String {
        format!(
            "href=\"http://origin.test/{work}\" modified=\"2026-01-01T00:00:00Z\" hash=\"sha-256:AB\" length=\"7\" \
             type=\"text/plain\""
        )
    }

    /// Serves the Resource List of now, and returns its URI.
    fn list(&mut self) -> String {
        self.lists += 1;
        let md = format!("capability=\"resourcelist\" at=\"2026-01-{:02}T00:00:00Z\"", self.lists);
        let entries: Vec<String> =
            self.present.iter().flat_map(|(work, edition)| self.entries(*work, *edition)).collect();
        self.site.serve("/list.xml", urlset(&md, &entries))
    }

    /// Changes 1 % of the works, and deletes and creates a quarter as many: at least one each.
    fn change(&mut self, round: usize) -> Changed {
        let updated = (self.present.len() / 100).max(1);
        let others = (updated / 4).max(1);
        let all: Vec<usize> = self.present.keys().copied().collect();
        let (deleted, rest) = all.split_at(others);
        for work in deleted {
            self.present.remove(work);
            self.gone.insert(*work);
        }
        for work in &rest[..updated] {
            self.present.insert(*work, round);
        }
        let next = all.last().expect("some are left") + 1;
        self.present.extend((next..next + others).map(|work| (work, round)));
        Changed { stored: (updated + 3 * others) as u64, deleted: 3 * others as u64 }
    }

    /// What a reader at the end of the chain holds: the body of each resource, by its first Source.
    fn expected(&self) -> BTreeMap<String, String> {
        let all = self.present.iter().flat_map(|(work, edition)| {
            let resources = Self::resources(*work, *edition).into_iter();
            resources.map(|(path, body)| (self.origin(*work, &path), body))
        });
        all.collect()
    }
}

/// The links of a line with this relation, without the document that gave them.
fn links(line: &Value, rel: &str) -> Vec<Value> {
    let all = line["links"].as_array().into_iter().flatten().filter(|link| link["rel"] == rel);
    all.cloned()
        .map(|mut link| {
            link.as_object_mut().expect("a link").remove("document");
            link
        })
        .collect()
}

/// The only link of a line to a first Source.
#[track_caller]
fn via(line: &Value) -> Value {
    let mut vias = links(line, "via");
    assert_eq!(vias.len(), 1, "{line}");
    vias.remove(0)
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

/// The links to first Sources of a copy behind these publications, by the URI at the Source.
fn vias(copy: &Destination, bases: &[&str]) -> BTreeMap<String, Value> {
    let listed = copy.listed().into_iter();
    listed.map(|line| (original(text(&line["uri"]), bases), via(&line))).collect()
}

/// The reader holds what the Source has, byte for byte, and knows where each resource came from first.
#[track_caller]
fn holds(reader: &Destination, works: &Works, bases: &[&str]) {
    let (mut found, mut gone) = (BTreeMap::new(), BTreeSet::new());
    for line in reader.listed() {
        let (uri, origin) = (text(&line["uri"]), text(&via(&line)["href"]));
        if line["state"] == "deleted" {
            gone.insert(origin);
            continue;
        }
        let bytes = reader.file(&uri).unwrap_or_else(|| panic!("{uri} has no file"));
        assert_eq!(text(&line["sha256"]), Sha256::of(&bytes).to_string(), "{uri}");
        found.insert(origin, String::from_utf8(bytes).expect("text"));

        let at_source = original(uri, bases);
        let targets =
            |rel: &str| -> Vec<String> { links(&line, rel).iter().map(|link| text(&link["href"])).collect() };
        let led = |rel: &str| -> Vec<String> {
            targets(rel).into_iter().map(|href| original(href, bases)).collect()
        };
        if let Some(work) = at_source.rsplit('/').next().and_then(|name| name.parse::<usize>().ok()) {
            assert_eq!(led("describedby"), [format!("{at_source}.xml")]);
            assert_eq!(led("alternate"), [format!("{at_source}.txt")]);
            assert_eq!(targets("profile"), ["http://profile.test/page"]);
            if Works::is_from_elsewhere(work) {
                let expected = json!({
                    "rel": "via", "href": format!("http://origin.test/{work}"), "modified": "2026-01-01T00:00:00Z",
                    "hash": "sha-256:AB", "length": 7, "type": "text/plain",
                });
                assert_eq!(via(&line), expected);
            }
        }
        // These are true of the original alone.
        assert_eq!((targets("collection"), targets("duplicate")), (vec![], vec![]));
    }
    assert_eq!(found, works.expected());
    let expected: BTreeSet<String> = works
        .gone
        .iter()
        .flat_map(|work| Works::resources(*work, 0).map(|(path, _)| works.origin(*work, &path)))
        .collect();
    assert_eq!(gone, expected);
}

#[tokio::test]
async fn acc_1_links_and_changes_come_through_three_publishers() {
    let count = std::env::var(VARIABLE).map_or(RESOURCES, |count| count.parse().expect("a number"));
    let mut works = Works::new(count.div_ceil(3)).await;
    let copies: [Destination; 4] = std::array::from_fn(|_| Destination::directory());
    let hops: [Files; 3] = std::array::from_fn(|_| Files::start());
    let bases: Vec<&str> = hops.iter().map(|hop| hop.base.as_str()).collect();
    for round in 0..=ROUNDS {
        let changed = match round {
            0 => Changed { stored: 3 * works.present.len() as u64, deleted: 0 },
            _ => works.change(round),
        };
        let list = works.list();
        let run = copies[0].sync_with(&list, &[&NO_VIEW[..], &["--absent", "delete"]].concat()).exits(0);
        assert_eq!((run.count("stored"), run.count("deleted")), (changed.stored, changed.deleted), "{run}");
        for (at, hop) in hops.iter().enumerate() {
            let run = hop.publish(&copies[at]).exits(0);
            if round > 0 {
                assert_eq!(run.count("changes"), changed.stored + changed.deleted, "{run}");
            }
            // The reader at the end has files.
            let options = if at + 1 < hops.len() { &NO_VIEW[..] } else { &[] };
            let run = copies[at + 1].sync_with(&hop.base, options).exits(0);
            let counts = (run.count("stored"), run.count("deleted"), run.count("gaps"));
            assert_eq!(counts, (changed.stored, changed.deleted, 0), "{run}");
            let mode = if round == 0 { "baseline" } else { "incremental" };
            assert_eq!(run.json()["mode"], mode, "{run}");
        }
        holds(&copies[3], &works, &bases);
        // What the first publisher wrote of the first Source is passed on word for word.
        let first = vias(&copies[1], &bases[..1]);
        assert_eq!(vias(&copies[2], &bases[..2]), first);
        assert_eq!(vias(&copies[3], &bases), first);
    }
}
