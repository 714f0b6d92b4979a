//! What links have to stand, with numbers.

use std::net::TcpListener;

use super::{Case, declares, linked, ln};
use crate::common::Site;

#[tokio::test]
async fn acc_8_ten_thousand_resources_come_from_mirrors_when_their_server_is_down() {
    const COUNT: usize = 10_000;
    let case = Case::new().await;
    let mirror = Site::start().await;
    // No server listens at this port.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let entries: Vec<String> = (0..COUNT)
        .map(|n| {
            let path = format!("/{n}");
            mirror.serve(&path, path.clone());
            let links = [
                ln("duplicate", &mirror.uri(&path), ""),
                ln("describedby", &format!("http://127.0.0.1:{port}{path}.xml"), ""),
                ln("collection", "http://c.test/1", ""),
            ];
            let uri = format!("http://127.0.0.1:{port}{path}");
            linked(&uri, &declares(&path), &links.each_ref().map(String::as_str))
        })
        .collect();
    let list = case.list(1, &entries);
    let options = ["--retries", "0", "--allow-address", "127.0.0.0/8"];
    let run = case.copy.sync_with(&list, &options).exits(0);
    assert_eq!((run.count("stored"), run.count("mirrored")), (COUNT as u64, COUNT as u64), "{run}");
    assert_eq!((run.count("failed"), run.json()["in_sync"].clone()), (0, true.into()), "{run}");
    assert_eq!(mirror.paths().len(), COUNT, "each is asked for once");
}
