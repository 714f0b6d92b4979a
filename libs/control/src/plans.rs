//! Plans: what each way of bringing a Source in step would take. They are asked for here by whoever must not ask Sources himself, and made by a
//! scheduler, within the limits of the Source's origins.

use std::time::Duration;

use jiff::Timestamp;
use model::{Message, SetId};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::bucket::WriteError;
use crate::table::{Kept, Table};
use crate::view::View;
use crate::{ControlError, MemberId, Revised, SourceSpec};

/// How long a plan is kept after the last word about it.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// How often a plan is begun whose maker went away: a Source that brings its readers down is not to bring all of them down.
const MOST_TRIES: u32 = 3;

/// What would be wanted of a Source, and what that would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its name; names sort by time.
    pub id: Ulid,
    /// What would be wanted. The Source need not be there.
    pub source: SourceSpec,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// How often somebody has begun to make it.
    #[serde(default)]
    pub tries: u32,
    /// How it stands.
    pub state: PlanState,
}

/// How a plan stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum PlanState {
    /// It waits for a scheduler.
    Asked,
    /// A scheduler reads the Source's documents.
    Taken {
        /// Which.
        by: MemberId,
    },
    /// It is made.
    Done {
        /// What was found out.
        estimate: PlanEstimate,
        /// When.
        at: Timestamp,
    },
    /// It cannot be made.
    Failed {
        /// Why, and what to do.
        why: String,
        /// When that was clear.
        at: Timestamp,
    },
}

/// What each way would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEstimate {
    /// The ways that the Source offers, the first of them.
    pub ways: Vec<PlanWay>,
    /// How many more ways there are.
    #[serde(default)]
    pub ways_left_out: u64,
    /// How long the Source took to answer, on the mean, in milliseconds.
    pub wait_ms: u64,
    /// Requests made to find that out.
    pub requests: u64,
    /// Documents that could not be read, the first of them: what they name is in none of the figures.
    #[serde(default)]
    pub unread: Vec<PlanUnread>,
    /// How many more could not be read.
    #[serde(default)]
    pub unread_left_out: u64,
}

/// One way, and what it would take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanWay {
    /// The set of resources.
    pub set: SetId,
    /// What is read, as the specification names it: `resourcelist`, `resourcedump`, `changelist`, `changedump`.
    pub capability: String,
    /// Documents read.
    pub documents: u64,
    /// Resources named by lists, or packages named by dumps.
    pub named: u64,
    /// Those among them that are held.
    pub held: u64,
    /// Requests beside those for the documents.
    pub requests: u64,
    /// Bytes to be received; none where not all lengths are declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How long it would take, in milliseconds; none where nobody can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Whether a run would go this way.
    pub chosen: bool,
}

/// A document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanUnread {
    /// Its URI.
    pub uri: String,
    /// Why.
    pub why: String,
}

/// The plans that were asked for lately.
#[derive(Debug, Clone)]
pub struct Plans {
    table: Table<Plan>,
}

impl Plan {
    /// Whether nobody works on it any more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, PlanState::Done { .. } | PlanState::Failed { .. })
    }

    /// Whether it waits for somebody to make it. `is_there` says whether a member is still there.
    pub fn waits(&self, is_there: impl FnOnce(&MemberId) -> bool) -> bool {
        match &self.state {
            PlanState::Asked => true,
            PlanState::Taken { by } => !is_there(by),
            PlanState::Done { .. } | PlanState::Failed { .. } => false,
        }
    }

    /// The same, begun by `by`; given up where it was begun too often.
    fn taken(&self, by: &MemberId, now: Timestamp) -> Self {
        let state = if self.tries < MOST_TRIES {
            PlanState::Taken { by: by.clone() }
        } else {
            let why = format!(
                "{} schedulers went away while they made it; ask again, or run `thresher plan` on a machine of your own",
                self.tries
            );
            PlanState::Failed { why, at: now }
        };
        Self { tries: self.tries + 1, state, ..self.clone() }
    }
}

