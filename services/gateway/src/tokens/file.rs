//! The file of tokens with their roles.

use std::num::NonZeroU32;

use anyhow::{Context as _, bail, ensure};
use control::Selector;
use serde::Deserialize;
use serving::token_file::digest;

use super::{Caller, Entry, Role};

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
