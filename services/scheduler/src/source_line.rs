//! What a scheduler keeps of a Source between two runs, and what follows from it. Pure: a few hundred bytes for each
//! of thousands of Sources, and no task.

use std::time::Duration;

use control::{AskedBy, Hint, Run, RunState, SourceSpec, WaitReason};
use jiff::Timestamp;
use model::RunId;

use crate::config::Settings;
use crate::due::{self, Due};

/// A Source is looked at again after this time, whatever is due: clocks may jump.
const LONGEST_REST: Duration = Duration::from_secs(3_600);

/// What a scheduler keeps of a Source between two runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct SourceLine {
    /// Pause before the last run of a continuously followed Source.
    pub(crate) pause: Option<Duration>,
    /// Time of the last poll without a hub's notification, if known.
    pub(crate) polled_at: Timestamp,
    /// End of the last run that a hub's notification had not started, if known.
    pub(crate) looked_at: Option<Timestamp>,
    /// Consecutive runs that hints started and that found no change, if known.
    pub(crate) fruitless: u32,
    /// The run for which the Source has just answered a probe.
    pub(crate) answers_for: Option<RunId>,
    /// The next look comes no sooner: the last one failed.
    pub(crate) not_before: Option<Timestamp>,
}

/// What a decision is made from, beside the line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) spec: Option<&'a SourceSpec>,
    pub(crate) run: Option<&'a Run>,
    /// Its last task. It has its turn when no run is due.
    pub(crate) task: Option<&'a Run>,
    pub(crate) hint: Option<&'a Hint>,
    /// Whether a hub tells of the Source.
    pub(crate) is_subscribed: bool,
    /// Whether hubs can reach the fleet.
    pub(crate) has_push: bool,
}

/// What is to be done for a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its run needs a place.
    Run,
    /// Its run needs a place, once the Source answers.
    Probe,
    /// A run is due.
    Submit(AskedBy),
    /// A run is due, but a poll can prove that it would find nothing.
    Poll,
    /// Its task needs a place.
    Task,
    /// Nothing before this time.
    At(Timestamp),
    /// Nothing until something changes.
    Rest,
}

impl SourceLine {
    /// What is to be done now.
    pub(crate) fn next(&self, facts: Facts<'_>, settings: &Settings, now: Timestamp) -> Step {
        if let Some(at) = self.not_before.filter(|at| *at > now) {
            return Step::At(at);
        }
        match (facts.spec, facts.run) {
            // A removed Source begins no further run; a run in progress waits for the operator's request.
            (None, _) => Step::Rest,
            (Some(_), Some(run)) if run.wants_work() => match work(run, now) {
                Step::Probe if self.answers_for == Some(run.spec.id) => Step::Run,
                step => step,
            },
            (Some(_), Some(run)) if !run.state.is_over() => Step::Rest,
            (Some(_), _) if facts.task.is_some_and(|task| task.is_move() && task.wants_work()) => {
                task_until(facts.task, None, now)
            }
            (Some(spec), last) => match self.due(spec, last, facts, settings, now) {
                (Due::Now, AskedBy::Schedule) if may_poll(last, facts, now) => Step::Poll,
                (Due::Now, asked_by) => Step::Submit(asked_by),
                (Due::In(wait), _) => task_until(facts.task, Some(after(now, wait.min(LONGEST_REST))), now),
                (Due::Never, _) => task_until(facts.task, None, now),
            },
        }
    }

    /// When the next run of the Source is due after its last run is over, and what causes it.
    fn due(
        &self,
        spec: &SourceSpec,
        last: Option<&Run>,
        facts: Facts<'_>,
        settings: &Settings,
        now: Timestamp,
    ) -> (Due, AskedBy) {
        let every = settings.backup_poll().filter(|_| facts.has_push);
        let backup = due::backup(spec, self.polled_at, every, || facts.is_subscribed, now);
        let due = due::due(spec, last, self.pause, now).or_sooner(backup);
        let hinted = match facts.hint {
            Some(hint) => {
                let looked_at = due::looked_at(last, self.looked_at);
                due::hinted(spec, looked_at, self.hint_pause(hint, settings), now)
            }
            None => Due::Never,
        };
        let asked_by = if due == Due::Now { AskedBy::Schedule } else { AskedBy::Hint };
        (due.or_sooner(hinted), asked_by)
    }

