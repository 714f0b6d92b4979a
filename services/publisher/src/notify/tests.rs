//! Many publications that tell one hub.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::StatusCode;
use testkit::waiting::{found, until};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::*;
use crate::hub::testing::Case;
use crate::hub_clients::AT_ONE_HUB;

/// A hub that answers what a test releases.
#[derive(Clone)]
struct SlowHub {
    open: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    taken: Arc<AtomicUsize>,
    released: Arc<Semaphore>,
    /// What has come.
    payloads: Arc<Mutex<Vec<String>>>,
}

impl SlowHub {
    async fn start() -> (Self, Url) {
        let released = Arc::new(Semaphore::new(0));
        let (open, most, taken, payloads) = Default::default();
        let hub = Self { open, most, taken, released, payloads };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hub", listener.local_addr().unwrap()).parse().unwrap();
        let answering = hub.clone();
        let routes = Router::new().fallback(move |payload: String| {
            let hub = answering.clone();
            async move { hub.answer(payload).await }
        });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (hub, url)
    }

    async fn answer(&self, payload: String) -> StatusCode {
        self.payloads.lock().unwrap().push(payload);
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        self.released.acquire().await.unwrap().forget();
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.taken.fetch_add(1, Ordering::SeqCst);
        StatusCode::ACCEPTED
    }
}

#[tokio::test]
async fn many_publications_tell_a_hub_a_few_at_a_time_and_all_are_told() {
    const PUBLICATIONS: usize = 12;
    let (hub, url) = SlowHub::start().await;
    let clients = HubClients::default();
    let stop = CancellationToken::new();
    let mut cases = Vec::new();
    for _ in 0..PUBLICATIONS {
        let case = Case::new().await;
        case.shared().publication().note_told(&url, case.told).await.unwrap();
        let (shared, published) = (case.shared().clone(), case.shared().published());
        tokio::spawn(tell(shared, url.clone(), Way::Payload, clients.clone(), published, stop.clone()));
        cases.push(case);
    }
    for taken in 0..PUBLICATIONS {
        let open = AT_ONE_HUB.min(PUBLICATIONS - taken);
        until("some are under way", || hub.open.load(Ordering::SeqCst) == open).await;
        hub.released.add_permits(1);
        until("one is taken", || hub.taken.load(Ordering::SeqCst) > taken).await;
    }
    assert_eq!(hub.most.load(Ordering::SeqCst), AT_ONE_HUB);
    for case in cases {
        let publication = case.shared().publication();
        let last = publication.published_until().await.unwrap();
        found("it is noted", async || (publication.told_until(&url).await.unwrap() == last).then_some(()))
            .await;
    }
    stop.cancel();
}

/// A time in the header of a payload.
fn time(payload: &str, name: &str) -> String {
    let (_, rest) = payload.split_once(&format!(" {name}=\"")).expect("it is there");
    rest.split('"').next().expect("its end").to_owned()
}

#[tokio::test]
async fn a_payload_whose_answer_is_lost_is_sent_again_with_the_same_interval_whatever_came_since() {
    let (hub, url) = SlowHub::start().await;
    let case = Case::new().await;
    let (shared, stop) = (case.shared().clone(), CancellationToken::new());
    shared.publication().note_told(&url, case.told).await.unwrap();
    let start = || {
        let (clients, published) = (HubClients::default(), shared.published());
        tokio::spawn(tell(shared.clone(), url.clone(), Way::Payload, clients, published, stop.clone()))
    };
    let killed = start();
    let come = || hub.payloads.lock().unwrap().len();
    until("the hub has the first one", || come() == 1).await;
    killed.abort();
    assert!(killed.await.is_err(), "it waited for the answer");
    case.change().await;
    hub.released.add_permits(10);
    start();
    let last = shared.publication().published_until().await.unwrap();
    found("all is told", async || {
        let (told, under_way) = shared.publication().told_and_under_way(&url).await.unwrap();
        (told == last).then(|| assert_eq!(under_way, None))
    })
    .await;
    stop.cancel();
    let payloads = hub.payloads.lock().unwrap().clone();
    assert_eq!(payloads.len(), 3);
    assert_eq!(payloads[0], payloads[1], "the hub knows that it has it");
    assert_eq!(time(&payloads[1], "until"), time(&payloads[2], "from"), "intervals touch");
    assert_eq!(time(&payloads[2], "until").parse::<Timestamp>().unwrap(), last);
}
