use model::{HomeSite, SetId};
use resourcesync::Interval;

use super::*;
use crate::horizon::Horizon;

const PDF: &str = "application/pdf";

fn context() -> EntryContext {
    EntryContext {
        document: "http://h/sitemap.xml".into(),
        set: SetId::new("http://h/sitemap.xml"),
        changes: false,
        at: None,
        completed: None,
        interval: Interval::OPEN,
        kind: None,
        horizon: Horizon::at("2026-01-02T00:00:00Z".parse().unwrap()),
    }
}

fn link(rel: &str, href: &str, media_type: Option<&str>) -> Link {
    Link { media_type: media_type.map(str::to_owned), ..Link::new(rel, href) }
}

fn entries(follow: &FollowRules, filter: &Filter, links: &[Link]) -> PageEntries {
    let page = "http://h/w".parse().unwrap();
    PageRules { follow, filter }.entries(&page, links, Some("1"), &context())
}

fn uris(entries: &[ListedEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.uri.as_str()).collect()
}

fn follow(relations: &[&str], types: &[&str]) -> FollowRules {
    FollowRules {
        relations: relations.iter().map(|rel| rel.parse().unwrap()).collect(),
        types: types.iter().map(|kind| kind.parse().unwrap()).collect(),
        ..FollowRules::default()
    }
}

fn only(text: &str) -> Filter {
    Filter { only: vec![text.parse().unwrap()], ..Filter::default() }
}

#[test]
fn items_and_metadata_are_entries_that_name_their_page_once() {
    let links = [
        link("item", "http://h/a.pdf#page=2", Some(PDF)),
        link("item", "http://h/a.pdf", None),
        link("describedby", "http://h/m", None),
        link("describedby", "http://h/w", Some("application/ld+json")),
        link("cite-as", "http://doi.test/1", None),
        link("item", "no url", None),
    ];
    let found = entries(&FollowRules::default(), &Filter::default(), &links);
    assert_eq!(uris(&found.entries), ["http://h/a.pdf", "http://h/m"]);
    let first = &found.entries[0];
    assert_eq!(first.declaration.media_type.as_deref(), Some(PDF));
    let linked = first.listing.linked.as_deref().unwrap();
    assert_eq!((linked.from.as_str(), linked.rel.as_str()), ("http://h/w", "item"));
    assert!(found.unfit.is_some() && found.elsewhere.is_empty() && found.left_out.is_empty());
}

#[test]
fn other_hosts_count_only_for_relations_that_the_operator_names() {
    let links = [link("item", "http://o/a", Some(PDF)), link("describedby", "http://o/m", None)];
    let found = entries(&FollowRules::default(), &Filter::default(), &links);
    assert!(found.entries.is_empty());
    assert_eq!(found.others().map(ResourceUri::as_str).collect::<Vec<_>>(), ["http://o/a", "http://o/m"]);
    let found = entries(&follow(&["item"], &[]), &Filter::default(), &links);
    assert_eq!(uris(&found.entries), ["http://o/a"]);
    let home = Filter { only_of: Some(HomeSite::of_text("http://h/")), ..Filter::default() };
    let found = entries(&follow(&["item"], &[]), &home, &links);
    assert_eq!((found.entries.len(), found.foreign, found.left_out.len()), (0, 1, 1));
}

#[test]
fn conditions_on_types_and_profiles_apply_to_what_a_page_links_to() {
    let mut metadata = link("describedby", "http://h/m", Some("text/xml"));
    metadata.other.insert("profile".to_owned(), "http://ns/dc".to_owned());
    let links = [link("item", "http://h/a", Some(PDF)), link("item", "http://h/b", None), metadata];
    let found = entries(&FollowRules::default(), &only("type=application/pdf"), &links);
    assert_eq!((uris(&found.entries), found.out_of_scope), (vec!["http://h/a"], 2));
    let found = entries(&FollowRules::default(), &only("profile=http://ns/dc"), &links);
    assert_eq!(uris(&found.entries), ["http://h/m"]);
    let found = entries(&follow(&["item"], &["application/*"]), &Filter::default(), &links);
    assert_eq!((uris(&found.entries), found.out_of_scope), (vec!["http://h/a"], 1));
}

#[test]
fn a_version_is_that_of_the_target_or_of_its_page() {
    let mut dated = link("item", "http://h/a", None);
    dated.hash = Some("sha-256:00".to_owned());
    let page: ResourceUri = "http://h/w".parse().unwrap();
    let (follow, filter) = (FollowRules::default(), Filter::default());
    let rules = PageRules { follow: &follow, filter: &filter };
    let of = |link: &Link, version| {
        let found = rules.entries(&page, std::slice::from_ref(link), version, &context());
        found.entries[0].listing.linked.as_ref().unwrap().version
    };
    assert_eq!(of(&dated, Some("1")), of(&dated, Some("2")));
    let plain = link("item", "http://h/a", None);
    assert_ne!(of(&plain, Some("1")), of(&plain, Some("2")));
    assert_eq!(of(&plain, None), None, "it is asked for on condition");
    let validators = Validators { etag: Some("\"1\"".to_owned()), last_modified: None };
    let lastmod = "2026-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(version(None, &Validators::default()), None);
    assert!(version(None, &validators).unwrap().contains("\\\"1\\\""));
    assert_eq!(version(Some(lastmod), &validators), version(Some(lastmod), &Validators::default()));
}

#[test]
fn a_sitemap_describes_a_page_if_it_names_its_resources() {
    let described = [link("cite-as", "http://doi.test/1", None), link("item", "http://h/a", None)];
    assert!(is_described(&described) && !is_described(&described[..1]));
    let others = [link("stylesheet", "http://h/x", None), link("linkset", "http://h/ls", None)];
    assert_eq!(of_sitemap(&others), others[1..]);
}

#[test]
fn more_links_than_are_kept_are_told() {
    let long = "x".repeat(1024);
    let links: Vec<Link> = (0..1024).map(|n| link("item", &format!("http://h/{n}/{long}"), None)).collect();
    assert_eq!(kept(&links), Err(TooMany));
    assert_eq!(kept(&links[..1]).unwrap().unwrap().to_vec(), links[..1]);
    assert_eq!(kept(&[]), Ok(None));
}
