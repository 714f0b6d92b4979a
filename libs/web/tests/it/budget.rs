//! The budget of an origin, measured at the server.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use futures::poll;
use testkit::scripted::{Reply, ScriptedServer};
use tokio::sync::watch;
use web::{Client, WebConfig};

use crate::support::{config, request, say, serve};

fn client(per_origin: usize) -> Client {
    Client::new(WebConfig { per_origin, ..config() }).unwrap()
}

#[tokio::test]
async fn never_more_requests_are_in_flight_than_allowed_and_not_fewer() {
    const ALLOWED: usize = 3;
    const REQUESTS: usize = 30;
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let (in_flight, _) = watch::channel(0_usize);
    let served = Arc::new(AtomicUsize::new(0));
    let url = serve(move |mut connection| {
        let in_flight = in_flight.clone();
        let most = Arc::clone(&most);
        let served = Arc::clone(&served);
        async move {
            in_flight.send_modify(|now| *now += 1);
            // The server answers only when all permits are taken, or when no more requests will come.
            let full = |now: &usize| *now >= ALLOWED || served.load(Ordering::SeqCst) > REQUESTS - ALLOWED;
            in_flight.subscribe().wait_for(full).await.unwrap();
            // Time for one too many to arrive.
            for _ in 0..500 {
                tokio::task::yield_now().await;
            }
            most.fetch_max(*in_flight.borrow(), Ordering::SeqCst);
            say(&mut connection, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nab").await;
            // Counted before the client can know that the body has ended.
            served.fetch_add(1, Ordering::SeqCst);
            in_flight.send_modify(|now| *now -= 1);
            say(&mut connection, "cd").await;
        }
    })
    .await;
    let client = client(ALLOWED);
    let requests = (0..REQUESTS).map(|_| async {
        let mut response = client.get(request(&url)).await?;
        while response.chunk().await?.is_some() {}
        Ok::<_, web::WebError>(())
    });
    try_join_all(requests).await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), ALLOWED);
    assert_eq!(client.requests(), REQUESTS as u64);
}

#[tokio::test]
async fn a_place_is_held_until_the_body_has_ended() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::ok("abc"));
    let client = client(1);
    let mut first = client.get(request(&server.uri("/a"))).await.unwrap();
    let mut second = pin!(client.get(request(&server.uri("/a"))));
    assert!(poll!(&mut second).is_pending());
    assert_eq!(client.requests(), 1, "a second request was sent while the first body was unread");
    while first.chunk().await.unwrap().is_some() {}
    second.await.unwrap();
    assert_eq!(client.requests(), 2);
}

#[tokio::test]
async fn a_place_is_given_back_by_a_response_that_is_dropped_and_by_an_error() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::ok("abc"));
    server.always("/gone", Reply::status(404).body("an error page"));
    let client = client(1);
    drop(client.get(request(&server.uri("/a"))).await.unwrap());
    client.get(request(&server.uri("/gone"))).await.unwrap_err();
    client.get(request(&server.uri("/a"))).await.unwrap();
}

#[tokio::test]
async fn a_redirect_takes_the_place_of_each_origin_in_turn() {
    let [first, second] = [ScriptedServer::start().await.unwrap(), ScriptedServer::start().await.unwrap()];
    first.always("/a", Reply::status(302).header("location", "/b"));
    first.always("/b", Reply::status(302).header("location", second.uri("/c")));
    first.always("/free", Reply::ok("abc"));
    second.always("/c", Reply::ok("abc"));
    let client = client(1);
    let held = client.get(request(&first.uri("/a"))).await.unwrap();
    client.get(request(&first.uri("/free"))).await.unwrap();
    let mut waiting = pin!(client.get(request(&second.uri("/c"))));
    assert!(poll!(&mut waiting).is_pending());
    assert_eq!(client.requests(), 4, "a request was sent while the place of its origin was taken");
    drop(held);
    waiting.await.unwrap();
}

#[tokio::test]
async fn whoever_listens_is_told_of_an_origin_that_wants_to_be_left_alone() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/busy", Reply::status(429).header("retry-after", "60"));
    let client = client(1);
    let mut rests = client.cooldowns();
    let origin: model::Origin = server.url().parse().unwrap();
    client.rest(&origin, Duration::ZERO);
    client.get(request(&server.uri("/busy"))).await.unwrap_err();
    let told = rests.try_recv().unwrap();
    assert_eq!((&told.origin, told.wait.as_secs_f64().ceil() as u64, told.status), (&origin, 60, 429));
    assert!(rests.try_recv().is_err());
}
