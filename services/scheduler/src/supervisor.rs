//! Looks after this scheduler's Sources: one loop for all of them. A Source that waits is an entry in the agenda; only
//! work in progress is a task.
//!
//! The loop learns of changes key by key, decides by [`SourceLine::next`], and starts jobs. At most one job works on a
//! Source at a time. A run begins when [`Places`] has memory for it.

mod jobs;
mod look;
mod notices;
mod ownership;
mod subscriptions;

use std::collections::HashMap;
use std::time::Duration;

use control::{Member, WatchCache};
use model::SourceId;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::agenda::Agenda;
use crate::context::SchedulerContext;
use crate::places::Places;
use crate::source_line::{SourceLine, after};
use jobs::{JobLimits, Outcome};
use notices::Notices;

/// Wait after a job that failed: the control store could not be read or written, or the run needs another try.
const AFTER_TROUBLE: Duration = Duration::from_secs(1);
/// Minimum time between two checks which Sources are subscribed to.
const BETWEEN_CHECKS: Duration = Duration::from_millis(250);

/// Looks after this scheduler's share of the Sources, until `stop`. Then stops all work, and waits for that.
pub(crate) async fn look_after(
    context: SchedulerContext,
    members: WatchCache<Member>,
    stop: CancellationToken,
) {
    let supervisor = Supervisor {
        places: Places::new(
            context.settings.places_bytes(),
            context.settings.max_concurrent_runs,
            context.settings.turns(),
            context.settings.share_label.clone(),
        ),
        limits: JobLimits::new(&context.settings),
        notices: Notices::new(&context),
        context,
        members,
        stop,
        owned: HashMap::new(),
        agenda: Agenda::default(),
        jobs: JoinSet::new(),
        in_job: HashMap::new(),
        subscribed: HashMap::new(),
    };
    supervisor.run().await;
}

struct Supervisor {
    context: SchedulerContext,
    members: WatchCache<Member>,
    stop: CancellationToken,
    places: Places,
    limits: JobLimits,
    notices: Notices,
    owned: HashMap<SourceId, Owned>,
    agenda: Agenda<SourceId>,
    jobs: JoinSet<Outcome>,
    /// The Source of each job, in case it panics.
    in_job: HashMap<Id, SourceId>,
    /// Sources that hubs tell of, and whether the hub was asked to stop.
    subscribed: HashMap<SourceId, bool>,
}

/// A Source of this scheduler.
struct Owned {
    line: SourceLine,
    /// Cancelled when this scheduler must release the Source.
    keep: CancellationToken,
    is_busy: bool,
    /// Stops the task that is under way, so that a run of the Source comes first.
    task: Option<CancellationToken>,
    /// Whether a hub has delivered something since the task began.
    is_noticed: bool,
}

impl Supervisor {
    async fn run(mut self) {
        let context = self.context.clone();
        // Before the first look, so that no later change is missed.
        let mut sources = context.sources.changed_keys();
        let mut runs = context.runs.changed_keys();
        let mut tasks = context.tasks.changed_keys();
        let mut hints = context.hints.changed_keys();
        let mut subscriptions = context.subscriptions.clone();
        let mut members = self.members.clone();
        let mut next_check = Instant::now();
        subscriptions.mark_seen();
        members.mark_seen();
        self.check_subscriptions();
        self.share();
        while !self.stop.is_cancelled() {
            self.begin_runs();
            let wait = self.agenda.wait(self.context.clock.now()).unwrap_or(Duration::MAX);
            tokio::select! {
                changed = sources.next() => self.sources_changed(&changed),
                changed = runs.next() => self.changed(&changed),
                changed = tasks.next() => self.changed(&changed),
                changed = hints.next() => self.changed(&changed),
                () = members.changed() => self.share(),
                () = wait_for_change(&mut subscriptions, next_check) => {
                    next_check = Instant::now() + BETWEEN_CHECKS;
                    self.check_subscriptions();
                }
                source = self.notices.next() => self.noticed(&source),
                () = self.places.freed() => {}
                () = sleep(wait) => self.look_at_due(),
                Some(ended) = self.jobs.join_next_with_id() => self.job_ended(ended),
                () = self.stop.cancelled() => {}
            }
        }
        // Every job watches `keep`, which is a child of `stop`.
        while self.jobs.join_next().await.is_some() {}
    }

