//! Resources that an operator withdraws, from a file that is read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use publish::Takedown;
use serving::token_file::{follow, read};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the file has, for messages.
const WHAT: &str = "URIs to withdraw";

/// The list of what is withdrawn. Clones share it.
#[derive(Debug, Clone)]
pub struct Takedowns {
    path: PathBuf,
    now: Arc<watch::Sender<Takedown>>,
}

impl Takedowns {
    /// Reads a file with a URI on each line.
    ///
    /// # Errors
    /// When the file cannot be read or is invalid.
    pub fn of_file(path: &Path) -> anyhow::Result<Self> {
        let list = Takedown::parse(&read(path, WHAT)?).with_context(|| path.display().to_string())?;
        Ok(Self { path: path.to_owned(), now: Arc::new(watch::Sender::new(list)) })
    }

    /// What is withdrawn. It changes with the list.
    pub fn now(&self) -> Takedown {
        self.now.borrow().clone()
    }

    /// Changes with the list.
    pub(crate) fn changes(&self) -> watch::Receiver<Takedown> {
        self.now.subscribe()
    }

    /// Reads the file again when it changes, until `stop`.
    pub(crate) async fn follow(self, stop: CancellationToken) {
        follow(self.path.clone(), WHAT, stop, |text| {
            let list = Takedown::parse(text)?;
            // Publications under way have a clone, and see it too.
            self.now.send_if_modified(|now| {
                let is_other = now.now() != list.now();
                if is_other {
                    now.replace(&list);
                }
                is_other
            });
            Ok(())
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_the_list_gets_before_it_is_followed_counts() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let list = Takedowns::of_file(file.path()).unwrap();
        let mut changes = list.changes();
        std::fs::write(file.path(), "http://e.org/a\n").unwrap();
        let stop = CancellationToken::new();
        let following = tokio::spawn(list.clone().follow(stop.clone()));
        let a = "http://e.org/a".parse().unwrap();
        let found = changes.wait_for(|list| list.contains(&a));
        tokio::time::timeout(std::time::Duration::from_secs(60), found).await.unwrap().unwrap();
        stop.cancel();
        following.await.unwrap();
    }
}
