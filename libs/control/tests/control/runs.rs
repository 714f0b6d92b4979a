use control::{
    Claim, Config, Control, ControlError, DesiredState, InSync, Lease, Problems, Progress, RunState,
    RunStatus,
};
use futures::future::join_all;

use crate::support::{Line, asked, config, control, now, soon, source};

async fn lease(control: &Control, holder: &str) -> Lease {
    match control.leases().acquire(&source(1), &holder.parse().unwrap(), now()).await.unwrap() {
        Claim::Taken(lease) => lease,
        Claim::Held(by) => panic!("{} has it", by.holder),
    }
}

#[tokio::test]
async fn a_run_goes_from_submission_to_its_end_before_everybodys_eyes() {
    let control = control().await;
    let runs = control.runs();
    let mut view = runs.view().await.unwrap();
    let id = runs.submit(asked(1)).await.unwrap().spec.id;
    let lease = lease(&control, "owner").await;
    let run = runs.start(&lease, id, now()).await.unwrap();
    assert_eq!(run.status(Some(&lease.term())).name(), "running");
    let progress = Progress { pending: Some(12), ..Progress::default() };
    runs.tell(&lease, id, progress, now()).await.unwrap();
    let seen = soon(
        "progress",
        view.wait_for(|view| view.get(&source(1)).filter(|run| run.progress.pending.is_some())),
    );
    let seen = seen.await;
    assert!(seen.progress.pending == Some(12) && seen.progress.told_at.is_some());
    let last = Progress { pending: Some(0), ..Progress::default() };
    runs.finish(&lease, id, last, InSync(true), now()).await.unwrap();
    let over =
        soon("the end", view.wait_for(|view| view.get(&source(1)).filter(|run| run.state.is_over()))).await;
    assert_eq!(over.state, RunState::Finished { in_sync: true });
    assert!(over.started_at.is_some() && over.finished_at.is_some());
    assert_eq!(over.progress.pending, Some(0), "the end has the last progress");
    let error = runs.tell(&lease, id, Progress::default(), now()).await.unwrap_err();
    assert!(matches!(error, ControlError::Refused(_)), "{error}");
}

#[tokio::test]
async fn a_run_hands_on_since_when_its_source_is_in_step_and_how_many_problems_it_has() {
    let control = control().await;
    let runs = control.runs();
    let lease = lease(&control, "owner").await;
    let began = now();
    let ended = async |in_sync, problems| {
        let id = runs.submit(asked(1)).await.unwrap().spec.id;
        runs.start(&lease, id, began).await.unwrap();
        let progress = Progress { problems, ..Progress::default() };
        runs.finish(&lease, id, progress, InSync(in_sync), now()).await.unwrap().leaves()
    };
    let problems = |open| Some(Problems { open, ignored: 1 });
    let first = ended(true, problems(0)).await;
    assert_eq!((first.in_sync_as_of, first.problems), (Some(began), problems(0)));
    let second = ended(false, problems(3)).await;
    assert_eq!((second.in_sync_as_of, second.problems), (Some(began), problems(3)));
    // A cancelled run has no newer results.
    let third = runs.submit(asked(1)).await.unwrap();
    assert_eq!(third.before, second);
    let third = runs.cancel(&source(1), third.spec.id, now()).await.unwrap();
    assert_eq!(third.leaves(), second);
}

#[tokio::test]
async fn of_each_source_there_is_one_run_at_a_time_whoever_asks() {
    let control = control().await;
    let asked: Vec<_> = (0..8).map(|_| asked(1)).collect();
    let done = join_all(asked.iter().map(|spec| control.runs().submit(spec.clone()))).await;
    let won: Vec<_> = done.iter().filter_map(|done| done.as_ref().ok()).collect();
    assert_eq!(won.len(), 1);
    for lost in done.iter().filter_map(|done| done.as_ref().err()) {
        assert!(matches!(lost, ControlError::Exists { .. }), "{lost}");
        assert!(lost.to_string().contains("(queued) exists already"), "{lost}");
    }
    let again = control.runs().submit(won[0].spec.clone()).await.unwrap();
    assert_eq!(again.revision, won[0].revision, "the same call again does nothing");
}

#[tokio::test]
async fn past_runs_are_kept_newest_first_and_not_for_ever() {
    let config = Config { runs_kept: 3, ..config().await };
    let control = Control::connect(&config).await.unwrap();
    let runs = control.runs();
    let mut ids = Vec::new();
    for _ in 0..6 {
        let id = runs.submit(asked(1)).await.unwrap().spec.id;
        runs.cancel(&source(1), id, now()).await.unwrap();
        ids.push(id);
    }
    let past: Vec<_> = runs.past(&source(1)).await.unwrap().iter().map(|run| run.spec.id).collect();
    assert_eq!(past, [ids[4], ids[3], ids[2]]);
    assert_eq!(runs.get(&source(1)).await.unwrap().unwrap().spec.id, ids[5]);
    runs.forget(&source(1)).await.unwrap();
    assert!(runs.get(&source(1)).await.unwrap().is_none());
    assert!(runs.past(&source(1)).await.unwrap().is_empty());
    let id = runs.submit(asked(1)).await.unwrap().spec.id;
    assert!(matches!(runs.forget(&source(1)).await, Err(ControlError::Exists { .. })), "{id} is not over");
}

