//! Bytes with a Content-Encoding are kept as they come, and labelled with it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use testkit::scripted::Reply;

use crate::common::{Destination, Package, Site, package, resource, urlset};

const LIST: &str = r#"capability="resourcelist" at="2026-01-01T00:00:00Z""#;
const PLAIN: &str = "plain words";

fn gzipped() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(PLAIN.as_bytes()).expect("memory");
    encoder.finish().expect("memory")
}

fn reply() -> Reply {
    Reply::ok(gzipped()).header("content-type", "text/plain").header("content-encoding", "gzip")
}

fn encoding(copy: &Destination, uri: &str) -> Option<String> {
    let line = copy.listed().into_iter().find(|line| line["uri"] == uri).expect("it is listed");
    line["encoding"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn a_declared_gzip_is_asked_for_and_its_digest_is_that_of_the_encoded_bytes() {
    let site = Site::start().await;
    let digest = fixity::Sha256::of(&gzipped());
    let uri = site.reply("/a", reply());
    let entry = resource(&uri, &format!(r#"hash="sha-256:{digest}" encoding="gzip""#));
    let list = site.serve("/list.xml", urlset(LIST, &[entry]));
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    assert_eq!(site.headers_at("/a", "accept-encoding"), [Some("gzip".to_owned())]);
    assert_eq!((copy.cat(&uri), encoding(&copy, &uri).as_deref()), (gzipped(), Some("gzip")));
}

#[tokio::test]
async fn an_encoding_that_nobody_asked_for_is_labelled_and_can_be_undone() {
    let site = Site::start().await;
    let odd = site.reply("/odd", reply());
    let plain = site.serve("/plain", PLAIN);
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&odd, ""), resource(&plain, "")]));
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    assert_eq!(site.headers_at("/odd", "accept-encoding"), [None]);
    assert_eq!((copy.cat(&odd), encoding(&copy, &odd).as_deref()), (gzipped(), Some("gzip")));
    assert_eq!((copy.cat(&plain), encoding(&copy, &plain)), (PLAIN.into(), None));
    for uri in [&odd, &plain] {
        assert_eq!(copy.run("cat", &[uri, "--decode"]).exits(0).stdout, PLAIN);
    }
}

#[tokio::test]
async fn an_encoding_that_is_not_known_is_not_undone() {
    let site = Site::start().await;
    let uri = site.reply("/a", Reply::ok("?").header("content-encoding", "br"));
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&uri, "")]));
    let copy = Destination::directory();
    copy.sync(&list).exits(0);
    assert_eq!(encoding(&copy, &uri).as_deref(), Some("br"));
    copy.run("cat", &[&uri, "--decode"]).exits(2).complains(&["br"], &["--decode"]);
}

#[tokio::test]
async fn a_member_of_a_dump_keeps_the_encoding_that_its_manifest_declares() {
    let site = Site::start().await;
    let at = "2026-01-01T00:00:00Z";
    let (uri, other) = (site.uri("/a"), site.uri("/b"));
    let digest = fixity::Sha256::of(&gzipped());
    let entry = format!(r#"hash="sha-256:{digest}" encoding=" GZIP " path="/a""#);
    let zip = Package::of_resources(at).entry(&uri, &entry).member("a", gzipped()).holds(&other, PLAIN).zip();
    let named = package(&site.reply("/1.zip", Reply::ok(zip.clone())), &zip, "");
    let dump = site.serve("/dump.xml", urlset(&format!(r#"capability="resourcedump" at="{at}""#), &[named]));
    let copy = Destination::directory();
    copy.sync(&dump).exits(0);
    assert_eq!((copy.cat(&uri), encoding(&copy, &uri).as_deref()), (gzipped(), Some("gzip")));
    assert_eq!((copy.cat(&other), encoding(&copy, &other)), (PLAIN.into(), None));
    assert_eq!(copy.run("cat", &[&uri, "--decode"]).exits(0).stdout, PLAIN);
}
