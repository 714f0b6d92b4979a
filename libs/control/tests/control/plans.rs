use control::{MemberId, Plan, PlanState, SourceSpec};
use jiff::Timestamp;

use crate::support::control;

fn source() -> SourceSpec {
    SourceSpec::new("https://example.org/".parse().unwrap())
}

#[tokio::test]
async fn one_of_those_who_want_to_make_a_plan_makes_it_and_its_end_is_told() {
    let control = control().await;
    let now = Timestamp::now();
    let plans = control.plans();
    let asked = plans.ask(source(), now).await.unwrap();
    let one = MemberId::fresh("one");
    let other = MemberId::fresh("other");
    let taken = plans.take(&asked, &one, now).await.unwrap().expect("it is free");
    assert!(plans.take(&asked, &other, now).await.unwrap().is_none(), "it is taken");
    let failed = |why: &str| PlanState::Failed { why: why.to_owned(), at: now };
    // Its scheduler counts as gone, and comes back too late.
    let again = plans.take(&taken, &other, now).await.unwrap().expect("it may be taken over");
    plans.end(&taken, failed("too late")).await.unwrap();
    plans.end(&again, failed("nothing is there")).await.unwrap();
    let mut view = plans.view().await.unwrap();
    let over = view.wait_for(|view| view.get(&asked.id).filter(|plan| plan.is_over())).await;
    assert_eq!(over.state, failed("nothing is there"));
    assert_eq!(Plan::clone(&*plans.get(asked.id).await.unwrap()), Plan::clone(&*over));
}

#[tokio::test]
async fn a_plan_that_nobody_could_want_is_refused_and_one_that_is_unknown_is_absent() {
    let control = control().await;
    let mut invalid = source();
    invalid.max_deletes_percent = 101;
    let refused = control.plans().ask(invalid, Timestamp::now()).await.unwrap_err().to_string();
    assert!(refused.contains("max_deletes_percent"), "{refused}");
    let absent = control.plans().get("01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap()).await.unwrap_err();
    assert!(matches!(absent, control::ControlError::Absent { .. }), "{absent}");
}
