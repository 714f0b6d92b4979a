//! When a Source is harvested without a request. Pure.

use std::time::Duration;

use control::{AskedBy, Run, RunState, SourceSpec};
use jiff::Timestamp;
use model::RunMode;

/// When the next run of a Source is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Now.
    Now,
    /// After this time.
    In(Duration),
    /// Only on request.
    Never,
}

/// When the next run of a Source is due, after its last run is over. `pause` is the time between two runs of a
/// continuously followed Source. A missed time counts once.
pub(crate) fn due(spec: &SourceSpec, last: Option<&Run>, pause: Option<Duration>, now: Timestamp) -> Due {
    if !spec.enabled {
        return Due::Never;
    }
    // A new Source is harvested at once if it is followed, otherwise at its scheduled time.
    let scheduled = spec.schedule.as_ref().and_then(|schedule| {
        let began = |run: &Run| run.started_at.unwrap_or(run.spec.asked_at);
        let after = last.map_or(now, |run| began(run).max(run.polled_at().unwrap_or(Timestamp::MIN)));
        // An accepted schedule was checked; one of another version is ignored.
        schedule.next_after(&spec.id, after).ok()
    });
    let followed = spec.follow.map(|bounds| {
        let ended = last.and_then(|run| run.finished_at.max(run.polled_at()));
        let pause = pause.unwrap_or_else(|| bounds.next_pause(None, 0));
        ended.map_or(now, |ended| ended.saturating_add(pause).unwrap_or(Timestamp::MAX))
    });
    match scheduled.into_iter().chain(followed).min() {
        None => Due::Never,
        Some(at) if at <= now => Due::Now,
        Some(at) => Due::In(Duration::try_from(at.duration_since(now)).unwrap_or_default()),
    }
}

/// When a run is due because of a hint: at once, but at least `pause` after the end of the last run, if there was
/// one. More hints do not make it more frequent.
pub(crate) fn hinted(
    spec: &SourceSpec,
    looked_at: Option<Timestamp>,
    pause: Duration,
    now: Timestamp,
) -> Due {
    if !spec.enabled {
        return Due::Never;
    }
    match looked_at.map(|ended| ended.saturating_add(pause).unwrap_or(Timestamp::MAX)) {
        Some(at) if at > now => Due::In(Duration::try_from(at.duration_since(now)).unwrap_or_default()),
        _ => Due::Now,
    }
}

/// Pause before an unproved hint starts a run: doubled after each consecutive run that a hint started and that found
/// no change.
pub(crate) fn unproved_pause(least: Duration, most: Duration, fruitless: u32) -> Duration {
    let grown = match fruitless {
        0 => least,
        _ => least.max(Duration::from_secs(1)).saturating_mul(1 << fruitless.min(24)),
    };
    grown.min(most).max(least)
}

/// Number of consecutive runs that hints started and that found no change, among the finished ones; `runs` begin with
/// the newest.
pub(crate) fn fruitless<'a>(runs: impl IntoIterator<Item = &'a Run>) -> u32 {
    let hinted = runs.into_iter().filter(|run| run.spec.asked_by == AskedBy::Hint && run.state.is_over());
    u32::try_from(hinted.take_while(|run| !brought_something(run)).count()).unwrap_or(u32::MAX)
}

/// Whether a run found any change.
pub(crate) fn brought_something(run: &Run) -> bool {
    let counters = &run.progress.counters;
    counters.stored + counters.deleted > 0
}

/// End of the last run that read the Source's lists, if known: a run that a hub's notification started may have read
/// none. `before` is the end of the last run that was over before the last run began.
pub(crate) fn looked_at(last: Option<&Run>, before: Option<Timestamp>) -> Option<Timestamp> {
    let last = last.filter(|run| run.spec.asked_by != AskedBy::Notification);
    last.and_then(|run| run.finished_at).or(before)
}

/// How long a hub delivery waits before it starts a run: not at all, or for the rest of `pause` after a failed run. A
/// failed run may have left the delivery in the queue, and would start again at once.
pub(crate) fn held_back(last: Option<&Run>, pause: Duration, now: Timestamp) -> Duration {
    let failed = last.filter(|run| matches!(run.state, RunState::Failed(_)));
    let ended = failed.and_then(|run| run.finished_at);
    ended.map_or(Duration::ZERO, |ended| {
        let at = ended.saturating_add(pause).unwrap_or(Timestamp::MAX);
        Duration::try_from(at.duration_since(now)).unwrap_or_default()
    })
}

