//! `inspect` shows any document as JSON lines.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Run, source, thresher};
use serde_json::Value;
use simulated_source::{Changes, SourceSpec};
use tempfile::TempDir;
use testkit::servers::Venv;

const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// A document written by the test.
fn document(root: &str, content: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} {NAMESPACES}>\n{content}\n</{root}>\n")
}

fn inspect(what: impl AsRef<std::ffi::OsStr>) -> Run {
    Run::of(thresher().arg("inspect").arg(what))
}

fn written(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The output of `inspect`: the document, its entries, the summary.
#[track_caller]
fn shape(run: &Run) -> (Value, Vec<Value>, Value) {
    let mut lines = run.json_lines();
    assert!(lines.len() >= 2, "{run}");
    let first = lines.remove(0);
    let last = lines.pop().unwrap();
    assert!(first["document"].is_string() && first["root"].is_string(), "{first}");
    assert_eq!(last["entries"], lines.len(), "the summary counts the lines before it: {last}");
    assert!(last["complete"].is_boolean() && last["quirks"].is_object(), "{last}");
    assert!(lines.iter().all(|entry| entry["loc"].is_string()), "{run}");
    (first, lines, last)
}

#[test]
fn every_kind_of_document_is_read_whole() {
    let at = "at=\"2026-01-03T09:00:00Z\"";
    let from = "from=\"2026-01-03T00:00:00Z\"";
    let until = "until=\"2026-01-04T00:00:00Z\"";
    let change = "<rs:md change=\"updated\" datetime=\"2026-01-03T11:00:00Z\"";
    let kinds = [
        ("urlset", "description", String::new(), "<rs:md capability=\"capabilitylist\"/>".to_owned()),
        ("urlset", "capabilitylist", String::new(), "<rs:md capability=\"resourcelist\"/>".into()),
        ("urlset", "resourcelist", at.into(), "<rs:md length=\"5\"/>".into()),
        ("sitemapindex", "resourcelist", at.into(), format!("<rs:md {at}/>")),
        ("urlset", "resourcedump", at.into(), format!("<rs:md type=\"application/zip\" length=\"9\" {at}/>")),
        ("sitemapindex", "resourcedump", at.into(), format!("<rs:md {at}/>")),
        ("urlset", "resourcedump-manifest", at.into(), "<rs:md length=\"5\" path=\"/1\"/>".into()),
        ("urlset", "changelist", format!("{from} {until}"), format!("{change}/>")),
        ("sitemapindex", "changelist", from.into(), format!("<rs:md {from} {until}/>")),
        ("urlset", "changedump", from.into(), format!("<rs:md {from} {until}/>")),
        ("sitemapindex", "changedump", from.into(), format!("<rs:md {from} {until}/>")),
        ("urlset", "changedump-manifest", from.into(), format!("{change} path=\"/1\"/>")),
        ("urlset", "change-notification", format!("{from} {until}"), format!("{change}/>")),
    ];
    let folder = TempDir::new().unwrap();
    for (root, capability, times, md) in kinds {
        let element = if root == "urlset" { "url" } else { "sitemap" };
        let entry = |n| format!("<{element}><loc>http://example.org/{n}</loc>{md}</{element}>");
        let content = format!("<rs:md capability=\"{capability}\" {times}/>\n{}\n{}", entry(1), entry(2));
        let path = written(&folder, "document.xml", &document(root, &content));
        let run = inspect(&path).exits(0);
        let (first, entries, last) = shape(&run);
        assert_eq!((&first["document"], &first["root"]), (&capability.into(), &root.into()), "{run}");
        assert_eq!(entries.len(), 2, "{run}");
        assert_eq!(last["complete"], true, "{run}");
        assert_eq!(run.stderr, "", "{run}");
    }
}

#[test]
fn the_document_line_has_its_times_and_links() {
    let folder = TempDir::new().unwrap();
    let content = "<rs:ln rel=\"up\" href=\"http://example.org/caps.xml\"/>\n\
        <rs:ln rel=\"index\" href=\"http://example.org/index.xml\"/>\n\
        <rs:md capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\" completed=\"2026-01-03T09:01:00Z\"/>";
    let (first, _, _) = shape(&inspect(written(&folder, "a.xml", &document("urlset", content))).exits(0));
    assert_eq!(first["at"], "2026-01-03T09:00:00Z");
    assert_eq!(first["completed"], "2026-01-03T09:01:00Z");
    let links: Vec<_> =
        first["links"].as_array().unwrap().iter().map(|link| (&link["rel"], &link["href"])).collect();
    let (up, index) = ("http://example.org/caps.xml".into(), "http://example.org/index.xml".into());
    assert_eq!(links, [(&"up".into(), &up), (&"index".into(), &index)]);

    let content =
        "<rs:md capability=\"changelist\" from=\"2026-01-03T00:00:00Z\" until=\"2026-01-04T00:00:00Z\"/>";
    let (first, _, _) = shape(&inspect(written(&folder, "b.xml", &document("urlset", content))).exits(0));
    assert_eq!(
        (&first["from"], &first["until"]),
        (&"2026-01-03T00:00:00Z".into(), &"2026-01-04T00:00:00Z".into())
    );
}

#[test]
fn an_entry_line_has_all_that_is_said_of_a_resource() {
    let folder = TempDir::new().unwrap();
    let content = "<rs:md capability=\"changedump-manifest\" from=\"2026-01-03T00:00:00Z\"/>\n<url>\
        <loc> http://example.org/res1?a=1&amp;b=2 </loc><lastmod>2026-01-03T10:00:00Z</lastmod>\
        <rs:md change=\"updated\" datetime=\"2026-01-03T11:00:00Z\" length=\"8876\" type=\"text/html\" encoding=\"gzip\" \
        hash=\"md5:1584abdf8ebdc9802ac0c6a7402c03b6 sha-1:da39a3ee5e6b4b0d3255bfef95601890afd80709\" path=\"/changes/res1\"/>\
        <rs:ln rel=\"duplicate\" href=\"http://mirror.example.org/res1\" pri=\"1\"/></url>";
    let run = inspect(written(&folder, "a.xml", &document("urlset", content))).exits(0);
    let (_, entries, _) = shape(&run);
    let entry = &entries[0];
    for (name, value) in [
        ("loc", "http://example.org/res1?a=1&b=2"),
        ("lastmod", "2026-01-03T10:00:00Z"),
        ("change", "updated"),
        ("datetime", "2026-01-03T11:00:00Z"),
        ("type", "text/html"),
        ("encoding", "gzip"),
        ("path", "/changes/res1"),
    ] {
        assert_eq!(entry[name], value, "{name} in {entry}");
    }
    assert_eq!(entry["length"], 8876);
    let hashes = entry["hashes"].to_string();
    for hash in ["md5:1584abdf8ebdc9802ac0c6a7402c03b6", "sha-1:da39a3ee5e6b4b0d3255bfef95601890afd80709"] {
        assert!(hashes.contains(hash), "hashes in {entry}");
    }
    assert_eq!(entry["links"][0]["rel"], "duplicate");
    assert_eq!(entry["links"][0]["href"], "http://mirror.example.org/res1");
    assert_eq!(entry["links"][0]["pri"], 1);
}

#[test]
fn a_gzip_file_is_told_by_its_first_bytes_whatever_its_name() {
    let folder = TempDir::new().unwrap();
    let content = "<rs:md capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\"/><url><loc>http://example.org/1</loc></url>";
    let plain = written(&folder, "list.xml", &document("urlset", content));
    // Built by another program.
    let python = Venv::peers().unwrap().program("python");
    assert!(Command::new(python).args(["-m", "gzip"]).arg(&plain).status().unwrap().success());
    std::fs::rename(folder.path().join("list.xml.gz"), folder.path().join("packed.xml")).unwrap();
    let (_, of_plain, _) = shape(&inspect(&plain).exits(0));
    let (_, of_packed, last) = shape(&inspect(folder.path().join("packed.xml")).exits(0));
    assert_eq!(of_packed, of_plain);
    assert_eq!(last["complete"], true);
}

#[test]
fn standard_input_is_read_when_asked_for() {
    let content = "<rs:md capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\"/><url><loc>http://example.org/1</loc></url>";
    let mut command = thresher();
    let mut child = command
        .args(["inspect", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(document("urlset", content).as_bytes()).unwrap();
    let run = Run::ended(&command, &child.wait_with_output().unwrap()).exits(0);
    let (first, entries, _) = shape(&run);
    assert_eq!((first["document"].as_str(), entries.len()), (Some("resourcelist"), 1));
}

#[tokio::test]
async fn a_url_is_read_from_where_it_leads() {
    let plan = SourceSpec::default().resources(120).entries_per_list(50).gzip(true);
    let source = source(plan).await;
    source.change(Changes { create: 1, update: 2, delete: 1 });
    let of = |uri: String| shape(&inspect(uri).exits(0));
    let (first, entries, _) = of(source.resource_list());
    assert_eq!((first["root"].as_str(), entries.len()), (Some("sitemapindex"), 3));
    let (first, entries, _) = of(source.resource_list().replace(".xml", "-3.xml"));
    assert_eq!((first["document"].as_str(), entries.len()), (Some("resourcelist"), 20));
    let (_, entries, _) = of(source.change_list());
    let kinds: Vec<_> = entries.iter().map(|entry| entry["change"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "deleted").count(), 1);
    let (first, entries, _) = of(source.well_known());
    assert_eq!((first["document"].as_str(), entries.len()), (Some("description"), 1));
}

#[test]
fn a_plain_sitemap_is_shown_as_such() {
    let folder = TempDir::new().unwrap();
    let path =
        written(&folder, "sitemap.xml", &document("urlset", "<url><loc>http://example.org/1</loc></url>"));
    let (_, entries, last) = shape(&inspect(path).exits(0));
    assert_eq!(entries.len(), 1);
    assert_eq!(last["quirks"]["no-capability"], 1);
}

#[test]
fn oddities_are_counted_by_name_and_refused_when_strict() {
    let folder = TempDir::new().unwrap();
    let content = "<rs:md capability=\"changelist\"/>\n\
        <url><loc>http://example.org/1</loc><rs:md change=\"created\" datetime=\"2026-01-03T11:00:00\"/></url>";
    let path = written(&folder, "a.xml", &document("urlset", content));
    let (_, _, last) = shape(&inspect(&path).exits(0));
    assert_eq!(
        (&last["quirks"]["zone-less-time"], &last["quirks"]["missing-from"]),
        (&1.into(), &1.into()),
        "{last}"
    );
    let strict = Run::of(thresher().args(["inspect", "--strict"]).arg(&path)).exits(1);
    assert!(strict.stderr.contains("line "), "{strict}");
}

/// Line and column of a position in a text, counted from one.
fn place(text: &str, of: &str) -> String {
    let before = &text[..text.find(of).unwrap()];
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    format!("line {}, column {column}", before.matches('\n').count() + 1)
}

#[test]
fn a_malformed_document_gives_what_stands_before_and_names_the_place() {
    let folder = TempDir::new().unwrap();
    let content = "<rs:md capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\"/>\n\
        <url><loc>http://example.org/1</loc></url>\n<url><loc>http://example.org/2</lco></url>";
    let text = document("urlset", content);
    let path = written(&folder, "a.xml", &text);
    let run = inspect(&path).exits(1);
    let (_, entries, last) = shape(&run);
    assert_eq!((entries.len(), &last["complete"]), (1, &false.into()), "{run}");
    let complaint = run.complaint();
    assert!(complaint.contains(&path.display().to_string()), "{complaint}");
    assert!(complaint.contains(&place(&text, "</lco>")), "{} in {complaint}", place(&text, "</lco>"));
}

#[test]
fn a_document_that_is_cut_short_gives_what_stands_before_the_cut() {
    let folder = TempDir::new().unwrap();
    let content = "<rs:md capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\"/>\n\
        <url><loc>http://example.org/1</loc></url>\n<url><loc>http://example.org/2</loc></url>";
    let text = document("urlset", content);
    let path = written(&folder, "a.xml", &text[..text.find("org/2").unwrap()]);
    let run = inspect(&path).exits(1);
    let (_, entries, last) = shape(&run);
    assert_eq!((entries.len(), &last["complete"]), (1, &false.into()), "{run}");
    assert!(run.complaint().contains("cut short") && run.complaint().contains("line 5"), "{run}");
}

#[test]
fn a_bad_entry_is_named_and_left_out() {
    let folder = TempDir::new().unwrap();
    let content = "<rs:md capability=\"resourcelist\" at=\"2026-01-03T09:00:00Z\"/>\n\
        <url><lastmod>2026-01-01</lastmod></url>\n<url><loc>http://example.org/2</loc></url>";
    let text = document("urlset", content);
    // It was read completely, but one of its entries is empty.
    let run = inspect(written(&folder, "a.xml", &text)).exits(0);
    let (_, entries, _) = shape(&run);
    assert_eq!(entries[0]["loc"], "http://example.org/2", "{run}");
    assert!(run.stderr.contains(&place(&text, "<url><lastmod>")), "{run}");
}

#[test]
fn what_is_no_document_is_refused() {
    let folder = TempDir::new().unwrap();
    for (name, text, says) in [
        ("page.html", "<!DOCTYPE html><html><body><p>Hello<br></body></html>", "HTML"),
        ("text.txt", "this is no XML at all", "not XML"),
        ("empty.xml", "", "line 1"),
        ("feed.xml", "<?xml version=\"1.0\"?><rss version=\"2.0\"/>", "rss"),
        ("bomb.xml", "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"c\">]><urlset/>", "DOCTYPE"),
    ] {
        let path = written(&folder, name, text);
        let run = inspect(&path).exits(1);
        let complaint = run.complaint();
        assert!(complaint.contains(says) && complaint.contains(&path.display().to_string()), "{run}");
        assert!(complaint.contains("line "), "line and column: {run}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let run = inspect(Path::new("/nonexistent/list.xml"));
    assert!(matches!(run.exit, Some(2 | 3)), "{run}");
    assert!(run.complaint().contains("/nonexistent/list.xml"), "{run}");
}
