//! The hub's side: a subscriber's request (WebSub, 5.1), its verification (5.3), and a denial (5.2).

use std::time::Duration;

use form_urlencoded::parse;
use secrets::Secret;
use url::Url;

use crate::{ASKED_LEASE, Mode, SubscriptionRequest};

/// The longest URL of a callback or topic, in bytes.
const LONGEST_URL: usize = 2_048;
/// A secret must be shorter than this, in bytes (WebSub, 5.1).
const SECRET_BYTES: usize = 200;

/// Why a form is no subscriber's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// There is no `hub.mode`, or another one.
    #[error("hub.mode is neither subscribe nor unsubscribe")]
    Mode,
    /// A required parameter is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A parameter occurs twice with different values.
    #[error("{0} is given twice, and differs")]
    Twice(&'static str),
    /// A parameter is too long.
    #[error("{0} is too long")]
    TooLong(&'static str),
    /// The callback cannot be called.
    #[error("hub.callback is no http or https URL without user, password and fragment")]
    Callback,
}

impl SubscriptionRequest {
    /// Parses the body of a request to a hub. Parameters that WebSub does not know are ignored (5.1.2), and so is a
    /// lease that is no number.
    ///
    /// # Errors
    /// [`RequestError`] says what is wrong with it.
    pub fn parse(form: &str) -> Result<Self, RequestError> {
        let find = |name: &'static str| {
            let mut found = parse(form.as_bytes()).filter(|(key, _)| key == name).map(|(_, value)| value);
            let first = found.next();
            if found.any(|value| Some(value) != first) {
                Err(RequestError::Twice(name))
            } else {
                Ok(first.map(|value| value.into_owned()))
            }
        };
        let need = |name| match find(name)?.ok_or(RequestError::Missing(name))? {
            text if text.len() > LONGEST_URL => Err(RequestError::TooLong(name)),
            text => Ok(text),
        };
        let mode = find("hub.mode")?.and_then(|mode| mode.parse().ok()).ok_or(RequestError::Mode)?;
        let callback = callback(&need("hub.callback")?)?;
        let lease = find("hub.lease_seconds")?.and_then(|seconds| seconds.trim().parse().ok());
        // An empty secret is none.
        let secret = find("hub.secret")?.filter(|secret| !secret.is_empty());
        if secret.as_ref().is_some_and(|secret| secret.len() >= SECRET_BYTES) {
            return Err(RequestError::TooLong("hub.secret"));
        }
        Ok(Self {
            mode,
            topic: need("hub.topic")?,
            callback,
            lease: lease.map(Duration::from_secs),
            secret: secret.map(Secret::new),
        })
    }
}

fn callback(text: &str) -> Result<Url, RequestError> {
    let url: Url = text.parse().map_err(|_| RequestError::Callback)?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none();
    if is_plain { Ok(url) } else { Err(RequestError::Callback) }
}

/// The lease that a hub grants: what was requested, or [`ASKED_LEASE`], between its limits. It is never endless.
pub fn grant(asked: Option<Duration>, least: Duration, longest: Duration) -> Duration {
    asked.unwrap_or(ASKED_LEASE).max(least).min(longest)
}

/// The URL at which a hub verifies a subscription: the answer "yes" is the challenge. A query of the callback stays.
pub fn verification(
    callback: &Url,
    mode: Mode,
    topic: &str,
    challenge: &str,
    lease: Option<Duration>,
) -> Url {
    let mut url = callback.clone();
    let mut query = url.query_pairs_mut();
    query.append_pair("hub.mode", mode.as_str());
    query.append_pair("hub.topic", topic);
    query.append_pair("hub.challenge", challenge);
    if let Some(lease) = lease {
        query.append_pair("hub.lease_seconds", &lease.as_secs().to_string());
    }
    drop(query);
    url
}

