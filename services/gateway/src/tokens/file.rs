//! The file of tokens.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::{Caller, Role};

/// The shortest token that nobody guesses.
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
}

/// The text of a file.
pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    let place = || format!("cannot read the tokens in {}", path.display());
    let length = std::fs::metadata(path).with_context(place)?.len();
    ensure!(
        length <= LARGEST_FILE,
        "{} has {length} bytes; a file of tokens has at most {LARGEST_FILE}",
        path.display()
    );
    std::fs::read_to_string(path).with_context(place)
}

/// Reads a file. A token that was there before keeps its count of requests.
pub(super) fn parse(text: &str, rate: NonZeroU32, before: &[Caller]) -> anyhow::Result<Vec<Caller>> {
    // The parser quotes what it does not understand, and here that may be a token.
    let Ok(lines) = serde_saphyr::from_str::<Vec<Line>>(text) else {
        bail!("it is no list of tokens, each with name, role (read, operate, admin), and sha256 or token")
    };
    ensure!(!lines.is_empty(), "it has no token, so nobody could ask for anything");
    let mut callers: Vec<Caller> = Vec::new();
    for Line { name, role, token, sha256 } in lines {
        ensure!(!name.is_empty() && name.len() <= 100, "a name of a token has 1 to 100 bytes");
        ensure!(callers.iter().all(|known| known.name() != name), "two tokens are called {name}");
        let sha256: [u8; 32] = match (token, sha256) {
            (Some(token), None) => {
                let is_long = token.chars().count() >= LEAST_CHARACTERS;
                ensure!(
                    is_long,
                    "the token {name} has fewer than {LEAST_CHARACTERS} characters, and could be guessed"
                );
                Sha256::digest(token.as_bytes()).into()
            }
            (None, Some(hex)) => {
                let bytes = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok();
                bytes
                    .and_then(|bytes| bytes.try_into().ok())
                    .with_context(|| format!("sha256 of {name} is not 64 hexadecimal digits"))?
            }
            _ => bail!("{name} needs one of token and sha256"),
        };
        ensure!(callers.iter().all(|known| known.0.sha256 != sha256), "{name} is the same token as another");
        let kept = before
            .iter()
            .find(|known| known.0.sha256 == sha256 && known.role() == role && known.name() == name);
        callers.push(kept.cloned().unwrap_or_else(|| Caller::new(name, role, sha256, rate)));
    }
    Ok(callers)
}