/// When a poll is due for a Source without a schedule: `every` after the last poll, if the Source is subscribed to at
/// that time. Otherwise the check repeats after `every`. The subscription is not looked up before.
pub(crate) fn backup(
    spec: &SourceSpec,
    polled_at: Timestamp,
    every: Option<Duration>,
    is_subscribed: impl FnOnce() -> bool,
    now: Timestamp,
) -> Due {
    let Some(every) = every.filter(|_| spec.enabled && spec.schedule.is_none() && spec.follow.is_none())
    else {
        return Due::Never;
    };
    match polled_at.saturating_add(every).unwrap_or(Timestamp::MAX) {
        at if at > now => Due::In(Duration::try_from(at.duration_since(now)).unwrap_or_default()),
        _ if is_subscribed() => Due::Now,
        _ => Due::In(every),
    }
}

impl Due {
    /// The earlier of both.
    pub(crate) fn or_sooner(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::In(one), Self::In(two)) => Self::In(one.min(two)),
            (Self::Never, due) | (due, Self::Never) => due,
        }
    }
}

/// Until when the state of `last_success` counts as fresh: the next scheduled time of the Source. None without a
/// schedule.
pub(crate) fn fresh_until(spec: &SourceSpec, last_success: Timestamp) -> Option<Timestamp> {
    let scheduled =
        spec.schedule.as_ref().and_then(|schedule| schedule.next_after(&spec.id, last_success).ok());
    let followed = spec.follow.map(|bounds| {
        let most = Duration::from_secs(bounds.max_seconds);
        last_success.saturating_add(most).unwrap_or(Timestamp::MAX)
    });
    scheduled.into_iter().chain(followed).min().filter(|_| spec.enabled)
}

/// Whether a run polled the Source, without a notification that started it.
pub(crate) fn was_poll(run: &Run) -> bool {
    let is_told = matches!(run.spec.asked_by, AskedBy::Notification | AskedBy::Hint);
    !is_told && run.spec.mode != RunMode::Audit && !run.is_task()
}

/// Whether a run finished and brought its Source in sync, except for recorded problems.
pub(crate) fn was_success(run: &Run) -> bool {
    matches!(run.state, RunState::Finished { .. }) && run.spec.mode != RunMode::Audit && !run.is_task()
}

#[cfg(test)]
mod tests {
    use control::{PollInterval, RunFailure, RunSpec, Schedule, Spec};
    use model::{RunId, RunMode};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn source() -> SourceSpec {
        SourceSpec::new("http://h/".parse().unwrap())
    }

    fn ran(source: &SourceSpec, started: i64, finished: i64) -> Run {
        let spec = RunSpec {
            id: RunId::fresh(),
            source: source.id.clone(),
            mode: RunMode::Auto,
            asked_by: AskedBy::Schedule,
            asked_at: at(started),
            allow_deletes: false,
            repair: false,
            task: None,
        };
        Run {
            state: RunState::Finished { in_sync: true },
            started_at: Some(at(started)),
            finished_at: Some(at(finished)),
            ..Run::submitted(spec)
        }
    }

    #[test]
    fn without_a_schedule_or_while_disabled_nobody_is_sent() {
        assert_eq!(due(&source(), None, None, at(0)), Due::Never);
        let disabled =
            SourceSpec::from(Spec { enabled: false, schedule: Some(Schedule::every(60)), ..source().spec });
        assert_eq!(due(&disabled, None, None, at(0)), Due::Never);
    }

    #[test]
    fn a_hint_is_taken_up_at_once_but_not_sooner_than_a_pause_after_the_last_run() {
        let spec = source();
        let pause = Duration::from_secs(10);
        assert_eq!(hinted(&spec, None, pause, at(0)), Due::Now);
        assert_eq!(hinted(&spec, Some(at(20)), pause, at(21)), Due::In(Duration::from_secs(9)));
        assert_eq!(hinted(&spec, Some(at(20)), pause, at(30)), Due::Now);
        let disabled = SourceSpec::from(Spec { enabled: false, ..spec.spec });
        assert_eq!(hinted(&disabled, None, pause, at(0)), Due::Never);
        let long = Due::In(Duration::from_secs(9));
        let short = Due::In(Duration::from_secs(3));
        assert_eq!(
            [long.or_sooner(short), long.or_sooner(Due::Never), Due::Never.or_sooner(Due::Now)],
            [short, long, Due::Now]
        );
    }