    /// Pause after a run before this hint starts the next.
    fn hint_pause(&self, hint: &Hint, settings: &Settings) -> Duration {
        if hint.unproved {
            due::unproved_pause(settings.hint_pause(), settings.hint_pause_most(), self.fruitless)
        } else {
            settings.hint_pause()
        }
    }

    /// Notes a poll that found nothing.
    pub(crate) fn note_poll(&mut self, spec: &SourceSpec, now: Timestamp) {
        self.polled_at = now;
        self.looked_at = Some(now);
        self.pause = spec.follow.map(|bounds| bounds.next_pause(self.pause, 0));
    }

    /// Notes the end of a run that this scheduler worked on. `run`: as it is now.
    pub(crate) fn note_run(&mut self, spec: &SourceSpec, run: &Run, now: Timestamp) {
        if due::was_poll(run) {
            self.polled_at = now;
        }
        if run.spec.asked_by != AskedBy::Notification {
            self.looked_at = Some(now);
        }
        let counters = &run.progress.counters;
        if run.spec.asked_by == AskedBy::Hint {
            self.fruitless = if due::brought_something(run) { 0 } else { self.fruitless.saturating_add(1) };
        }
        self.pause =
            spec.follow.map(|bounds| bounds.next_pause(self.pause, counters.stored + counters.deleted));
    }
}

/// Whether a poll can prove that the next run would find nothing. A hint may tell of what no document says yet.
fn may_poll(last: Option<&Run>, facts: Facts<'_>, now: Timestamp) -> bool {
    let basis = last.zip(facts.spec).and_then(|(run, spec)| run.poll_basis(spec, now));
    facts.hint.is_none() && basis.is_some()
}

/// What is to be done until the next run is due, at `next`.
fn task_until(task: Option<&Run>, next: Option<Timestamp>, now: Timestamp) -> Step {
    let Some(task) = task.filter(|task| task.wants_work()) else { return next.map_or(Step::Rest, Step::At) };
    match task.waiting.as_ref().map(|wait| wait.until).filter(|until| *until > now) {
        Some(until) => Step::At(next.map_or(until, |next| next.min(until))),
        None => Step::Task,
    }
}

/// What is to be done for a run that needs work.
fn work(run: &Run, now: Timestamp) -> Step {
    match (&run.state, &run.waiting) {
        (RunState::Queued, Some(wait)) if wait.until > now => Step::At(wait.until),
        (RunState::Queued, Some(wait)) if wait.reason == WaitReason::Unreachable => Step::Probe,
        // Whether a new Source answers is not known either.
        (RunState::Queued, None) if run.started_at.is_none() && run.before.in_sync_as_of.is_none() => {
            Step::Probe
        }
        _ => Step::Run,
    }
}

