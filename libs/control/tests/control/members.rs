use control::{Config, Control, MemberId, Role};

use crate::support::{Line, config, control, now, soon};

#[tokio::test]
async fn who_joins_is_seen_and_who_leaves_is_gone_at_once() {
    let config = Config { member_seconds: 60, ..config().await };
    let control = Control::connect(&config).await.unwrap();
    let mut view = control.members().view().await.unwrap();
    let scheduler = control.members().join(MemberId::fresh("a"), Role::Scheduler, now()).await.unwrap();
    let fetcher = control.members().join(MemberId::fresh("b"), Role::Fetcher, now()).await.unwrap();
    soon("both are seen", view.wait_for(|view| (view.all().len() == 2).then_some(()))).await;
    assert_eq!(view.of(Role::Scheduler), [scheduler.member().id.clone()]);
    assert_eq!(view.of(Role::Fetcher), [fetcher.member().id.clone()]);
    scheduler.leave().await;
    drop(fetcher);
    soon("both are gone", view.wait_for(|view| view.all().is_empty().then_some(()))).await;
}

#[tokio::test]
async fn who_is_cut_off_is_gone_and_comes_back_by_itself() {
    let config = config().await;
    let others = Control::connect(&config).await.unwrap();
    let mut view = others.members().view().await.unwrap();
    let line = Line::to(&config.servers[0]).await;
    let ours = Control::connect(&Config { servers: vec![line.url()], ..config }).await.unwrap();
    let here = ours.members().join(MemberId::fresh("a"), Role::Scheduler, now()).await.unwrap();
    let id = here.member().id.clone();
    soon("it is seen", view.wait_for(|view| (view.of(Role::Scheduler) == [id.clone()]).then_some(()))).await;
    line.cut();
    soon("it is gone", view.wait_for(|view| view.all().is_empty().then_some(()))).await;
    line.repair();
    soon("it is back", view.wait_for(|view| (view.of(Role::Scheduler) == [id.clone()]).then_some(()))).await;
}

#[tokio::test]
async fn who_says_so_stays() {
    let control = control().await;
    let mut view = control.members().view().await.unwrap();
    let _here = control.members().join(MemberId::fresh("a"), Role::Fetcher, now()).await.unwrap();
    let mut seen = Vec::new();
    // It expires after two seconds, and a heartbeat comes every half second.
    let told = view.wait_for(|view| {
        if let Some(member) = view.all().first() {
            seen.push(member.revision);
        } else {
            assert!(seen.is_empty(), "it was gone");
        }
        (seen.len() > 8).then_some(())
    });
    soon("it is told again and again", told).await;
}
