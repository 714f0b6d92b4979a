use std::collections::HashSet;
use std::num::NonZeroU16;

use fixity::{Computed, Sha256};
use jiff::Timestamp;
use model::{
    Absence, Action, Assurance, Bitstream, Declaration, Links, Location, PendingRecord, Provenance,
    ResourceRecord, Seq, SetId, Validators,
};
use resourcesync::Change;

use super::*;
use crate::decide::{CurrentState, Decision, decide};
use crate::filter::Filter;
use crate::horizon::Moment;
use crate::{HarvestOptions, relinked};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

fn rules(relations: &[&str], types: &[&str]) -> FollowRules {
    FollowRules {
        relations: relations.iter().map(|relation| relation.parse().unwrap()).collect(),
        types: types.iter().map(|range| range.parse().unwrap()).collect(),
        ..FollowRules::default()
    }
}

fn entry(uri: &str, change: Option<Change>, second: i64, links: &[Link]) -> ListedEntry {
    ListedEntry {
        uri: uri.parse().unwrap(),
        declaration: Declaration { digests: vec![Sha256::of(b"x").into()], ..Declaration::default() },
        listing: Listing {
            document: "http://h/list".into(),
            set: SetId::new("s"),
            change,
            change_time: None,
            as_of: Some(at(second)),
            latest: None,
            links: Links::of(links),
            linked: None,
        },
        moment: Moment { latest: Some(at(second)), is_vague: false },
    }
}

fn pdf(href: &str) -> Link {
    Link { media_type: Some("application/pdf".to_owned()), ..Link::new("item", href) }
}

fn targets(rules: &FollowRules, entry: &ListedEntry) -> Vec<String> {
    rules.follow(&Filter::default(), entry).entries.iter().map(|entry| entry.uri.to_string()).collect()
}

/// The entry of the link from `from` to `http://h/t`.
fn link_of(from: &str, change: Option<Change>, second: i64) -> ListedEntry {
    let entry = entry(from, change, second, &[pdf("http://h/t")]);
    rules(&["item"], &[]).follow(&Filter::default(), &entry).entries.remove(0)
}

fn held(listing: Listing) -> ResourceRecord {
    let computed = Computed::of(b"y");
    ResourceRecord {
        bitstream: Some(Bitstream {
            location: Location::Object { sha256: computed.sha256() },
            computed,
            assurance: Assurance::None,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: at(0),
        }),
        declaration: Declaration::default(),
        sets: vec![listing.set.clone()],
        listing,
        deleted: None,
        collected: None,
        absent: None,
        settled_at: at(0),
    }
}

fn plan(listing: Listing) -> PendingRecord {
    let action = Action::Fetch { origin: "http://h".parse().unwrap() };
    PendingRecord::new(Seq::new(1), action, Declaration::default(), listing, Provenance::default())
}

fn knows(record: &ResourceRecord) -> CurrentState<'_> {
    CurrentState { record: Some(record), ..CurrentState::default() }
}

fn decided(entry: &ListedEntry, record: &ResourceRecord) -> Decision {
    decide(&entry.declaration, &entry.listing, entry.moment, knows(record))
}

#[test]
fn links_are_followed_by_relation_and_declared_type() {
    let links = [
        pdf("http://h/a.pdf"),
        Link::new("item", "http://h/b"),
        Link::new("describedby", "http://h/c"),
        Link::new("license", "http://h/d"),
    ];
    let entry = entry("http://h/", None, 1, &links);
    assert_eq!(targets(&FollowRules::default(), &entry), [""; 0]);
    assert_eq!(targets(&rules(&["item"], &[]), &entry), ["http://h/a.pdf", "http://h/b"]);
    assert_eq!(targets(&rules(&["item"], &["application/pdf"]), &entry), ["http://h/a.pdf"]);
    assert_eq!(targets(&rules(&["Item", "describedby"], &["*/x"]), &entry), [""; 0]);
}

