//! Who may ask for what: tokens, from a file that is read again when it changes.

mod file;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use anyhow::Context as _;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::file::parse;
pub(crate) use self::file::{digest, follow, read};
use crate::rate;

/// What a token allows. Each allows what those before it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// To look at everything, bitstreams included.
    Read,
    /// To ask for runs and steer them, and to give a word about problems.
    Operate,
    /// To add, change and delete Sources.
    Admin,
}

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller(Arc<Entry>);

/// A token of the file.
#[derive(Debug)]
struct Entry {
    name: String,
    role: Role,
    sha256: [u8; 32],
    limiter: DefaultDirectRateLimiter,
}

/// The tokens that are good now. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    entries: Arc<RwLock<Vec<Caller>>>,
    /// Whoever comes without one, where that is allowed.
    anybody: Option<Caller>,
    rate: NonZeroU32,
    /// Told when the file was read again.
    changes: Arc<watch::Sender<()>>,
}

impl Caller {
    fn new(name: String, role: Role, sha256: [u8; 32], rate: NonZeroU32) -> Self {
        let limiter = RateLimiter::direct(Quota::per_second(rate));
        Self(Arc::new(Entry { name, role, sha256, limiter }))
    }

    /// The name of its token.
    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// What it may do.
    pub(crate) fn role(&self) -> Role {
        self.0.role
    }

    /// What comes of its token and the secret of a session, and of nothing else.
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
    /// In how many seconds the next one is taken, when it is one too many.
    pub(crate) fn count_request(&self) -> Result<(), u64> {
        rate::count(&self.0.limiter)
    }
}

impl Tokens {
    /// Those of a file.
    ///
    /// # Errors
    /// When it cannot be read, or says something that makes no sense; no message repeats a token.
    pub(crate) fn of_file(path: &Path, rate: NonZeroU32) -> anyhow::Result<Self> {
        let entries = parse(&read(path)?, rate, &[]).with_context(|| path.display().to_string())?;
        Ok(Self { entries: Arc::new(RwLock::new(entries)), anybody: None, rate, changes: Arc::default() })
    }

    /// None: everybody may do everything.
    pub(crate) fn not_asked_for(rate: NonZeroU32) -> Self {
        let anybody = Caller::new("anybody".to_owned(), Role::Admin, [0; 32], rate);
        Self { entries: Arc::default(), anybody: Some(anybody), rate, changes: Arc::default() }
    }

    /// Whose token it is. All of them are compared, and each in constant time, so that how long it takes tells nothing.
    pub(crate) fn find(&self, token: Option<&str>) -> Option<Caller> {
        let Some(token) = token else { return self.anybody.clone() };
        let sha256: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let mut found = None;
        // What is written under this lock is whole at every moment.
        for caller in self.entries.read().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            if bool::from(caller.0.sha256.ct_eq(&sha256)) {
                found = Some(caller.clone());
            }
        }
        found.or_else(|| self.anybody.clone())
    }

    /// Whose token was shown when a session with this secret got this mark. None where that token is not good any more. Compared as in
    /// [`find`](Self::find).
    pub(crate) fn find_marked(&self, secret: &str, mark: &[u8]) -> Option<Caller> {
        let mut found = None;
        for caller in self.entries.read().unwrap_or_else(|poisoned| poisoned.into_inner()).iter() {
            if bool::from(caller.mark(secret).ct_eq(mark)) {
                found = Some(caller.clone());
            }
        }
        found
    }

    /// Whether what a caller was let in with is still good.
    pub(crate) fn is_good(&self, caller: &Caller) -> bool {
        let is_same = |known: &Caller| Arc::ptr_eq(&known.0, &caller.0);
        let entries = self.entries.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        // One that the file still has as it was is kept when the file is read again.
        entries.iter().chain(&self.anybody).any(is_same)
    }

    /// Told each time when the file was read again.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Reads the file again when it changes, until `stop`: see [`follow`].
    pub(crate) async fn follow(self, path: PathBuf, stop: CancellationToken) {
        follow(path, "tokens", stop, |text| self.take(text)).await;
    }

    /// Takes what a changed file says.
    fn take(&self, text: &str) -> anyhow::Result<()> {
        let mut entries = self.entries.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        *entries = parse(text, self.rate, &entries)?;
        drop(entries);
        self.changes.send_replace(());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
