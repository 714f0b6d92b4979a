//! Versions that are known, and the choice of those to fetch.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use model::{Declaration, Versions};
use url::Url;

use crate::member::Member;

/// Times of Memento are whole seconds: times that are closer than that are of the same version.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// A version that a Source or a web archive names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Since when the Source had it.
    pub(crate) time: Timestamp,
    /// Where its bytes are, if that is named.
    pub(crate) url: Option<Url>,
    /// Where its bytes are in a package of a dump of the past, if they are in one.
    pub(crate) member: Option<Member>,
    /// What is declared of its bytes.
    pub(crate) declared: Declaration,
    /// The document or TimeMap that names it.
    pub(crate) named_by: Arc<str>,
    /// Whether the time is its own, and not that of a list.
    pub(crate) is_dated: bool,
}

impl Candidate {
    /// Where its bytes are: at a URL of their own, or else in the package at this URL.
    pub(crate) fn place(&self) -> Option<Url> {
        self.url.clone().or_else(|| self.member.as_ref().map(|member| member.url.clone()))
    }

    /// Joins what is named of one version: what has a digest counts, or else what is later. Either may have the URL.
    fn join(&mut self, other: Self) {
        let has_digest = |one: &Self| !one.declared.digests.is_empty();
        let (url, member) = (self.url.take(), self.member.take());
        if has_digest(&other) || !has_digest(self) {
            *self = Self { url: other.url.or(url), member: other.member.or(member), ..other };
        } else {
            self.url = url.or(other.url);
            self.member = member.or(other.member);
        }
    }

    fn has_a_digest_of(&self, other: &Self) -> bool {
        self.declared.digests.iter().any(|digest| other.declared.digests.contains(digest))
    }
}

/// Which versions are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    /// The newest N, held ones included.
    pub(crate) versions: u32,
    /// How many versions the catalog keeps that were never the stored one.
    pub(crate) keep: u32,
    /// None that the Source had only before this time.
    pub(crate) since: Option<Timestamp>,
}

/// The choice for one resource, and the counts of the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The versions to fetch, the oldest first.
    pub(crate) fetch: Vec<Candidate>,
    pub(crate) known: u64,
    pub(crate) held: u64,
    pub(crate) newer: u64,
    pub(crate) older: u64,
}

/// Chooses the newest versions that are not held. `present` is since when the Source has the stored version.
///
/// A version is not chosen if the history would drop it at once, because it has as many newer ones as are kept.
pub(crate) fn choose(
    candidates: Vec<Candidate>,
    present: Timestamp,
    versions: &Versions,
    wanted: Wanted,
) -> Choice {
    let candidates = each_once(candidates);
    let mut choice = Choice { known: candidates.len() as u64, ..Choice::default() };
    let mut ranked = 0;
    let is_before = |time| wanted.since.is_some_and(|since| time <= since);
    // Whether the version of that time was passed: those before it are not wanted.
    let mut has_first = is_before(present);
    for candidate in candidates.into_iter().rev() {
        let time = candidate.time;
        if is_same(time, present) {
            choice.held += 1;
            continue;
        }
        if time > present {
            choice.newer += 1;
            continue;
        }
        let is_wanted = ranked < wanted.versions && !has_first;
        has_first |= is_before(time);
        let kept = || versions.kept.iter();
        if kept().any(|kept| kept.source_from.is_some_and(|from| is_same(time, from))) {
            choice.held += 1;
            ranked += 1;
            continue;
        }
        let later = kept().filter(|kept| !kept.was_stored() && kept.time() > time).count();
        let has_room = later + choice.fetch.len() < wanted.keep as usize;
        if is_wanted && has_room {
            choice.fetch.push(candidate);
            ranked += 1;
        } else {
            choice.older += 1;
        }
    }
    choice.fetch.reverse();
    choice
}

/// The versions in order of time, those of one second as one. A list without times of its own names the version that an
/// earlier one named, if the digest is the same.
fn each_once(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by_key(|candidate| candidate.time);
    let mut all: Vec<Candidate> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        match all.last_mut() {
            Some(before) if is_same(before.time, candidate.time) => before.join(candidate),
            Some(before) if !candidate.is_dated && before.has_a_digest_of(&candidate) => {
                before.url = before.url.take().or(candidate.url);
                before.member = before.member.take().or(candidate.member);
            }
            _ => all.push(candidate),
        }
    }
    all
}

fn is_same(one: Timestamp, other: Timestamp) -> bool {
    one.duration_since(other).abs() < SECOND
}

#[cfg(test)]
mod tests {
    use fixity::Computed;
    use model::{Assurance, Bitstream, Listing, Location, SetId, Validators, Version};
    use proptest::prelude::*;

    use super::*;