#[test]
fn a_link_is_an_entry_of_its_document_with_what_the_link_declares() {
    let digest = Sha256::of(b"t");
    let link = Link {
        hash: Some(format!("sha-256:{digest}")),
        length: Some(1),
        modified: Some("2026-01-01T00:00:00Z".parse().unwrap()),
        ..pdf("http://h/t")
    };
    let from = entry("http://h/", None, 5, &[link]);
    let linked = rules(&["item"], &[]).follow(&Filter::default(), &from).entries.remove(0);
    assert_eq!(linked.declaration.digests, [digest.into()]);
    assert_eq!((linked.declaration.length, linked.declaration.lastmod), (Some(1), Some(at(0))));
    assert_eq!(linked.declaration.media_type.as_deref(), Some("application/pdf"));
    let mark = linked.listing.linked.as_deref().unwrap();
    assert_eq!((mark.from.as_str(), mark.rel.as_str(), mark.shared), ("http://h/", "item", false));
    assert_eq!((linked.listing.as_of, linked.listing.links, linked.moment), (Some(at(5)), None, from.moment));
}

#[test]
fn what_cannot_be_followed_is_left_out_or_told() {
    let links = [
        Link::new("item", "http://h/#part"),
        pdf("http://h/t#page=2"),
        Link::new("item", "http://h/t"),
        Link::new("item", "ftp://h/f"),
        Link::new("item", "http://other/x"),
    ];
    let from = entry("http://h/", None, 1, &links);
    let filter = Filter { exclude: Some(regex::Regex::new("other").unwrap()), ..Filter::default() };
    let followed = rules(&["item"], &[]).follow(&filter, &from);
    let uris: Vec<&str> = followed.entries.iter().map(|entry| entry.uri.as_str()).collect();
    assert_eq!(uris, ["http://h/t"], "once, without its fragment, and not the resource itself");
    assert_eq!(followed.left_out, ["http://other/x".parse().unwrap()]);
    assert_eq!(followed.unfit.unwrap().0.href, "ftp://h/f");
    let gone = entry("http://h/", Some(Change::Deleted), 1, &links);
    assert_eq!(targets(&rules(&["item"], &[]), &gone), [""; 0]);
}

#[test]
fn an_entry_has_as_many_followed_links_as_the_operator_allows() {
    let links: Vec<Link> = (0..5).map(|n| pdf(&format!("http://h/{n}"))).collect();
    let few = FollowRules { most: 2.try_into().unwrap(), ..rules(&["item"], &[]) };
    let followed = few.follow(&Filter::default(), &entry("http://h/", None, 1, &links));
    assert_eq!((followed.entries.len(), followed.beyond.len()), (2, 3));
}

#[test]
fn the_same_link_of_the_same_version_asks_for_nothing() {
    let first = link_of("http://h/a", None, 1);
    let record = held(first.listing.clone());
    assert_eq!(decided(&link_of("http://h/a", None, 2), &record), Decision::Unchanged);
    let mut changed = entry("http://h/a", None, 2, &[pdf("http://h/t")]);
    changed.declaration.digests = vec![Sha256::of(b"z").into()];
    let changed = rules(&["item"], &[]).follow(&Filter::default(), &changed).entries.remove(0);
    assert_eq!(decided(&changed, &record), Decision::Fetch, "what links to it has changed");
    let mut unsaid = entry("http://h/a", None, 2, &[pdf("http://h/t")]);
    unsaid.declaration = Declaration::default();
    let unsaid = rules(&["item"], &[]).follow(&Filter::default(), &unsaid).entries.remove(0);
    assert_eq!(unsaid.listing.linked.as_ref().unwrap().version, None);
    assert_eq!(decided(&unsaid, &record), Decision::Fetch, "nothing can be compared");
}

#[test]
fn a_link_with_a_digest_of_its_own_does_not_change_with_its_resource() {
    let link = Link { hash: Some(format!("sha-256:{}", Sha256::of(b"y"))), ..pdf("http://h/t") };
    let from = |content: &[u8]| {
        let mut from = entry("http://h/a", None, 1, std::slice::from_ref(&link));
        from.declaration.digests = vec![Sha256::of(content).into()];
        rules(&["item"], &[]).follow(&Filter::default(), &from).entries.remove(0)
    };
    let [one, other] = [from(b"1"), from(b"2")];
    assert_eq!(one.listing.linked, other.listing.linked);
    assert_eq!(decided(&other, &held(one.listing)), Decision::Unchanged);
}

