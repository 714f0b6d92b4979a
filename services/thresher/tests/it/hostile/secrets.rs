//! Secrets in values that would be stored and shown.

use std::path::Path;

use crate::common::{Destination, Run, Site, resource, thresher, urlset};

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
const SECRET: &str = "hunter2";

#[tokio::test]
async fn an_entry_url_with_a_password_is_refused_with_what_to_do_and_is_not_repeated() {
    let site = Site::start().await;
    let url = site.uri("/list.xml").replace("http://", &format!("http://{SECRET}:{SECRET}@"));
    let name_only = site.uri("/list.xml").replace("http://", &format!("http://{SECRET}@"));
    let copy = Destination::directory();
    for url in [&url, &name_only, &format!("ftp://{SECRET}:{SECRET}@example.org/x")] {
        for command in ["sync", "plan", "audit"] {
            let run = copy.run(command, &[url]).exits(2);
            assert!(!format!("{}{}", run.stdout, run.stderr).contains(SECRET), "{run}");
            if command != "audit" {
                run.complains(&["password"], &["--credentials"]);
            }
        }
    }
    for words in [["discover", &url], ["inspect", &url]] {
        let run = Run::of(thresher().args(words)).exits(2);
        assert!(!format!("{}{}", run.stdout, run.stderr).contains(SECRET), "{run}");
        run.complains(&["password"], &["--credentials"]);
    }
    let added = ["source", "add", &url, "--server", "http://127.0.0.1:1"];
    let run = Run::of(thresher().args(added)).exits(2);
    assert!(!format!("{}{}", run.stdout, run.stderr).contains(SECRET), "{run}");
    assert_eq!(site.requests().len(), 0, "nobody was asked");
    assert!(!Path::new(&copy.into).exists(), "nothing was begun");
}

#[tokio::test]
async fn a_password_that_an_earlier_version_kept_is_not_shown() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "one");
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&one, "")]));
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    let notes = Path::new(&copy.into).join(".thresher/sources");
    let note = std::fs::read_dir(&notes).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(&note).unwrap();
    std::fs::write(&note, text.replace("http://", &format!("http://u:{SECRET}@"))).unwrap();
    for run in [
        copy.run("explain", &[&one]).exits(0),
        copy.run("explain", &[&one, "--json"]).exits(0),
        copy.run("report", &[]).exits(0),
        copy.sync("http://127.0.0.1:9/other.xml").exits(2),
    ] {
        assert!(!format!("{}{}", run.stdout, run.stderr).contains(SECRET), "{run}");
    }
}
