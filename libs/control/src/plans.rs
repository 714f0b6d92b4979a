//! Plans: the estimate of each strategy that brings a Source in sync. A process that must not send requests to Sources
//! queues a plan here. A scheduler makes it, within the limits of the Source's origins.

use std::time::Duration;

use jiff::Timestamp;
use model::{Message, Persisted, SetId};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::error::{ControlError, unless_changed};
use crate::kept::Kept;
use crate::members::MemberId;
use crate::sources::SourceSpec;
use crate::table::Table;
use crate::versioned::{Revision, Versioned};

/// How long a plan is stored after its last change.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// How often a plan is started again after its scheduler died. So a Source that crashes its readers does not crash all
/// of them.
const MOST_TRIES: u32 = 3;

/// A spec of a Source, and the estimate of harvesting it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The plan ID; IDs sort by time.
    pub id: Ulid,
    /// The spec. The Source need not exist.
    pub source: SourceSpec,
    /// When the plan was requested.
    pub asked_at: Timestamp,
    /// How often a scheduler started it.
    #[serde(default)]
    pub tries: u32,
    /// Its state.
    pub state: PlanState,
}

/// The state of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum PlanState {
    /// It waits for a scheduler.
    Asked,
    /// A scheduler reads the Source's documents.
    Taken {
        /// The scheduler.
        by: MemberId,
    },
    /// It is done.
    Done {
        /// The estimate.
        estimate: PlanEstimate,
        /// When it was done.
        at: Timestamp,
    },
    /// It failed.
    Failed {
        /// Why, and what to do.
        why: String,
        /// When it failed.
        at: Timestamp,
    },
}

/// The estimates of all strategies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEstimate {
    /// The first of the strategies that the Source offers.
    pub ways: Vec<PlanWay>,
    /// How many more strategies there are.
    #[serde(default)]
    pub ways_left_out: u64,
    /// Mean response time of the Source, in milliseconds.
    pub wait_ms: u64,
    /// Requests that the estimate took.
    pub requests: u64,
    /// The first of the documents that could not be read. Their entries are missing from all figures.
    #[serde(default)]
    pub unread: Vec<PlanUnread>,
    /// How many more documents could not be read.
    #[serde(default)]
    pub unread_left_out: u64,
    /// The first of the metadata formats of an OAI-PMH repository, and what their records name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
}

/// One strategy and its estimate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanWay {
    /// The set of resources.
    pub set: SetId,
    /// The capability of the document that is read, as the specification names it: `resourcelist`, `resourcedump`,
    /// `changelist`, `changedump`.
    pub capability: String,
    /// Documents to read.
    pub documents: u64,
    /// Resources that lists name, or packages that dumps name.
    pub named: u64,
    /// How many of them are stored.
    pub held: u64,
    /// Requests besides those for the documents.
    pub requests: u64,
    /// Bytes to receive; none where some lengths are not declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Estimated duration in milliseconds; none if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// Whether a run would choose this strategy.
    pub chosen: bool,
}

/// A document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanUnread {
    /// Its URI.
    pub uri: String,
    /// Why it could not be read.
    pub why: String,
}

/// The plans that were requested lately.
pub type Plans = Table<Plan>;

impl Plan {
    /// Whether the plan is done or failed, so that no scheduler works on it.
    pub fn is_over(&self) -> bool {
        matches!(self.state, PlanState::Done { .. } | PlanState::Failed { .. })
    }

    /// Whether it waits for a scheduler. `is_there` says whether a member is still alive.
    pub fn waits(&self, is_there: impl FnOnce(&MemberId) -> bool) -> bool {
        match &self.state {
            PlanState::Asked => true,
            PlanState::Taken { by } => !is_there(by),
            PlanState::Done { .. } | PlanState::Failed { .. } => false,
        }
    }

    /// The state after `by` has started it, or failed if it was started too often.
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

impl Table<Plan> {
    /// Requests a plan. It is stored for a quarter of an hour after its last change.
    ///
    /// # Errors
    /// [`ControlError::Invalid`] when the spec is invalid; [`ControlError::Unavailable`].
    pub async fn ask(&self, source: SourceSpec, now: Timestamp) -> Result<Versioned<Plan>, ControlError> {
        source.check()?;
        let plan = Plan { id: Ulid::new(), source, asked_at: now, tries: 0, state: PlanState::Asked };
        let revision = self.write(&plan.id, &plan, None, Some(KEPT)).await?;
        Ok(Versioned { value: plan.into(), revision })
    }

    /// A plan.
    ///
    /// # Errors
    /// [`ControlError::Absent`] when there was none, or it has expired; [`ControlError::Unavailable`],
    /// [`ControlError::Unreadable`].
    pub async fn get(&self, id: Ulid) -> Result<Versioned<Plan>, ControlError> {
        self.find(&id).await?.ok_or_else(|| Self::absent(id))
    }

    /// The error of a plan that does not exist.
    pub fn absent(id: Ulid) -> ControlError {
        ControlError::Absent { what: format!("plan {id} (kept for a quarter of an hour)") }
    }

    /// Claims a waiting plan to make it. None if another scheduler was faster, or it was started too often.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn take(
        &self,
        plan: &Versioned<Plan>,
        by: &MemberId,
        now: Timestamp,
    ) -> Result<Option<Versioned<Plan>>, ControlError> {
        let taken = plan.taken(by, now);
        let Some(revision) = self.replace(&taken, plan).await? else { return Ok(None) };
        Ok((!taken.is_over()).then(|| Versioned { value: taken.into(), revision }))
    }

    /// Records the end of a claimed plan. If another scheduler has it by now, nothing is written.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn end(&self, taken: &Versioned<Plan>, state: PlanState) -> Result<(), ControlError> {
        self.replace(&Plan { state, ..Plan::clone(taken) }, taken).await.map(drop)
    }

    async fn replace(&self, plan: &Plan, read: &Versioned<Plan>) -> Result<Option<Revision>, ControlError> {
        unless_changed(self.write(&plan.id, plan, Some(read.revision), Some(KEPT)).await)
    }
}

impl Message for Plan {
    const KIND: &'static str = "plan";
    const VERSION: u16 = Persisted::Plans.version();
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
