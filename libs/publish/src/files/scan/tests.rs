//! A scan of what has changed leaves the rows that a scan of everything leaves.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use object_store::memory::InMemory;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::files::spelling::is_plain;
use crate::scanned::Problem;

/// A directory, and what its last scan left.
struct Case {
    directory: TempDir,
    place: Place,
    rows: Option<Rows>,
    files: u64,
    again: Looks,
    published: u64,
}

impl Case {
    fn new() -> Self {
        let place = Place::bucket("memory", Arc::new(InMemory::new()));
        let directory = tempfile::tempdir().unwrap();
        Self { directory, place, rows: None, files: 0, again: Looks::all(), published: 0 }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn scan_of(&self, looks: Looks) -> Scan {
        Scan {
            directory: self.directory.path().to_owned(),
            url: "https://e.org/files/".to_owned(),
            place: self.place.clone(),
            old: self.rows.clone(),
            files: self.files,
            looks,
            heard: None,
            number: self.rows.as_ref().map_or(1, |rows| rows.head.changed + 1),
            published: self.published,
            allow_deletes: true,
            save_every: u64::MAX,
            stop: Arc::default(),
        }
    }

    /// Scans, and leaves it as before.
    fn scan(&self, looks: Looks) -> (Outcome, Vec<Row>) {
        let outcome = self.scan_of(looks).run().unwrap();
        let rows = match &outcome.rows {
            Some(file) => all(&Rows::open(file.reopen().unwrap()).unwrap()),
            None => self.rows.as_ref().map(all).unwrap_or_default(),
        };
        (outcome, rows)
    }

    /// Scans by both ways, compares them, and takes the new rows.
    fn agree(&mut self, changed: &[String]) {
        let mut looks = self.again.clone();
        for path in changed {
            looks.insert(path);
        }
        let (whole, expected) = self.scan(Looks::all());
        let (part, rows) = self.scan(looks.clone());
        assert_eq!(rows, expected, "{looks:?}");
        assert_eq!(part.rows.is_some(), whole.rows.is_some());
        let counts = |scanned: &Scanned| (scanned.files, scanned.created, scanned.updated, scanned.deleted);
        assert_eq!(counts(&part.scanned), counts(&whole.scanned), "{looks:?}");
        assert_eq!(part.scanned.looks.is_none(), looks.are_all());
        let unsettled: Vec<&Row> = rows.iter().filter(|row| row.unsure || row.sha256.is_none()).collect();
        assert!(unsettled.iter().all(|row| part.again.contain(&row.path)), "{:?}", part.again);
        let head = |outcome: &Outcome| outcome.rows.as_ref().map(|file| open(file).head);
        assert_eq!(head(&part), head(&whole));
        if let (Some(recent), Some(from)) = (&part.recent, self.rows.as_ref().map(|_| self.published)) {
            let expected: Vec<&Row> = rows.iter().filter(|row| row.changed >= from).collect();
            assert!(recent.iter().eq(expected), "{recent:?}");
        }
        self.again = part.again;
        self.files = part.scanned.files;
        if let Some(file) = &part.rows {
            self.rows = Some(open(file));
        }
    }
}

fn open(file: &NamedTempFile) -> Rows {
    Rows::open(file.reopen().unwrap()).unwrap()
}

fn all(rows: &Rows) -> Vec<Row> {
    let mut reader = rows.read();
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

/// A change of the tree.
#[derive(Debug, Clone)]
enum Edit {
    Write(String, u8),
    /// Young for ever: its time is in the future.
    Young(String),
    Link(String),
    Remove(String),
    Move(String, String),
}

impl Edit {
    /// Does it as far as it can be done. Returns the paths that changed.
    fn make(&self, case: &Case) -> Vec<String> {
        let long_ago = SystemTime::UNIX_EPOCH;
        match self {
            Self::Write(path, byte) => write(case, path, *byte, long_ago),
            Self::Young(path) => write(case, path, b'y', long_ago + Duration::from_secs(1 << 33)),
            Self::Link(path) => {
                let changed = new_at(case, path);
                remove(&case.at(path));
                make_above(case, path);
                // Nothing can be written through it.
                let _ = symlink("/proc/nowhere", case.at(path));
                vec![changed]
            }
            Self::Remove(path) => {
                remove(&case.at(path));
                vec![path.clone()]
            }
            Self::Move(from, to) => {
                let changed = new_at(case, to);
                make_above(case, to);
                let _ = fs::rename(case.at(from), case.at(to));
                vec![from.clone(), changed]
            }
        }
    }
}

/// The topmost folder that is not there above a path, or the path itself.
fn new_at(case: &Case, path: &str) -> String {
    let ends = path.match_indices('/').map(|(end, _)| &path[..end]);
    ends.chain([path]).find(|path| case.at(path).symlink_metadata().is_err()).unwrap_or(path).to_owned()
}

fn make_above(case: &Case, path: &str) {
    let above = case.at(path).parent().map(fs::create_dir_all);
    drop(above);
}

/// Writes a file, if that is possible. Its time is that of its content, so that times tell contents apart.
fn write(case: &Case, path: &str, byte: u8, time: SystemTime) -> Vec<String> {
    let changed = new_at(case, path);
    make_above(case, path);
    if fs::write(case.at(path), vec![byte; usize::from(byte % 3)]).is_ok() {
        let time = time + Duration::from_secs(u64::from(byte));
        File::options().write(true).open(case.at(path)).unwrap().set_modified(time).unwrap();
    }
    vec![changed]
}

fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        let _ = fs::remove_dir_all(path);
    }
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "a.b", "a-", ".h"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => (path(), any::<u8>()).prop_map(|(path, byte)| Edit::Write(path, byte)),
        1 => path().prop_map(Edit::Young),
        1 => path().prop_map(Edit::Link),
        3 => path().prop_map(Edit::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Edit::Move(from, to)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_rows_are_those_of_a_scan_of_everything(
        rounds in prop::collection::vec((prop::collection::vec(edit(), 0..8), any::<bool>()), 1..8),
    ) {
        let mut case = Case::new();
        for (edits, is_published) in rounds {
            let changed = edits.iter().flat_map(|edit| edit.make(&case));
            // Nothing else is heard of.
            let changed: Vec<String> = changed.filter(|path| is_plain(path)).collect();
            case.agree(&changed);
            if is_published {
                case.published = case.rows.as_ref().map_or(0, |rows| rows.head.changed + 1);
            }
        }
    }
}

#[test]
fn a_look_at_what_is_not_there_changes_nothing() {
    let mut case = Case::new();
    let old = SystemTime::UNIX_EPOCH;
    for path in ["a/deep/file", "a/file", "b"] {
        write(&case, path, 1, old);
    }
    case.agree(&[]);
    let deep = format!("{}x", "a/".repeat(120));
    let mut looks = Looks::default();
    for path in ["a/deep/nothing", "b/below/it", &deep, &"n".repeat(1_000)] {
        looks.insert(path);
    }
    let (outcome, rows) = case.scan(looks);
    assert_eq!((outcome.rows.is_none(), rows.len(), outcome.scanned.files), (true, 3, 3));
    assert_eq!(outcome.scanned.problems.count(Problem::TooLong), 1);
}

#[test]
fn a_file_with_another_name_is_looked_at_again_always() {
    let mut case = Case::new();
    write(&case, "a", 1, SystemTime::UNIX_EPOCH);
    write(&case, "c", 1, SystemTime::UNIX_EPOCH);
    fs::hard_link(case.at("a"), case.at("b")).unwrap();
    case.agree(&[]);
    for byte in 1..3 {
        assert_eq!(case.again.iter().collect::<Vec<_>>(), ["a", "b"]);
        // It is heard of under this name alone.
        write(&case, "a", byte, SystemTime::UNIX_EPOCH);
        case.agree(&["a".to_owned()]);
    }
}

#[test]
fn a_look_reads_only_what_changed() {
    let mut case = Case::new();
    for number in 0..500 {
        write(&case, &format!("{}/{number:03}", number % 7), 1, SystemTime::UNIX_EPOCH);
    }
    case.agree(&[]);
    write(&case, "3/003", 2, SystemTime::UNIX_EPOCH);
    let mut looks = Looks::default();
    looks.insert("3/003");
    let (outcome, _) = case.scan(looks);
    let Outcome { scanned, recent, .. } = outcome;
    assert_eq!((scanned.read, scanned.updated, scanned.files, scanned.looks), (1, 1, 500, Some(1)));
    assert_eq!(recent.map(|recent| recent.len()), None, "the first scan is not published yet");
    case.published = 2;
    let mut looks = Looks::default();
    looks.insert("3");
    let (outcome, _) = case.scan(looks);
    assert_eq!(outcome.recent.map(|recent| recent.len()), Some(1));
}

/// A case with so many files that a walk of all waits for room, and that their rows are read in several pieces.
fn many() -> Case {
    let mut case = Case::new();
    for number in 0..4_000 {
        write(&case, &format!("{}/{number:04}", number % 7), 1, SystemTime::UNIX_EPOCH);
    }
    case.agree(&[]);
    case
}

#[test]
fn unchanged_files_leave_the_rows_as_they_are() {
    let case = many();
    let length = case.rows.as_ref().map(|rows| rows.end().unwrap());
    assert!(length > Some(2 * 256 * 1024), "{length:?}");
    let (outcome, _) = case.scan(Looks::all());
    assert_eq!((outcome.scanned.files, outcome.scanned.read, outcome.rows.is_none()), (4_000, 0, true));
}

#[test]
fn rows_that_cannot_be_read_end_a_scan_whose_walk_waits_for_room() {
    let mut case = many();
    write(&case, "0/0007", 2, SystemTime::UNIX_EPOCH);
    let (outcome, _) = case.scan(Looks::all());
    let file = outcome.rows.unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    fs::write(file.path(), text.replacen("{\"path\":\"0/0007\"", "{\"nothing\":1", 1)).unwrap();
    case.rows = Some(open(&file));
    let failed = case.scan_of(Looks::all()).run().err().map(|error| error.to_string());
    assert!(failed.as_ref().is_some_and(|failed| failed.contains(crate::files::rows::FILES)), "{failed:?}");
}
