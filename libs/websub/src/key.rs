//! The fleet's push key. Each subscription's secret is derived from it, so that no secret is stored.

use std::fmt;

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrets::Secret;
use sha2::Sha256;

/// The shortest key, in bytes: as long as the digest that it is used with.
const LEAST_BYTES: usize = 32;
/// Bytes of a digest that make a callback unguessable.
const CALLBACK_BYTES: usize = 20;
/// Bytes of a digest that name a key.
const NAME_BYTES: usize = 8;

/// A key of the fleet. The secrets of subscriptions and the unguessable parts of their callbacks are derived
/// from it; its `Debug` hides it.
#[derive(Clone)]
pub struct PushKey {
    mac: Hmac<Sha256>,
    name: String,
}

/// The keys of a fleet: the first one is for new subscriptions, the others for those made with earlier keys.
#[derive(Debug, Clone)]
pub struct Keys(Vec<PushKey>);

/// The error of a key that is too short. It does not repeat the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the push key has {0} bytes, and {LEAST_BYTES} are needed: make one with `openssl rand -hex 32`, the same for all services of the fleet"
)]
pub struct WeakKey(usize);

impl PushKey {
    /// A key from this text, of at least 32 bytes.
    ///
    /// # Errors
    /// [`WeakKey`] when it is shorter.
    pub fn new(text: &str) -> Result<Self, WeakKey> {
        if text.len() < LEAST_BYTES {
            return Err(WeakKey(text.len()));
        }
        let mac = Hmac::new_from_slice(text.as_bytes()).expect("HMAC takes keys of any length");
        let mut key = Self { mac, name: String::new() };
        key.name = HEXLOWER.encode(&key.derive("name", "")[..NAME_BYTES]);
        Ok(key)
    }

    /// The name of the key. It reveals nothing about it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The secret of a subscription (WebSub, 5.1: shorter than 200 bytes).
    pub fn secret(&self, subscription: &str) -> Secret {
        Secret::new(HEXLOWER.encode(&self.derive("secret", subscription)))
    }

    /// The unguessable part of a subscription's callback URL: 32 letters and digits.
    pub fn callback(&self, subscription: &str) -> String {
        let digest = self.derive("callback", subscription);
        BASE32_NOPAD.encode(&digest[..CALLBACK_BYTES]).to_ascii_lowercase()
    }

    /// Whether `given` is that part, in constant time.
    pub fn is_callback(&self, subscription: &str, given: &str) -> bool {
        if given.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return false;
        }
        let Ok(given) = BASE32_NOPAD.decode(given.to_ascii_uppercase().as_bytes()) else { return false };
        given.len() == CALLBACK_BYTES
            && self.fed("callback", subscription).verify_truncated_left(&given).is_ok()
    }

    fn derive(&self, purpose: &str, subscription: &str) -> [u8; 32] {
        self.fed(purpose, subscription).finalize().into_bytes().into()
    }

    /// No purpose holds a line break, so that no two inputs are equal.
    fn fed(&self, purpose: &str, subscription: &str) -> Hmac<Sha256> {
        self.mac
            .clone()
            .chain_update("thresher push\n")
            .chain_update(purpose)
            .chain_update("\n")
            .chain_update(subscription)
    }
}

impl Keys {
    /// These keys; the first one is for new subscriptions.
    pub fn new(first: PushKey, earlier: impl IntoIterator<Item = PushKey>) -> Self {
        Self(std::iter::once(first).chain(earlier).collect())
    }

    /// The key for new subscriptions.
    pub fn current(&self) -> &PushKey {
        &self.0[0]
    }

    /// All of them, the one for new subscriptions first.
    pub fn all(&self) -> impl Iterator<Item = &PushKey> {
        self.0.iter()
    }

    /// The key of this name, if the fleet still has it.
    pub fn named(&self, name: &str) -> Option<&PushKey> {
        self.0.iter().find(|key| key.name == name)
    }
}

impl fmt::Debug for PushKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushKey({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(letter: char) -> PushKey {
        PushKey::new(&letter.to_string().repeat(LEAST_BYTES)).unwrap()
    }

    #[test]
    fn a_short_key_is_refused_without_being_repeated() {
        let error = PushKey::new("hunter2").unwrap_err().to_string();
        assert!(error.contains("7 bytes") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn the_same_subscription_has_the_same_secret_for_ever_and_no_two_have_the_same() {
        let key = key('a');
        let secret = key.secret("one");
        assert_eq!(secret, PushKey::new(&"a".repeat(LEAST_BYTES)).unwrap().secret("one"));
        assert_ne!(secret, key.secret("two"));
        assert_ne!(secret, self::key('b').secret("one"));
        assert!(secret.expose().len() < 200, "WebSub allows no longer ones");
        assert!(!key.secret("one").expose().contains(&key.callback("one")));
    }

    #[test]
    fn a_callback_is_known_by_every_letter_of_it() {
        let key = key('a');
        let callback = key.callback("one");
        assert_eq!(callback.len(), 32);
        assert!(key.is_callback("one", &callback));
        assert!(!key.is_callback("two", &callback));
        assert!(!self::key('b').is_callback("one", &callback));
        let flipped = |at: usize| -> String {
            let other = if callback.as_bytes()[at] == b'a' { "b" } else { "a" };
            format!("{}{other}{}", &callback[..at], &callback[at + 1..])
        };
        for at in 0..callback.len() {
            assert!(!key.is_callback("one", &flipped(at)), "letter {at}");
        }
        for given in ["", "a", &callback[..30], &callback.to_ascii_uppercase(), "ü"] {
            assert!(!key.is_callback("one", given), "{given}");
        }
    }

    #[test]
    fn a_key_that_is_no_longer_the_first_is_still_found_by_its_name() {
        let keys = Keys::new(key('b'), [key('a')]);
        assert_eq!(keys.current().name(), key('b').name());
        assert_eq!(keys.named(key('a').name()).unwrap().callback("x"), key('a').callback("x"));
        assert!(keys.named(key('c').name()).is_none());
    }

    #[test]
    fn nothing_that_is_printed_tells_a_secret() {
        let key = key('a');
        let printed = format!("{key:?} {:?} {:?}", Keys::new(key.clone(), []), key.secret("one"));
        assert!(!printed.contains("aaaa") && !printed.contains(key.secret("one").expose()), "{printed}");
    }
}
