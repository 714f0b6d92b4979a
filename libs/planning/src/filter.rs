//! Which resources the operator wants, by their URI and by what their entries say of them.

use model::{HomeSite, Only, Scope};
use regex::Regex;
use resourcesync::{Change, relation};

use crate::entry::ListedEntry;

/// Which resources to harvest.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only matching URIs.
    pub include: Option<Regex>,
    /// No matching URIs.
    pub exclude: Option<Regex>,
    /// Only URIs of this site, the site of the entry URL.
    pub only_of: Option<HomeSite>,
    /// Only resources whose entries meet these conditions. Those about one subject, such as the media type, are
    /// alternatives.
    pub only: Vec<Only>,
    /// The URLs below which the store publishes. What was first published there came from here, and is not taken.
    pub published: Vec<String>,
}

impl Filter {
    /// Whether every URI is wanted.
    pub fn takes_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.only_of.is_none()
    }

    /// Whether an entry of a wanted URI is wanted for what it says. A deletion is, whatever it says: the resource may
    /// be stored. The entry of a link is too: other rules chose it. A change need not repeat what the list said, so a
    /// change that says nothing may be wanted: see [`leaves_open`](Self::leaves_open).
    pub fn admits(&self, entry: &ListedEntry) -> bool {
        if self.is_loop(entry) {
            return false;
        }
        match entry.listing.change {
            _ if self.only.is_empty() || entry.listing.linked.is_some() => true,
            Some(Change::Deleted) => true,
            Some(Change::Updated) => self.scope(entry) != Scope::Out,
            Some(Change::Created) | None => self.scope(entry) == Scope::In,
        }
    }

    /// Whether the first Source of an entry (the first `via`; ResourceSync 1.1, section 14.8) is a publication of the
    /// store that would take it: it comes back to where it came from. A deletion may be about something stored.
    pub fn is_loop(&self, entry: &ListedEntry) -> bool {
        if self.published.is_empty() || entry.listing.change == Some(Change::Deleted) {
            return false;
        }
        let Some(links) = entry.listing.links.as_ref() else { return false };
        // Few entries name a publication of ours: only those are decoded.
        if !self.published.iter().any(|base| links.as_str().contains(base.as_str())) {
            return false;
        }
        let first = links.to_vec().into_iter().find(|link| link.rel == relation::VIA);
        first.is_some_and(|first| self.published.iter().any(|base| first.href.starts_with(base.as_str())))
    }

    /// The same for what a landing page links to: nothing but the page names it, so its entry is one like others.
    pub fn admits_item(&self, entry: &ListedEntry) -> bool {
        self.only.is_empty() || self.scope(entry) == Scope::In
    }

    /// Whether an admitted entry says nothing of what is asked for. It is about a wanted resource if that one is stored
    /// or planned.
    pub fn leaves_open(&self, entry: &ListedEntry) -> bool {
        !self.only.is_empty()
            && entry.listing.linked.is_none()
            && entry.listing.change == Some(Change::Updated)
            && self.scope(entry) == Scope::Unsaid
    }

    /// Whether an entry meets the conditions.
    fn scope(&self, entry: &ListedEntry) -> Scope {
        let media_type = entry.declaration.media_type.as_deref();
        let links = entry.listing.links.as_ref();
        let mut whole = Scope::In;
        for (n, only) in self.only.iter().enumerate() {
            let subject = only.subject();
            if self.only[..n].iter().any(|before| before.subject() == subject) {
                continue;
            }
            let alternatives = self.only.iter().filter(|other| other.subject() == subject);
            let scopes: Vec<Scope> = alternatives.map(|only| only.scope(media_type, links)).collect();
            if scopes.contains(&Scope::In) {
                continue;
            }
            if scopes.contains(&Scope::Out) {
                return Scope::Out;
            }
            whole = Scope::Unsaid;
        }
        whole
    }

    /// Whether a resource is wanted.
    pub fn takes(&self, uri: &str) -> bool {
        self.matches(uri) && !self.leaves_out_as_foreign(uri)
    }

    /// Whether a resource is excluded only because it belongs to another site.
    pub fn leaves_out_as_foreign(&self, uri: &str) -> bool {
        self.only_of.as_ref().is_some_and(|home| home.is_foreign(uri)) && self.matches(uri)
    }

    fn matches(&self, uri: &str) -> bool {
        self.include.as_ref().is_none_or(|wanted| wanted.is_match(uri))
            && !self.exclude.as_ref().is_some_and(|unwanted| unwanted.is_match(uri))
    }
}

#[cfg(test)]
mod tests {
    use model::{Declaration, Links, Listing, SetId};
    use resourcesync::Link;

    use super::*;
    use crate::{HarvestOptions, Moment};

