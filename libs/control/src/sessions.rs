//! Sessions: an operator has shown a token to the console. It is not needed again for a while, whichever gateway
//! responds.

use std::time::Duration;

use data_encoding::HEXLOWER;
use model::{Message, Persisted};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::ControlError;
use crate::kept::Kept;
use crate::table::Table;
use crate::versioned::Versioned;

/// A session. A reader of this record cannot use it to sign in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The digest of the session's secret and the token, in hexadecimal. No other token has the same.
    pub mark: String,
}

/// The key of a session, derived from its secret. The secret cannot be derived from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionKey(String);

impl SessionKey {
    /// The key of the session with this secret. It does not contain the secret.
    pub fn of(secret: &str) -> Self {
        Self(HEXLOWER.encode(&Sha256::digest(secret.as_bytes())))
    }
}

/// The sessions that are not over.
pub type Sessions = Table<Session>;

impl Table<Session> {
    /// Starts a session with this lifetime (whole seconds).
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn begin(
        &self,
        key: &SessionKey,
        session: &Session,
        lasts: Duration,
    ) -> Result<(), ControlError> {
        self.write(key, session, None, Some(lasts)).await.map(drop)
    }

    /// A session, unless it is over.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(&self, key: &SessionKey) -> Result<Option<Versioned<Session>>, ControlError> {
        self.find(key).await
    }

    /// Ends a session. One that is over already is no error.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn end(&self, key: &SessionKey) -> Result<(), ControlError> {
        self.delete_at(key, None).await
    }
}

impl Message for Session {
    const KIND: &'static str = "session";
    const VERSION: u16 = Persisted::Sessions.version();
}

impl Kept for Session {
    type Id = SessionKey;

    fn key(key: &SessionKey) -> String {
        key.0.clone()
    }

    fn describe(_: &SessionKey) -> String {
        "a session".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_secret_has_a_name_of_its_own_and_does_not_stand_in_it() {
        let name = SessionKey::of("secret");
        assert_eq!(name, SessionKey::of("secret"));
        assert_ne!(name, SessionKey::of("secrets"));
        assert_eq!(name.0.len(), 64);
        assert!(!name.0.contains("secret"));
    }
}