#[test]
fn a_resource_that_a_list_names_is_only_listed() {
    let listed = held(entry("http://h/t", None, 1, &[]).listing);
    let link = link_of("http://h/a", None, 1);
    assert!(matches!(
        beside_target(link.clone(), knows(&listed)),
        BesideTarget::Listed { contradicts: false }
    ));
    let planned = plan(listed.listing.clone());
    let known = CurrentState { pending: Some(&planned), ..CurrentState::default() };
    assert!(matches!(beside_target(link.clone(), known), BesideTarget::Listed { contradicts: false }));
    let own = entry("http://h/t", None, 1, &[]);
    let Merged { entries: merged, left_out, .. } =
        merge_links(vec![link.clone(), own, link_of("http://h/b", None, 1)]);
    assert_eq!((merged.len(), left_out), (1, 2));
    assert_eq!(merged[0].listing.linked, None);

    // Once lists were seen that omit it, a list that links to it makes it linked; a change alone does not.
    let absence = Absence { document: "d".to_owned(), at: Some(at(0)), seen_at: at(0) };
    let absent = ResourceRecord { absent: Some(absence), ..listed };
    assert!(matches!(beside_target(link, knows(&absent)), BesideTarget::Open(_)));
    let change = link_of("http://h/a", Some(Change::Updated), 2);
    assert!(matches!(beside_target(change, knows(&absent)), BesideTarget::Listed { contradicts: false }));
}

#[test]
fn an_entry_of_a_list_ends_the_mark_and_a_link_gives_it() {
    let linked = held(link_of("http://h/a", None, 1).listing);
    let own = entry("http://h/t", None, 2, &[Link::new("via", "http://o/")]);
    assert_eq!(relinked(&linked, &own.listing), Some(own.listing.clone()));
    let undated = Listing { as_of: None, ..own.listing.clone() };
    let found = relinked(&linked, &undated).unwrap();
    assert_eq!((found.linked, found.links), (None, own.listing.links.clone()));
    let listed = held(own.listing);
    let link = link_of("http://h/a", None, 3);
    assert_eq!(relinked(&listed, &link.listing), Some(link.listing));
}

#[test]
fn links_of_several_resources_are_merged_and_marked_as_shared() {
    let Merged { entries: merged, left_out, .. } = merge_links(vec![
        link_of("http://h/a", None, 1),
        link_of("http://h/b", None, 1),
        link_of("http://h/a", None, 1),
    ]);
    assert_eq!((merged.len(), left_out), (1, 2));
    let mark = merged[0].listing.linked.as_deref().unwrap();
    assert_eq!((mark.from.as_str(), mark.shared), ("http://h/a", true));
    // In batches of their own, the plan or the record is marked.
    let planned = plan(link_of("http://h/a", None, 1).listing);
    let known = CurrentState { pending: Some(&planned), ..CurrentState::default() };
    let BesideTarget::Planned(mark) = beside_target(link_of("http://h/b", None, 1), known) else {
        panic!("it is planned")
    };
    assert_eq!((mark.from.as_str(), mark.shared), ("http://h/a", true));
    let record = held(planned.listing.clone());
    let change = link_of("http://h/b", Some(Change::Updated), 2);
    let BesideTarget::Open(change) = beside_target(change, knows(&record)) else { panic!("it is open") };
    let listing = relinked(&record, &change.listing).unwrap();
    let mark = listing.linked.as_deref().unwrap();
    assert_eq!((mark.from.as_str(), mark.shared), ("http://h/a", true), "the first one stays");
    assert_eq!(relinked(&held(listing), &change.listing), None);
}

#[test]
fn a_change_that_is_undone_in_the_same_documents_leads_nowhere() {
    let created = link_of("http://h/a", Some(Change::Created), 1);
    let deleted = entry("http://h/a", Some(Change::Deleted), 2, &[]);
    let again = link_of("http://h/a", Some(Change::Created), 3);
    let Merged { entries: merged, left_out, .. } = merge_links(vec![created.clone(), deleted.clone()]);
    assert_eq!((merged.len(), left_out), (1, 1));
    let Merged { entries: merged, .. } = merge_links(vec![created, deleted, again.clone()]);
    assert_eq!(merged.iter().filter(|entry| entry.uri == again.uri).count(), 1);
}

