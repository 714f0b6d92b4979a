//! `source move`: a Source is harvested from another URL, and what is stored stays.

mod fleet;

use std::path::{Path, PathBuf};

use model::SourceId;
use serde_json::Value;
use simulated_source::{Changes, Deletions, RepositorySpec, SimulatedRepository, Size, SourceSpec};

use crate::common::{Destination, Run, Site, resource, source, urlset};

/// A move of a copy, as JSON.
#[track_caller]
fn to(copy: &Destination, from: &str, to: &str) -> Run {
    copy.run("source", &["move", from, "--to", to, "--json", "--retries", "0"])
}

#[track_caller]
fn back(copy: &Destination, from: &str) -> Run {
    copy.run("source", &["move", from, "--back"])
}

/// Counts of a move: adopted, fetched, listed by the former URL only.
fn counts(run: &Run) -> (u64, u64, u64) {
    let json = run.json();
    let count = |name: &str| json[name]["resources"].as_u64().unwrap_or_else(|| panic!("{name}: {json}"));
    (count("adopted"), count("fetched"), count("only_former"))
}

/// A folder or file of the store of a copy.
fn data(copy: &Destination, name: &str) -> PathBuf {
    Path::new(&copy.into).join(".thresher").join(name)
}

fn id(url: &str) -> SourceId {
    SourceId::of_entry(&url.parse().expect("a URL"))
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_another_url_lists_with_the_same_digest_is_adopted_without_a_request() {
    let source = source(SourceSpec::default().resources(40)).await;
    let copy = Destination::directory();
    let old = source.resource_list();
    copy.sync_with(&old, &["--label", "country=jp"]).exits(0);
    source.reset_requests();
    let run = to(&copy, &old, &source.well_known()).exits(0);
    assert_eq!(counts(&run), (40, 0, 0), "{run}");
    let marker = data(&copy, &format!("sources/{}.json", id(&source.well_known())));
    let marker: Value = serde_json::from_slice(&std::fs::read(marker).unwrap()).unwrap();
    assert_eq!(marker["labels"], serde_json::json!({ "country": "jp" }), "the labels move along");
    assert_eq!(source.requests().resources, 0, "no resource is requested again");
    copy.mirrors(&source);

    // The new Source goes on as any other.
    let refused = copy.sync(&old).exits(2);
    assert!(refused.stderr.contains("was moved to") && refused.stderr.contains("--back"), "{refused}");
    source.change(Changes { create: 1, update: 2, delete: 1 });
    let run = copy.sync(&source.well_known()).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (3, 1), "{run}");
    copy.mirrors(&source);

    // Taken back, the former Source has what it had, files too. Its next run reads its own lists.
    back(&copy, &old).exits(0);
    assert_eq!(copy.present().len(), 40);
    assert_eq!(copy.view().len(), 40);
    source.refresh_resource_list();
    copy.sync(&old).exits(0);
    copy.run("scrub", &[]).exits(0);
    back(&copy, &old).exits(2);
}

/// A repository whose site lists its records by ResourceSync, and two pages.
struct Case {
    repository: SimulatedRepository,
    site: Site,
    copy: Destination,
}

impl Case {
    async fn harvested() -> Self {
        let spec = RepositorySpec::default().records(60).page_size(20).deletions(Deletions::Persistent);
        let repository = SimulatedRepository::start(spec).await.expect("a free port on loopback");
        let copy = Destination::directory();
        copy.sync(&repository.base_url()).exits(0);
        repository.reset_requests();
        Self { repository, site: Site::start().await, copy }
    }

    fn uri(&self, index: u64) -> String {
        let identifier = self.repository.identifier(index).replace(':', "%3A");
        let base = self.repository.base_url();
        format!("{base}?verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc")
    }

