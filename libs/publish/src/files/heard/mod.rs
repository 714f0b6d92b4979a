//! What the kernel told of a directory since the last scan: paths to look at.

mod state;

use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};

use self::state::State;
use super::kernel::Kernel;
use super::looks::Looks;
use crate::unheard::Unheard;

/// How long nothing is read after what was told: many writes that come fast are one.
const PAUSE: Duration = Duration::from_millis(20);
/// If so many events were read together, more may wait.
const MANY: usize = 500;

/// What is heard of a directory.
#[derive(Debug)]
pub(super) struct Heard {
    kernel: Kernel,
    most_folders: usize,
    state: Mutex<State>,
    news: Notify,
}

impl Heard {
    pub(super) fn new(kernel: Kernel, most_folders: usize) -> Self {
        Self { kernel, most_folders, state: Mutex::default(), news: Notify::new() }
    }

    /// Watches a folder at a path from now on.
    pub(super) fn add(&self, folder: BorrowedFd<'_>, path: &str) {
        let mut state = self.state();
        if state.unheard.is_some() {
            return;
        }
        // Nothing that is told of it is read before its path is known.
        match self.kernel.add(folder, &mut state.file_systems) {
            Ok(watch) => state.add(watch, path),
            Err(why) => state.end(why),
        }
        if state.paths > self.most_folders {
            state.end(Unheard::TooManyFolders);
        }
        self.settle(&mut state);
    }

    /// Hears until it must end.
    pub(super) async fn listen(&self) {
        loop {
            if let Err(error) = self.kernel.wait().await {
                self.end(Unheard::failed(error));
            }
            while self.read() >= MANY {
                tokio::task::yield_now().await;
            }
            if self.unheard().is_some() {
                return;
            }
            sleep(PAUSE).await;
        }
    }

    /// Reads events. Returns how many.
    fn read(&self) -> usize {
        let mut state = self.state();
        let (mut count, mut moved) = (0, Looks::default());
        let read = self.kernel.read(|event| {
            count += 1;
            state.hear(event, &mut moved);
        });
        if let Err(error) = read {
            state.end(Unheard::failed(error));
        }
        if !moved.is_empty() {
            state.forget_below(&moved);
        }
        self.settle(&mut state);
        count
    }

    /// Takes the paths that changed.
    pub(super) fn take(&self) -> Result<Looks, Unheard> {
        let mut state = self.state();
        state.times = None;
        match &state.unheard {
            Some(why) => Err(why.clone()),
            None => Ok(std::mem::take(&mut state.looks)),
        }
    }

    /// Why nothing is heard any more.
    pub(super) fn unheard(&self) -> Option<Unheard> {
        self.state().unheard.clone()
    }

    /// How many folders are watched.
    pub(super) fn folders(&self) -> u64 {
        self.state().folders.len() as u64
    }

    /// Waits until something was told, and for a time no more; but not longer than `longest` after the first.
    pub(super) async fn quiet(&self, quiet: Duration, longest: Duration) {
        loop {
            let news = self.news.notified();
            let times = self.state().times;
            let Some((first, last)) = times else {
                news.await;
                continue;
            };
            let at = (last + quiet).min(first + longest);
            if Instant::now() >= at {
                return;
            }
            sleep_until(at).await;
        }
    }

    /// Hears no more. All watches are given back at once.
    pub(super) fn end(&self, why: Unheard) {
        let mut state = self.state();
        state.end(why);
        self.settle(&mut state);
    }

    /// Gives watches back, and wakes who waits for news.
    fn settle(&self, state: &mut State) {
        for watch in std::mem::take(&mut state.over) {
            self.kernel.remove(watch);
        }
        if state.times.is_some() {
            self.news.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