    #[test]
    fn unproved_hints_that_bring_nothing_are_taken_up_ever_less_often() {
        let pause = |fruitless| {
            let least = Duration::from_secs(10);
            let most = Duration::from_secs(86_400);
            unproved_pause(least, most, fruitless).as_secs()
        };
        assert_eq!([0, 1, 2, 5, 13, 14, u32::MAX].map(pause), [10, 20, 40, 320, 81_920, 86_400, 86_400]);
        let none = |most| unproved_pause(Duration::ZERO, Duration::from_secs(most), 1).as_secs();
        assert_eq!((none(86_400), none(0)), (2, 0));
        let hinted = |stored| {
            let mut run = ran(&source(), 0, 20);
            run.spec.asked_by = AskedBy::Hint;
            run.progress.counters.stored = stored;
            run
        };
        let scheduled = ran(&source(), 0, 20);
        assert_eq!(fruitless(&[hinted(0), scheduled, hinted(0), hinted(1), hinted(0)]), 2);
        assert_eq!((fruitless(&[hinted(1)]), fruitless(&[])), (0, 0));
    }

    #[test]
    fn what_a_hub_delivers_waits_after_a_run_that_failed_and_after_no_other() {
        let pause = Duration::from_secs(10);
        let last = ran(&source(), 0, 20);
        let failed = Run { state: RunState::Failed(RunFailure::because("x")), ..last.clone() };
        assert_eq!(held_back(Some(&failed), pause, at(21)), Duration::from_secs(9));
        assert_eq!(held_back(Some(&failed), pause, at(31)), Duration::ZERO);
        assert_eq!([Some(&last), None].map(|last| held_back(last, pause, at(21))), [Duration::ZERO; 2]);
    }

    #[test]
    fn what_a_hub_asks_for_is_no_look_so_that_no_flood_of_it_puts_hints_off() {
        let look = ran(&source(), 0, 20);
        let mut notified = ran(&source(), 50, 60);
        notified.spec.asked_by = AskedBy::Notification;
        assert_eq!(looked_at(Some(&look), Some(at(1))), Some(at(20)));
        assert_eq!(looked_at(Some(&notified), Some(at(20))), Some(at(20)));
        assert_eq!([looked_at(Some(&notified), None), looked_at(None, None)], [None, None]);
    }

    #[test]
    fn a_source_that_a_hub_tells_of_is_looked_at_now_and_then_all_the_same() {
        let every = Some(Duration::from_secs(100));
        let due =
            |spec: &SourceSpec, is_subscribed, now| backup(spec, at(0), every, || is_subscribed, at(now));
        let spec = source();
        assert_eq!(due(&spec, true, 40), Due::In(Duration::from_secs(60)));
        assert_eq!(due(&spec, true, 100), Due::Now);
        assert_eq!(due(&spec, false, 150), Due::In(Duration::from_secs(100)), "nobody tells of it");
        assert_eq!(backup(&spec, at(0), None, || true, at(1_000)), Due::Never);
        let nobody_asks = || -> bool { panic!("it is not time") };
        assert_eq!(backup(&spec, at(0), every, nobody_asks, at(40)), Due::In(Duration::from_secs(60)));
        let scheduled = SourceSpec::from(Spec { schedule: Some(Schedule::every(60)), ..source().spec });
        let bounds = PollInterval { min_seconds: 10, max_seconds: 100 };
        let followed = SourceSpec::from(Spec { follow: Some(bounds), ..source().spec });
        let disabled = SourceSpec::from(Spec { enabled: false, ..source().spec });
        for spec in [scheduled, followed, disabled] {
            assert_eq!(due(&spec, true, 1_000), Due::Never);
        }
    }

    #[test]
    fn a_missed_time_counts_once_and_the_next_one_is_waited_for() {
        let spec =
            SourceSpec::from(Spec { schedule: Some(Schedule::every(3_600).jitter(0)), ..source().spec });
        let long_ago = ran(&spec, -100_000, -99_000);
        assert_eq!(due(&spec, Some(&long_ago), None, at(0)), Due::Now);
        let just_now = ran(&spec, 0, 10);
        // 1,800,000,000 is a full hour.
        assert_eq!(due(&spec, Some(&just_now), None, at(20)), Due::In(Duration::from_secs(3_580)));
    }

    #[test]
    fn a_source_that_is_followed_is_looked_at_again_a_pause_after_the_last_end() {
        let bounds = PollInterval { min_seconds: 10, max_seconds: 100 };
        let spec = SourceSpec::from(Spec { follow: Some(bounds), ..source().spec });
        assert_eq!(due(&spec, None, None, at(0)), Due::Now);
        let last = ran(&spec, 0, 20);
        assert_eq!(due(&spec, Some(&last), None, at(25)), Due::In(Duration::from_secs(5)));
        let pause = Some(Duration::from_secs(40));
        assert_eq!(due(&spec, Some(&last), pause, at(25)), Due::In(Duration::from_secs(35)));
        assert_eq!(due(&spec, Some(&last), pause, at(60)), Due::Now);
    }
}