/// The URL at which a hub tells a subscriber that a subscription is denied, or has ended.
pub fn denial(callback: &Url, topic: &str, reason: &str) -> Url {
    let mut url = callback.clone();
    let mut query = url.query_pairs_mut();
    query.append_pair("hub.mode", "denied").append_pair("hub.topic", topic).append_pair("hub.reason", reason);
    drop(query);
    url
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Intent;

    const WHOLE: &str =
        "hub.mode=subscribe&hub.topic=http%3A%2F%2Fe.org%2Ft&hub.callback=http%3A%2F%2Fc.test%2Fx%3Fa%3D1";

    #[test]
    fn what_a_subscriber_writes_is_read() {
        let request = SubscriptionRequest {
            mode: Mode::Unsubscribe,
            topic: "http://example.com/t/?a=1&b=2".to_owned(),
            callback: "https://push.example.net/push/1/x%20y?a=b".parse().unwrap(),
            lease: Some(Duration::from_secs(3_600)),
            secret: Some(Secret::new("s&=")),
        };
        assert_eq!(SubscriptionRequest::parse(&request.to_form()), Ok(request));
        let bare =
            SubscriptionRequest::parse(&format!("{WHOLE}&hub.secret=&hub.lease_seconds=ever&x=1")).unwrap();
        assert_eq!((bare.mode, bare.lease, bare.secret), (Mode::Subscribe, None, None));
    }

    #[test]
    fn what_is_missing_doubled_too_long_or_no_callback_is_refused() {
        let long = "x".repeat(2_100);
        for (form, error) in [
            (String::new(), RequestError::Mode),
            (WHOLE.replace("subscribe", "publish"), RequestError::Mode),
            (WHOLE.replace("hub.topic", "topic"), RequestError::Missing("hub.topic")),
            (WHOLE.replace("hub.callback", "callback"), RequestError::Missing("hub.callback")),
            (format!("{WHOLE}&hub.topic=u"), RequestError::Twice("hub.topic")),
            (format!("{WHOLE}&hub.secret={}", "s".repeat(200)), RequestError::TooLong("hub.secret")),
            (WHOLE.replace("%2Ft&", &format!("%2F{long}&")), RequestError::TooLong("hub.topic")),
            (WHOLE.replace("c.test%2F", &format!("c.test%2F{long}")), RequestError::TooLong("hub.callback")),
            (WHOLE.replace("http%3A%2F%2Fc", "ftp%3A%2F%2Fc"), RequestError::Callback),
            (WHOLE.replace("c.test", "u:p@c.test"), RequestError::Callback),
            (WHOLE.replace("c.test%2Fx", "c.test%2Fx%23f"), RequestError::Callback),
            (WHOLE.replace("http%3A%2F%2Fc.test%2F", "%2F"), RequestError::Callback),
        ] {
            assert_eq!(SubscriptionRequest::parse(&form), Err(error), "{form}");
        }
    }

    #[test]
    fn a_verification_keeps_the_query_of_the_callback_and_is_what_subscribers_read() {
        let callback: Url = "http://c.test/x?a=%20b".parse().unwrap();
        let lease = Some(Duration::from_secs(300));
        let url = verification(&callback, Mode::Subscribe, "http://e.org/t?a&b", "c&d", lease);
        assert!(url.as_str().starts_with("http://c.test/x?a=%20b&hub.mode=subscribe&"), "{url}");
        let read = Intent::parse(url.query().unwrap()).unwrap();
        let (topic, challenge) = ("http://e.org/t?a&b".to_owned(), "c&d".to_owned());
        assert_eq!(
            read,
            Intent::Verify { mode: Mode::Subscribe, topic, challenge, lease_seconds: Some(300) }
        );
        let url = denial(&callback, "t", "it took nothing");
        let Intent::Denied { topic, reason } = Intent::parse(url.query().unwrap()).unwrap() else {
            panic!("{url}")
        };
        assert_eq!((topic.as_deref(), reason.as_deref()), (Some("t"), Some("it took nothing")));
    }

    #[test]
    fn leases_are_within_the_limits_of_the_hub() {
        let seconds = Duration::from_secs;
        let granted =
            |asked: Option<u64>| grant(asked.map(seconds), seconds(300), seconds(900_000)).as_secs();
        assert_eq!([granted(Some(0)), granted(Some(1_000)), granted(Some(u64::MAX))], [300, 1_000, 900_000]);
        assert_eq!(granted(None), ASKED_LEASE.as_secs());
        assert_eq!(grant(None, seconds(300), seconds(2)), seconds(2), "the longest one binds");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_form_is_read_without_panic(
            form in "(hub\\.(mode|topic|callback|secret|lease_seconds)=(subscribe|http://h|%[0-9a-f]{0,2}|.{0,4})&?){0,6}",
        ) {
            let _ = SubscriptionRequest::parse(&form);
        }
    }
}