/// A moment later.
pub(crate) fn after(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use control::{Backfill, RunSpec, RunWait, Schedule, Spec, Task};
    use model::RunMode;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn source() -> SourceSpec {
        SourceSpec::new("http://h/".parse().unwrap())
    }

    fn queued(spec: &SourceSpec) -> Run {
        Run::submitted(RunSpec {
            id: RunId::fresh(),
            source: spec.id.clone(),
            mode: RunMode::Auto,
            asked_by: AskedBy::Operator,
            asked_at: at(0),
            allow_deletes: false,
            repair: false,
            task: None,
        })
    }

    fn next(line: &SourceLine, spec: Option<&SourceSpec>, run: Option<&Run>, now: i64) -> Step {
        with_task(line, spec, run, None, now)
    }

    fn with_task(
        line: &SourceLine,
        spec: Option<&SourceSpec>,
        run: Option<&Run>,
        task: Option<&Run>,
        now: i64,
    ) -> Step {
        let facts = Facts { spec, run, task, hint: None, is_subscribed: false, has_push: false };
        line.next(facts, &Settings::default(), at(now))
    }

    #[test]
    fn a_task_has_its_turn_when_no_run_is_due() {
        let spec = SourceSpec::from(Spec { schedule: Some(Schedule::every(60).jitter(0)), ..source().spec });
        let line = SourceLine::default();
        let mut task = queued(&spec);
        task.spec.task = Some(Task::Backfill(Backfill::default()));
        let mut last = queued(&spec);
        let next = |last: &Run, task: &Run, now| with_task(&line, Some(&spec), Some(last), Some(task), now);
        assert_eq!(next(&last, &task, 0), Step::Probe, "the run comes first");
        last.state = RunState::Paused;
        assert_eq!(next(&last, &task, 0), Step::Rest, "the run waits for the operator");
        last.state = RunState::Finished { in_sync: true };
        last.started_at = Some(at(0));
        assert_eq!(next(&last, &task, 1), Step::Task);
        assert_eq!(next(&last, &task, 60), Step::Submit(AskedBy::Schedule));
        task.waiting = Some(RunWait::retry_after(None, "503".to_owned(), at(20), at(1)));
        assert_eq!(next(&last, &task, 1), Step::At(at(20)));
        assert_eq!(next(&last, &task, 20), Step::Task);
        let moves = Task::Move { to: Box::new(spec.clone()) };
        let moving = Run { spec: RunSpec { task: Some(moves), ..task.spec.clone() }, ..task.clone() };
        assert_eq!(next(&last, &moving, 60), Step::Task, "no sync comes before a move");
        task.state = RunState::Paused;
        assert_eq!(next(&last, &task, 20), Step::At(at(60)));
        assert_eq!(with_task(&line, None, Some(&last), Some(&queued(&spec)), 1), Step::Rest);
    }

    #[test]
    fn a_new_source_is_probed_and_a_known_one_is_not() {
        let (line, spec) = (SourceLine::default(), source());
        let new = queued(&spec);
        assert_eq!(next(&line, Some(&spec), Some(&new), 0), Step::Probe);
        let mut known = new.clone();
        let answered = SourceLine { answers_for: Some(new.spec.id), ..SourceLine::default() };
        assert_eq!(next(&answered, Some(&spec), Some(&new), 0), Step::Run);
        known.before.in_sync_as_of = Some(at(-9));
        assert_eq!(next(&line, Some(&spec), Some(&known), 0), Step::Run);
        assert_eq!(next(&line, None, Some(&known), 0), Step::Rest, "it was removed");
    }

    #[test]
    fn a_run_that_waits_is_taken_up_when_it_is_due() {
        let (line, spec) = (SourceLine::default(), source());
        let waits = |wait| Run { waiting: Some(wait), ..queued(&spec) };
        let silent = waits(RunWait::unreachable(None, "no answer".to_owned(), at(0)));
        assert_eq!(next(&line, Some(&spec), Some(&silent), 9), Step::At(at(10)));
        assert_eq!(next(&line, Some(&spec), Some(&silent), 10), Step::Probe);
        let paused = waits(RunWait::retry_after(None, "503".to_owned(), at(60), at(0)));
        assert_eq!(next(&line, Some(&spec), Some(&paused), 59), Step::At(at(60)));
        assert_eq!(next(&line, Some(&spec), Some(&paused), 60), Step::Run);
        assert_eq!(next(&line, Some(&spec), Some(&waits(RunWait::turn(None, at(0)))), 0), Step::Run);
    }

    #[test]
    fn after_trouble_nothing_is_tried_at_once() {
        let spec = source();
        let line = SourceLine { not_before: Some(at(1)), ..SourceLine::default() };
        assert_eq!(next(&line, Some(&spec), Some(&queued(&spec)), 0), Step::At(at(1)));
        assert_eq!(next(&line, Some(&spec), Some(&queued(&spec)), 1), Step::Probe);
    }

    #[test]
    fn a_schedule_is_looked_at_once_an_hour_however_far_it_is() {
        let spec = SourceSpec::from(Spec { schedule: Some(Schedule::every(86_400)), ..source().spec });
        let line = SourceLine::default();
        let mut last = queued(&spec);
        last.state = RunState::Finished { in_sync: true };
        last.started_at = Some(at(0));
        assert_eq!(next(&line, Some(&spec), Some(&last), 0), Step::At(at(3_600)));
    }
}
