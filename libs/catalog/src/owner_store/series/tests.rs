use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tokio::time::{Duration, sleep};

use super::*;

/// A series, and the store that it is in.
struct Case {
    series: Series,
    store: InMemory,
}

/// Who answered.
#[derive(Debug, PartialEq, Eq)]
enum By {
    Memory,
    Store,
}

impl Case {
    fn new() -> Self {
        Self { series: Series::of("catalogs/a", "manifest"), store: InMemory::new() }
    }

    fn path(number: u64) -> Path {
        Path::from(format!("catalogs/a/manifest/{number:020}.manifest"))
    }

    /// Gets an object as the owner does: its text, and who answered.
    async fn get(&self, at: &Path) -> (By, Result<String>) {
        self.get_unless(at, None).await
    }

    async fn get_unless(&self, at: &Path, e_tag: Option<String>) -> (By, Result<String>) {
        let part = self.series.part(at).unwrap();
        let options = object_store::GetOptions { if_none_match: e_tag.clone(), ..Default::default() };
        let (by, answer) = match self.series.known(at, part, e_tag.as_deref()) {
            Ok(answer) => (By::Memory, answer),
            Err(asked) => {
                let answer = self.store.get_opts(at, options).await;
                (By::Store, self.series.note_get(part, e_tag.as_deref(), &asked, answer).await)
            }
        };
        match answer {
            Ok(result) => {
                let bytes = result.bytes().await.unwrap();
                (by, Ok(String::from_utf8(bytes.to_vec()).unwrap()))
            }
            Err(error) => (by, Err(error)),
        }
    }

    /// Whether there is a file with this number, and who says so.
    async fn has(&self, number: u64) -> (By, bool) {
        match self.get(&Self::path(number)).await {
            (by, Ok(_)) => (by, true),
            (by, Err(Error::NotFound { .. })) => (by, false),
            (_, Err(error)) => panic!("{error}"),
        }
    }

    /// Creates a file as the owner does.
    async fn create(&self, number: u64) -> bool {
        let at = Self::path(number);
        let bytes = Bytes::from(format!("file {number}"));
        let options = PutOptions::from(PutMode::Create);
        let result = self.store.put_opts(&at, bytes.clone().into(), options).await;
        self.series.note_put(&at, Part::File(number), bytes, &result);
        result.is_ok()
    }