#[test]
fn a_change_tells_what_becomes_of_the_targets() {
    let rules = rules(&["item"], &[]);
    let filter = Filter::default();
    let record = held(entry("http://h/a", None, 1, &[pdf("http://h/t"), pdf("http://h/u")]).listing);
    let after = |change, links: &[Link], decision| {
        let entry = entry("http://h/a", Some(change), 2, links);
        let AfterChange { again, ended } = rules.after_change(&filter, &entry, decision, Some(&record));
        (again.len(), ended.iter().map(|ended| (ended.uri.to_string(), ended.is_deleted)).collect::<Vec<_>>())
    };
    let [t, u] = ["http://h/t", "http://h/u"].map(str::to_owned);
    let both = vec![(t, true), (u.clone(), true)];
    assert_eq!(after(Change::Deleted, &[], Decision::Delete), (0, both));
    assert_eq!(after(Change::Deleted, &[], Decision::Ask), (0, vec![]));
    assert_eq!(after(Change::Updated, &[], Decision::Fetch), (2, vec![]), "silence removes nothing");
    assert_eq!(after(Change::Updated, &[], Decision::Unchanged), (0, vec![]));
    assert_eq!(after(Change::Updated, &[], Decision::Stale), (0, vec![]));
    let one = vec![(u, false)];
    assert_eq!(after(Change::Updated, &[pdf("http://h/t")], Decision::Unchanged), (0, one));
    let listed = entry("http://h/a", None, 2, &[]);
    let of_list = rules.after_change(&filter, &listed, Decision::Unchanged, Some(&record));
    assert!(of_list.ended.is_empty() && of_list.again.is_empty(), "lists tell absences");
}

#[test]
fn other_rules_select_other_entries_and_leave_out_what_the_former_ones_chose() {
    let fingerprint =
        |follow: FollowRules| HarvestOptions { follow, ..HarvestOptions::default() }.fingerprint();
    let none = fingerprint(FollowRules::default());
    assert_eq!(none, fingerprint(rules(&[], &["text/html"])), "what is not used changes nothing");
    assert!(none.ends_with("strict false"), "the text is that of before: {none}");
    let [item, both, html] =
        [rules(&["item"], &[]), rules(&["item", "author"], &[]), rules(&["item"], &["text/*"])];
    assert_eq!(fingerprint(both.clone()), fingerprint(rules(&["author", "item"], &[])));
    let all = [fingerprint(item.clone()), fingerprint(both), fingerprint(html.clone()), none];
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    let record = held(link_of("http://h/a", None, 1).listing);
    let uri: ResourceUri = "http://h/t".parse().unwrap();
    assert!(
        !item.leaves_out(&uri, &record)
            && html.leaves_out(&uri, &record)
            && FollowRules::default().leaves_out(&uri, &record)
    );
    assert!(!item.leaves_out(&uri, &held(entry("http://h/t", None, 1, &[]).listing)));
}

#[test]
fn all_targets_that_rules_select_are_named_whatever_the_limit() {
    let rules = FollowRules { most: NonZeroU16::MIN, ..rules(&["content"], &["application/*"]) };
    let links = [
        pdf("http://h/1"),
        pdf("http://h/2#page=3"),
        Link::new("item", "http://h/no-type"),
        Link::new("describes", "http://h/page"),
        pdf("no URI"),
    ];
    let named: Vec<String> = rules.targets(&links).map(|uri| uri.to_string()).collect();
    assert_eq!(named, ["http://h/1", "http://h/2"]);
    assert_eq!(targets(&rules, &entry("http://h/r", None, 1, &links)), ["http://h/1"]);
}

fn of_rules(texts: &[&str]) -> FollowRules {
    FollowRules { rules: texts.iter().map(|text| text.parse().unwrap()).collect(), ..FollowRules::default() }
}

