//! Requests to the hub: 202 to what is well-formed, before the subscriber is asked (WebSub, 5.1).

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use publish::{Admission, Requester};
use websub::{Mode, SubscriptionRequest};

use super::Front;
use super::front::NotLeft;
use crate::answers::{later, said, unavailable};
use crate::form;

/// The longest body: two URLs, a secret, and what they take as a form.
const MOST_BYTES: usize = 16 * 1024;

/// Answers a request to the hub. `admission` is what its sender was admitted by.
pub(crate) async fn answer(
    front: &Front,
    method: &Method,
    headers: &HeaderMap,
    admission: Admission,
    body: Body,
) -> Response {
    if *method != Method::POST {
        return status(front, method);
    }
    let form = match form::read(headers, body, MOST_BYTES).await {
        Ok(form) => form,
        Err(refusal) => return refusal,
    };
    let request = match SubscriptionRequest::parse(&form) {
        Ok(request) => request,
        Err(error) => return said(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let topic = front.channel().topic.as_str();
    if request.topic != topic {
        return said(StatusCode::NOT_FOUND, &format!("this hub has one topic, {topic}"));
    }
    let metrics = front.shared().metrics();
    let hub = front.hub();
    if request.mode == Mode::Subscribe
        && let Some(Err(full)) = hub.as_ref().map(|hub| hub.has_room(&request.callback))
    {
        metrics.no_room();
        return later(&full.to_string());
    }
    let room = front.room();
    let from = match front.requester(&request.callback).await {
        Ok(from) => from,
        Err(error) => {
            tracing::error!(%error, "it cannot be told now whether a request to a hub is of a subscriber");
            return unavailable();
        }
    };
    let verifications = match from {
        Requester::Stranger => room.verifications(),
        Requester::Subscriber => room.renewals(),
    };
    let Some(permit) = verifications.begin(&request.callback) else {
        metrics.no_room();
        return later("this hub asks many subscribers to confirm; try again in a minute");
    };
    match front {
        Front::Alone(hub) => {
            hub.verify(request, permit, admission);
            accepted()
        }
        Front::Fleet(front) => match front.leave(from, &request, admission).await {
            Ok(()) => accepted(),
            Err(full @ (NotLeft::Full | NotLeft::ManyHubs(_))) => {
                metrics.no_room();
                later(&full.to_string())
            }
            Err(error) => {
                tracing::error!(%error, "a request to a hub cannot be noted now");
                unavailable()
            }
        },
    }
}

/// The answer to a request that is verified soon.
fn accepted() -> Response {
    said(StatusCode::ACCEPTED, "the callback is asked to confirm")
}

/// What the hub is, for people and monitors.
fn status(front: &Front, method: &Method) -> Response {
    let topic = &front.channel().topic;
    let mut text =
        format!("This is the WebSub hub of {topic}. Subscribe with a POST (WebSub, section 5.1).\n");
    // Another process knows it.
    if let Some(hub) = front.hub() {
        text.push_str(&format!("subscribers {}\n", hub.subscribers()));
    }
    for (name, count) in front.shared().metrics().counts() {
        text.push_str(&format!("{name} {count}\n"));
    }
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    let body = if *method == Method::HEAD { Body::empty() } else { Body::from(text) };
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use control::Control;
    use testkit::callbacks::Callbacks;
    use testkit::servers::NatsServer;
    use url::Url;
    use websub::FORM;

    use super::*;
    use crate::hub::FleetFront;
    use crate::hub::testing::{Case, subscriber};

    #[tokio::test]
    async fn strangers_who_take_all_places_keep_no_subscriber_from_a_renewal() {
        let case = Case::new().await;
        let callbacks = Callbacks::start().unwrap();
        case.hub.take(subscriber(&callbacks.url("/known"), case.told));
        let stalled = |number: usize| format!("http://h{number}.test/").parse::<Url>().unwrap();
        let begin = |number| case.room.verifications().begin(&stalled(number));
        let all: Vec<_> = (0..1_000).map_while(begin).collect();
        assert!(all.len() < 1_000, "they are bounded");

        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(FORM))]);
        let front = Front::Alone(case.hub.clone());
        let ask = async |mode, path: &str| {
            let topic = front.channel().topic.to_string();
            let callback = callbacks.url(path).parse().unwrap();
            let request = SubscriptionRequest { mode, topic, callback, lease: None, secret: None };
            let body = Body::from(request.to_form());
            answer(&front, &Method::POST, &headers, Admission::default(), body).await.status()
        };
        assert_eq!(ask(Mode::Subscribe, "/new").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(Mode::Unsubscribe, "/new").await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(ask(Mode::Subscribe, "/known").await, StatusCode::ACCEPTED);
        assert_eq!(ask(Mode::Unsubscribe, "/known").await, StatusCode::ACCEPTED);
        drop(all);
        assert_eq!(ask(Mode::Subscribe, "/new").await, StatusCode::ACCEPTED);
        case.stop();
    }

    #[tokio::test]
    async fn strangers_who_take_all_places_of_a_fleets_hub_keep_no_subscriber_from_a_renewal() {
        let case = Case::new().await;
        let callbacks = Callbacks::start().unwrap();
        let publication = case.shared().publication();
        let known = subscriber(&callbacks.url("/known"), case.told);
        publication.put_subscriber(&known).await.unwrap();

        let nats = NatsServer::start().await.unwrap();
        let config = control::Config { servers: vec![nats.url().to_owned()], ..control::Config::default() };
        let hints = Control::connect(&config).await.unwrap().hub_hints().clone();
        let url = "http://mirror.example/hub".parse().unwrap();
        // Another process has the hub open.
        let fleet = FleetFront::new(case.shared().clone(), &url, case.room.clone(), hints);
        let front = Front::Fleet(fleet.clone());
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(FORM))]);
        let ask = async |callback: String| {
            let (topic, callback) = (front.channel().topic.to_string(), callback.parse().unwrap());
            let mode = Mode::Subscribe;
            let request = SubscriptionRequest { mode, topic, callback, lease: None, secret: None };
            let body = Body::from(request.to_form());
            answer(&front, &Method::POST, &headers, Admission::default(), body).await.status()
        };
        let waiting = async |from: Requester| publication.waiting_requests(Some(from), 1_000).await.unwrap();
        let mut strangers = 0;
        while ask(format!("http://h{strangers}.test/")).await == StatusCode::ACCEPTED {
            strangers += 1;
            assert!(strangers < 1_000, "they are bounded");
        }
        assert_eq!(waiting(Requester::Stranger).await.len(), strangers);
        assert_eq!(ask(callbacks.url("/known")).await, StatusCode::ACCEPTED);
        assert_eq!(waiting(Requester::Subscriber).await.len(), 1);

        // The process with the hub verifies it, while strangers have all turns.
        case.hub.take(known);
        let turns = case.room.verifying(Requester::Stranger);
        let all = turns.acquire_many(turns.available_permits() as u32).await.unwrap();
        let taken = async {
            while !waiting(Requester::Subscriber).await.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = case.hub.take_waiting(&fleet) => {}
            () = taken => {}
        }
        assert_eq!(callbacks.asked("/known").len(), 1);
        assert!(case.shared().metrics().counts().contains(&("verified", 1)));
        assert_eq!(waiting(Requester::Stranger).await.len(), strangers);
        drop(all);
        case.stop();
    }
}