    fn second(number: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + number).unwrap()
    }

    fn candidate(time: i64) -> Candidate {
        Candidate {
            time: second(time),
            url: format!("http://h/{time}").parse().ok(),
            member: None,
            declared: Declaration::default(),
            named_by: "http://h/tm".into(),
            is_dated: true,
        }
    }

    /// A version that was never the stored one.
    fn version(time: i64) -> Version {
        let computed = Computed::of(&time.to_le_bytes());
        Version {
            bitstream: Bitstream {
                location: Location::Object { sha256: computed.sha256() },
                computed,
                assurance: Assurance::None,
                media_type: None,
                encoding: None,
                validators: Validators::default(),
                final_url: None,
                stored_at: second(9_999),
            },
            declaration: Declaration::default(),
            listing: Listing {
                document: "http://h/tm".into(),
                set: SetId::new("s"),
                change: None,
                change_time: None,
                as_of: None,
                latest: None,
                links: None,
                linked: None,
            },
            from: second(9_999),
            until: second(9_999),
            source_from: Some(second(time)),
            lost: None,
        }
    }

    fn times(choice: &Choice) -> Vec<i64> {
        choice.fetch.iter().map(|chosen| chosen.time.as_second() - 1_700_000_000).collect()
    }

    fn wanted(versions: u32) -> Wanted {
        Wanted { versions, keep: versions, since: None }
    }

    fn of(times: &[i64]) -> Vec<Candidate> {
        times.iter().copied().map(candidate).collect()
    }

    #[test]
    fn the_newest_are_chosen_and_the_others_counted() {
        let choice = choose(of(&[50, 10, 30, 20, 40]), second(50), &Versions::default(), wanted(2));
        assert_eq!(times(&choice), [30, 40]);
        assert_eq!((choice.known, choice.held, choice.newer, choice.older), (5, 1, 0, 2));
        let choice = choose(of(&[10, 20, 30]), second(20), &Versions::default(), wanted(9));
        assert_eq!((times(&choice), choice.newer), (vec![10], 1), "newer than the stored version");
        // The version that the Source had then, and the later ones.
        for (since, expected) in [(20, vec![20, 30]), (29, vec![20, 30]), (30, vec![30]), (90, vec![])] {
            let since = Wanted { since: Some(second(since)), ..wanted(9) };
            let choice = choose(of(&[10, 20, 30]), second(90), &Versions::default(), since);
            assert_eq!((times(&choice).len() as u64 + choice.older, times(&choice)), (3, expected));
        }
    }

    #[test]
    fn held_versions_count_among_the_newest_and_are_not_chosen() {
        let versions = Versions { kept: vec![version(40)], since: None };
        let choice = choose(of(&[10, 20, 30, 40]), second(50), &versions, wanted(2));
        assert_eq!((times(&choice), choice.held, choice.older), (vec![30], 1, 2));
    }

    #[test]
    fn what_the_history_would_drop_at_once_is_not_chosen() {
        // They came with a package of changes, and the TimeMap does not have them.
        let versions = Versions { kept: vec![version(41), version(45)], since: None };
        let choice = choose(of(&[10, 43]), second(50), &versions, wanted(2));
        assert_eq!((times(&choice), choice.older), (vec![43], 1));
    }

    #[test]
    fn versions_of_one_second_are_one_and_a_digest_decides() {
        let mut judged = candidate(10);
        judged.declared.digests = Computed::of(b"a").digests().to_vec();
        judged.url = "http://h/judged".parse().ok();
        judged.time += SignedDuration::from_millis(300);
        for all in [vec![candidate(10), judged.clone()], vec![judged.clone(), candidate(10)]] {
            let choice = choose(all, second(50), &Versions::default(), wanted(5));
            assert_eq!(choice.fetch, [judged.clone()]);
        }
        // A list of the past knows the digest, and the TimeMap the URL.
        let without_url = Candidate { url: None, ..judged.clone() };
        let choice = choose(vec![candidate(10), without_url], second(50), &Versions::default(), wanted(5));
        assert_eq!(choice.fetch, [Candidate { url: candidate(10).url, ..judged }]);
    }

    #[test]
    fn lists_without_times_name_a_version_as_often_as_it_changed() {
        let listed = |time: i64, content: &str| {
            let digests = Computed::of(content.as_bytes()).digests().to_vec();
            let declared = Declaration { digests, ..Declaration::default() };
            Candidate { declared, is_dated: false, ..candidate(time) }
        };
        let all = vec![listed(1, "a"), listed(2, "a"), listed(3, "b"), listed(4, "b"), listed(5, "a")];
        let choice = choose(all, second(50), &Versions::default(), wanted(9));
        assert_eq!((times(&choice), choice.known), (vec![1, 3, 5], 3));
    }

    proptest! {
        #[test]
        fn after_what_was_chosen_is_kept_nothing_is_chosen(
            known in prop::collection::vec(0_i64..60, 0..12),
            kept in prop::collection::btree_set(0_i64..60, 0..6),
            versions in 1_u32..6,
            more in 0_u32..3,
        ) {
            let wanted = Wanted { versions, keep: versions + more, since: None };
            let kept = kept.into_iter().map(version).collect();
            let mut held = Versions { kept, since: None };
            let choice = choose(of(&known), second(60), &held, wanted);
            prop_assert_eq!(choice.known, choice.held + choice.newer + choice.older + choice.fetch.len() as u64);
            for chosen in times(&choice) {
                held.add_earlier(version(chosen), wanted.keep);
            }
            let again = choose(of(&known), second(60), &held, wanted);
            prop_assert_eq!(again.fetch, []);
        }
    }
}
