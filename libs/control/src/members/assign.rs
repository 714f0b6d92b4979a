//! Assigns Sources to members, so that all have about the same number.

use model::SourceId;
use sha2::{Digest as _, Sha256};

use super::MemberId;

/// The member that a Source belongs to, by rendezvous hashing. Each pair of a member and a Source gets a hash, and the
/// member with the highest hash has the Source. All processes that know the same members agree without communication.
/// The Sources spread evenly, and when a member joins or leaves, only its own Sources move. `None` where there are no
/// members.
pub fn assign<'a>(
    members: impl IntoIterator<Item = &'a MemberId>,
    source: &SourceId,
) -> Option<&'a MemberId> {
    // Equal hashes are not expected. The name decides between them, so that all processes agree.
    members.into_iter().max_by_key(|member| (draw(member, source), *member))
}

fn draw(member: &MemberId, source: &SourceId) -> u64 {
    let mut hash = Sha256::new();
    hash.update(member.as_str().as_bytes());
    // No name contains a zero byte, so two different pairs never form the same text.
    hash.update([0]);
    hash.update(source.as_str().as_bytes());
    u64::from_be_bytes(hash.finalize()[..8].try_into().expect("a SHA-256 has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn members(count: usize) -> Vec<MemberId> {
        (0..count).map(|n| format!("scheduler-{n}").parse().unwrap()).collect()
    }

    fn sources(count: usize) -> Vec<SourceId> {
        (0..count).map(|n| format!("example-org-{n}").parse().unwrap()).collect()
    }

    fn owners(members: &[MemberId], sources: &[SourceId]) -> BTreeMap<SourceId, MemberId> {
        let owner = |source| assign(members, source).unwrap().clone();
        sources.iter().map(|source| (source.clone(), owner(source))).collect()
    }

    #[test]
    fn nobody_owns_anything_where_nobody_is() {
        assert_eq!(assign([], &sources(1)[0]), None);
    }

    #[test]
    fn sources_spread_evenly() {
        let sources = sources(10_000);
        for count in [2, 3, 7, 10] {
            let mut counts = BTreeMap::new();
            for owner in owners(&members(count), &sources).into_values() {
                *counts.entry(owner).or_insert(0_usize) += 1;
            }
            let fair = sources.len() / count;
            assert_eq!(counts.len(), count);
            for (member, had) in counts {
                assert!(had.abs_diff(fair) * 10 < fair, "{member} of {count} has {had}, fair is {fair}");
            }
        }
    }

    #[test]
    fn only_the_sources_of_a_member_that_goes_move_and_they_spread() {
        let all = members(5);
        let sources = sources(5_000);
        let before = owners(&all, &sources);
        let gone = &all[2];
        let left: Vec<_> = all.iter().filter(|member| *member != gone).cloned().collect();
        let after = owners(&left, &sources);
        let mut heirs = BTreeMap::new();
        for source in &sources {
            if before[source] == *gone {
                *heirs.entry(&after[source]).or_insert(0) += 1;
            } else {
                assert_eq!(before[source], after[source]);
            }
        }
        assert!(heirs.len() == 4 && heirs.values().all(|&count| (180..=320).contains(&count)), "{heirs:?}");
    }

    #[test]
    fn a_member_that_comes_takes_its_share_and_nothing_else_moves() {
        let all = members(4);
        let sources = sources(4_000);
        let before = owners(&all[..3], &sources);
        let after = owners(&all, &sources);
        let moved = sources.iter().filter(|source| before[source] != after[source]);
        let moved: Vec<_> = moved.map(|source| &after[source]).collect();
        assert!(moved.iter().all(|owner| **owner == all[3]));
        assert!((900..=1100).contains(&moved.len()), "{}", moved.len());
    }

    /// Releases must agree about the owner of a Source, or two of them would want the same Source.
    #[test]
    fn the_numbers_drawn_do_not_change_between_releases() {
        let owner = |n: usize| assign(&members(3), &sources(n + 1)[n]).unwrap().to_string();
        let owners: Vec<_> = (0..6).map(owner).collect();
        let drawn = [1, 0, 2, 1, 1, 2].map(|n| format!("scheduler-{n}"));
        assert_eq!(owners, drawn);
    }

    proptest! {
        #[test]
        fn the_order_of_members_does_not_matter(mut order in Just(members(6)).prop_shuffle(), n in 0usize..100) {
            let source: SourceId = format!("s-{n}").parse().unwrap();
            let first = assign(&order, &source).cloned();
            order.reverse();
            prop_assert_eq!(first, assign(&order, &source).cloned());
        }
    }
}
