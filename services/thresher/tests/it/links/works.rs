//! `ls --group` and the API's works: what links say belongs together.

use super::{Case, declares, linked, ln};
use crate::common::{Destination, resource};
use serde_json::{Value, json};
use testkit::scripted::Reply;

const PDF: &str = "type=\"application/pdf\"";

/// The works of a copy, as `ls --group --json` shows them.
#[track_caller]
pub(super) fn works(copy: &Destination) -> Vec<Value> {
    copy.run("ls", &["--group", "--json"]).exits(0).json_lines()
}

#[track_caller]
fn work<'a>(works: &'a [Value], uri: &str) -> &'a Value {
    works.iter().find(|work| work["uri"] == uri).unwrap_or_else(|| panic!("{uri} is no work: {works:?}"))
}

/// The resources of a part of a work, each with its relation and state.
fn members(work: &Value, part: &str) -> Vec<Value> {
    let members = work[part].as_array().cloned().unwrap_or_default();
    members.iter().map(|member| json!([member["uri"], member["rel"], member["state"]])).collect()
}

#[tokio::test]
async fn a_landing_page_its_metadata_and_its_files_are_one_work() {
    let case = Case::new().await;
    let page = case.site.reply("/1", Reply::ok("<html>").header("content-type", "text/html"));
    let [dc, a, b] = ["/1.dc", "/1-a.pdf", "/1-b.pdf"].map(|path| case.site.serve(path, path));
    let gone = case.site.uri("/1-gone.pdf");
    let links = [
        ln("item", &a, PDF),
        ln("item", &b, PDF),
        ln("item", &gone, PDF),
        ln("license", "http://l.test/by", ""),
        ln("cite-as", "http://doi.test/1", ""),
        ln("author", "http://a.test/ada", ""),
        ln("collection", "http://c.test/1", ""),
    ];
    let entries = [
        linked(&page, &declares("<html>"), &links.each_ref().map(String::as_str)),
        linked(&a, &declares("/1-a.pdf"), &[&ln("collection", &page, "")]),
        resource(&b, &declares("/1-b.pdf")),
        // Only one of the two says that they are a pair.
        linked(
            &dc,
            &declares("/1.dc"),
            &[&ln("describes", &page, ""), &ln("profile", "http://ns.test/dc", "")],
        ),
    ];
    let list = case.list(1, &entries);
    case.sync(&list).exits(0);
    let works = works(&case.copy);
    assert_eq!(works.len(), 1, "{works:?}");
    let work = work(&works, &page);
    assert_eq!(work["landing_page"], page);
    assert_eq!(members(work, "metadata"), [json!([dc, "describes", "present"])]);
    assert_eq!(work["metadata"][0]["profile"], "http://ns.test/dc");
    let files = [json!([a, "item", "present"]), json!([b, "item", "present"]), json!([gone, "item", null])];
    assert_eq!(members(work, "files"), files);
    assert_eq!((&work["complete"], &work["licenses"]), (&json!(false), &json!(["http://l.test/by"])));
    assert_eq!(
        (&work["cite_as"], &work["authors"]),
        (&json!(["http://doi.test/1"]), &json!(["http://a.test/ada"]))
    );
    assert_eq!(work["collections"], json!(["http://c.test/1"]));
    let told = case.copy.run("ls", &["--group"]).exits(0);
    for text in [
        format!("{page} (landing page; incomplete)"),
        format!("{dc}: present (describes, "),
        format!("{gone}: not stored (item, application/pdf)"),
        "license     http://l.test/by".to_owned(),
    ] {
        assert!(told.stdout.contains(&text), "{text}: {told}");
    }
}

#[tokio::test]
async fn lnk_7_formats_of_one_resource_are_one_work_whoever_names_the_other() {
    let case = Case::new().await;
    let [w, html, pdf, left, right] =
        ["/w", "/w.html", "/w.pdf", "/x1", "/x2"].map(|path| case.site.serve(path, path));
    let entries = [
        linked(&w, &declares("/w"), &[&ln("alternate", &pdf, PDF)]),
        linked(&html, &declares("/w.html"), &[&ln("canonical", &w, "")]),
        linked(&pdf, &declares("/w.pdf"), &[&ln("canonical", &w, "")]),
        // Siblings without a generic resource: the first one stands for both.
        linked(&right, &declares("/x2"), &[&ln("alternate", &left, "")]),
        linked(&left, &declares("/x1"), &[&ln("alternate", &right, "")]),
    ];
    let list = case.list(1, &entries);
    case.sync(&list).exits(0);
    let works = works(&case.copy);
    let heads: Vec<&Value> = works.iter().map(|work| &work["uri"]).collect();
    assert_eq!(heads, [&json!(w), &json!(left)], "in the order of their URIs: {works:?}");
    let formats = [json!([pdf, "alternate", "present"]), json!([html, "canonical", "present"])];
    assert_eq!(members(&works[0], "files"), formats);
    assert_eq!(members(&works[1], "files"), [json!([right, "alternate", "present"])]);
    assert!(works.iter().all(|work| work["complete"] == true && work.get("orphan").is_none()), "{works:?}");
}

#[tokio::test]
async fn lnk_9_metadata_of_a_file_is_a_work_within_a_work_and_orphans_are_named() {
    let case = Case::new().await;
    let [page, file, dc, lost, alone] =
        ["/p", "/p.pdf", "/p.pdf.dc", "/lost.dc", "/z"].map(|path| case.site.serve(path, path));
    let nothing = case.site.uri("/nothing");
    let entries = [
        linked(&page, &declares("/p"), &[&ln("item", &file, PDF)]),
        resource(&file, &declares("/p.pdf")),
        linked(&dc, &declares("/p.pdf.dc"), &[&ln("describes", &file, "")]),
        linked(&lost, &declares("/lost.dc"), &[&ln("describes", &nothing, "")]),
        resource(&alone, &declares("/z")),
    ];
    let list = case.list(1, &entries);
    case.sync(&list).exits(0);
    let all = works(&case.copy);
    assert_eq!(all.len(), 4, "{all:?}");
    let of_file = work(&all, &file);
    assert_eq!(members(of_file, "metadata"), [json!([dc, "describes", "present"])]);
    assert_eq!(of_file["part_of"], json!([{"uri": page, "rel": "item"}]));
    assert_eq!(work(&all, &lost)["orphan"], json!({"rel": "describes", "uri": nothing}));
    let alone = work(&all, &alone);
    assert!(members(alone, "files").is_empty() && alone.get("orphan").is_none(), "{alone}");

    // A deleted page has no parts.
    let list = case.list(2, &entries[1..]);
    case.copy.sync_with(&list, &["--absent", "delete", "--max-deletes", "100%"]).exits(0);
    let all = works(&case.copy);
    assert_eq!(work(&all, &file)["part_of"], Value::Null, "{all:?}");
    assert_eq!(all.len(), 3);
    let some = case.copy.run("ls", &["--group", "--json", &lost]).exits(0).json_lines();
    assert_eq!(some.len(), 1, "a prefix selects heads");
}
