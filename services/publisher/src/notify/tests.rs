//! Many publications that tell one hub.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
}

impl SlowHub {
    async fn start() -> (Self, Url) {
        let released = Arc::new(Semaphore::new(0));
        let hub = Self { open: Arc::default(), most: Arc::default(), taken: Arc::default(), released };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hub", listener.local_addr().unwrap()).parse().unwrap();
        let answering = hub.clone();
        let routes = Router::new().fallback(move || {
            let hub = answering.clone();
            async move { hub.answer().await }
        });
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (hub, url)
    }

    async fn answer(&self) -> StatusCode {
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
