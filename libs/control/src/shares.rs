//! Which Sources a scheduler takes, and which it lets go, so that all do about the same.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{Clock, SourceId};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use crate::lease::{Claim, Lease, LeaseRecord, Leases};
use crate::members::{Member, MemberId, Role, assign};
use crate::view::View;
use crate::{Control, ControlError};

/// Between two tries to take what could not be asked for.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// What a scheduler is to do about its Sources.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shares {
    /// Those to ask for: they have work, are its own, and nobody has them.
    pub take: BTreeSet<SourceId>,
    /// Those to let go after the present batch: they belong to another one now.
    pub give_up: BTreeSet<SourceId>,
}

/// Says what a scheduler is to do: `members` are those present, `work` the Sources that have work, `leased` those that
/// somebody holds, and `held` those that it holds itself.
pub fn shares(
    me: &MemberId,
    members: &[MemberId],
    work: &BTreeSet<SourceId>,
    leased: &BTreeSet<SourceId>,
    held: &BTreeSet<SourceId>,
) -> Shares {
    // One who does not see itself is new, or was cut off: whether others count on it is not known yet.
    if !members.contains(me) {
        return Shares::default();
    }
    let is_mine = |source: &&SourceId| assign(members, source) == Some(me);
    let is_free = |source: &&SourceId| !leased.contains(*source) && !held.contains(*source);
    Shares {
        take: work.iter().filter(is_free).filter(is_mine).cloned().collect(),
        give_up: held.iter().filter(|source| !is_mine(source)).cloned().collect(),
    }
}

/// A scheduler's part of the Sources that have work, as members come and go.
#[derive(Debug)]
pub struct Owner {
    me: MemberId,
    leasing: Leases,
    clock: Arc<dyn Clock>,
    members: View<Member>,
    leases: View<LeaseRecord>,
    work: watch::Receiver<BTreeSet<SourceId>>,
    held: BTreeSet<SourceId>,
    told: BTreeSet<SourceId>,
}

/// What a scheduler is told about a Source.
#[derive(Debug)]
pub enum Turn {
    /// It owns the Source now.
    Take(Lease),
    /// The Source belongs to another one: finish the batch, let go of the run and of the lease, and say so with
    /// [`Owner::let_go`].
    GiveUp(SourceId),
}

impl Owner {
    /// For a scheduler that has joined as `me`. `work` are the Sources that have work now: those with a run that wants
    /// work, or that are due.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn new(
        control: &Control,
        me: MemberId,
        clock: Arc<dyn Clock>,
        work: watch::Receiver<BTreeSet<SourceId>>,
    ) -> Result<Self, ControlError> {
        Ok(Self {
            me,
            leasing: control.leases().clone(),
            clock,
            members: control.members().view().await?,
            leases: control.leases().view().await?,
            work,
            held: BTreeSet::new(),
            told: BTreeSet::new(),
        })
    }

    /// The next thing to do. Each Source is told once to be given up, until it is let go of. May be dropped while it
    /// waits.
    pub async fn next(&mut self) -> Turn {
        loop {
            // Before the look, so that nothing that changes after it is missed.
            self.work.mark_unchanged();
            self.members.mark_seen();
            self.leases.mark_seen();
            let shares = self.look();
            if let Some(source) = shares.give_up.difference(&self.told).next().cloned() {
                self.told.insert(source.clone());
                return Turn::GiveUp(source);
            }
            let mut failed = false;
            for source in shares.take {
                match self.leasing.acquire(&source, &self.me, self.clock.now()).await {
                    Ok(Claim::Taken(lease)) => {
                        self.held.insert(source);
                        return Turn::Take(lease);
                    }
                    // The view has not heard of it yet.
                    Ok(Claim::Held(_)) => {}
                    Err(error) => {
                        warn!(%source, %error, "a source cannot be taken; trying again");
                        failed = true;
                    }
                }
            }
            tokio::select! {
                Ok(()) = self.work.changed() => {}
                () = self.members.changed() => {}
                () = self.leases.changed() => {}
                () = sleep(BETWEEN_TRIES), if failed => {}
            }
        }
    }

    /// Takes note that a Source's lease was given back or lost: it may be taken again when it has work.
    pub fn let_go(&mut self, source: &SourceId) {
        self.held.remove(source);
        self.told.remove(source);
    }

    fn look(&self) -> Shares {
        // Without a connection the others cannot be seen, and leases cannot be taken anyway.
        if !self.members.is_live() || !self.leases.is_live() {
            return Shares::default();
        }
        let members = self.members.of(Role::Scheduler);
        let leased = self.leases.sources();
        shares(&self.me, &members, &self.work.borrow(), &leased, &self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(n: usize) -> MemberId {
        format!("scheduler-{n}").parse().unwrap()
    }

    fn sources(ns: impl IntoIterator<Item = usize>) -> BTreeSet<SourceId> {
        ns.into_iter().map(|n| format!("source-{n}").parse().unwrap()).collect()
    }

    fn none() -> BTreeSet<SourceId> {
        BTreeSet::new()
    }

    #[test]
    fn all_work_is_taken_and_nothing_twice() {
        let (members, work) = ([member(0), member(1), member(2)], sources(0..60));
        let taken = members.iter().map(|me| shares(me, &members, &work, &none(), &none()).take);
        let taken: Vec<_> = taken.collect();
        assert_eq!(taken.iter().map(BTreeSet::len).sum::<usize>(), 60);
        assert_eq!(taken.into_iter().flatten().collect::<BTreeSet<_>>(), work);
    }

    #[test]
    fn what_somebody_has_is_not_asked_for() {
        let (me, members) = (member(0), [member(0)]);
        let wanted = shares(&me, &members, &sources(0..6), &sources([1, 2]), &sources([2, 3]));
        assert_eq!(wanted, Shares { take: sources([0, 4, 5]), give_up: none() });
    }

    #[test]
    fn what_has_no_work_is_neither_taken_nor_given_up() {
        let (me, members) = (member(0), [member(0)]);
        assert_eq!(shares(&me, &members, &none(), &none(), &sources([1])), Shares::default());
    }

    #[test]
    fn a_member_that_comes_is_left_its_part_by_those_who_have_it() {
        let (before, after) = ([member(0), member(1)], [member(0), member(1), member(2)]);
        let work = sources(0..60);
        let mut left = BTreeSet::new();
        for me in &before {
            let held = shares(me, &before, &work, &none(), &none()).take;
            let then = shares(me, &after, &work, &held, &held);
            assert!(then.take.is_empty());
            left.extend(then.give_up);
        }
        assert_eq!(left, shares(&after[2], &after, &work, &none(), &none()).take);
    }

    #[test]
    fn who_is_not_seen_by_itself_does_nothing() {
        let held = sources([1, 2]);
        assert_eq!(shares(&member(9), &[member(0)], &sources(0..6), &held, &held), Shares::default());
    }
}
