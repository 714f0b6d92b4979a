//! Tokens and their roles, from a file that the gateway rereads when it changes.

mod file;

use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use anyhow::Context as _;
use control::{Selector, Spec};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde::Deserialize;
pub(crate) use serving::token_file::{digest, find_digest, follow, read};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::file::parse;
use crate::rate_limit;

/// What a token allows. Each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// May read everything, bitstreams included.
    Read,
    /// May request and steer runs, and submit actions on problems.
    Operate,
    /// May add, change and delete Sources.
    Admin,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        })
    }
}

/// The authenticated caller of a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<Entry>);

/// A token of the file.
#[derive(Debug)]
struct Entry {
    name: String,
    role: Role,
    /// The labels of the Sources that the token sees; none where it sees all.
    selector: Option<Selector>,
    sha256: [u8; 32],
    limiter: DefaultDirectRateLimiter,
}

/// The currently valid tokens. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    entries: Arc<RwLock<Vec<Caller>>>,
    /// The caller for requests without a token, where the configuration allows them.
    anonymous: Option<Caller>,
    rate: NonZeroU32,
    /// Notified when the file was reread.
    changes: Arc<watch::Sender<()>>,
}

impl Caller {
    fn new(name: String, role: Role, selector: Option<Selector>, sha256: [u8; 32], rate: NonZeroU32) -> Self {
        let limiter = RateLimiter::direct(Quota::per_second(rate));
        Self(Arc::new(Entry { name, role, selector, sha256, limiter }))
    }

    /// The name of the token.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// The role of the token.
    pub(crate) fn role(&self) -> Role {
        self.0.role
    }

    /// The labels to which the token is limited.
    pub(crate) fn selector(&self) -> Option<&Selector> {
        self.0.selector.as_ref()
    }

    /// Whether the token is for all Sources.
    pub(crate) fn sees_all(&self) -> bool {
        self.0.selector.is_none()
    }

    /// Whether the token is for a Source with this spec.
    pub(crate) fn sees(&self, spec: &Spec) -> bool {
        self.selector().is_none_or(|selector| selector.matches(&spec.labels))
    }

    /// A digest of the token and the secret of a session.
    pub(crate) fn mark(&self, secret: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(b"session of a page");
        hasher.update(self.0.sha256);
        hasher.update(secret.as_bytes());
        hasher.finalize().into()
    }

    /// Counts a request.
    ///
    /// # Errors
    /// The seconds until the next request is accepted, when this one exceeds the rate.
    pub(crate) fn count_request(&self) -> Result<(), u64> {
        rate_limit::count(&self.0.limiter)
    }
}

impl Tokens {
    /// Reads the tokens of a file.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid. No message repeats a token.
    pub(crate) fn of_file(path: &Path, rate: NonZeroU32) -> anyhow::Result<Self> {
        let entries = parse(&read(path, "tokens")?, rate, &[]).with_context(|| path.display().to_string())?;
        Ok(Self { entries: Arc::new(RwLock::new(entries)), anonymous: None, rate, changes: Arc::default() })
    }

    /// No tokens: every client may do everything.
    pub(crate) fn not_required(rate: NonZeroU32) -> Self {
        let anonymous = Caller::new("anybody".to_owned(), Role::Admin, None, [0; 32], rate);
        Self { entries: Arc::default(), anonymous: Some(anonymous), rate, changes: Arc::default() }
    }

    /// The caller with this token. Where the configuration requires no tokens, every request has a caller.
    pub(crate) fn find(&self, token: Option<&str>) -> Option<Caller> {
        let found = token.and_then(|token| {
            let digest = Sha256::digest(token.as_bytes());
            find_digest(&self.entries(), &digest, |caller| Some(caller.0.sha256))
        });
        found.or_else(|| self.anonymous.clone())
    }

    /// The caller whose token started the session with this secret and mark. None if that token is no longer valid.
    pub(crate) fn find_marked(&self, secret: &str, mark: &[u8]) -> Option<Caller> {
        find_digest(&self.entries(), mark, |caller| Some(caller.mark(secret)))
    }

    /// Whether the token of a caller is still valid.
    pub(crate) fn is_good(&self, caller: &Caller) -> bool {
        let is_same = |known: &Caller| Arc::ptr_eq(&known.0, &caller.0);
        let entries = self.entries();
        // Rereading the file keeps the entry of an unchanged token.
        entries.iter().chain(&self.anonymous).any(is_same)
    }

    fn entries(&self) -> RwLockReadGuard<'_, Vec<Caller>> {
        // Every write under this lock leaves consistent data, so a poisoned lock is safe to use.
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies after each reread of the file.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Rereads the file when it changes, until `stop`: see [`follow`].
    pub(crate) async fn follow(self, path: PathBuf, stop: CancellationToken) {
        follow(path, "tokens", stop, |text| self.take(text)).await;
    }

    /// Applies a changed file.
    fn take(&self, text: &str) -> anyhow::Result<()> {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        *entries = parse(text, self.rate, &entries)?;
        drop(entries);
        self.changes.send_replace(());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
