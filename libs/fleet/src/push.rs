//! Subscriptions to notifications of Sources: the public URL for hubs, and the push keys.

use anyhow::{Context as _, bail};
use secrets::{SecretRef, Vars};
use serde::Deserialize;
use url::Url;
use websub::{Keys, PushKey};

/// Field `push` of the gateway and the schedulers: the same in all of them. Without `public_url` the fleet subscribes
/// to nothing.
///
/// ```yaml
/// push:
///   public_url: https://push.example.org/
///   key: {file: /run/secrets/push-key}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PushConfig {
    /// The public URL under which hubs reach the gateway. The proxy before the gateway forwards all paths below `push/`
    /// to it.
    pub public_url: Option<Url>,
    /// Reference to the push key: at least 32 bytes of text that cannot be guessed (`openssl rand -hex 32`).
    pub key: Option<SecretRef>,
    /// Earlier keys. Deliveries with them are still accepted while the key is replaced.
    pub previous_keys: Vec<SecretRef>,
}

/// The public URL for hubs, and the keys of their subscriptions.
#[derive(Debug, Clone)]
pub struct Push {
    base: Url,
    keys: Keys,
}

impl PushConfig {
    /// Reads the keys. None if the fleet subscribes to nothing.
    ///
    /// # Errors
    /// When only one of both is set, a key is missing or too short, or no hub could reach the URL.
    pub fn open(&self, vars: &Vars) -> anyhow::Result<Option<Push>> {
        let (base, key) = match (&self.public_url, &self.key) {
            (None, None) if self.previous_keys.is_empty() => return Ok(None),
            (Some(base), Some(key)) => (base.clone(), key),
            (None, _) => bail!(
                "push.key is set and push.public_url is not: name the address at which hubs find the gateway"
            ),
            (Some(_), None) => {
                bail!(
                    "push.public_url is set and push.key is not: name a secret, made with `openssl rand -hex 32`"
                )
            }
        };
        if !matches!(base.scheme(), "http" | "https") || base.query().is_some() || base.fragment().is_some() {
            bail!("push.public_url is {base}: it is to be an http or https URL without query");
        }
        let base = if base.path().ends_with('/') {
            base
        } else {
            let path = format!("{}/", base.path());
            let mut base = base;
            base.set_path(&path);
            base
        };
        let read = |key: &SecretRef| -> anyhow::Result<PushKey> {
            PushKey::new(key.read(vars)?.expose()).with_context(|| format!("push key of {key}"))
        };
        let earlier = self.previous_keys.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Push { base, keys: Keys::new(read(key)?, earlier) }))
    }
}

impl Push {
    /// The push keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The callback URL of a subscription with this key. It cannot be guessed. Only the hub may know it, so it must not
    /// be logged.
    pub fn callback(&self, key: &PushKey, subscription: &str) -> Url {
        let path = format!("push/{subscription}/{}", key.callback(subscription));
        // Both parts consist of letters and digits.
        self.base.join(&path).unwrap_or_else(|_| self.base.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(yaml: &str) -> anyhow::Result<Option<Push>> {
        let vars = Vars::default()
            .with("KEY", &"k".repeat(32))
            .with("OLD", &"o".repeat(32))
            .with("SHORT", "hunter2");
        serde_json::from_str::<PushConfig>(yaml).unwrap().open(&vars)
    }

    #[test]
    fn without_an_address_nothing_is_subscribed_to() {
        assert!(open("{}").unwrap().is_none());
    }

    #[test]
    fn callbacks_lie_below_the_address() {
        for base in ["https://push.example.org/hooks", "https://push.example.org/hooks/"] {
            let push = open(&format!(
                r#"{{"public_url": "{base}", "key": {{"env": "KEY"}}, "previous_keys": [{{"env": "OLD"}}]}}"#
            ));
            let push = push.unwrap().unwrap();
            let callback = push.callback(push.keys().current(), "0123");
            let part = push.keys().current().callback("0123");
            assert_eq!(callback.as_str(), format!("https://push.example.org/hooks/push/0123/{part}"));
        }
    }

    #[test]
    fn what_cannot_work_is_refused_and_no_key_is_repeated() {
        for (yaml, said) in [
            (r#"{"key": {"env": "KEY"}}"#, "push.public_url"),
            (r#"{"previous_keys": [{"env": "KEY"}]}"#, "push.public_url"),
            (r#"{"public_url": "https://a/"}"#, "push.key"),
            (r#"{"public_url": "ftp://a/", "key": {"env": "KEY"}}"#, "http or https"),
            (r#"{"public_url": "https://a/?b", "key": {"env": "KEY"}}"#, "without query"),
            (r#"{"public_url": "https://a/", "key": {"env": "SHORT"}}"#, "SHORT"),
            (r#"{"public_url": "https://a/", "key": {"env": "NONE"}}"#, "NONE"),
        ] {
            let error = format!("{:#}", open(yaml).unwrap_err());
            assert!(error.contains(said) && !error.contains("hunter2"), "{yaml}: {error}");
        }
    }
}
