//! The senders that may post notifications: a file, reread when it changes.
//!
//! A sender has a token, which proves its identity, or a list of origins that its notifications claim, which proves
//! nothing. All that a forged origin gains is a stored notification and a hint for a Source.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use anyhow::{Context as _, bail, ensure};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use model::SourceId;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use url::{Origin, Url};

use crate::{rate_limit, tokens};

/// Bodies of one sender that are received at a time.
const AT_A_TIME: usize = 8;
/// Requests of one sender under way at a time, those that wait for a body included.
pub(super) const REQUESTS: usize = 64;

/// A known sender. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Sender(Arc<Entry>);

#[derive(Debug)]
struct Entry {
    name: String,
    sha256: Option<[u8; 32]>,
    origins: Vec<Origin>,
    sources: Vec<SourceId>,
    limiter: DefaultDirectRateLimiter,
    permits: Arc<Semaphore>,
    requests: Arc<Semaphore>,
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
    origins: Vec<Url>,
    #[serde(default)]
    sources: Vec<SourceId>,
}

/// The currently known senders. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Senders {
    entries: Arc<RwLock<Vec<Sender>>>,
    rate: NonZeroU32,
}

impl Sender {
    /// The name of the sender.
    pub(super) fn name(&self) -> &str {
        &self.0.name
    }

    /// The Sources for which the sender may report any change.
    pub(super) fn sources(&self) -> &[SourceId] {
        &self.0.sources
    }

    /// The sender's permits for bodies.
    pub(super) fn permits(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.permits)
    }

    /// The sender's requests under way.
    pub(super) fn requests(&self) -> Arc<Semaphore> {
        Arc::clone(&self.0.requests)
    }

    /// Counts a notification.
    ///
    /// # Errors
    /// The seconds until the next notification is accepted, when this one exceeds the rate.
    pub(super) fn count(&self) -> Result<(), u64> {
        rate_limit::count(&self.0.limiter)
    }

    fn is_as(&self, other: &Entry) -> bool {
        let own = &self.0;
        (&own.name, &own.sha256, &own.origins, &own.sources)
            == (&other.name, &other.sha256, &other.origins, &other.sources)
    }
}

impl Senders {
    /// Reads the senders of a file.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid. No message repeats a token.
    pub(crate) fn of_file(path: &Path, rate: NonZeroU32) -> anyhow::Result<Self> {
        let text = tokens::read(path, "tokens").context("who may leave notifications is not known")?;
        let entries = parse(&text, rate, &[]).with_context(|| path.display().to_string())?;
        Ok(Self { entries: Arc::new(RwLock::new(entries)), rate })
    }

    /// Rereads the file when it changes, until `stop`: see [`tokens::follow`].
    pub(crate) async fn follow(self, path: PathBuf, stop: CancellationToken) {
        tokens::follow(path, "senders", stop, |text| {
            let mut entries = self.entries.write().unwrap_or_else(|poisoned| poisoned.into_inner());
            *entries = parse(text, self.rate, &entries)?;
            Ok(())
        })
        .await;
    }

    /// The sender with this token.
    pub(super) fn with_token(&self, token: &str) -> Option<Sender> {
        tokens::find_digest(&self.all(), &Sha256::digest(token.as_bytes()), |sender| sender.0.sha256)
    }

    /// The sender that uses this origin without a token.
    pub(super) fn of_origin(&self, origin: &Origin) -> Option<Sender> {
        self.all().into_iter().find(|sender| sender.0.origins.contains(origin))
    }

    /// Whether any sender is accepted without a token.
    pub(super) fn any_by_origin(&self) -> bool {
        self.all().iter().any(|sender| !sender.0.origins.is_empty())
    }

