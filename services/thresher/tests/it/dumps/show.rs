//! Packages that are inspected, and written.

use std::io::Read as _;

use testkit::scripted::Reply;

use crate::common::{self, Destination, Package, resource, urlset};
use crate::dumps::AT;
use crate::dumps::case::Case;

#[tokio::test]
async fn inspect_shows_a_package_with_its_members() {
    let case = Case::new().await;
    let package = || {
        Package::of_resources(AT)
            .holds("http://example.org/a", "aaa")
            .entry("http://example.org/b", "path=\"/nowhere\"")
            .member("stray.txt", "x")
    };
    let folder = tempfile::tempdir().unwrap();
    let files = [("p.zip", package().zip()), ("p.tar.xz", package().tar_xz().await)];
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let lines = inspected(&path.display().to_string());
        assert_eq!(lines[0]["package"].as_str(), name.split_once('.').map(|(_, kind)| kind), "{lines:?}");
        assert_eq!(lines[1]["document"], "resourcedump-manifest");
        assert_eq!(
            (&lines[2]["member"]["name"], &lines[2]["member"]["length"]),
            (&"resources/0".into(), &3.into())
        );
        assert!(lines[3]["member"].is_null() && lines[3].get("member").is_some(), "{lines:?}");
        assert_eq!(lines[4]["entries"], 2);
        assert_eq!(lines[5]["unlisted"]["name"], "stray.txt");
    }
    case.site.reply("/p.zip", Reply::ok(package().zip()));
    assert_eq!(inspected(&case.site.uri("/p.zip")).len(), 6);
}

#[tokio::test]
async fn inspect_holds_no_member_of_a_tar_because_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.tar");
    let mut tar = tar::Builder::new(std::fs::File::create(&path).unwrap());
    // More bytes than it accepts as a manifest.
    let large = 257 << 20;
    let manifest = Package::of_resources(AT).holds("http://e.org/a", "a").manifest();
    for (name, length) in
        [("x/manifest.xml", large), ("manifest.xml", manifest.len() as u64), ("resources/0", 1)]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(length);
        match name {
            "manifest.xml" => tar.append_data(&mut header, name, manifest.as_bytes()).unwrap(),
            _ => tar.append_data(&mut header, name, std::io::repeat(b'a').take(length)).unwrap(),
        }
    }
    tar.finish().unwrap();
    let lines = inspected(&path.display().to_string());
    assert_eq!((&lines[0]["manifest"], &lines[0]["members"]), (&"manifest.xml".into(), &3.into()));
    assert_eq!(lines[2]["member"]["name"], "resources/0");
    assert_eq!(lines.last().unwrap()["unlisted"]["length"], large);
}

/// Every line of `thresher inspect`.
#[track_caller]
fn inspected(what: &str) -> Vec<serde_json::Value> {
    let mut command = common::thresher();
    command.args(["inspect", what]);
    common::Run::of(&mut command).exits(0).json_lines()
}

#[tokio::test]
async fn what_is_held_can_be_exported_as_a_dump_and_harvested_again() {
    let case = Case::new().await;
    let uris: Vec<String> =
        (0..30).map(|n| case.site.serve(&format!("/r{n}"), format!("body {n}"))).collect();
    let entries: Vec<String> = uris.iter().map(|uri| resource(uri, "")).collect();
    let list = case
        .site
        .serve("/list.xml", urlset("capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", &entries));
    case.copy.sync(&list).exits(0);

    let folder = tempfile::tempdir().unwrap();
    let export = folder.path().join("dump");
    let directory = export.display().to_string();
    let base = case.site.uri("/exported/");
    case.copy.run("export", &[&directory, "--as", "resourcedump", "--base", &base]).exits(0);
    for file in ["resourcedump.xml", "capabilitylist.xml", "package-00001.zip"] {
        case.site.reply(&format!("/exported/{file}"), Reply::ok(std::fs::read(export.join(file)).unwrap()));
    }
    let other = Destination::directory();
    let run = other.sync(&case.site.uri("/exported/capabilitylist.xml")).exits(0);
    assert_eq!(run.count("stored"), 30, "{run}");
    assert_eq!(other.present(), case.copy.present());
    case.copy.run("export", &[&directory, "--as", "resourcedump", "--base", &base]).exits(2);

    // Damaged resources are left out, and named at once.
    let packs = std::path::Path::new(&case.copy.into).join(".thresher/packs");
    let folder_of_source = std::fs::read_dir(packs).unwrap().next().unwrap().unwrap().path();
    let mut harmed = 0;
    for pack in std::fs::read_dir(folder_of_source).unwrap() {
        let pack = pack.unwrap().path();
        let mut bytes = std::fs::read(&pack).unwrap();
        if let Some(at) = bytes.windows(6).position(|window| window == b"body 7") {
            bytes[at] ^= 1;
            std::fs::write(&pack, bytes).unwrap();
            harmed += 1;
        }
    }
    assert_eq!(harmed, 1);
    let again = folder.path().join("again").display().to_string();
    let run = case.copy.run("export", &[&again, "--as", "resourcedump", "--base", &base]).exits(1);
    run.says(&["/r7 is left out", "29 resources", "1 left out"]);
}