    #[test]
    fn a_filter_takes_what_is_included_and_not_excluded() {
        let filter = Filter {
            include: Some(Regex::new("/a/").unwrap()),
            exclude: Some(Regex::new("[.]tmp$").unwrap()),
            ..Filter::default()
        };
        assert!(filter.takes("http://h/a/x"));
        assert!(!filter.takes("http://h/b/x"));
        assert!(!filter.takes("http://h/a/x.tmp"));
        assert!(Filter::default().takes("anything"));
    }

    #[test]
    fn a_filter_leaves_out_other_sites_where_only_one_is_wanted() {
        let home = HomeSite::of_text("https://www.example.org/list.xml");
        let only_of = |home| Filter {
            only_of: home,
            exclude: Some(Regex::new("[.]tmp$").unwrap()),
            ..Filter::default()
        };
        let same = only_of(Some(home));
        let any = only_of(None);
        assert!(same.takes("https://files.example.org/a") && !same.takes_all());
        assert!(!same.takes("https://example.com/a") && same.leaves_out_as_foreign("https://example.com/a"));
        assert!(!same.leaves_out_as_foreign("https://example.com/a.tmp"), "it is not wanted anyhow");
        assert!(any.takes("https://example.com/a") && !any.leaves_out_as_foreign("https://example.com/a"));
        let fingerprint = |filter| HarvestOptions { filter, ..HarvestOptions::default() }.fingerprint();
        assert_ne!(fingerprint(same), fingerprint(any));
    }

    fn entry(change: Option<Change>, media_type: Option<&str>, links: &[(&str, &str)]) -> ListedEntry {
        let links: Vec<Link> = links.iter().map(|(rel, href)| Link::new(*rel, *href)).collect();
        ListedEntry {
            uri: "http://h/a".parse().unwrap(),
            declaration: Declaration { media_type: media_type.map(str::to_owned), ..Declaration::default() },
            listing: Listing {
                document: "http://h/list.xml".into(),
                set: SetId::new("s"),
                change,
                change_time: None,
                as_of: None,
                latest: None,
                links: Links::of(&links),
                linked: None,
            },
            moment: Moment::default(),
        }
    }

    #[test]
    fn conditions_on_one_subject_are_alternatives_and_those_on_several_all_hold() {
        let only = ["type=application/pdf", "type=text/*", "collection=http://h/c"];
        let filter = Filter { only: only.map(|text| text.parse().unwrap()).into(), ..Filter::default() };
        let listed = |media_type, links: &[_]| filter.admits(&entry(None, Some(media_type), links));
        assert!(listed("application/pdf", &[("collection", "http://h/c")]));
        assert!(listed("text/html", &[("via", "http://o/"), ("collection", "http://h/c")]));
        assert!(!listed("image/png", &[("collection", "http://h/c")]));
        assert!(!listed("application/pdf", &[("collection", "http://h/d")]));
        assert!(!listed("application/pdf", &[]));
    }

    #[test]
    fn what_came_from_here_is_not_taken_back() {
        let filter = Filter { published: vec!["http://us/set/".to_owned()], ..Filter::default() };
        let is_loop = |links: &[_]| {
            let entry = entry(None, None, links);
            assert_eq!(filter.is_loop(&entry), !filter.admits(&entry));
            filter.is_loop(&entry)
        };
        assert!(is_loop(&[("via", "http://us/set/a"), ("via", "http://o/a")]), "the first one counts");
        assert!(!is_loop(&[("via", "http://o/a"), ("via", "http://us/set/a")]));
        assert!(!is_loop(&[("via", "http://us/other/a"), ("describedby", "http://us/set/a")]));
        assert!(!is_loop(&[]));
        assert!(!filter.is_loop(&entry(Some(Change::Deleted), None, &[("via", "http://us/set/a")])));
        assert!(!Filter::default().is_loop(&entry(None, None, &[("via", "http://us/set/a")])));
        let fingerprint =
            |filter: Filter| HarvestOptions { filter, ..HarvestOptions::default() }.fingerprint();
        assert_eq!(
            fingerprint(filter.clone()),
            fingerprint(Filter::default()),
            "no list is read again for it"
        );
    }

    #[test]
    fn a_change_need_not_repeat_what_the_list_said() {
        let filter = Filter { only: vec!["type=application/pdf".parse().unwrap()], ..Filter::default() };
        let deleted = entry(Some(Change::Deleted), None, &[]);
        assert!(filter.admits(&deleted) && !filter.leaves_open(&deleted));
        let updated = entry(Some(Change::Updated), None, &[]);
        assert!(filter.admits(&updated) && filter.leaves_open(&updated));
        let other = entry(Some(Change::Updated), Some("text/html"), &[]);
        assert!(!filter.admits(&other));
        assert!(!filter.admits(&entry(Some(Change::Created), None, &[])), "nothing says that it is wanted");
        assert!(!filter.admits(&entry(None, None, &[])));
        let fingerprint = |filter: &Filter| {
            HarvestOptions { filter: filter.clone(), ..HarvestOptions::default() }.fingerprint()
        };
        assert_ne!(fingerprint(&filter), fingerprint(&Filter::default()));
    }
}
