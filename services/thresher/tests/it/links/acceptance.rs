//! What links have to stand, with numbers.

use super::{Case, declares, linked, ln, time};
use crate::common::{Site, resource, urlset};
use bytes::Bytes;
use fixity::Sha256;
use testkit::scripted::Reply;
use testkit::servers::free_port;

#[tokio::test]
async fn acc_8_ten_thousand_resources_come_from_mirrors_when_their_server_is_down() {
    const COUNT: usize = 10_000;
    let case = Case::new().await;
    let mirror = Site::start().await;
    // No server listens at this port.
    let port = free_port();
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

/// A number that a variable of the environment may replace.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().expect(name))
}

/// In full: `THRESHER_PATCHED_RESOURCES=1000 THRESHER_PATCHED_BYTES=10000000`.
#[tokio::test]
async fn acc_8_patches_of_a_kilobyte_cost_a_hundredth_of_the_bytes_at_most() {
    let count = number("THRESHER_PATCHED_RESOURCES", 30);
    let length = number("THRESHER_PATCHED_BYTES", 200_000);
    let case = Case::new().await;
    let rest = "x".repeat(length);
    let first = Bytes::from(format!("{{\"title\":\"first\",\"text\":\"{rest}\"}}"));
    let hash = |bytes: &[u8]| format!("hash=\"sha-256:{}\" length=\"{}\"", Sha256::of(bytes), bytes.len());
    let (mut entries, mut changes) = (Vec::new(), Vec::new());
    let mut patch_bytes = 0;
    for n in 0..count {
        let uri = case.site.reply(&format!("/{n}"), Reply::ok(first.clone()));
        entries.push(resource(&uri, &hash(&first)));
        let title = format!("{n:01000}");
        let patch = format!("[{{\"op\":\"replace\",\"path\":\"/title\",\"value\":\"{title}\"}}]");
        patch_bytes += patch.len();
        let second = format!("{{\"title\":\"{title}\",\"text\":\"{rest}\"}}");
        let more = format!("{} type=\"application/json-patch+json\"", hash(patch.as_bytes()));
        let link = ln(
            "http://www.openarchives.org/rs/terms/patch",
            &case.site.serve(&format!("/{n}.p"), patch),
            &more,
        );
        let md = format!("change=\"updated\" datetime=\"{}\" {}", time(2), hash(second.as_bytes()));
        changes.push(linked(&uri, &md, &[&link]));
    }
    case.list(1, &entries);
    let offers = [
        resource(&case.site.uri("/list.xml"), "capability=\"resourcelist\""),
        resource(&case.site.uri("/changes.xml"), "capability=\"changelist\""),
    ];
    let md = format!("capability=\"changelist\" from=\"{}\"", time(1));
    case.site.serve("/changes.xml", urlset(&md, &[]));
    let way_in = case.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &offers));
    case.sync(&way_in).exits(0);
    case.site.serve("/changes.xml", urlset(&md, &changes));
    let run = case.sync(&way_in).exits(0);
    assert_eq!((run.count("patched"), run.count("stored")), (count as u64, count as u64), "{run}");
    for n in 0..count {
        let asked = [format!("/{n}"), format!("/{n}.p")].map(|path| case.site.requests_at(&path));
        assert_eq!(asked, [1, 1], "the first sync asked for the resource, the second for its patch");
    }
    assert_eq!(run.count("bytes"), patch_bytes as u64, "{run}");
    let made = count * length;
    assert!(patch_bytes * 100 <= made, "{patch_bytes} bytes of patches for {made} bytes");
}