    /// Another owner creates a file.
    async fn another_creates(&self, number: u64) {
        self.store.put(&Self::path(number), "another's".into()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_written_is_known_and_that_nothing_follows_is_believed_for_a_while() {
    let case = Case::new();
    assert!(case.create(1).await);
    assert_eq!(case.get(&Case::path(1)).await.1.unwrap(), "file 1");
    assert_eq!(case.has(1).await, (By::Memory, true));
    assert_eq!(case.has(2).await, (By::Memory, false));
    assert_eq!(case.has(3).await, (By::Store, false), "only the next one is believed to be missing");
    sleep(BELIEVED).await;
    assert_eq!(case.has(2).await, (By::Store, false));
    assert_eq!(case.has(2).await, (By::Memory, false));
    case.another_creates(2).await;
    sleep(BELIEVED - Duration::from_millis(1)).await;
    assert_eq!(case.has(2).await, (By::Memory, false));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(case.has(2).await, (By::Store, true));
    assert_eq!(case.get(&Case::path(2)).await.1.unwrap(), "another's");
    assert_eq!(case.has(2).await, (By::Memory, true));
    assert_eq!(case.has(1).await, (By::Store, true), "only the newest file is kept");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_because_another_was_first_ends_all_belief() {
    let case = Case::new();
    assert!(case.create(1).await);
    case.another_creates(2).await;
    assert_eq!(case.has(2).await, (By::Memory, false));
    assert!(!case.create(2).await);
    assert_eq!(case.has(2).await, (By::Store, true));
    assert_eq!(case.get(&Case::path(2)).await.1.unwrap(), "another's");
    assert!(case.create(3).await);
    case.series.doubt();
    assert_eq!(case.has(4).await, (By::Store, false));
    assert_eq!(case.has(3).await, (By::Memory, true), "a file never changes");
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_before_a_write_is_no_answer_to_what_follows_it() {
    let case = Case::new();
    assert!(case.create(1).await);
    sleep(BELIEVED).await;
    let at = Case::path(2);
    let next = Part::File(2);
    let Err(asked) = case.series.known(&at, next, None) else { panic!("it is not known") };
    let answer = case.store.get(&at).await;
    assert!(case.create(2).await);
    assert!(case.series.note_get(next, None, &asked, answer).await.is_err());
    assert_eq!(case.has(2).await, (By::Memory, true));
    assert_eq!(case.has(3).await, (By::Memory, false));

    let boundary = Path::from("catalogs/a/gc/manifest.boundary");
    let Err(asked) = case.series.known(&boundary, Part::Boundary, None) else { panic!("it is not known") };
    let answer = case.store.get(&boundary).await;
    assert!(case.create(3).await);
    assert!(case.series.note_get(Part::Boundary, None, &asked, answer).await.is_err());
    assert_eq!(case.get(&boundary).await.0, By::Store, "the boundary is read after each write");
    assert_eq!(case.get(&boundary).await.0, By::Memory);
}

#[tokio::test(start_paused = true)]
async fn a_boundary_is_believed_for_a_while_and_read_after_each_write() {
    let case = Case::new();
    let boundary = Path::from("catalogs/a/gc/manifest.boundary");
    assert_eq!(case.get(&boundary).await.0, By::Store);
    assert!(matches!(case.get(&boundary).await, (By::Memory, Err(Error::NotFound { .. }))));
    let put = case.store.put(&boundary, "7".into()).await.unwrap();
    sleep(BELIEVED).await;
    assert!(matches!(case.get(&boundary).await, (By::Store, Ok(seven)) if seven == "7"));
    assert!(matches!(case.get(&boundary).await, (By::Memory, Ok(seven)) if seven == "7"));
    let same = || case.get_unless(&boundary, put.e_tag.clone());
    assert!(matches!(same().await, (By::Memory, Err(Error::NotModified { .. }))));
    assert!(case.create(1).await);
    assert!(matches!(same().await, (By::Store, Err(Error::NotModified { .. }))));
    assert!(matches!(same().await, (By::Memory, Err(Error::NotModified { .. }))));
    assert!(matches!(case.get(&boundary).await, (By::Memory, Ok(seven)) if seven == "7"));
    let other = case.get_unless(&boundary, Some("another".to_owned())).await;
    assert!(matches!(other, (By::Memory, Ok(seven)) if seven == "7"));
}

#[tokio::test(start_paused = true)]
async fn the_files_are_listed_once_in_a_while_and_after_each_write() {
    let case = Case::new();
    let Err(asked) = case.series.listed() else { panic!("they are not listed yet") };
    case.series.note_list(&asked, &[]);
    assert_eq!(case.series.listed().unwrap(), []);
    let before = case.series.listed();
    assert!(case.create(1).await);
    assert!(before.is_ok() && case.series.listed().is_err());
    case.series.note_list(&asked, &[]);
    assert!(case.series.listed().is_err(), "the list is from before the write");
    let Err(asked) = case.series.listed() else { panic!("they are not listed yet") };
    let found = case.store.head(&Case::path(1)).await.unwrap();
    case.series.note_list(&asked, std::slice::from_ref(&found));
    assert_eq!(case.series.listed().unwrap(), std::slice::from_ref(&found));
    sleep(BELIEVED).await;
    let Err(asked) = case.series.listed() else { panic!("it is too old") };
    case.series.note_list(&asked, &vec![found; MOST_LISTED + 1]);
    assert!(case.series.listed().is_err(), "too many to keep");
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_later_file_ends_the_belief_that_there_is_none() {
    let case = Case::new();
    assert!(case.create(1).await);
    case.another_creates(2).await;
    assert_eq!(case.has(2).await, (By::Memory, false));
    let Err(asked) = case.series.listed() else { panic!("they are not listed yet") };
    let mut files = Vec::new();
    for number in [1, 2] {
        files.push(case.store.head(&Case::path(number)).await.unwrap());
    }
    case.series.note_list(&asked, &files);
    assert_eq!(case.has(2).await, (By::Store, true));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_names_a_removed_file_is_not_believed() {
    let case = Case::new();
    case.another_creates(1).await;
    let Err(asked) = case.series.listed() else { panic!("they are not listed yet") };
    let found = case.store.head(&Case::path(1)).await.unwrap();
    case.series.note_list(&asked, std::slice::from_ref(&found));
    assert_eq!(case.has(2).await, (By::Store, false));
    assert!(case.series.listed().is_ok(), "it does not name the second");
    case.store.delete(&Case::path(1)).await.unwrap();
    assert_eq!(case.has(1).await, (By::Store, false));
    assert!(case.series.listed().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_list_is_not_believed_once_the_boundary_has_reached_the_newest_file() {
    let case = Case::new();
    let boundary = Path::from("catalogs/a/gc/manifest.boundary");
    for number in [1, 2] {
        assert!(case.create(number).await);
    }
    let Err(asked) = case.series.listed() else { panic!("they are not listed yet") };
    let found = case.store.head(&Case::path(2)).await.unwrap();
    case.series.note_list(&asked, std::slice::from_ref(&found));
    case.store.put(&boundary, "1".into()).await.unwrap();
    assert_eq!(case.get(&boundary).await.0, By::Store);
    assert!(case.series.listed().is_ok(), "only an earlier file is removed");
    case.store.put(&boundary, "2".into()).await.unwrap();
    sleep(BELIEVED - Duration::from_millis(1)).await;
    assert!(case.series.listed().is_ok(), "the boundary is believed, too");
    case.series.doubt();
    assert_eq!(case.get(&boundary).await.0, By::Store);
    let Err(asked) = case.series.listed() else { panic!("it was doubted") };
    case.series.note_list(&asked, std::slice::from_ref(&found));
    assert!(case.series.listed().is_err(), "there are later files");
}

#[test]
fn only_files_of_the_series_and_its_boundary_belong_to_it() {
    let series = Series::of("catalogs/a", "manifest");
    for (path, part) in [
        ("catalogs/a/manifest/00000000000000000012.manifest", Some(Part::File(12))),
        ("catalogs/a/gc/manifest.boundary", Some(Part::Boundary)),
        ("catalogs/a/gc/compactions.boundary", None),
        ("catalogs/a/manifest/x.manifest", None),
        ("catalogs/a/manifest/12.sst", None),
        ("catalogs/a/manifest/1/12.manifest", None),
        ("catalogs/a/wal/12.sst", None),
        ("catalogs/ab/manifest/12.manifest", None),
    ] {
        assert_eq!(series.part(&Path::from(path)), part, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_tells_that_nothing_follows_its_last_file() {
    let case = Case::new();
    case.another_creates(1).await;
    case.another_creates(2).await;
    let asked = case.series.listed().unwrap_err();
    let files: Vec<_> = case.store.list(Some(&case.series.folder)).try_collect().await.unwrap();
    case.series.note_list(&asked, &files);
    assert_eq!(case.has(1).await, (By::Store, true));
    assert_eq!(case.has(2).await, (By::Store, true));
    assert_eq!(case.has(3).await, (By::Memory, false));
    sleep(BELIEVED).await;
    assert_eq!(case.has(3).await, (By::Store, false));
}

#[tokio::test(start_paused = true)]
async fn what_the_newest_file_says_need_not_be_written_again_if_that_counts() {
    let case = Case::new();
    assert!(case.create(1).await);
    let same = Bytes::from("file 1");
    assert!(case.series.said_already(2, &same).is_none(), "the boundary was not read since");
    assert!(case.get(&case.series.boundary).await.1.is_err());
    assert!(case.series.said_already(2, &same).is_some());
    assert!(case.series.said_already(3, &same).is_none());
    assert!(case.series.said_already(2, &Bytes::from("other")).is_none());
    case.another_creates(2).await;
    assert!(!case.create(2).await);
    assert!(case.series.said_already(2, &same).is_none(), "another was first");
    sleep(BELIEVED).await;
    assert!(case.series.said_already(2, &same).is_none());
}
