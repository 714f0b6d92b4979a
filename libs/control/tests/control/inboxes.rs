use std::time::Duration;

use control::{Control, ControlError, InboxLimits, Inboxes, KeptNotification, NotificationId};
use model::SourceId;

use crate::support::{control, now, source};

const LIMITS: InboxLimits = InboxLimits { max_per_sender: 100, kept: Duration::from_secs(600), bytes: 0 };

async fn inboxes(limits: InboxLimits) -> (Control, Inboxes) {
    let control = control().await;
    let inboxes = control.inboxes(limits).await.unwrap();
    (control, inboxes)
}

fn notification(inbox: Option<SourceId>, sender: &str, body: &str) -> KeptNotification {
    let media_type = "application/ld+json".to_owned();
    KeptNotification {
        inbox,
        sender: sender.to_owned(),
        received_at: now(),
        media_type,
        body: body.to_owned(),
    }
}

async fn all(inboxes: &Inboxes, inbox: Option<&SourceId>, sender: Option<&str>) -> Vec<NotificationId> {
    let page = inboxes.list(inbox, sender, None, 1_000).await.unwrap();
    assert!(!page.more);
    page.ids
}

#[tokio::test]
async fn what_is_kept_is_found_in_its_own_inbox_alone_by_any_process() {
    let (control, inboxes) = inboxes(LIMITS).await;
    let one = notification(Some(source(1)), "a", r#"{"x":"ü"}"#);
    let id = inboxes.keep(&one).await.unwrap();
    let other_process = control.inboxes(LIMITS).await.unwrap();
    assert_eq!(other_process.get(Some(&source(1)), &id).await.unwrap(), one);
    for inbox in [None, Some(&source(2))] {
        let absent = inboxes.get(inbox, &id).await.unwrap_err();
        assert!(matches!(absent, ControlError::Absent { .. }), "{absent}");
        assert_eq!(all(&inboxes, inbox, None).await, []);
    }
    let guessed: NotificationId =
        format!("{}-0000000000000000", id.to_string().split('-').next().unwrap()).parse().unwrap();
    assert!(inboxes.get(Some(&source(1)), &guessed).await.is_err(), "a name is not guessed from its number");
    let none: NotificationId = "99999-0000000000000000".parse().unwrap();
    assert!(matches!(inboxes.get(Some(&source(1)), &none).await, Err(ControlError::Absent { .. })));
}

#[tokio::test]
async fn pages_join_on_to_each_other_and_show_one_sender_or_all() {
    let (_control, inboxes) = inboxes(LIMITS).await;
    let mut kept = Vec::new();
    for n in 0..7 {
        let sender = if n % 3 == 0 { "a" } else { "b" };
        kept.push(inboxes.keep(&notification(None, sender, &n.to_string())).await.unwrap());
        inboxes.keep(&notification(Some(source(1)), "a", &n.to_string())).await.unwrap();
    }
    let mut listed = Vec::new();
    let mut after = None;
    loop {
        let page = inboxes.list(None, None, after.as_ref(), 3).await.unwrap();
        after = page.ids.last().cloned();
        listed.extend(page.ids);
        if !page.more {
            break;
        }
    }
    assert_eq!(listed, kept);
    assert_eq!(all(&inboxes, None, Some("a")).await, [kept[0].clone(), kept[3].clone(), kept[6].clone()]);
    assert_eq!(all(&inboxes, None, Some("c")).await, []);
}

#[tokio::test]
async fn the_same_notification_again_is_the_one_that_is_there() {
    let (_control, inboxes) = inboxes(LIMITS).await;
    let first = inboxes.keep(&notification(None, "a", "{}")).await.unwrap();
    assert_eq!(inboxes.keep(&notification(None, "a", "{}")).await.unwrap(), first);
    assert_ne!(inboxes.keep(&notification(None, "b", "{}")).await.unwrap(), first);
    assert_eq!(all(&inboxes, None, None).await.len(), 2);
}

#[tokio::test]
async fn who_floods_an_inbox_pushes_out_his_own_and_nothing_of_others() {
    let (_control, inboxes) = inboxes(InboxLimits { max_per_sender: 5, ..LIMITS }).await;
    let honest = inboxes.keep(&notification(None, "honest", "{}")).await.unwrap();
    let mut flood = Vec::new();
    for n in 0..40 {
        flood.push(inboxes.keep(&notification(None, "flood", &n.to_string())).await.unwrap());
    }
    assert_eq!(all(&inboxes, None, Some("honest")).await, [honest]);
    assert_eq!(all(&inboxes, None, Some("flood")).await, flood[35..]);
}
