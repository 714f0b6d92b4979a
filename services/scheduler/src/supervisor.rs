//! Looks after this scheduler's Sources: one loop for all of them. A Source that waits is an entry in the agenda; only
//! work in progress is a task.
//!
//! The loop learns of changes key by key, decides by [`SourceLine::next`], and starts jobs. At most one job works on a
//! Source at a time. A run begins when [`Places`] has memory for it.

mod jobs;
mod notices;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use control::{ChangedKey, Member, Role, SubscriptionState, WatchCache, assign};
use model::SourceId;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::agenda::Agenda;
use crate::context::SchedulerContext;
use crate::places::Places;
use crate::source_line::{Facts, SourceLine, Step, after};
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
}

impl Supervisor {
    async fn run(mut self) {
        let context = self.context.clone();
        // Before the first look, so that no later change is missed.
        let mut sources = context.sources.changed_keys();
        let mut runs = context.runs.changed_keys();
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

    /// Takes and leaves Sources as schedulers come and go.
    fn share(&mut self) {
        let members = self.live_members();
        let mut ours = HashSet::new();
        self.context.sources.for_each(|source| {
            if assign(&members, &source.id) == Some(&self.context.me) {
                ours.insert(source.id.clone());
            }
        });
        let left: Vec<SourceId> =
            self.owned.keys().filter(|source| !ours.contains(*source)).cloned().collect();
        left.iter().for_each(|source| self.leave(source));
        for source in ours {
            self.take(&source);
        }
        self.context.metrics.sources(self.owned.len());
    }

    fn live_members(&self) -> Vec<control::MemberId> {
        let mut there = self.members.of(Role::Scheduler);
        if !there.contains(&self.context.me) {
            // Other schedulers may see this one late, and so may its own view.
            there.push(self.context.me.clone());
        }
        there
    }

    fn sources_changed(&mut self, changed: &ChangedKey) {
        let ChangedKey::One(key) = changed else {
            self.share();
            return self.changed(changed);
        };
        let Ok(source) = key.parse::<SourceId>() else { return };
        let is_there = self.context.sources.get(&source).is_some();
        let is_ours = is_there && assign(&self.live_members(), &source) == Some(&self.context.me);
        if is_ours {
            self.take(&source);
            self.look_at(&source);
        } else {
            self.leave(&source);
        }
        self.context.metrics.sources(self.owned.len());
    }

    /// Takes a Source into this scheduler's care. What is known of its past is read first.
    fn take(&mut self, source: &SourceId) {
        if self.owned.get(source).is_some_and(|owned| !owned.keep.is_cancelled()) {
            return;
        }
        let keep = self.stop.child_token();
        // A job of an earlier ownership may still end.
        let is_busy = self.owned.get(source).is_some_and(|owned| owned.is_busy);
        let line = SourceLine { polled_at: self.context.clock.now(), ..SourceLine::default() };
        self.owned.insert(source.clone(), Owned { line, keep, is_busy });
        if !is_busy {
            self.look_back(source);
        }
    }

    /// Releases a Source. A job in progress ends first.
    fn leave(&mut self, source: &SourceId) {
        let Some(owned) = self.owned.get(source) else { return };
        owned.keep.cancel();
        let is_busy = owned.is_busy;
        self.agenda.clear(source);
        self.places.withdraw(source);
        self.notices.end(source);
        if !is_busy {
            self.forget(source);
        }
    }

    fn forget(&mut self, source: &SourceId) {
        self.owned.remove(source);
        self.limits.polls.forget(source);
        // The next owner counts them.
        self.context.metrics.forget(source);
    }

    fn changed(&mut self, changed: &ChangedKey) {
        match changed {
            ChangedKey::One(key) => {
                if let Ok(source) = key.parse() {
                    self.look_at(&source);
                }
            }
            ChangedKey::Any => {
                let all: Vec<SourceId> = self.owned.keys().cloned().collect();
                all.iter().for_each(|source| self.look_at(source));
            }
        }
    }

    fn look_at_due(&mut self) {
        while let Some(source) = self.agenda.due(self.context.clock.now()) {
            self.look_at(&source);
        }
    }

    /// Decides what is to be done for a Source, and begins it.
    fn look_at(&mut self, source: &SourceId) {
        let Some(owned) = self.owned.get(source).filter(|owned| !owned.is_busy) else { return };
        let now = self.context.clock.now();
        let spec = self.context.sources.get(source);
        let run = self.context.runs.get(source);
        let hint = self.context.hints.get(source);
        let facts = Facts {
            spec: spec.as_ref().map(|spec| &*spec.value),
            run: run.as_ref().map(|run| &*run.value),
            hint: hint.as_ref().map(|hint| &*hint.value),
            is_subscribed: self.subscribed.get(source).is_some_and(|is_ending| !is_ending),
            has_push: self.context.push.is_some(),
        };
        let step = owned.line.next(facts, &self.context.settings, now);
        self.agenda.clear(source);
        if step != Step::Run {
            self.places.withdraw(source);
        }
        match (step, spec, run) {
            (Step::Run, Some(spec), Some(run)) => self.places.wait(&spec.value, &run.value),
            (Step::Probe, Some(spec), Some(run)) => {
                let context = self.context.clone();
                let limit = self.limits.probes.clone();
                self.spawn(source, |keep| jobs::probe(context, spec.value, run.value, limit, keep));
            }
            (Step::Poll, Some(spec), Some(run)) => {
                let context = self.context.clone();
                let (turns, limit) = (self.limits.polls.clone(), self.limits.submissions.clone());
                self.spawn(source, |keep| jobs::poll(context, spec, run.value, turns, limit, keep));
            }
            (Step::Submit(asked_by), ..) => {
                let context = self.context.clone();
                let limit = self.limits.submissions.clone();
                let id = source.clone();
                self.spawn(source, |keep| jobs::submit(context, id, asked_by, limit, keep));
            }
            (Step::At(at), ..) => self.agenda.set(source, at),
            _ => {}
        }
        self.listen(source);
    }

    /// Listens for what hubs deliver, while no run of the Source is under way.
    fn listen(&mut self, source: &SourceId) {
        let Some(owned) = self.owned.get(source) else { return };
        let last = self.context.runs.get(source);
        let is_idle = !owned.is_busy && last.as_ref().is_none_or(|run| run.state.is_over());
        let is_enabled = self.context.sources.get(source).is_some_and(|spec| spec.enabled);
        if is_idle && is_enabled && self.subscribed.contains_key(source) {
            let pause = self.context.settings.hint_pause();
            let last = last.as_ref().map(|run| &*run.value);
            self.notices.listen(source, crate::due::held_back(last, pause, self.context.clock.now()));
        } else {
            self.notices.end(source);
        }
    }

    /// A hub has delivered something for an idle Source.
    fn noticed(&mut self, source: &SourceId) {
        self.notices.end(source);
        if self.owned.get(source).is_some_and(|owned| !owned.is_busy && !owned.keep.is_cancelled()) {
            let context = self.context.clone();
            let limit = self.limits.submissions.clone();
            let id = source.clone();
            let asked_by = control::AskedBy::Notification;
            self.spawn(source, |keep| jobs::submit(context, id, asked_by, limit, keep));
        }
    }

    /// Which Sources hubs tell of.
    fn check_subscriptions(&mut self) {
        let mut subscribed: HashMap<SourceId, bool> = HashMap::new();
        self.context.subscriptions.for_each(|one| {
            let is_ending = one.state == SubscriptionState::Ending;
            subscribed.entry(one.source.clone()).and_modify(|all| *all &= is_ending).or_insert(is_ending);
        });
        let before = std::mem::replace(&mut self.subscribed, subscribed);
        let all = before.keys().chain(self.subscribed.keys());
        let changed: HashSet<SourceId> =
            all.filter(|source| before.get(*source) != self.subscribed.get(*source)).cloned().collect();
        changed.iter().for_each(|source| self.look_at(source));
    }

    fn look_back(&mut self, source: &SourceId) {
        let context = self.context.clone();
        let limit = self.limits.submissions.clone();
        let id = source.clone();
        self.spawn(source, |keep| jobs::look_back(context, id, limit, keep));
    }

    /// Begins the runs that have places.
    fn begin_runs(&mut self) {
        let runs = self.context.runs.clone();
        let turns = |source: &SourceId| {
            let run = runs.get(source)?;
            let wait = run.waiting.as_ref()?;
            (wait.reason == control::WaitReason::Turn).then_some(wait.tries)
        };
        while let Some(place) = self.places.grant(|source| turns(source).unwrap_or_default()) {
            let source = place.source().clone();
            let spec = self.context.sources.get(&source);
            let run = self.context.runs.get(&source);
            if let Some((spec, run)) = spec.zip(run)
                && self.owned.get(&source).is_some_and(|owned| !owned.is_busy)
            {
                let context = self.context.clone();
                self.spawn(&source, |keep| jobs::run(context, spec, run.value, place, keep));
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
        self.look_at(&source);
    }
}

/// Waits for a change, and reports none before `not_before`. May be dropped at any time: a change counts as seen only
/// when this returns.
async fn wait_for_change<T: control::Kept>(view: &mut WatchCache<T>, not_before: Instant) {
    sleep_until(not_before).await;
    view.changed().await;
}