impl Plans {
    pub(crate) fn new(table: Table<Plan>) -> Self {
        Self { table }
    }

    /// Asks for a plan. It is kept for a quarter of an hour after the last word about it.
    ///
    /// # Errors
    /// [`ControlError::Invalid`] when nobody could want that of a Source; [`ControlError::Unavailable`].
    pub async fn ask(&self, source: SourceSpec, now: Timestamp) -> Result<Revised<Plan>, ControlError> {
        source.check()?;
        let plan = Plan { id: Ulid::new(), source, asked_at: now, tries: 0, state: PlanState::Asked };
        let revision = self.table.put(&plan.id, &plan, None, Some(KEPT)).await;
        let revision = revision.map_err(|error| error.of(|| format!("plan {}", plan.id)))?;
        Ok(Revised { value: plan.into(), revision })
    }

    /// A plan.
    ///
    /// # Errors
    /// [`ControlError::Absent`] when there was none, or it was forgotten; [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, id: Ulid) -> Result<Revised<Plan>, ControlError> {
        let found = self.table.get(&id).await?;
        found.ok_or_else(|| ControlError::Absent {
            what: format!("plan {id}; plans are forgotten after a quarter of an hour"),
        })
    }

    /// Takes a plan that waits, to make it. None where somebody else was quicker, or it was begun too often.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn take(
        &self,
        plan: &Revised<Plan>,
        by: &MemberId,
        now: Timestamp,
    ) -> Result<Option<Revised<Plan>>, ControlError> {
        let taken = plan.taken(by, now);
        let revision = match self.put(&taken, plan).await {
            Err(WriteError::Conflict) => return Ok(None),
            written => written.map_err(|error| error.of(|| format!("plan {}", plan.id)))?,
        };
        Ok((!taken.is_over()).then(|| Revised { value: taken.into(), revision }))
    }

    /// Tells how a plan that was taken has ended. Where it is somebody else's by now, nothing is told.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn end(&self, taken: &Revised<Plan>, state: PlanState) -> Result<(), ControlError> {
        match self.put(&Plan { state, ..Plan::clone(taken) }, taken).await {
            Ok(_) | Err(WriteError::Conflict) => Ok(()),
            Err(error) => Err(error.of(|| format!("plan {}", taken.id))),
        }
    }

    /// A live copy of all plans that are kept.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn view(&self) -> Result<View<Plan>, ControlError> {
        self.table.view().await
    }

    async fn put(&self, plan: &Plan, read: &Revised<Plan>) -> Result<crate::Revision, WriteError> {
        self.table.put(&plan.id, plan, Some(read.revision), Some(KEPT)).await
    }
}

impl Message for Plan {
    const KIND: &'static str = "plan";
    const VERSION: u16 = 1;
}

impl Kept for Plan {
    type Id = Ulid;

    fn key(id: &Ulid) -> String {
        id.to_string().to_ascii_lowercase()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_whose_makers_go_away_is_begun_three_times_and_then_given_up() {
        let now = Timestamp::UNIX_EPOCH;
        let source = SourceSpec::new("https://example.org/".parse().unwrap());
        let mut plan = Plan { id: Ulid::new(), source, asked_at: now, tries: 0, state: PlanState::Asked };
        for _ in 0..3 {
            assert!(plan.waits(|_| false));
            plan = plan.taken(&MemberId::fresh("a"), now);
            assert!(!plan.waits(|_| true) && !plan.is_over(), "{plan:?}");
        }
        plan = plan.taken(&MemberId::fresh("a"), now);
        assert!(plan.is_over() && !plan.waits(|_| false), "{plan:?}");
        let PlanState::Failed { why, .. } = plan.state else { panic!("it has not failed") };
        assert!(why.starts_with("3 schedulers"), "{why}");
    }
}