    fn all(&self) -> Vec<Sender> {
        // Every write under this lock leaves consistent data, so a poisoned lock is safe to use.
        self.entries.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// Parses a file. A sender that was known before keeps its counts.
fn parse(text: &str, rate: NonZeroU32, before: &[Sender]) -> anyhow::Result<Vec<Sender>> {
    // The parser's message would quote the invalid text, which may be a token.
    let Ok(lines) = serde_saphyr::from_str::<Vec<Line>>(text) else {
        bail!(
            "it is no list of senders, each with a name, and sha256, token or origins; sources, if it may say anything of some"
        )
    };
    let mut senders: Vec<Sender> = Vec::new();
    for Line { name, token, sha256, origins, sources } in lines {
        ensure!(!name.is_empty() && name.len() <= 100, "a name of a sender has 1 to 100 bytes");
        ensure!(senders.iter().all(|known| known.name() != name), "two senders are called {name}");
        let sha256 = tokens::digest(&name, token, sha256)?;
        ensure!(
            sha256.is_some() == origins.is_empty(),
            "{name} needs either a token (token, sha256) or origins: a sender with a token shows it"
        );
        for origin in &origins {
            let is_origin = origin.origin().is_tuple() && origin.path() == "/" && origin.query().is_none();
            ensure!(
                is_origin,
                "{origin} of {name} is no origin: scheme, host and port, such as https://repository.example.org"
            );
        }
        let origins: Vec<Origin> = origins.iter().map(Url::origin).collect();
        for known in &senders {
            let shared = origins.iter().find(|origin| known.0.origins.contains(origin));
            ensure!(shared.is_none(), "{name} speaks from the same origin as {}", known.name());
            let same = sha256.is_some() && known.0.sha256 == sha256;
            ensure!(!same, "{name} has the same token as {}", known.name());
        }
        let limiter = RateLimiter::direct(Quota::per_second(rate));
        let permits = Arc::new(Semaphore::new(AT_A_TIME));
        let requests = Arc::new(Semaphore::new(REQUESTS));
        let entry = Entry { name, sha256, origins, sources, limiter, permits, requests };
        let kept = before.iter().find(|known| known.is_as(&entry)).cloned();
        senders.push(kept.unwrap_or_else(|| Sender(Arc::new(entry))));
    }
    Ok(senders)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: NonZeroU32 = NonZeroU32::new(2).unwrap();

    fn senders(text: &str) -> anyhow::Result<Senders> {
        Ok(Senders { entries: Arc::new(RwLock::new(parse(text, RATE, &[])?)), rate: RATE })
    }

    fn origin(url: &str) -> Origin {
        Url::parse(url).unwrap().origin()
    }

    #[test]
    fn a_sender_is_known_by_its_token_or_by_where_it_speaks_from_and_by_nothing_else() {
        let known = senders(
            "- {name: a, token: correct horse battery, sources: [e-1]}\n- {name: b, origins: ['https://b.example.org']}",
        )
        .unwrap();
        assert_eq!(known.with_token("correct horse battery").unwrap().sources(), ["e-1".parse().unwrap()]);
        assert!(known.with_token("").is_none() && known.with_token("correct horse batter").is_none());
        assert_eq!(known.of_origin(&origin("https://b.example.org:443/x")).unwrap().name(), "b");
        for other in [
            "http://b.example.org",
            "https://b.example.org:8443",
            "https://x.b.example.org",
            "mailto:a@b.example.org",
        ] {
            assert!(known.of_origin(&origin(other)).is_none(), "{other}");
        }
        assert!(known.any_by_origin() && !senders("[]").unwrap().any_by_origin());
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_no_token_repeated() {
        for (text, why) in [
            ("hunter2-hunter2-hunter2", "no list"),
            ("- {name: a, token: hunter2}", "fewer than 16"),
            ("- {name: a}", "either a token"),
            ("- {name: a, token: hunter2-hunter2-hunter2, origins: ['https://e.org']}", "either a token"),
            ("- {name: a, origins: ['https://e.org/x']}", "no origin"),
            ("- {name: a, origins: ['urn:x']}", "no origin"),
            (
                "- {name: a, origins: ['https://e.org']}\n- {name: b, origins: ['https://e.org:443']}",
                "same origin",
            ),
            (
                "- {name: a, token: hunter2-hunter2-hunter2}\n- {name: b, token: hunter2-hunter2-hunter2}",
                "same token",
            ),
        ] {
            let said = format!("{:#}", senders(text).unwrap_err());
            assert!(said.contains(why) && !said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_sender_that_is_there_as_before_keeps_its_counts() {
        let text = "- {name: a, origins: ['https://e.org']}";
        let before = parse(text, RATE, &[]).unwrap();
        assert_eq!([before[0].count(), before[0].count()], [Ok(()), Ok(())]);
        assert!(parse(text, RATE, &before).unwrap()[0].count().is_err());
        assert!(parse("- {name: a, origins: ['https://f.org']}", RATE, &before).unwrap()[0].count().is_ok());
    }
}
