//! Lock that stops gc from deleting a bitstream that a put reuses.
//!
//! A put first restarts the retention of the object it finds. It then checks whether a sweep is under way,
//! and after the sweep, whether the object still exists. A sweep first takes its turn, then reads the
//! object's age, then removes it. Whichever comes first, the other sees it. Packs and packages need no lock,
//! because a put never finds one under its own name. A put waits only for the turn that it saw, not for later
//! ones.

use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use jiff::Timestamp;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use tokio::time::{Instant, sleep};

use crate::error::AtFile;
use crate::files::{self, blocking};
use crate::{Key, Store, StoreError};

/// The longest turn.
const TURN: Duration = Duration::from_secs(20);
/// How long an abandoned mark counts after its process was killed. Much longer than a turn, since a removal
/// that was sent may arrive late.
const FORGOTTEN: Duration = Duration::from_secs(120);
/// How often it is checked whether a turn is over.
const LOOK: Duration = Duration::from_millis(100);
/// The lock file of a local store. The system releases it when a process is killed.
const LOCK: &str = "gc/sweeping.lock";
/// The mark of the turn is a file next to it: not all systems can read a locked file.
const MARK: &str = "mark";

/// A turn to remove bitstreams. Dropped before its end, it counts until it expires.
#[derive(Debug)]
pub(crate) struct SweepLock {
    kind: Kind,
    began: Instant,
    began_at: Timestamp,
}

#[derive(Debug)]
enum Kind {
    Locked { _file: fs::File },
    Marked(String),
}

impl SweepLock {
    /// Whether this turn may still remove objects.
    pub(crate) fn lasts(&self) -> bool {
        self.is_younger_than(TURN)
    }

    /// The time left of it.
    pub(crate) fn rest(&self) -> Duration {
        TURN.saturating_sub(self.began.elapsed())
    }

    /// Whether the mark is certainly still ours, long before another process may take it over.
    fn is_ours(&self) -> bool {
        self.is_younger_than(FORGOTTEN / 2)
    }

    /// Two clocks are read, since one of them stops while a machine sleeps.
    fn is_younger_than(&self, limit: Duration) -> bool {
        let passed = Timestamp::now().duration_since(self.began_at);
        self.began.elapsed() < limit && Duration::try_from(passed).is_ok_and(|passed| passed < limit)
    }
}

