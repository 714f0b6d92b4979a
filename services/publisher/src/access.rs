//! Who may read: everybody, or those with a token.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context as _, bail, ensure};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serving::token_file::{digest, find_digest, follow, read};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

/// The tokens of readers, from a file that is read again when it changes. Clones share them.
#[derive(Debug, Clone)]
pub struct Tokens {
    path: PathBuf,
    digests: Arc<RwLock<Vec<[u8; 32]>>>,
}

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
}

impl Tokens {
    /// Reads a file: a YAML list of tokens, each with `name`, and `token` or its `sha256`.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid. No message repeats a token.
    pub fn of_file(path: &Path) -> anyhow::Result<Self> {
        let digests = parse(&read(path)?).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), digests: Arc::new(RwLock::new(digests)) })
    }

    /// Whether a request has one of the tokens.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> bool {
        let Some(token) = bearer(headers) else { return false };
        let digests = self.digests.read().unwrap_or_else(PoisonError::into_inner);
        find_digest(&digests, &Sha256::digest(token.as_bytes()), |digest| Some(*digest)).is_some()
    }

    /// Reads the file again when it changes, until `stop`.
    pub(crate) async fn follow(self, stop: CancellationToken) {
        follow(self.path.clone(), "tokens", stop, |text| {
            *self.digests.write().unwrap_or_else(PoisonError::into_inner) = parse(text)?;
            Ok(())
        })
        .await;
    }
}

/// The answer to a request without a token.
pub(crate) fn unauthorized() -> Response {
    let scheme = HeaderValue::from_static("Bearer realm=\"publication\"");
    let text = "Readers of this publication need a token: Authorization: Bearer …\n";
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, scheme)], text).into_response()
}

/// Shared caches must not answer those who have no token.
pub(crate) fn keep_private(headers: &mut HeaderMap) {
    let Some(told) = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()) else { return };
    if let Ok(value) = told.replace("public", "private").parse() {
        headers.insert(header::CACHE_CONTROL, value);
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn parse(text: &str) -> anyhow::Result<Vec<[u8; 32]>> {
    // The parser's message would quote the invalid text, which may be a token.
    let Ok(lines) = serde_saphyr::from_str::<Vec<Line>>(text) else {
        bail!("it is no list of tokens, each with name, and sha256 or token")
    };
    ensure!(!lines.is_empty(), "it has no token, so every request would be refused");
    let digests = lines.into_iter().map(|Line { name, token, sha256 }| {
        digest(&name, token, sha256)?.with_context(|| format!("{name} needs one of token and sha256"))
    });
    digests.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> anyhow::Result<Tokens> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Tokens::of_file(file.path())
    }

    #[test]
    fn a_token_admits_by_itself_or_by_its_digest_and_nothing_else_does() {
        let hex = data_encoding::HEXLOWER.encode(&Sha256::digest(b"another long token"));
        let text = format!("- {{name: a, token: correct horse battery}}\n- {{name: b, sha256: {hex}}}\n");
        let tokens = tokens(&text).unwrap();
        let admits = |value: &str| {
            tokens.admit(&HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]))
        };
        for good in ["Bearer correct horse battery", "bearer another long token"] {
            assert!(admits(good), "{good}");
        }
        for bad in ["Bearer correct horse batter", "Basic correct horse battery", "Bearer", "Bearer ", &hex] {
            assert!(!admits(bad), "{bad}");
        }
        assert!(!tokens.admit(&HeaderMap::new()));
    }

    #[test]
    fn files_without_good_tokens_are_refused_and_none_is_repeated() {
        for bad in ["[]", "hunter2-hunter2-hunter2", "- {name: a, token: hunter2}", "- {name: a}"] {
            let error = format!("{:#}", tokens(bad).unwrap_err());
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn what_needs_a_token_is_private_to_its_reader() {
        let mut headers =
            HeaderMap::from_iter([(header::CACHE_CONTROL, "public, max-age=60".parse().unwrap())]);
        keep_private(&mut headers);
        assert_eq!(headers[header::CACHE_CONTROL], "private, max-age=60");
    }
}
