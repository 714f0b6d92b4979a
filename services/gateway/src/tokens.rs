//! Who may ask for what: tokens, from a file that is read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use data_encoding::HEXLOWER_PERMISSIVE;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::num::NonZeroU32;
use subtle::ConstantTimeEq as _;
use tokio_util::sync::CancellationToken;

/// How often the file is looked at. A mounted secret that is replaced is a symbolic link set anew, so its content is compared.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The shortest token that nobody guesses.
const LEAST_CHARACTERS: usize = 16;
/// The largest file: far more tokens than a fleet has operators.
const LARGEST_FILE: u64 = 1024 * 1024;

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

/// The tokens that are good now. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    entries: Arc<RwLock<Vec<Caller>>>,
    /// Whoever comes without one, where that is allowed.
    anybody: Option<Caller>,
    rate: NonZeroU32,
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
        let clock = DefaultClock::default();
        self.0.limiter.check().map_err(|not_until| not_until.wait_time_from(clock.now()).as_secs() + 1)
    }
}

impl Tokens {
    /// Those of a file.
    ///
    /// # Errors
    /// When it cannot be read, or says something that makes no sense; no message repeats a token.
    pub(crate) fn of_file(path: &Path, rate: NonZeroU32) -> anyhow::Result<Self> {
        let entries = parse(&read(path)?, rate, &[]).with_context(|| path.display().to_string())?;
        Ok(Self { entries: Arc::new(RwLock::new(entries)), anybody: None, rate })
    }

    /// None: everybody may do everything.
    pub(crate) fn not_asked_for(rate: NonZeroU32) -> Self {
        let anybody = Caller::new("anybody".to_owned(), Role::Admin, [0; 32], rate);
        Self { entries: Arc::default(), anybody: Some(anybody), rate }
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

    /// Reads the file again when it changes, until `stop`. A file that cannot be read, or makes no sense, changes nothing: those who
    /// could ask before still can, and the log says so.
    pub(crate) async fn follow(self, path: PathBuf, stop: CancellationToken) {
        let mut last = read(&path).unwrap_or_default();
        let mut complained = String::new();
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stop.cancelled() => return,
            }
            let place = path.clone();
            let Ok(text) = tokio::task::spawn_blocking(move || read(&place)).await else { return };
            match text.map(|text| (text != last).then_some(text)) {
                Ok(None) => complained.clear(),
                Ok(Some(text)) => match self.take(&text) {
                    Ok(()) => {
                        tracing::info!(tokens.file = %path.display(), "the tokens were read again");
                        complained.clear();
                        last = text;
                    }
                    Err(error) => complain(&path, &error, &mut complained),
                },
                Err(error) => complain(&path, &error, &mut complained),
            }
        }
    }

    /// Takes what a changed file says.
    fn take(&self, text: &str) -> anyhow::Result<()> {
        let mut entries = self.entries.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        *entries = parse(text, self.rate, &entries)?;
        Ok(())
    }
}

fn complain(path: &Path, error: &anyhow::Error, before: &mut String) {
    let said = format!("{error:#}");
    if said != *before {
        tracing::error!(tokens.file = %path.display(), error = said, "the tokens cannot be read again: those read before still hold");
        *before = said;
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
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
fn parse(text: &str, rate: NonZeroU32, before: &[Caller]) -> anyhow::Result<Vec<Caller>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: NonZeroU32 = NonZeroU32::new(2).unwrap();
    const SECRET: &str = "correct horse battery";

    fn tokens(text: &str) -> anyhow::Result<Tokens> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Tokens::of_file(file.path(), RATE)
    }

    fn hash(token: &str) -> String {
        data_encoding::HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
    }

    #[test]
    fn a_token_is_known_by_itself_or_by_its_hash_and_no_other_is() {
        let other = "another long token";
        let text = format!(
            "- {{name: a, role: read, token: {SECRET}}}\n- {{name: b, role: admin, sha256: {}}}\n",
            hash(other)
        );
        let tokens = tokens(&text).unwrap();
        let role = |token| tokens.find(token).map(|caller| caller.role());
        assert_eq!(role(Some(SECRET)), Some(Role::Read));
        assert_eq!(role(Some(other)), Some(Role::Admin));
        for bad in [None, Some(""), Some("correct horse batter"), Some(hash(other).as_str())] {
            assert_eq!(role(bad), None, "{bad:?}");
        }
        assert_eq!(Tokens::not_asked_for(RATE).find(None).map(|caller| caller.role()), Some(Role::Admin));
    }

    #[test]
    fn a_mark_leads_to_its_token_with_its_secret_alone() {
        let tokens = tokens(&format!("- {{name: a, role: read, token: {SECRET}}}")).unwrap();
        let mark = tokens.find(Some(SECRET)).unwrap().mark("one");
        assert_eq!(tokens.find_marked("one", &mark).unwrap().name(), "a");
        assert!(tokens.find_marked("two", &mark).is_none());
        assert!(tokens.find_marked("one", &mark[..31]).is_none());
        tokens.take("- {name: a, role: read, token: a token of another kind}").unwrap();
        assert!(tokens.find_marked("one", &mark).is_none(), "it is not good any more");
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_no_token_repeated() {
        let same = format!(
            "- {{name: a, role: read, token: {SECRET}}}\n- {{name: b, role: read, sha256: {}}}",
            hash(SECRET)
        );
        for (text, why) in [
            ("[]", "no token"),
            ("hunter2-hunter2-hunter2", "no list"),
            ("- {name: a, role: king, token: hunter2-hunter2-hunter2}", "no list"),
            ("- {name: a, role: read, token: hunter2}", "fewer than 16"),
            ("- {name: a, role: read}", "one of token and sha256"),
            ("- {name: a, role: read, sha256: hunter2}", "64 hexadecimal"),
            (same.as_str(), "the same token"),
        ] {
            let said = format!("{:#}", tokens(text).unwrap_err());
            assert!(said.contains(why) && !said.contains("hunter2") && !said.contains(SECRET), "{said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_counts_and_one_that_makes_no_sense_changes_nothing() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write(&format!("- {{name: a, role: read, token: {SECRET}}}"));
        let tokens = Tokens::of_file(file.path(), RATE).unwrap();
        let stop = CancellationToken::new();
        let following = tokio::spawn(tokens.clone().follow(file.path().to_owned(), stop.clone()));
        let role = |token: &str| tokens.find(Some(token)).map(|caller| caller.role());
        tokio::time::sleep(LOOK_EVERY * 2).await;
        write("- nonsense");
        tokio::time::sleep(LOOK_EVERY * 3).await;
        assert_eq!(role(SECRET), Some(Role::Read));
        write("- {name: a, role: operate, token: a token of another kind}");
        testkit::waiting::until("the new token is known", || {
            role("a token of another kind") == Some(Role::Operate)
        })
        .await;
        assert_eq!(role(SECRET), None);
        stop.cancel();
        following.await.unwrap();
    }

    #[test]
    fn one_request_too_many_is_told_when_to_come_again() {
        let tokens = Tokens::not_asked_for(RATE);
        let caller = tokens.find(None).unwrap();
        assert_eq!([caller.count_request(), caller.count_request()], [Ok(()), Ok(())]);
        assert_eq!(caller.count_request(), Err(1));
    }
}
