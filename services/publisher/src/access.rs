//! Tokens of readers, perhaps for some sets only.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use anyhow::{Context as _, bail, ensure};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use data_encoding::HEXLOWER;
use jiff::Timestamp;
use model::{Clock as _, SystemClock};
use serde::Deserialize;
use serving::token_file::{digest, find_digest, follow, read};
use sha2::{Digest as _, Sha256};
use store::SourceMarker;
use tokio_util::sync::CancellationToken;

/// The tokens of readers, from a file that is read again when it changes. Clones share them.
#[derive(Debug, Clone)]
pub struct Tokens {
    path: PathBuf,
    state: Arc<RwLock<State>>,
}

/// The tokens that are known now.
#[derive(Debug)]
struct State {
    known: Vec<Known>,
    /// When they became others than before.
    since: Timestamp,
}

/// A token that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Known {
    digest: [u8; 32],
    /// A word for the token, which subscriptions have. It does not give the token away.
    mark: String,
    /// The sets that it opens; none if it opens all.
    sets: Option<Vec<String>>,
}

/// Whether a request may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It may.
    Granted,
    /// It has no token that is known.
    Unknown,
    /// Its token opens other sets.
    OtherSet,
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
    #[serde(default)]
    sets: Option<Vec<String>>,
}

impl Tokens {
    /// Reads a file: a YAML list of tokens, each with `name`, and `token` or its `sha256`, and perhaps
    /// `sets`: the IDs or URLs of the Sources whose publications it opens.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid. No message repeats a token.
    pub fn of_file(path: &Path) -> anyhow::Result<Self> {
        let known = parse(&read(path, "tokens")?).with_context(|| path.display().to_string())?;
        Ok(Self::new(path.to_owned(), known))
    }

    /// No token at all: every request is refused.
    pub fn none() -> Self {
        Self::new(PathBuf::new(), Vec::new())
    }

    fn new(path: PathBuf, known: Vec<Known>) -> Self {
        let since = SystemClock.now();
        Self { path, state: Arc::new(RwLock::new(State { known, since })) }
    }

    /// Whether a request has a token for a set. Each token opens what is above all sets.
    pub(crate) fn access(&self, headers: &HeaderMap, set: Option<&SourceMarker>) -> Access {
        let Some(found) = find(&self.read().known, headers) else { return Access::Unknown };
        if set.is_none_or(|set| found.opens(set)) { Access::Granted } else { Access::OtherSet }
    }

    /// A word for the token of a request. None without one that is known.
    pub(crate) fn mark(&self, headers: &HeaderMap) -> Option<String> {
        find(&self.read().known, headers).map(|found| found.mark)
    }

    /// Whether the token of this word is still known, and opens a set.
    pub(crate) fn knows(&self, mark: &str, set: &SourceMarker) -> bool {
        self.read().known.iter().any(|known| known.mark == mark && known.opens(set))
    }

    /// When the tokens became others than before: readers may see something else since then.
    pub(crate) fn since(&self) -> Timestamp {
        self.read().since
    }

    /// Takes what the file has now.
    pub(crate) fn take(&self, text: &str) -> anyhow::Result<()> {
        let known = parse(text)?;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        // The first content comes twice.
        if state.known != known {
            *state = State { known, since: SystemClock.now() };
        }
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the file again when it changes, until `stop`.
    pub(crate) async fn follow(self, stop: CancellationToken) {
        if self.path.as_os_str().is_empty() {
            return;
        }
        follow(self.path.clone(), "tokens", stop, |text| self.take(text)).await;
    }
}

impl Known {
    fn new(digest: [u8; 32], sets: Option<Vec<String>>) -> Self {
        let mark = HEXLOWER.encode(&Sha256::digest(digest)[..8]);
        Self { digest, mark, sets }
    }

    fn opens(&self, set: &SourceMarker) -> bool {
        let is_it = |name: &String| name == set.source.as_str() || *name == set.url;
        self.sets.as_ref().is_none_or(|sets| sets.iter().any(is_it))
    }
}

/// The token of a request, if it is known.
fn find(known: &[Known], headers: &HeaderMap) -> Option<Known> {
    let digest = Sha256::digest(bearer(headers)?.as_bytes());
    find_digest(known, &digest, |known| Some(known.digest))
}

/// The answer to a request without a token.
fn unauthorized() -> Response {
    let scheme = HeaderValue::from_static("Bearer realm=\"publication\"");
    let text = "Readers of this publication need a token: Authorization: Bearer …\n";
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, scheme)], text).into_response()
}

/// The answer to a request whose token opens other sets.
fn forbidden() -> Response {
    (StatusCode::FORBIDDEN, "This token is for other sets of this publication.\n").into_response()
}

/// The answer where a request may not be answered.
pub(crate) fn refusal(access: Access) -> Option<Response> {
    match access {
        Access::Granted => None,
        Access::Unknown => Some(unauthorized()),
        Access::OtherSet => Some(forbidden()),
    }
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

fn parse(text: &str) -> anyhow::Result<Vec<Known>> {
    // The parser's message would quote the invalid text, which may be a token.
    let Ok(lines) = serde_saphyr::from_str::<Vec<Line>>(text) else {
        bail!("it is no list of tokens, each with name, sha256 or token, and perhaps sets")
    };
    ensure!(!lines.is_empty(), "it has no token, so every request would be refused");
    let known = lines.into_iter().map(|Line { name, token, sha256, sets }| {
        let digest = digest(&name, token, sha256)?;
        let digest = digest.with_context(|| format!("{name} needs one of token and sha256"))?;
        Ok(Known::new(digest, sets))
    });
    known.collect()
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
        let hex = HEXLOWER.encode(&Sha256::digest(b"another long token"));
        let text = format!("- {{name: a, token: correct horse battery}}\n- {{name: b, sha256: {hex}}}\n");
        let tokens = tokens(&text).unwrap();
        let admits = |value: &str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]);
            tokens.access(&headers, None) == Access::Granted
        };
        for good in ["Bearer correct horse battery", "bearer another long token"] {
            assert!(admits(good), "{good}");
        }
        for bad in ["Bearer correct horse batter", "Basic correct horse battery", "Bearer", "Bearer ", &hex] {
            assert!(!admits(bad), "{bad}");
        }
        assert_eq!(tokens.access(&HeaderMap::new(), None), Access::Unknown);
    }

    #[test]
    fn a_token_for_some_sets_opens_those_and_what_is_above_them() {
        let text = "- {name: a, token: correct horse battery, sets: [one, 'http://two.test/']}";
        let tokens = tokens(text).unwrap();
        let headers =
            HeaderMap::from_iter([(header::AUTHORIZATION, "Bearer correct horse battery".parse().unwrap())]);
        let set = |id: &str, url: &str| SourceMarker::new(id.parse().unwrap(), url);
        for (set, expected) in [
            (set("one", "http://one.test/"), Access::Granted),
            (set("two", "http://two.test/"), Access::Granted),
            (set("three", "http://three.test/"), Access::OtherSet),
        ] {
            assert_eq!(tokens.access(&headers, Some(&set)), expected, "{set:?}");
        }
        assert_eq!(tokens.access(&headers, None), Access::Granted);
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