    /// Lists these records, as they are stored, and a page.
    fn list(&self, day: u32, records: impl IntoIterator<Item = u64>) -> String {
        let present = self.copy.present();
        let mut entries: Vec<String> = records
            .into_iter()
            .map(|index| {
                let uri = self.uri(index);
                let (length, sha256) = &present[&uri];
                resource(&uri, &format!("hash=\"sha-256:{sha256}\" length=\"{length}\""))
            })
            .collect();
        entries.push(resource(&self.site.serve("/page", "a page"), ""));
        let md = format!("capability=\"resourcelist\" at=\"2026-01-{day:02}T00:00:00Z\"");
        self.site.serve("/list.xml", urlset(&md, &entries))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_offers_resourcesync_moves_there_and_its_records_tell_both_lives() {
    let case = Case::harvested().await;
    let base = case.repository.base_url();
    // Newer than the datestamps of all records, as a list that was made today is.
    let list = case.list(20, 0..50);
    let run = to(&case.copy, &base, &list).exits(0);
    assert_eq!(counts(&run), (50, 1, 10), "{run}");
    assert!(run.json()["adopted"]["bytes"].as_u64() > Some(0), "{run}");
    assert_eq!(case.repository.requests().by_verb, Default::default(), "the repository is not asked");
    let story = case.copy.explain(&case.uri(7));
    assert!(story.contains(&format!("which was {base} until it was moved")), "{story}");
    assert!(story.contains("ListRecords"), "the list of its first life: {story}");
    let json = case.copy.run("explain", &[&case.uri(7), "--json"]).exits(0).json();
    assert_eq!(json["events"][0]["event"], "created", "{json}");
    assert_eq!(case.copy.ls().len(), 61, "each resource is listed once");

    // An audit is that of the new kind. What only the former URL listed is told, and stays.
    let audit = case.copy.run("audit", &[&list, "--repair"]).exits(1);
    assert!(audit.stdout.contains("does not offer its set any more"), "{audit}");
    assert_eq!(case.copy.present().len(), 61);
    // What the new lists omit is deleted as usual, though the repository listed it once.
    for (day, expected) in [(21, (1, 0)), (22, (0, 1))] {
        case.list(day, 1..50);
        let run = case.copy.sync(&list).exits(0);
        assert_eq!((run.count("absent"), run.count("deleted")), expected, "{run}");
    }
    assert_eq!(case.copy.state(&case.uri(0)).as_deref(), Some("deleted"));
    assert_eq!(case.copy.state(&case.uri(55)).as_deref(), Some("present"), "nothing is guessed away");
    assert!(case.copy.file(&case.uri(0)).is_none());

    back(&case.copy, &base).exits(0);
    assert_eq!(case.copy.present().len(), 60);
    assert!(case.copy.file(&case.uri(0)).is_some(), "the file is there again");
    assert!(case.copy.file(&case.site.uri("/page")).is_none(), "and what was new is not");
    let run = case.copy.sync(&base).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted"), run.count("failed")), (0, 0, 0), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_cannot_be_made_changes_nothing() {
    let case = Case::harvested().await;
    let base = case.repository.base_url();
    let nowhere = case.site.serve("/nothing.html", "<html><body>nothing</body></html>");
    let run = to(&case.copy, &base, &nowhere);
    assert_ne!(run.exit, Some(0), "{run}");
    to(&case.copy, &base, &base).exits(2);
    to(&case.copy, "https://other.example/", &nowhere).exits(2);
    back(&case.copy, &base).exits(2);
    assert!(!data(&case.copy, "moves").exists());
    assert_eq!(case.copy.sync(&base).exits(0).count("stored"), 0);

    // Nor over another Source.
    let list = case.list(20, []);
    case.copy.sync_with(&list, &["--view", "none"]).exits(0);
    let run = to(&case.copy, &base, &list).exits(2);
    assert!(run.stderr.contains("has a Source of"), "{run}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_was_killed_while_it_copied_is_made_anew_or_taken_back() {
    for takes_back in [false, true] {
        let case = Case::harvested().await;
        let base = case.repository.base_url();
        let list = case.list(20, 0..50);
        // As a process leaves it that was killed while it copied the catalog.
        let (old, new) = (id(&base), id(&list));
        let record = serde_json::json!({
            "source": old, "url": base, "to": new, "to_url": list, "at": "2026-02-01T00:00:00Z", "is_whole": false,
        });
        std::fs::create_dir_all(data(&case.copy, "moves")).unwrap();
        std::fs::write(data(&case.copy, &format!("moves/{old}.json")), record.to_string()).unwrap();
        let part = data(&case.copy, &format!("catalogs/{new}/compacted"));
        std::fs::create_dir_all(&part).unwrap();
        std::fs::write(part.join("01JZZZZZZZZZZZZZZZZZZZZZZZ.sst"), "half of it").unwrap();

        case.copy.sync(&base).exits(2);
        let refused = case.copy.sync(&list).exits(2);
        assert!(refused.stderr.contains("is not finished"), "{refused}");
        assert_eq!(case.copy.present().len(), 60, "the former Source is shown");
        if takes_back {
            back(&case.copy, &base).exits(0);
            assert_eq!(case.copy.sync(&base).exits(0).count("stored"), 0);
        } else {
            let run = to(&case.copy, &base, &list).exits(0);
            assert_eq!(counts(&run), (50, 1, 10), "{run}");
            // Repeated, it only syncs.
            let run = to(&case.copy, &base, &list).exits(0);
            assert_eq!(counts(&run), (50, 1, 10), "{run}");
        }
        case.copy.run("gc", &[]).exits(0);
        assert_eq!(case.copy.present().len(), if takes_back { 60 } else { 61 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_whose_site_offers_resourcesync_is_told_of() {
    let site = Site::start().await;
    let answer = |verb: &str, body: &str| {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
             <responseDate>2026-01-02T03:04:05Z</responseDate><request verb=\"{verb}\">{}</request>{body}</OAI-PMH>",
            site.uri("/oai")
        )
    };
    let identify = "<Identify><repositoryName>One</repositoryName><baseURL>http://h/oai</baseURL>\
        <protocolVersion>2.0</protocolVersion><adminEmail>a@h.org</adminEmail>\
        <earliestDatestamp>2020-01-01</earliestDatestamp><deletedRecord>no</deletedRecord>\
        <granularity>YYYY-MM-DD</granularity></Identify>";
    let formats = "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
        <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
        <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace>\
        </metadataFormat></ListMetadataFormats>";
    let none = "<error code=\"noRecordsMatch\">none</error>";
    site.serve("/oai?verb=Identify", answer("Identify", identify));
    site.serve("/oai?verb=ListMetadataFormats", answer("ListMetadataFormats", formats));
    site.serve("/oai?verb=ListSets", answer("ListSets", "<error code=\"noSetHierarchy\">none</error>"));
    site.serve("/oai?verb=ListRecords&metadataPrefix=oai_dc", answer("ListRecords", none));
    let well_known = site.serve("/.well-known/resourcesync", urlset("capability=\"description\"", &[]));

    let found: Value =
        Run::of(crate::common::thresher().args(["discover", &site.uri("/oai"), "--json"])).exits(0).json();
    assert_eq!(found["oai"]["resourcesync"], well_known.as_str(), "{found}");
    let copy = Destination::directory();
    let run = copy.sync(&site.uri("/oai")).exits(0);
    assert!(run.stderr.contains("thresher source move") && run.stderr.contains(&well_known), "{run}");

    // A page is no Source Description.
    site.serve("/.well-known/resourcesync", "<html>not found</html>");
    let found: Value =
        Run::of(crate::common::thresher().args(["discover", &site.uri("/oai"), "--json"])).exits(0).json();
    assert_eq!(found["oai"]["resourcesync"], Value::Null, "{found}");
}

/// Files of the moves below. `THRESHER_TEST_MOVED=10000` or `50000` tests as many.
fn files_of_test() -> u64 {
    std::env::var("THRESHER_TEST_MOVED").map_or(1_000, |count| count.parse().expect("a number"))
}

/// A repository of records with one file each, harvested with its content.
async fn with_content(files: u64) -> Case {
    let spec = RepositorySpec::default()
        .records(files)
        .page_size(500)
        .files(1)
        .file_size(Size::Range(300, 1_500))
        .deletions(Deletions::Persistent);
    let repository = SimulatedRepository::start(spec).await.expect("a free port on loopback");
    let copy = Destination::directory();
    let options = ["--follow-links", "content", "--view", "none"];
    copy.sync_with(&repository.base_url(), &options).exits(0);
    repository.reset_requests();
    Case { repository, site: Site::start().await, copy }
}

/// An entry with the MD5 and the length of these bytes.
fn by_md5(uri: &str, bytes: &[u8]) -> String {
    let mut hasher = fixity::Hasher::new([fixity::Algorithm::Md5]);
    hasher.update(bytes);
    let computed = hasher.finish();
    let md5 = computed.get(fixity::Algorithm::Md5).expect("it was asked for");
    resource(uri, &format!("hash=\"{md5}\" length=\"{}\"", bytes.len()))
}

/// Requests for files of a repository.
fn content_requests(repository: &SimulatedRepository) -> u64 {
    let by_path = repository.requests().by_verb;
    by_path.iter().filter(|(what, _)| what.starts_with("/files")).map(|(_, times)| times).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn content_of_a_repository_is_adopted_by_its_digest_also_where_it_is_renamed() {
    let files = files_of_test();
    let case = with_content(files).await;
    let (changed, renamed) = (files * 3 / 100, files * 5 / 100);
    (0..changed).for_each(|index| case.repository.update_file(index, 0));
    let mut entries = Vec::new();
    for index in 0..files {
        let bytes = case.repository.file(index, 0);
        let is_renamed = (changed..changed + renamed).contains(&index);
        let uri = if is_renamed {
            case.site.uri(&format!("/renamed/{index}"))
        } else {
            case.repository.file_url(index, 0)
        };
        entries.push(by_md5(&uri, &bytes));
    }
    let md = "capability=\"resourcelist\" at=\"2026-01-20T00:00:00Z\"";
    let list = case.site.serve("/list.xml", urlset(md, &entries));
    let base = case.repository.base_url();
    let run = to(&case.copy, &base, &list).exits(0);
    // Records, and the former URIs of what is renamed, are of the former URL only.
    assert_eq!(counts(&run), (files - changed, changed, files + renamed), "{run}");
    assert_eq!(content_requests(&case.repository), changed);
    assert!(case.site.paths().iter().all(|path| !path.starts_with("/renamed")), "{:?}", case.site.paths());

    let new = case.site.uri(&format!("/renamed/{changed}"));
    let old = case.repository.file_url(changed, 0);
    assert_eq!(case.copy.cat(&new), case.repository.file(changed, 0));
    let story = case.copy.explain(&new);
    assert!(story.contains(&format!("with the bytes of {old}, stored at")), "{story}");
    assert!(story.contains("its digest matches the declared one"), "{story}");
    assert_eq!(case.copy.state(&old).as_deref(), Some("present"), "nothing is guessed away");

    // The index is gone, and the next run finds nothing to do.
    let run = case.copy.sync(&list).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (0, 0), "{run}");
    case.copy.run("gc", &[]).exits(0);
    case.copy.run("scrub", &[]).exits(0);
    back(&case.copy, &base).exits(0);
    assert_eq!(case.copy.present().len() as u64, 2 * files);
}

#[tokio::test(flavor = "multi_thread")]
async fn content_that_a_repository_gave_is_not_fetched_again_from_its_resourcesync() {
    let files = files_of_test();
    let case = with_content(files).await;
    let present = case.copy.present();
    let entries: Vec<String> = (0..files)
        .map(|index| {
            let uri = case.repository.file_url(index, 0);
            let (length, sha256) = &present[&uri];
            resource(&uri, &format!("hash=\"sha-256:{sha256}\" length=\"{length}\""))
        })
        .collect();
    let md = "capability=\"resourcelist\" at=\"2026-01-20T00:00:00Z\"";
    let list = case.site.serve("/list.xml", urlset(md, &entries));
    let base = case.repository.base_url();
    let run = to(&case.copy, &base, &list).exits(0);
    assert_eq!(counts(&run), (files, 0, files), "{run}");
    assert_eq!(case.repository.requests().by_verb, Default::default(), "0 bytes are fetched again");
    let uri = case.repository.file_url(7, 0);
    let story = case.copy.explain(&uri);
    for text in [format!("which was {base} until it was moved"), "ListRecords".to_owned(), list.clone()] {
        assert!(story.contains(&text), "{text}: {story}");
    }
    assert!(!story.contains("no list names it"), "it is listed now: {story}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_were_damaged_before_a_move_are_not_adopted() {
    let case = with_content(20).await;
    // Packs of small bitstreams; a byte of each is changed.
    let mut packs: Vec<PathBuf> = vec![data(&case.copy, "packs")];
    while let Some(place) = packs.pop() {
        if place.is_dir() {
            packs.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let mut bytes = std::fs::read(&place).unwrap();
            let file = case.repository.file(7, 0);
            if let Some(at) = bytes.windows(file.len()).position(|window| window == file) {
                bytes[at] ^= 0xff;
                std::fs::write(&place, bytes).unwrap();
            }
        }
    }
    let entries: Vec<String> = (0..20)
        .map(|index| by_md5(&case.repository.file_url(index, 0), &case.repository.file(index, 0)))
        .collect();
    let md = "capability=\"resourcelist\" at=\"2026-01-20T00:00:00Z\"";
    let list = case.site.serve("/list.xml", urlset(md, &entries));
    to(&case.copy, &case.repository.base_url(), &list).exits(0);
    assert_eq!(content_requests(&case.repository), 1, "only the damaged one is fetched");
    assert_eq!(case.copy.cat(&case.repository.file_url(7, 0)), case.repository.file(7, 0));
}
