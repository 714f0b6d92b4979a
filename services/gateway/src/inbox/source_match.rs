//! Finds the Sources that a notification is about. Pure functions.

use control::SourceSpec;
use ldn::Notification;
use model::SourceId;
use url::Origin;

/// The most Sources that get a hint from one notification.
const MOST: usize = 8;

/// The Sources for which a sender may report changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SenderRights<'a> {
    /// The Sources for which the sender may report any change.
    pub(super) of: &'a [SourceId],
    /// For a sender without a token: the origin that it claims. It may report nothing about Sources of other origins.
    pub(super) claimed: Option<&'a Origin>,
}

/// The Sources that get a hint for a notification in the inbox of `inbox`, or in the common inbox. The sender must be
/// allowed to speak for the Source. The notification must name something at the origin of the Source's entry URL,
/// unless the sender may report anything about the Source.
pub(super) fn sources<'a>(
    notification: &Notification,
    inbox: Option<&SourceId>,
    sender: SenderRights<'_>,
    sources: impl IntoIterator<Item = &'a SourceSpec>,
) -> Vec<SourceId> {
    if notification.activity.is_none() {
        return Vec::new();
    }
    let mut at_origin = Vec::new();
    let mut spoken_for = Vec::new();
    for source in sources {
        if !source.enabled || inbox.is_some_and(|inbox| *inbox != source.id) {
            continue;
        }
        let may_say_anything = sender.of.contains(&source.id);
        let is_its_own = sender.claimed.is_none_or(|claimed| source.entry.origin() == *claimed);
        if notification.is_about(&source.entry) && (may_say_anything || is_its_own) {
            at_origin.push(source.id.clone());
        } else if may_say_anything && !notification.objects.is_empty() {
            spoken_for.push(source.id.clone());
        }
    }
    let found = if at_origin.is_empty() { spoken_for } else { at_origin };
    // A notification about more Sources than that would start runs of a whole platform. It hints at none of them.
    if found.len() > MOST { Vec::new() } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(entry: &str) -> SourceSpec {
        SourceSpec::new(entry.parse().unwrap())
    }

    /// A sender with a token.
    fn known(of: &[SourceId]) -> SenderRights<'_> {
        SenderRights { of, claimed: None }
    }

    fn about(object: &str) -> Notification {
        let body = format!(r#"{{"type": "Update", "object": "{object}"}}"#);
        Notification::read(body.as_bytes(), &ldn::Limits::default()).unwrap()
    }

    #[test]
    fn what_lies_at_the_origin_of_an_entry_is_about_that_source() {
        let all = [
            source("https://a.org/one"),
            source("https://a.org/two"),
            source("https://b.org/"),
            source("http://a.org/"),
        ];
        let found = |object: &str, inbox: Option<&SourceId>| sources(&about(object), inbox, known(&[]), &all);
        assert_eq!(found("https://a.org/x.pdf", None), [all[0].id.clone(), all[1].id.clone()]);
        assert_eq!(found("https://a.org:443/x.pdf", Some(&all[1].id)), [all[1].id.clone()]);
        assert_eq!(found("https://a.org/x.pdf", Some(&all[2].id)), []);
        for elsewhere in ["https://c.org/", "https://a.org:8443/", "urn:x:y"] {
            assert_eq!(found(elsewhere, None), [], "{elsewhere}");
        }
    }

    #[test]
    fn of_some_sources_a_sender_may_say_anything() {
        let all = [source("https://a.org/"), source("https://b.org/")];
        let speaks_for = [all[1].id.clone()];
        let found = |object: &str, inbox| sources(&about(object), inbox, known(&speaks_for), &all);
        assert_eq!(found("https://doi.org/10.1/x", None), speaks_for);
        assert_eq!(found("https://doi.org/10.1/x", Some(&all[0].id)), []);
        assert_eq!(found("https://a.org/x", None), [all[0].id.clone()]);
    }

    #[test]
    fn who_shows_no_token_speaks_of_its_own_origin_and_of_what_it_is_listed_for_alone() {
        let all = [source("https://a.org/"), source("https://b.org/"), source("https://c.org/")];
        let claimed = "https://b.org/system".parse::<url::Url>().unwrap().origin();
        let listed = [all[2].id.clone()];
        let found = |object: &str| {
            sources(&about(object), None, SenderRights { of: &listed, claimed: Some(&claimed) }, &all)
        };
        assert_eq!(found("https://a.org/x"), listed, "not of what lies elsewhere, whatever it names");
        assert_eq!(found("https://b.org/x"), [all[1].id.clone()]);
        assert_eq!(found("https://c.org/x"), listed);
        let alone = SenderRights { of: &[], claimed: Some(&claimed) };
        for inbox in [None, Some(&all[0].id)] {
            assert_eq!(sources(&about("https://a.org/x"), inbox, alone, &all), []);
        }
    }

    #[test]
    fn other_activities_disabled_sources_and_whole_platforms_are_not_looked_at() {
        let mut all: Vec<_> = (0..8).map(|n| source(&format!("https://a.org/{n}"))).collect();
        let like = r#"{"type": "Like", "object": "https://a.org/0"}"#;
        let like = Notification::read(like.as_bytes(), &ldn::Limits::default()).unwrap();
        assert_eq!(sources(&like, None, known(&[]), &all), []);
        assert_eq!(sources(&about("https://a.org/0"), None, known(&[]), &all).len(), 8);
        all.push(source("https://a.org/8"));
        assert_eq!(sources(&about("https://a.org/0"), None, known(&[]), &all), []);
        all[8].enabled = false;
        assert_eq!(sources(&about("https://a.org/0"), None, known(&[]), &all).len(), 8);
        assert_eq!(sources(&about("https://a.org/0"), Some(&all[8].id), known(&[]), &all), []);
    }
}