#[tokio::test]
async fn the_operator_is_heard_by_the_owner_with_its_next_word() {
    let control = control().await;
    let runs = control.runs();
    let id = runs.submit(asked(1)).await.unwrap().spec.id;
    let lease = lease(&control, "owner").await;
    runs.start(&lease, id, now()).await.unwrap();
    runs.pause(&source(1), id, now()).await.unwrap();
    let told = runs.tell(&lease, id, Progress::default(), now()).await.unwrap();
    assert_eq!(told.wanted, DesiredState::Pause);
    assert_eq!(runs.let_go(&lease, id, now()).await.unwrap().state, RunState::Paused);
    assert!(runs.start(&lease, id, now()).await.is_err(), "it waits for the operator");
    assert_eq!(runs.resume(&source(1), id, now()).await.unwrap().state, RunState::Queued);
    let other = asked(1).id;
    assert!(matches!(runs.pause(&source(1), other, now()).await, Err(ControlError::Absent { .. })));
}

#[tokio::test]
async fn words_of_owner_and_operator_at_the_same_time_are_all_kept() {
    let control = control().await;
    let runs = control.runs();
    let id = runs.submit(asked(1)).await.unwrap().spec.id;
    let lease = lease(&control, "owner").await;
    runs.start(&lease, id, now()).await.unwrap();
    let tell = |n| runs.tell(&lease, id, Progress { pending: Some(n), ..Progress::default() }, now());
    let source = source(1);
    let (told, paused) = tokio::join!(join_all((0..5).map(tell)), runs.pause(&source, id, now()));
    paused.unwrap();
    assert!(told.iter().all(Result::is_ok));
    let run = runs.get(&source).await.unwrap().unwrap();
    assert_eq!(run.wanted, DesiredState::Pause);
    assert!(run.progress.pending.is_some());
}

#[tokio::test]
async fn a_run_whose_owner_dies_is_interrupted_and_the_next_owner_takes_it_over() {
    let config = config().await;
    let second = Control::connect(&config).await.unwrap();
    let line = Line::to(&config.servers[0]).await;
    let first = Control::connect(&Config { servers: vec![line.url()], ..config }).await.unwrap();
    let id = first.runs().submit(asked(1)).await.unwrap().spec.id;
    let held = lease(&first, "first").await;
    first.runs().start(&held, id, now()).await.unwrap();

    let mut leases = second.leases().view().await.unwrap();
    let run = second.runs().get(&source(1)).await.unwrap().unwrap();
    let present = leases.get(&source(1)).unwrap().term();
    assert!(matches!(run.status(Some(&present)), RunStatus::Running { stopping: false, .. }));
    line.cut();
    soon("the lease is gone", leases.wait_for(|leases| leases.get(&source(1)).is_none().then_some(()))).await;
    let run = second.runs().get(&source(1)).await.unwrap().unwrap();
    assert!(matches!(run.state, RunState::Running { .. }), "nobody has written another word");
    assert!(matches!(run.status(None), RunStatus::Interrupted { .. }));

    let taken = lease(&second, "second").await;
    second.runs().start(&taken, id, now()).await.unwrap();
    line.repair();
    let late = soon("the first owner is back", async {
        loop {
            match first.runs().finish(&held, id, Progress::default(), InSync(true), now()).await {
                Err(ControlError::Unavailable { .. }) => {}
                other => break other,
            }
        }
    });
    let late = late.await.unwrap_err();
    assert!(late.to_string().contains("second has a newer lease"), "{late}");
    second.runs().finish(&taken, id, Progress::default(), InSync(true), now()).await.unwrap();
}

#[tokio::test]
async fn looking_at_past_runs_leaves_nothing_at_the_server() {
    let config = config().await;
    let control = Control::connect(&config).await.unwrap();
    for _ in 0..3 {
        let id = control.runs().submit(asked(1)).await.unwrap().spec.id;
        control.runs().cancel(&source(1), id, now()).await.unwrap();
    }
    for _ in 0..20 {
        assert_eq!(control.runs().past(&source(1)).await.unwrap().len(), 2);
    }
    let client = async_nats::connect(&config.servers[0]).await.unwrap();
    let bucket = format!("KV_{}-runs-past", config.namespace);
    let mut stream = async_nats::jetstream::new(client).get_stream(bucket).await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.consumer_count, 0);
}