#[test]
fn each_rule_has_conditions_and_a_limit_of_its_own() {
    let profiled = |href: &str, profile: &str| {
        let other = [("profile".to_owned(), profile.to_owned())].into();
        Link { other, ..Link::new("describedby", href) }
    };
    let links = [
        pdf("http://h/1"),
        pdf("http://h/2"),
        pdf("http://elsewhere/3"),
        Link { media_type: Some("text/html".to_owned()), ..Link::new("item", "http://h/4") },
        profiled("http://h/5", "http://ns/dc"),
        profiled("http://h/6", "http://ns/mods"),
        Link::new("author", "http://h/7"),
    ];
    let entry = entry("http://h/a", None, 1, &links);
    let rules =
        of_rules(&["rel=item,type=application/pdf,host=h,max=1", "rel=describedby,profile=http://ns/dc"]);
    let followed = rules.follow(&Filter::default(), &entry);
    let uris = |uris: &[ResourceUri]| uris.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(targets(&rules, &entry), ["http://h/1", "http://h/5"]);
    assert_eq!(uris(&followed.beyond), ["http://h/2"]);
    // A record does not keep the profile, so what is of another one is named all the same.
    assert_eq!(uris(&followed.left_out), ["http://h/6"]);
    assert!(!followed.instead && !rules.leaves_to_links(&Filter::default(), &entry));

    // What one rule has no place for, another one may take; and the relations for all links come last.
    let more = of_rules(&["rel=item,max=1", "rel=item,host=elsewhere", "rel=item,type=text/*,instead"]);
    assert_eq!(targets(&more, &entry), ["http://h/1", "http://elsewhere/3", "http://h/4"]);
    assert!(more.leaves_to_links(&Filter::default(), &entry));
    let plain = FollowRules { relations: vec!["item".parse().unwrap()], ..of_rules(&["rel=author,max=1"]) };
    assert_eq!(targets(&plain, &entry).len(), 5);
}

#[test]
fn one_target_with_several_types_is_one_resource_of_the_type_that_is_wanted_first() {
    let of = |media_type: &str| Link {
        media_type: Some(media_type.to_owned()),
        ..Link::new("item", "http://h/f")
    };
    let entry =
        entry("http://h/a", None, 1, &[of("text/html"), of("application/pdf"), of("application/xml")]);
    for (rules, first) in [
        (of_rules(&["rel=item,type=application/*"]), "application/pdf"),
        (of_rules(&["rel=item,type=application/xml"]), "application/xml"),
        (of_rules(&["rel=item"]), "text/html"),
    ] {
        let followed = rules.follow(&Filter::default(), &entry).entries;
        let types: Vec<_> =
            followed.iter().map(|entry| entry.declaration.media_type.as_deref().unwrap()).collect();
        assert_eq!(types, [first]);
    }
}

#[test]
fn what_a_rule_may_have_led_to_is_its_own_whatever_the_profile() {
    let record = held(link_of("http://h/a", None, 1).listing);
    let uri: ResourceUri = "http://h/t".parse().unwrap();
    for (text, is_left_out) in [
        ("rel=item", false),
        ("rel=item,profile=http://ns/dc", false),
        ("rel=item,host=h,max=1,instead", false),
        ("rel=item,host=elsewhere", true),
        ("rel=author", true),
    ] {
        assert_eq!(of_rules(&[text]).leaves_out(&uri, &record), is_left_out, "{text}");
    }
    let fingerprint = |texts: &[&str]| {
        HarvestOptions { follow: of_rules(texts), ..HarvestOptions::default() }.fingerprint()
    };
    assert_ne!(fingerprint(&["rel=item"]), fingerprint(&["rel=item,instead"]));
    assert_ne!(fingerprint(&["rel=item"]), fingerprint(&[]));
}

#[test]
fn a_link_that_contradicts_the_entry_of_its_target_is_counted_and_the_entry_counts() {
    let describes = |content: Option<&[u8]>, length: u64| {
        let hash = content.map(|content| format!("sha-256:{}", Sha256::of(content)));
        let link = Link { hash, length: Some(length), ..Link::new("describes", "http://h/t") };
        let entry = entry("http://h/a", None, 1, &[link]);
        rules(&["describes"], &[]).follow(&Filter::default(), &entry).entries.remove(0)
    };
    let own = || {
        let mut own = entry("http://h/t", None, 1, &[]);
        own.declaration.length = Some(1);
        own
    };
    for (link, count) in [
        (describes(Some(b"x"), 1), 0),
        (describes(None, 1), 0),
        (describes(Some(b"other"), 1), 1),
        (describes(None, 7), 1),
    ] {
        let merged = merge_links(vec![link.clone(), own()]);
        assert_eq!((merged.entries.len(), merged.left_out, merged.contradicting), (1, 1, count));
        assert_eq!(merged.entries[0].declaration, own().declaration);
        let ListedEntry { declaration, listing, .. } = own();
        let record = ResourceRecord { declaration, ..held(listing) };
        let BesideTarget::Listed { contradicts } = beside_target(link, knows(&record)) else {
            panic!("listed")
        };
        assert_eq!(u64::from(contradicts), count);
    }
}
