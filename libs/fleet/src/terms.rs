//! The terms of a Source, in the form that its requests need.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Origin, Robots, Terms};
use secrets::Secret;
use secrets::{SecretRef, Vars};
use serde::Deserialize;
use web::{Credential, RobotsPolicy};

/// A credential: exactly one of `bearer`, `basic` and `header`, for one origin. The configuration only refers to its
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialConfig {
    /// The only origin that it is sent to: `https://host` or `https://host:port`.
    pub origin: Origin,
    /// Reference to a bearer token.
    pub bearer: Option<SecretRef>,
    /// Basic authentication.
    pub basic: Option<BasicConfig>,
    /// A header with another name.
    pub header: Option<HeaderConfig>,
}

/// Basic authentication.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BasicConfig {
    /// The name of the user.
    pub user: String,
    /// Reference to the password.
    pub password: SecretRef,
}

/// A header.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderConfig {
    /// Its name, such as `X-Api-Key`.
    pub name: String,
    /// Reference to its value.
    pub value: SecretRef,
}

/// The credentials that Sources can name. Cheap to clone; empty by default.
#[derive(Debug, Clone, Default)]
pub struct Credentials(Arc<BTreeMap<String, Credential>>);

/// A Source names a credential that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no credential {0:?} in `http.credentials` of this service: add it there, or name another with the Source"
)]
pub struct UnknownCredential(pub String);

impl Credentials {
    /// Reads the secrets of all credentials.
    ///
    /// # Errors
    /// When a secret is missing or invalid. The message has its name and never the secret.
    pub fn read(config: &BTreeMap<String, CredentialConfig>, vars: &Vars) -> anyhow::Result<Self> {
        let mut read = BTreeMap::new();
        for (name, credential) in config {
            let made = credential.read(vars);
            let made = made.map_err(|why| anyhow::anyhow!("`http.credentials.{name}`: {why}"))?;
            read.insert(name.clone(), made);
        }
        Ok(Self(Arc::new(read)))
    }

    /// The credentials with these names.
    ///
    /// # Errors
    /// [`UnknownCredential`].
    pub fn named(&self, names: &[String]) -> Result<Vec<Credential>, UnknownCredential> {
        let find = |name: &String| self.0.get(name).cloned().ok_or_else(|| UnknownCredential(name.clone()));
        names.iter().map(find).collect()
    }

    /// The client's terms for requests of a Source with `terms`.
    ///
    /// # Errors
    /// [`UnknownCredential`].
    pub fn terms(&self, terms: &Terms) -> Result<web::Terms, UnknownCredential> {
        Ok(web::Terms {
            contact: terms.contact.clone(),
            robots: terms.robots.map(|robots| match robots {
                Robots::Ignore => RobotsPolicy::ignore(),
                Robots::LinksOnly => RobotsPolicy::links_only(),
                Robots::Obey => RobotsPolicy::obey(),
            }),
            requests_per_second: terms.requests_per_second,
            credentials: self.named(terms.credential.as_slice())?,
            places: None,
            allow_networks: terms.allow_networks.clone(),
            entry: terms.entry.clone(),
            per_origin: terms.per_origin.map(|most| usize::from(most.get())),
        })
    }
}

impl CredentialConfig {
    /// Reads its secret.
    ///
    /// # Errors
    /// What is wrong with it. The message has the name of the secret and never the secret.
    pub fn read(&self, vars: &Vars) -> Result<Credential, String> {
        let secret = |place: &SecretRef| {
            place.read(vars).map(|secret| Secret::new(secret.expose())).map_err(|error| error.to_string())
        };
        let origin = self.origin.clone();
        let made = match (&self.bearer, &self.basic, &self.header) {
            (Some(token), None, None) => Credential::bearer(origin, &secret(token)?),
            (None, Some(basic), None) => Credential::basic(origin, &basic.user, &secret(&basic.password)?),
            (None, None, Some(header)) => Credential::header(origin, &header.name, &secret(&header.value)?),
            _ => return Err("give exactly one of bearer, basic and header with an origin".to_owned()),
        };
        made.map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Credentials, String> {
        let config: BTreeMap<String, CredentialConfig> =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        let vars = Vars::from([("TOKEN", "sesame")]);
        Credentials::read(&config, &vars).map_err(|error| error.to_string())
    }

    #[test]
    fn a_source_has_the_credential_that_it_names_and_no_other() {
        let all = read(
            r#"{"one": {"origin": "https://a.example", "bearer": {"env": "TOKEN"}},
                "two": {"origin": "https://b.example", "basic": {"user": "me", "password": {"env": "TOKEN"}}}}"#,
        )
        .unwrap();
        assert!(!format!("{all:?}").contains("sesame"));
        let named = |name: Option<&str>| {
            all.terms(&Terms { credential: name.map(str::to_owned), ..Terms::default() })
        };
        let origins = |terms: web::Terms| -> Vec<String> {
            terms.credentials.iter().map(|credential| credential.origin().to_string()).collect()
        };
        assert_eq!(origins(named(Some("one")).unwrap()), ["https://a.example:443"]);
        assert!(origins(named(None).unwrap()).is_empty());
        let unknown = named(Some("three")).unwrap_err();
        assert!(
            unknown.to_string().contains("\"three\"") && unknown.to_string().contains("http.credentials")
        );
    }

    #[test]
    fn what_makes_no_credential_is_refused_with_its_name_and_without_its_secret() {
        for (json, why) in [
            (r#"{"one": {"origin": "https://a.example"}}"#, "exactly one of"),
            (r#"{"one": {"origin": "https://a.example", "bearer": {"env": "NONE"}}}"#, "NONE"),
            (
                r#"{"one": {"origin": "https://a.example", "header": {"name": "Host", "value": {"env": "TOKEN"}}}}"#,
                "Host",
            ),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains("http.credentials.one") && error.contains(why), "{error}");
            assert!(!error.contains("sesame"), "{error}");
        }
        let error = read(r#"{"one": {"origin": "https://a.example", "bearer": "sesame"}}"#).unwrap_err();
        assert!(!error.contains("sesame"), "{error}");
    }
}
