//! Token files, which are reread when they change.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use control::Selector;
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

use super::{Caller, Entry, Role};

/// The interval of checks for a changed file. Its content is compared, because a mounted secret is replaced by setting
/// a symbolic link anew.
pub(super) const REREAD_EVERY: Duration = Duration::from_secs(2);
/// The shortest token that cannot be guessed.
const LEAST_CHARACTERS: usize = 16;
/// The largest file: far more tokens than a fleet has operators.
const LARGEST_FILE: u64 = 1024 * 1024;

/// A line of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    role: Role,
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    sha256: Option<String>,
    /// The labels to which the token is limited.
    #[serde(default, rename = "match")]
    selector: Option<String>,
}

/// Rereads a file when it changes, until `stop`, and applies its content. An unreadable or invalid file changes
/// nothing: existing tokens stay valid, and the log says so.
pub(crate) async fn follow(
    path: PathBuf,
    what: &str,
    stop: CancellationToken,
    take: impl Fn(&str) -> anyhow::Result<()>,
) {
    let mut last = read(&path).unwrap_or_default();
    let mut complained = String::new();
    let mut complain = |error: Option<anyhow::Error>| {
        let said = error.map(|error| format!("{error:#}")).unwrap_or_default();
        if !said.is_empty() && said != complained {
            tracing::error!(file = %path.display(), error = said, "the {what} cannot be read again: those read before still hold");
        }
        complained = said;
    };
    loop {
        tokio::select! {
            () = tokio::time::sleep(REREAD_EVERY) => {}
            () = stop.cancelled() => return,
        }
        let place = path.clone();
        let Ok(text) = tokio::task::spawn_blocking(move || read(&place)).await else { return };
        match text.map(|text| (text != last).then_some(text)) {
            Ok(None) => complain(None),
            Ok(Some(text)) => match take(&text) {
                Ok(()) => {
                    tracing::info!(file = %path.display(), "the {what} were read again");
                    complain(None);
                    last = text;
                }
                Err(error) => complain(Some(error)),
            },
            Err(error) => complain(Some(error)),
        }
    }
}

/// The entry whose digest is this one. Every entry is compared, each in constant time, so that the timing reveals
/// nothing.
pub(crate) fn find_digest<T: Clone>(
    entries: &[T],
    digest: &[u8],
    digest_of: impl Fn(&T) -> Option<[u8; 32]>,
) -> Option<T> {
    let mut found = None;
    for entry in entries {
        if digest_of(entry).is_some_and(|known| bool::from(known.ct_eq(digest))) {
            found = Some(entry.clone());
        }
    }
    found
}

/// Reads a file of secrets.
///
/// # Errors
/// When the file cannot be read, or is larger than any such file.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    let place = || format!("cannot read the tokens in {}", path.display());
    let length = std::fs::metadata(path).with_context(place)?.len();
    ensure!(
        length <= LARGEST_FILE,
        "{} has {length} bytes; a file of tokens has at most {LARGEST_FILE}",
        path.display()
    );
    std::fs::read_to_string(path).with_context(place)
}

/// Parses a file. A token that was known before keeps its count of requests.
pub(super) fn parse(text: &str, rate: NonZeroU32, before: &[Caller]) -> anyhow::Result<Vec<Caller>> {
    // The parser's message would quote the invalid text, which may be a token.
    let Ok(lines) = serde_saphyr::from_str::<Vec<Line>>(text) else {
        bail!(
            "it is no list of tokens, each with name, role (read, operate, admin), and sha256 or token; and match, if it is limited to labels"
        )
    };
    ensure!(!lines.is_empty(), "it has no token, so every request would be refused");
    let mut callers: Vec<Caller> = Vec::new();
    for Line { name, role, token, sha256, selector } in lines {
        ensure!(!name.is_empty() && name.len() <= 100, "a name of a token has 1 to 100 bytes");
        ensure!(callers.iter().all(|known| known.name() != name), "two tokens are called {name}");
        let sha256 =
            digest(&name, token, sha256)?.with_context(|| format!("{name} needs one of token and sha256"))?;
        ensure!(callers.iter().all(|known| known.0.sha256 != sha256), "{name} is the same token as another");
        let selector = selector.map(|text| text.parse::<Selector>()).transpose();
        let selector = selector.with_context(|| format!("`match` of {name} cannot be read"))?;
        let is_same = |known: &&Caller| {
            let Entry { sha256: digest, selector: limit, .. } = &*known.0;
            (digest, limit, known.role(), known.name()) == (&sha256, &selector, role, name.as_str())
        };
        let kept = before.iter().find(is_same).cloned();
        callers.push(kept.unwrap_or_else(|| Caller::new(name, role, selector, sha256, rate)));
    }
    Ok(callers)
}

/// The digest of a token that the file has in clear or as its digest. None where the entry has neither.
///
/// # Errors
/// When the token could be guessed, the digest is malformed, or the entry has both. No message repeats it.
pub(crate) fn digest(
    name: &str,
    token: Option<String>,
    sha256: Option<String>,
) -> anyhow::Result<Option<[u8; 32]>> {
    match (token, sha256) {
        (None, None) => Ok(None),
        (Some(token), None) => {
            let is_long = token.chars().count() >= LEAST_CHARACTERS;
            ensure!(
                is_long,
                "the token {name} has fewer than {LEAST_CHARACTERS} characters, and could be guessed"
            );
            Ok(Some(Sha256::digest(token.as_bytes()).into()))
        }
        (None, Some(hex)) => {
            let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok();
            let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
            bytes.with_context(|| format!("sha256 of {name} is not 64 hexadecimal digits")).map(Some)
        }
        (Some(_), Some(_)) => bail!("{name} needs one of token and sha256"),
    }
}
