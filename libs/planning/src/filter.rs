//! Which resources the operator wants, by URI.

use model::HomeSite;
use regex::Regex;

/// Which resources to harvest, by URI.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only matching URIs.
    pub include: Option<Regex>,
    /// No matching URIs.
    pub exclude: Option<Regex>,
    /// Only URIs of this site, the site of the entry URL.
    pub only_of: Option<HomeSite>,
}

impl Filter {
    /// Whether every resource is wanted.
    pub fn takes_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.only_of.is_none()
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
    use super::*;
    use crate::HarvestOptions;

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
}