impl Store {
    /// Waits for the turn to remove bitstreams, and takes it.
    pub(crate) async fn begin_sweep(&self) -> Result<SweepLock, StoreError> {
        // Counted from before others can see the mark.
        let turn = |kind, (began, began_at)| SweepLock { kind, began, began_at };
        if let Some(path) = self.turn_lock() {
            loop {
                let now = (Instant::now(), Timestamp::now());
                let path = path.clone();
                match blocking("lock a sweep", move || lock(&path)).await? {
                    Some(file) => return Ok(turn(Kind::Locked { _file: file }, now)),
                    None => sleep(LOOK).await,
                }
            }
        }
        let mut forgotten = Forgotten::default();
        loop {
            let now = (Instant::now(), Timestamp::now());
            let mark = model::JobId::fresh().to_string();
            match self.put(&Key::Sweeping, mark.clone().into(), PutMode::Create).await {
                Ok(()) => return Ok(turn(Kind::Marked(mark), now)),
                Err(StoreError::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
            if let Some((found, version)) = self.turn_mark().await?
                && forgotten.is(found)
                && self.take_over(&mark, version).await?
            {
                return Ok(turn(Kind::Marked(mark), now));
            }
            sleep(LOOK).await;
        }
    }

    /// Replaces an abandoned mark with ours. Returns true if ours is stored: no other process was faster, and
    /// the previous one has not ended its turn.
    async fn take_over(&self, mark: &str, forgotten: UpdateVersion) -> Result<bool, StoreError> {
        use object_store::Error as E;
        let options = PutOptions {
            mode: PutMode::Update(forgotten),
            attributes: self.attributes(&Key::Sweeping),
            ..PutOptions::default()
        };
        match self.objects().put_opts(&Key::Sweeping.path(), mark.to_owned().into(), options).await {
            Ok(_) => Ok(true),
            Err(E::Precondition { .. } | E::NotFound { .. } | E::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(StoreError::of_object(self.root(), &Key::Sweeping, error)),
        }
    }

    /// Ends a turn: all its removals are done. The mark of a turn that took very long stays until it expires.
    /// Reading and removing it are two steps, and another process may take it over between them.
    pub(crate) async fn end_sweep(&self, turn: SweepLock) -> Result<(), StoreError> {
        let Kind::Marked(mark) = &turn.kind else { return Ok(()) };
        match self.turn_mark().await? {
            Some((found, _)) if found == *mark && turn.is_ours() => self.remove(&Key::Sweeping).await,
            _ => Ok(()),
        }
    }

    /// Waits until the sweep under way is over. A later sweep sees the object that was put before it. Returns
    /// whether there was one.
    pub(crate) async fn outwait_sweep(&self) -> Result<bool, StoreError> {
        let mut forgotten = Forgotten::default();
        let mut first = None;
        loop {
            let (mark, may_be_dead) = match self.turn_lock() {
                Some(lock) => (blocking("look for a sweep", move || locked_by(&lock)).await?, false),
                None => (self.turn_mark().await?.map(|(mark, _)| mark), true),
            };
            let Some(mark) = mark else { return Ok(first.is_some()) };
            let is_next = *first.get_or_insert_with(|| mark.clone()) != mark;
            if is_next || (may_be_dead && forgotten.is(mark)) {
                return Ok(true);
            }
            sleep(LOOK).await;
        }
    }

    fn turn_lock(&self) -> Option<PathBuf> {
        self.on_disk().map(|local| local.data().join(LOCK))
    }

    async fn turn_mark(&self) -> Result<Option<(String, UpdateVersion)>, StoreError> {
        let failed = |e| StoreError::of_object(self.root(), &Key::Sweeping, e);
        let found = self.objects().get(&Key::Sweeping.path()).await;
        let Some(found) = self.if_there(&Key::Sweeping, found)? else { return Ok(None) };
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        let bytes = found.bytes().await.map_err(failed)?;
        Ok(Some((String::from_utf8_lossy(&bytes).into_owned(), version)))
    }
}

/// How long the same mark has existed, by this process's own clock, so that no clocks have to agree.
#[derive(Debug, Default)]
struct Forgotten(Option<(String, Instant)>);

impl Forgotten {
    fn is(&mut self, mark: String) -> bool {
        match &self.0 {
            Some((seen, since)) if *seen == mark => since.elapsed() > FORGOTTEN,
            _ => {
                self.0 = Some((mark, Instant::now()));
                false
            }
        }
    }
}

/// Takes the lock if it is free, and writes whose turn it is. Nothing is examined in this turn before that is
/// written. A put that reads the previous mark has therefore stored its object in time.
fn lock(path: &Path) -> Result<Option<fs::File>, StoreError> {
    let Some(file) = files::lock(path)? else { return Ok(None) };
    let mark = path.with_extension(MARK);
    fs::write(&mark, model::JobId::fresh().to_string()).at_file("write", &mark)?;
    Ok(Some(file))
}

/// Whose turn it is, if another process holds the exclusive lock.
fn locked_by(path: &Path) -> Result<Option<String>, StoreError> {
    let file = match fs::File::open(path) {
        // Nothing was ever removed in this store.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.at_file("open", path)?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let mark = path.with_extension(MARK);
            match fs::read_to_string(&mark) {
                Ok(mark) => Ok(Some(mark)),
                // The very first turn has not written its mark yet.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Some(String::new())),
                Err(e) => Err(StoreError::of_file("read", &mark, e)),
            }
        }
        Err(TryLockError::Error(e)) => Err(StoreError::of_file("lock", path, e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StoreOptions, StoreTarget};

    async fn local(directory: &Path) -> Store {
        Store::open(&StoreTarget::Directory(directory.to_owned()), StoreOptions::default()).await.unwrap()
    }

    #[tokio::test]
    async fn puts_outwait_a_turn_and_a_second_sweep_does_too() {
        let directory = tempfile::tempdir().unwrap();
        for store in [Store::in_memory(), local(directory.path()).await] {
            assert!(!store.outwait_sweep().await.unwrap());
            let turn = store.begin_sweep().await.unwrap();
            assert!(turn.lasts());
            let second = async {
                let turn = store.begin_sweep().await.unwrap();
                store.end_sweep(turn).await.unwrap();
            };
            let mut second = Box::pin(second);
            let ended = async {
                sleep(LOOK * 3).await;
                store.end_sweep(turn).await.unwrap();
            };
            tokio::select! {
                biased;
                () = &mut second => panic!("two turns at once"),
                () = ended => {}
            }
            second.await;
            assert!(!store.outwait_sweep().await.unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_mark_of_a_process_that_was_killed_is_forgotten_after_a_while() {
        let store = Store::in_memory();
        let killed = store.begin_sweep().await.unwrap();
        let began = Instant::now();
        assert!(store.outwait_sweep().await.unwrap());
        assert!(began.elapsed() >= FORGOTTEN);
        assert!(!killed.lasts());
        let next = store.begin_sweep().await.unwrap();
        // The earlier process resumes: the turn is no longer its own.
        store.end_sweep(killed).await.unwrap();
        assert!(store.turn_mark().await.unwrap().is_some());
        store.end_sweep(next).await.unwrap();
        assert!(store.turn_mark().await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn of_two_that_take_over_a_forgotten_turn_one_gets_it() {
        let store = Store::in_memory();
        let killed = store.begin_sweep().await.unwrap();
        let (_, version) = store.turn_mark().await.unwrap().unwrap();
        // Both saw the same mark for long enough before either went on.
        assert!(store.take_over("quick", version.clone()).await.unwrap());
        assert!(!store.take_over("late", version.clone()).await.unwrap());
        assert_eq!(store.turn_mark().await.unwrap().unwrap().0, "quick");
        // A removed mark is not restored, either.
        store.remove(&Key::Sweeping).await.unwrap();
        assert!(!store.take_over("late", version).await.unwrap());
        drop(killed);

        let _killed = store.begin_sweep().await.unwrap();
        let mut turns = [Box::pin(store.begin_sweep()), Box::pin(store.begin_sweep())].into_iter();
        let mut one = turns.next().unwrap();
        let mut two = turns.next().unwrap();
        let turn = tokio::select! {
            turn = &mut one => turn.unwrap(),
            turn = &mut two => { two = one; turn.unwrap() }
        };
        assert!(turn.lasts());
        tokio::time::timeout(TURN, &mut two).await.expect_err("two turns at once");
        store.end_sweep(turn).await.unwrap();
        store.end_sweep(two.await.unwrap()).await.unwrap();
        assert!(store.turn_mark().await.unwrap().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_took_very_long_leaves_its_mark() {
        let store = Store::in_memory();
        let turn = store.begin_sweep().await.unwrap();
        sleep(FORGOTTEN / 2).await;
        store.end_sweep(turn).await.unwrap();
        assert!(store.turn_mark().await.unwrap().is_some());
    }

    #[tokio::test]
    async fn who_waits_for_a_turn_does_not_wait_for_the_next() {
        let directory = tempfile::tempdir().unwrap();
        for store in [Store::in_memory(), local(directory.path()).await] {
            let turn = store.begin_sweep().await.unwrap();
            let mut waits = Box::pin(store.outwait_sweep());
            tokio::time::timeout(LOOK * 2, &mut waits).await.expect_err("the turn goes on");
            store.end_sweep(turn).await.unwrap();
            let _next = store.begin_sweep().await.unwrap();
            assert!(waits.await.unwrap());
        }
    }

    #[tokio::test]
    async fn the_lock_of_a_local_turn_goes_with_its_process() {
        let directory = tempfile::tempdir().unwrap();
        let store = local(directory.path()).await;
        drop(store.begin_sweep().await.unwrap());
        assert!(!store.outwait_sweep().await.unwrap());
    }
}
