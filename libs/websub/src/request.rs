//! A subscriber's request to a hub (WebSub, 5.1; CN-2, CN-3).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use form_urlencoded::Serializer;
use url::Url;

use secrets::Secret;

/// The requested action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Start or renew deliveries.
    Subscribe,
    /// End deliveries.
    Unsubscribe,
}

/// A text that is no mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is neither subscribe nor unsubscribe")]
pub struct UnknownMode;

/// A request to a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionRequest {
    /// The requested action.
    pub mode: Mode,
    /// The topic, as the Source writes it: it is compared letter by letter.
    pub topic: String,
    /// The URL for deliveries.
    pub callback: Url,
    /// The requested lease.
    pub lease: Option<Duration>,
    /// The secret that signs deliveries.
    pub secret: Option<Secret>,
}

impl SubscriptionRequest {
    /// The request's body, of the type [`FORM`](crate::FORM). It holds the secret, for the hub only: never
    /// log it.
    pub fn to_form(&self) -> String {
        let mut form = Serializer::new(String::new());
        form.append_pair("hub.mode", self.mode.as_str());
        form.append_pair("hub.topic", &self.topic);
        form.append_pair("hub.callback", self.callback.as_str());
        if let Some(lease) = self.lease {
            form.append_pair("hub.lease_seconds", &lease.as_secs().to_string());
        }
        if let Some(secret) = &self.secret {
            form.append_pair("hub.secret", secret.expose());
        }
        form.finish()
    }
}

impl Mode {
    /// Its name in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        [Self::Subscribe, Self::Unsubscribe].into_iter().find(|mode| mode.as_str() == text).ok_or(UnknownMode)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> SubscriptionRequest {
        SubscriptionRequest {
            mode: Mode::Subscribe,
            topic: "http://example.com/dataset1/change/?a=1&b=2".to_owned(),
            callback: "https://push.example.net/push/1/x%20y".parse().unwrap(),
            lease: Some(Duration::from_secs(3_600)),
            secret: Some(Secret::new("s&=")),
        }
    }

    #[test]
    fn a_request_is_the_form_that_the_specification_shows() {
        assert_eq!(
            request().to_form(),
            "hub.mode=subscribe&hub.topic=http%3A%2F%2Fexample.com%2Fdataset1%2Fchange%2F%3Fa%3D1%26b%3D2\
             &hub.callback=https%3A%2F%2Fpush.example.net%2Fpush%2F1%2Fx%2520y&hub.lease_seconds=3600\
             &hub.secret=s%26%3D"
        );
        let bare = SubscriptionRequest { mode: Mode::Unsubscribe, lease: None, secret: None, ..request() };
        assert!(bare.to_form().starts_with("hub.mode=unsubscribe&hub.topic="));
        assert!(!bare.to_form().contains("lease") && !bare.to_form().contains("secret"));
    }

    #[test]
    fn a_request_is_printed_without_its_secret() {
        assert!(!format!("{:?}", request()).contains("s&="));
    }
}
