//! Requests of Sources with terms of their own, through one client.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use model::Origin;
use secrets::Secret;
use testkit::scripted::{Reply, ScriptedServer};
use tokio::time::Instant;
use web::{
    AddressPolicy, Client, Credential, ErrorKind, PermitProvider, RobotsPolicy, SharedPermit, Terms,
    WebConfig,
};

use crate::support::{config, request};

/// Counts the permits in use, and all that were ever given.
#[derive(Debug, Default)]
struct Counted {
    taken: Arc<AtomicUsize>,
    ever: AtomicUsize,
}

struct Taken(Arc<AtomicUsize>);

impl PermitProvider for Counted {
    fn acquire_permit<'a>(&'a self, _: &'a Origin) -> BoxFuture<'a, SharedPermit> {
        self.ever.fetch_add(1, Ordering::SeqCst);
        self.taken.fetch_add(1, Ordering::SeqCst);
        let taken: SharedPermit = Box::new(Taken(Arc::clone(&self.taken)));
        async { taken }.boxed()
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn contact_and_credential_of_one_source_go_with_its_requests_only() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::ok("abc"));
    let all = Client::new(WebConfig { contact: Some("mailto:all@example.org".into()), ..config() }).unwrap();
    let key = Credential::bearer(server.url().parse().unwrap(), &Secret::new("sesame")).unwrap();
    let contact = Some("mailto:one@example.org".to_owned());
    let one = all.on(Terms { contact, credentials: vec![key], ..Terms::default() }).unwrap();
    one.get(request(&server.uri("/a"))).await.unwrap();
    all.get(request(&server.uri("/a"))).await.unwrap();
    let seen = server.requests();
    assert!(seen[0].header("user-agent").unwrap().ends_with("(+mailto:one@example.org)"));
    assert!(seen[1].header("user-agent").unwrap().ends_with("(+mailto:all@example.org)"));
    let sent: Vec<_> = seen.iter().map(|seen| seen.header("authorization")).collect();
    assert_eq!(sent, [Some("Bearer sesame"), None]);
    assert_eq!((all.requests(), one.requests()), (2, 2), "counted together");
}

#[tokio::test]
async fn the_slower_of_two_rates_holds_and_robots_txt_is_what_the_source_makes_of_it() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::ok("abc"));
    server.always("/robots.txt", Reply::ok("User-agent: *\nDisallow: /a"));
    let client = Client::new(WebConfig { requests_per_second: NonZeroU32::new(20), ..config() }).unwrap();
    for (own, least) in [(5, 200), (1000, 50)] {
        let slow = Terms { requests_per_second: NonZeroU32::new(own), ..Terms::default() };
        let slow = client.on(slow).unwrap();
        let start = Instant::now();
        for _ in 0..3 {
            slow.get(request(&server.uri("/a"))).await.unwrap();
        }
        assert!(start.elapsed().as_millis() >= 2 * least, "{own} a second");
    }
    let strict = client.on(Terms { robots: Some(RobotsPolicy::obey()), ..Terms::default() }).unwrap();
    let refused = strict.get(request(&server.uri("/a"))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Disallowed);
    client.get(request(&server.uri("/a"))).await.unwrap();
}

#[tokio::test]
async fn a_place_is_held_until_the_body_has_ended_and_each_request_has_its_own() {
    let server = ScriptedServer::start().await.unwrap();
    server.push("/a", Reply::status(302).header("location", "/b"));
    server.push("/b", Reply::ok("abc"));
    let places = Arc::new(Counted::default());
    let terms = Terms { places: Some(Arc::clone(&places) as _), ..Terms::default() };
    let client = Client::new(config()).unwrap().on(terms).unwrap();
    let mut response = client.get(request(&server.uri("/a"))).await.unwrap();
    assert_eq!((places.taken.load(Ordering::SeqCst), places.ever.load(Ordering::SeqCst)), (1, 2));
    while response.chunk().await.unwrap().is_some() {}
    assert_eq!(places.taken.load(Ordering::SeqCst), 0, "the body has ended");
}

#[tokio::test]
async fn terms_that_fit_no_header_are_refused() {
    let client = Client::new(config()).unwrap();
    let refused = client.on(Terms { contact: Some("a\nb".into()), ..Terms::default() }).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Builder);
}

#[tokio::test]
async fn networks_that_one_source_may_reach_are_reached_for_that_source_alone() {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::ok("abc"));
    server.always("/robots.txt", Reply::status(404));
    let addresses = AddressPolicy::public_only();
    let all = Client::new(WebConfig { addresses, robots: RobotsPolicy::obey(), ..config() }).unwrap();
    let networks = |text: &str| Terms { allow_networks: vec![text.parse().unwrap()], ..Terms::default() };
    let one = all.on(networks("127.0.0.0/8")).unwrap();
    let other = all.on(networks("10.0.0.0/8")).unwrap();
    let by_name = server.uri("/a").replace("127.0.0.1", "localhost");
    for _ in 0..2 {
        for uri in [server.uri("/a"), by_name.clone()] {
            // The pooled connection of the one that is allowed is not used by the others.
            one.get(request(&uri)).await.unwrap().chunk().await.unwrap();
            for refused in [&all, &other] {
                assert_eq!(refused.get(request(&uri)).await.unwrap_err().kind(), ErrorKind::RefusedAddress);
            }
        }
    }
    assert_eq!(server.requests_at("/a").len(), 4);
}
