//! The folders that are watched, and what has changed in them.

use std::collections::{BTreeSet, HashMap};

use tokio::time::Instant;

use crate::files::kernel::Event;
use crate::files::looks::Looks;
use crate::files::spelling::is_plain;
use crate::files::walk::LONGEST_PATH;
use crate::unheard::Unheard;

/// What was heard so far.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The paths of each watched folder. It is at several by a mount, and while it is moved.
    pub(super) folders: HashMap<i32, Vec<String>>,
    pub(super) paths: usize,
    pub(super) file_systems: BTreeSet<u64>,
    pub(super) looks: Looks,
    /// When the first and the last of these were told.
    pub(super) times: Option<(Instant, Instant)>,
    /// Why nothing is heard any more.
    pub(super) unheard: Option<Unheard>,
    /// Watches that are to be given back to the kernel.
    pub(super) over: Vec<i32>,
}

impl State {
    pub(super) fn add(&mut self, watch: i32, path: &str) {
        let paths = self.folders.entry(watch).or_default();
        if !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
            self.paths += 1;
        }
    }

    /// Takes an event. `moved` gets the paths from which folders were moved away.
    pub(super) fn hear(&mut self, event: Event<'_>, moved: &mut Looks) {
        match event {
            Event::Changed(folder, name) => self.change(folder, name, None),
            Event::MovedAway(folder, name) => self.change(folder, name, Some(moved)),
            // What is above another folder tells of it.
            Event::Gone(folder) if self.is_root(folder) => self.end(Unheard::Gone),
            Event::Gone(_) => {}
            Event::Forgotten(folder) => {
                self.paths -= self.folders.remove(&folder).map_or(0, |paths| paths.len());
            }
            Event::Unmounted => self.end(Unheard::Gone),
            Event::Overflow => self.end(Unheard::Overflow),
        }
    }

    fn is_root(&self, folder: i32) -> bool {
        self.folders.get(&folder).is_some_and(|paths| paths.iter().any(String::is_empty))
    }

    /// Something changed at a name in a folder. A name that cannot be published is passed over.
    fn change(&mut self, folder: i32, name: &[u8], mut moved: Option<&mut Looks>) {
        let name = std::str::from_utf8(name).ok().filter(|name| is_plain(name));
        let (Some(name), Some(folders)) = (name, self.folders.get(&folder)) else { return };
        let mut are_too_many = false;
        for folder in folders {
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            if path.len() > LONGEST_PATH {
                continue;
            }
            are_too_many |= self.looks.insert(&path);
            if let Some(moved) = &mut moved {
                are_too_many |= moved.insert(&path);
            }
            let now = Instant::now();
            self.times = Some((self.times.map_or(now, |(first, _)| first), now));
        }
        if are_too_many {
            self.end(Unheard::TooManyChanges);
        }
    }

    /// Forgets the folders that were at these paths or below.
    pub(super) fn forget_below(&mut self, moved: &Looks) {
        self.paths = 0;
        self.folders.retain(|watch, paths| {
            paths.retain(|path| !moved.contain(path));
            self.paths += paths.len();
            if paths.is_empty() {
                self.over.push(*watch);
            }
            !paths.is_empty()
        });
    }

    /// Nothing is heard from now on.
    pub(super) fn end(&mut self, why: Unheard) {
        let now = Instant::now();
        if self.unheard.is_none() {
            let mut over = std::mem::take(&mut self.over);
            over.extend(self.folders.keys());
            *self = Self { unheard: Some(why), times: Some((now, now)), over, ..Self::default() };
        }
    }
}
