use std::time::Duration;

use control::{Control, ControlError, Notice, NoticeId, NoticeLimits, Notices};
use model::SourceId;

use crate::support::{control, now, source};

const LIMITS: NoticeLimits = NoticeLimits { most_per_sender: 100, kept: Duration::from_secs(600), bytes: 0 };

async fn notices(limits: NoticeLimits) -> (Control, Notices) {
    let control = control().await;
    let notices = control.notices(limits).await.unwrap();
    (control, notices)
}

fn notice(inbox: Option<SourceId>, sender: &str, body: &str) -> Notice {
    let media_type = "application/ld+json".to_owned();
    Notice { inbox, sender: sender.to_owned(), received_at: now(), media_type, body: body.to_owned() }
}

async fn all(notices: &Notices, inbox: Option<&SourceId>, sender: Option<&str>) -> Vec<NoticeId> {
    let page = notices.list(inbox, sender, None, 1_000).await.unwrap();
    assert!(!page.more);
    page.ids
}

#[tokio::test]
async fn what_is_kept_is_found_in_its_own_inbox_alone_by_any_process() {
    let (control, notices) = notices(LIMITS).await;
    let one = notice(Some(source(1)), "a", r#"{"x":"ü"}"#);
    let id = notices.keep(&one).await.unwrap();
    let other_process = control.notices(LIMITS).await.unwrap();
    assert_eq!(other_process.get(Some(&source(1)), &id).await.unwrap(), one);
    for inbox in [None, Some(&source(2))] {
        let absent = notices.get(inbox, &id).await.unwrap_err();
        assert!(matches!(absent, ControlError::Absent { .. }), "{absent}");
        assert_eq!(all(&notices, inbox, None).await, []);
    }
    let guessed: NoticeId =
        format!("{}-0000000000000000", id.to_string().split('-').next().unwrap()).parse().unwrap();
    assert!(notices.get(Some(&source(1)), &guessed).await.is_err(), "a name is not guessed from its number");
    let none: NoticeId = "99999-0000000000000000".parse().unwrap();
    assert!(matches!(notices.get(Some(&source(1)), &none).await, Err(ControlError::Absent { .. })));
}

#[tokio::test]
async fn pages_join_on_to_each_other_and_show_one_sender_or_all() {
    let (_control, notices) = notices(LIMITS).await;
    let mut kept = Vec::new();
    for n in 0..7 {
        let sender = if n % 3 == 0 { "a" } else { "b" };
        kept.push(notices.keep(&notice(None, sender, &n.to_string())).await.unwrap());
        notices.keep(&notice(Some(source(1)), "a", &n.to_string())).await.unwrap();
    }
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = notices.list(None, None, after.as_ref(), 3).await.unwrap();
        after = page.ids.last().cloned();
        listed.extend(page.ids);
        if !page.more {
            break;
        }
    }
    assert_eq!(listed, kept);
    assert_eq!(all(&notices, None, Some("a")).await, [kept[0].clone(), kept[3].clone(), kept[6].clone()]);
    assert_eq!(all(&notices, None, Some("c")).await, []);
}

#[tokio::test]
async fn the_same_notification_again_is_the_one_that_is_there() {
    let (_control, notices) = notices(LIMITS).await;
    let first = notices.keep(&notice(None, "a", "{}")).await.unwrap();
    assert_eq!(notices.keep(&notice(None, "a", "{}")).await.unwrap(), first);
    assert_ne!(notices.keep(&notice(None, "b", "{}")).await.unwrap(), first);
    assert_eq!(all(&notices, None, None).await.len(), 2);
}

#[tokio::test]
async fn who_floods_an_inbox_pushes_out_his_own_and_nothing_of_others() {
    let (_control, notices) = notices(NoticeLimits { most_per_sender: 5, ..LIMITS }).await;
    let honest = notices.keep(&notice(None, "honest", "{}")).await.unwrap();
    let mut flood = Vec::new();
    for n in 0..40 {
        flood.push(notices.keep(&notice(None, "flood", &n.to_string())).await.unwrap());
    }
    assert_eq!(all(&notices, None, Some("honest")).await, [honest]);
    assert_eq!(all(&notices, None, Some("flood")).await, flood[35..]);
}