    /// Begins the runs that have places.
    fn begin_runs(&mut self) {
        let (runs, tasks) = (self.context.runs.clone(), self.context.tasks.clone());
        let view = |is_task| if is_task { &tasks } else { &runs };
        let turns = |source: &SourceId, is_task: bool| {
            let run = view(is_task).get(source)?;
            let wait = run.waiting.as_ref()?;
            (wait.reason == control::WaitReason::Turn).then_some(wait.tries)
        };
        while let Some(place) =
            self.places.grant(|source, is_task| turns(source, is_task).unwrap_or_default())
        {
            let source = place.source().clone();
            let spec = self.context.sources.get(&source);
            let is_task = place.is_of_task();
            let run = view(is_task).get(&source);
            if let Some((spec, run)) = spec.zip(run)
                && self.owned.get(&source).is_some_and(|owned| !owned.is_busy)
            {
                let context = self.context.clone();
                let preempt = CancellationToken::new();
                let task = (is_task && !run.is_move()).then(|| preempt.clone());
                self.spawn(&source, |keep| jobs::run(context, spec, run.value, place, preempt, keep));
                if task.is_some()
                    && let Some(owned) = self.owned.get_mut(&source)
                {
                    owned.task = task;
                    // What is due later interrupts it.
                    self.look_at(&source);
                }
            }
        }
        let (waiting, used) = self.places.usage();
        self.context.metrics.places(waiting, used);
    }

    fn spawn<F>(&mut self, source: &SourceId, job: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let Some(owned) = self.owned.get_mut(source) else { return };
        owned.is_busy = true;
        let handle = self.jobs.spawn(job(owned.keep.clone()));
        self.in_job.insert(handle.id(), source.clone());
        self.notices.end(source);
    }

    fn job_ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, Some(outcome)),
            Err(error) => {
                tracing::error!(%error, "the work on a Source panicked; it is tried again");
                (error.id(), None)
            }
        };
        let Some(source) = self.in_job.remove(&id) else { return };
        let now = self.context.clock.now();
        let Some(owned) = self.owned.get_mut(&source) else { return };
        owned.is_busy = false;
        owned.task = None;
        let is_noticed = std::mem::take(&mut owned.is_noticed);
        if owned.keep.is_cancelled() {
            return self.forget(&source);
        }
        match outcome {
            Some(Outcome::LookedBack(line)) => owned.line = line,
            Some(Outcome::Polled(spec)) => owned.line.note_poll(&spec, now),
            Some(Outcome::Answered(run)) => owned.line.answers_for = Some(run),
            Some(Outcome::Ended(ended)) => {
                owned.line.answers_for = None;
                if let Some((spec, run)) = ended {
                    owned.line.note_run(&spec, &run, now);
                }
            }
            Some(Outcome::Failed) | None => owned.line.not_before = Some(after(now, AFTER_TROUBLE)),
        }
        if is_noticed {
            self.noticed(&source);
        }
        self.look_at(&source);
    }
}

/// Waits for a change, and reports none before `not_before`. May be dropped at any time: a change counts as seen only
/// when this returns.
async fn wait_for_change<T: control::Kept>(view: &mut WatchCache<T>, not_before: Instant) {
    sleep_until(not_before).await;
    view.changed().await;
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn between_two_runs_a_source_takes_less_than_a_kilobyte() {
        // All of them share the text of the ID, which is short. A map may have room for twice its entries.
        let agenda = size_of::<(Timestamp, SourceId)>() + size_of::<(SourceId, Timestamp)>();
        let owned = size_of::<(SourceId, Owned)>();
        let bytes = 2 * (agenda + owned) + 200;
        assert!(bytes < 1_024, "{bytes} bytes");
    }
}
