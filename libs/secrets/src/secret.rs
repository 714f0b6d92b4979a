//! Secrets: read from their places, and kept out of logs.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use crate::vars::Vars;

/// A secret. Its `Debug` hides it, and it has no other output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// A secret cannot be read from its place.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot take the secret from {place}: {why}; put it there, or name another place in the configuration"
)]
pub struct SecretError {
    /// The place.
    pub place: String,
    /// The reason.
    pub why: String,
}

/// The place of a secret. The configuration has the place and never the secret itself: `{env: NAME}` or
/// `{file: /run/secrets/name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// An environment variable.
    Env(String),
    /// A file; a line break at its end is left out.
    File(PathBuf),
}

impl Secret {
    /// Wraps `secret`.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself, for its recipient only: never log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

impl SecretRef {
    /// Reads the secret.
    ///
    /// # Errors
    /// [`SecretError`] when it is missing, empty, or not text.
    pub fn read(&self, vars: &Vars) -> Result<Secret, SecretError> {
        let missing = |why: String| SecretError { place: self.to_string(), why };
        let text = match self {
            Self::Env(name) => {
                vars.get(name).map(str::to_owned).ok_or_else(|| missing("it is not set".to_owned()))?
            }
            Self::File(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| missing(error.to_string()))?;
                text.trim_end_matches(['\r', '\n']).to_owned()
            }
        };
        if text.is_empty() { Err(missing("it is empty".to_owned())) } else { Ok(Secret(text)) }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RefVisitor)
    }
}

/// Implemented by hand, so that no message repeats a secret that was written here by mistake.
struct RefVisitor;

const PLACES: &str = "where the secret lies, {env: NAME} or {file: PATH}, and not the secret itself";

impl<'de> Visitor<'de> for RefVisitor {
    type Value = SecretRef;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PLACES)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SecretRef, A::Error> {
        let refuse = || A::Error::custom(format!("write {PLACES}"));
        let (key, place) = map.next_entry::<String, String>().ok().flatten().ok_or_else(refuse)?;
        let found = match key.as_str() {
            "env" => SecretRef::Env(place),
            "file" => SecretRef::File(place.into()),
            _ => return Err(refuse()),
        };
        // A second key would mean two places.
        if map.next_key::<String>().ok().flatten().is_some() { Err(refuse()) } else { Ok(found) }
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<SecretRef, E> {
        Err(E::custom(format!("write {PLACES}")))
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<SecretRef, E> {
        self.visit_str("")
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<SecretRef, E> {
        self.visit_str("")
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<SecretRef, E> {
        self.visit_str("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_hidden_however_it_is_printed() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?} {:#?}", Some(&secret)).matches("hunter2").count(), 0);
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn secret_is_read_from_variable_or_file_without_its_line_break() {
        let vars = Vars::from([("TOKEN", "hunter2")]);
        assert_eq!(SecretRef::Env("TOKEN".to_owned()).read(&vars).unwrap(), Secret::new("hunter2"));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter2\r\n").unwrap();
        assert_eq!(SecretRef::File(file.path().into()).read(&vars).unwrap(), Secret::new("hunter2"));
    }

    #[test]
    fn missing_or_empty_secret_is_an_error_that_names_the_place() {
        let vars = Vars::from([("EMPTY", "")]);
        for (place, why) in [("EMPTY", "it is empty"), ("NONE", "it is not set")] {
            let error = SecretRef::Env(place.to_owned()).read(&vars).unwrap_err().to_string();
            assert!(error.contains(place) && error.contains(why), "{error}");
        }
        assert!(SecretRef::File("/nowhere/at/all".into()).read(&vars).is_err());
    }

    #[test]
    fn secret_in_clear_is_refused_and_not_repeated() {
        for text in ["\"hunter2\"", "42", "-42", "4.2", r#"{"hunter2": "x"}"#, r#"{"env": {"hunter2": 1}}"#] {
            let error = serde_json::from_str::<SecretRef>(text).unwrap_err().to_string();
            assert!(error.contains("{env: NAME}"), "{text}: {error}");
            assert!(!error.contains("hunter2") && !error.contains("42") && !error.contains("4.2"), "{error}");
        }
        assert!(serde_json::from_str::<SecretRef>(r#"{"env": "A", "file": "b"}"#).is_err());
    }
}
