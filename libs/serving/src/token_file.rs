//! Files of tokens and other secrets, which are reread when they change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use data_encoding::HEXLOWER_PERMISSIVE;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

/// The interval of checks for a changed file. Its content is compared, because a mounted secret is replaced by setting
/// a symbolic link anew.
pub const REREAD_EVERY: Duration = Duration::from_secs(2);
/// The shortest token that cannot be guessed.
const LEAST_CHARACTERS: usize = 16;
/// The largest file: far more tokens than a fleet has operators.
const LARGEST_FILE: u64 = 1024 * 1024;

/// Rereads a file when it changes, until `stop`, and applies its content. An unreadable or invalid file changes
/// nothing: existing tokens stay valid, and the log says so.
pub async fn follow(
    path: PathBuf,
    what: &str,
    stop: CancellationToken,
    take: impl Fn(&str) -> anyhow::Result<()>,
) {
    // What was read before this began may be an earlier content: the first one is applied whatever it is.
    let mut last: Option<String> = None;
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
        let (place, name) = (path.clone(), what.to_owned());
        let Ok(text) = tokio::task::spawn_blocking(move || read(&place, &name)).await else { return };
        match text.map(|text| (last.as_ref() != Some(&text)).then_some(text)) {
            Ok(None) => complain(None),
            Ok(Some(text)) => match take(&text) {
                Ok(()) => {
                    if last.is_some() {
                        tracing::info!(file = %path.display(), "the {what} were read again");
                    }
                    complain(None);
                    last = Some(text);
                }
                Err(error) => complain(Some(error)),
            },
            Err(error) => complain(Some(error)),
        }
    }
}

/// The entry whose digest is this one. Every entry is compared, each in constant time, so that the timing reveals
/// nothing.
pub fn find_digest<T: Clone>(
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

/// Reads a file of tokens, or another list of an operator. `what` names it in errors.
///
/// # Errors
/// When the file cannot be read, or is larger than any such file.
pub fn read(path: &Path, what: &str) -> anyhow::Result<String> {
    let place = || format!("cannot read the {what} in {}", path.display());
    let length = std::fs::metadata(path).with_context(place)?.len();
    ensure!(
        length <= LARGEST_FILE,
        "{} has {length} bytes; the {what} may have at most {LARGEST_FILE}",
        path.display()
    );
    std::fs::read_to_string(path).with_context(place)
}

/// The digest of a token that the file has in clear or as its digest. None where the entry has neither.
///
/// # Errors
/// When the token could be guessed, the digest is malformed, or the entry has both. No message repeats it.
pub fn digest(name: &str, token: Option<String>, sha256: Option<String>) -> anyhow::Result<Option<[u8; 32]>> {
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
