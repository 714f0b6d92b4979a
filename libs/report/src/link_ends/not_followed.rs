//! Why a link of a resource leads to nothing that is stored.

use model::{Declaration, FollowRule, MediaRange, ResourceUri};
use resourcesync::{Link, relation};

/// Why what a link leads to was not fetched. `options`: those of the last run, as its record has them; none if there
/// was no run. `declared`: what the entry with the link declares of its resource.
pub(super) fn why(link: &Link, declared: &Declaration, options: Option<&str>) -> String {
    let target: Result<ResourceUri, _> = link.href.parse();
    if let Err(error) = target {
        return format!("it is not fetched: {error}");
    }
    match link.rel.as_str() {
        relation::DUPLICATE if declared.digests.is_empty() => {
            return "a mirror, never requested: no digest is declared that would prove its bytes".to_owned();
        }
        relation::DUPLICATE => return "a mirror, requested only as --mirrors says".to_owned(),
        relation::PATCH => return "a patch, requested only where it makes a new version".to_owned(),
        relation::MEMENTO | relation::TIMEMAP => {
            return "about earlier versions, which `thresher backfill` fetches".to_owned();
        }
        relation::TIMEGATE => return "about earlier versions, never requested".to_owned(),
        relation::ORIGINAL => return "the resource that this is a version of; no list names it".to_owned(),
        _ => {}
    }
    let words: Vec<&str> = options.unwrap_or_default().split(' ').collect();
    let values = |name: &str| -> Vec<&str> {
        words.windows(2).filter(|pair| pair[0] == name).map(|pair| pair[1]).collect()
    };
    let mut rules = values("rule").into_iter().filter_map(|rule| rule.parse::<FollowRule>().ok());
    if rules.any(|rule| rule.relation.as_str() == link.rel) {
        return "not followed by the last run: outside the conditions of --follow-rule for this relation, beyond its \
                max, or left out by --include, --exclude or --origins"
            .to_owned();
    }
    if !values("follow").contains(&link.rel.as_str()) {
        return "not followed: no list names it, and neither --follow-links of the last run nor a --follow-rule names \
                this relation"
            .to_owned();
    }
    let types: Vec<MediaRange> = values("of").into_iter().filter_map(|range| range.parse().ok()).collect();
    let media_type = link.media_type.as_deref();
    if !types.is_empty() && !media_type.is_some_and(|found| types.iter().any(|range| range.includes(found))) {
        let of =
            media_type.map_or("declares no media type".to_owned(), |found| format!("is of type {found}"));
        return format!("not followed: it {of}, which --follow-type leaves out");
    }
    "not followed by the last run: beyond --follow-max or --max-links, or left out by --include, --exclude or --origins"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;

    use super::*;

    #[test]
    fn each_link_that_is_not_followed_has_a_reason() {
        let options = "include \"\" exclude \"\" strict false follow item of application/pdf most 20 \
                       rule rel=author,host=h.test";
        let none = Declaration::default();
        let judged = Declaration { digests: vec![Sha256::of(b"x").into()], ..Declaration::default() };
        let of_type = |media_type: &str| Link {
            media_type: Some(media_type.to_owned()),
            ..Link::new("item", "http://h/x")
        };
        for (link, declared, reason) in [
            (Link::new("duplicate", "http://h/x"), &none, "no digest"),
            (Link::new("duplicate", "http://h/x"), &judged, "--mirrors"),
            (Link::new("duplicate", "gsiftp://h/x"), &judged, "gsiftp"),
            (Link::new("timemap", "http://h/x"), &none, "backfill"),
            (Link::new("describedby", "http://h/x"), &none, "--follow-links"),
            (Link::new("author", "http://h/x"), &none, "--follow-rule for this relation"),
            (Link::new("item", "http://h/x"), &none, "declares no media type"),
            (of_type("text/html"), &none, "text/html, which --follow-type"),
            (of_type("application/pdf"), &none, "--follow-max"),
        ] {
            let said = why(&link, declared, Some(options));
            assert!(said.contains(reason), "{reason}: {said}");
        }
        assert!(why(&of_type("application/pdf"), &none, None).contains("--follow-links"));
    }
}
