//! What is on the disk once it is written.

use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use object_store::memory::InMemory;
use store::SourceMarker;

use super::super::{Place, lasting, xml};
use super::*;
use crate::files::FileRecords;
use crate::records::Records as _;
use crate::state::State;
use crate::{Admission, Base, Publication, Requester, Subscriber, WaitingRequest, Withdrawals};

/// Files and folders that were waited for, with their lengths, in all tests.
static WAITED_FOR: Mutex<Vec<(PathBuf, u64)>> = Mutex::new(Vec::new());

/// Notes a file or a folder that is waited for.
pub(super) fn note(open: &std::fs::File) {
    let path = fs::read_link(format!("/proc/self/fd/{}", open.as_raw_fd())).unwrap();
    WAITED_FOR.lock().unwrap().push((path, open.metadata().unwrap().len()));
}

/// A place, and its folder.
struct Case {
    root: PathBuf,
    place: Place,
}

impl Case {
    fn new(folder: &Path) -> Self {
        let root = folder.canonicalize().unwrap();
        let place = Place::directory(&root, Arc::new(InMemory::new())).unwrap();
        Self { root, place }
    }

    /// What was waited for since the last time: the lengths of files without a name, and folders.
    fn waited_for(&self) -> Vec<String> {
        let mut all = WAITED_FOR.lock().unwrap();
        let own = all.extract_if(.., |(path, _)| path.starts_with(&self.root));
        let told = own.map(|(path, length)| {
            let path = path.strip_prefix(&self.root).unwrap().display().to_string();
            if path.starts_with(".thresher/tmp/") { format!("{length} bytes") } else { format!("/{path}") }
        });
        told.collect()
    }
}

#[tokio::test]
async fn a_lasting_file_is_on_the_disk_before_it_has_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let case = Case::new(folder.path());
    case.place.put("own/a", "four".into(), &lasting()).await.unwrap();
    assert_eq!(case.waited_for(), ["4 bytes", "/", "/own"]);
    case.place.put("own/b", "a".into(), &lasting()).await.unwrap();
    assert_eq!(case.waited_for(), ["1 bytes", "/own"]);
    case.place.put("own/a", "other".into(), &lasting()).await.unwrap();
    assert_eq!(case.waited_for(), ["5 bytes"], "the earlier one would be as good");
    case.place.replace("own/a", "another".into(), &lasting()).await.unwrap();
    assert_eq!(case.waited_for(), ["7 bytes", "/own"]);
    case.place.put("list.xml", "a list".into(), &xml()).await.unwrap();
    assert!(case.waited_for().is_empty(), "the state that names it waits for all such files");
}

#[tokio::test]
async fn what_nothing_else_tells_is_lasting() {
    let (folder, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let case = Case::new(folder.path());
    let url: url::Url = "http://mirror.example/files/".parse().unwrap();
    let base = Base::new("http://mirror.example/".parse().unwrap()).unwrap();
    let marker = SourceMarker::new("one".parse().unwrap(), url.as_str());
    let publication = Publication::of_documents(case.place.clone(), base.clone(), marker.clone());
    let is_lasting = || case.waited_for().first().is_some_and(|first| first.ends_with(" bytes"));

    State::new(&marker.source, &base, false).save(&case.place).await.unwrap();
    assert!(is_lasting(), "the state");
    fs::write(files.path().join("a"), "a file").unwrap();
    let records = FileRecords::new(files.path(), &url, &case.place).unwrap();
    records.refresh(0, Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(is_lasting(), "what is known of files");
    publication.note_told(&url, Timestamp::UNIX_EPOCH).await.unwrap();
    assert!(is_lasting(), "until when a hub was told");
    let subscriber = Subscriber {
        callback: url,
        secret: None,
        lease_until: Timestamp::MAX,
        told: Timestamp::UNIX_EPOCH,
        failing_since: None,
        admission: Admission::default(),
    };
    publication.put_subscriber(&subscriber).await.unwrap();
    assert!(is_lasting(), "a subscriber");
    let request = WaitingRequest { form: "hub.mode=none".to_owned(), admission: Admission::default() };
    publication.put_waiting_request(Requester::Stranger, "a", &request).await.unwrap();
    assert!(is_lasting(), "a request that was answered");
    publication.save_withdrawals(&Withdrawals::default()).await.unwrap();
    assert!(is_lasting(), "when records were withdrawn");
}
