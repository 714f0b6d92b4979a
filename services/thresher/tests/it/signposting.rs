//! Typed links of landing pages (Signposting), as `inspect --links` shows them.

use serde_json::Value;
use testkit::scripted::Reply;

use crate::common::{Run, Site, thresher};

const JSON: &str = "application/linkset+json";

/// The links of a page, as relation, path and attribute `type`, and the summary.
#[track_caller]
fn links(url: &str, exit: i32) -> (Vec<(String, String, String)>, Value) {
    let run = Run::of(thresher().args(["inspect", "--links", url])).exits(exit);
    let mut lines = run.json_lines();
    let summary = lines.pop().expect("a summary");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let link = |line: &Value| {
        let path = text(&line["href"]).splitn(4, '/').nth(3).unwrap_or_default().to_owned();
        (text(&line["rel"]), path, text(&line["attributes"]["type"][0]))
    };
    (lines.iter().map(link).collect(), summary)
}

fn page(header: &str, html: &str) -> Reply {
    Reply::ok(html.to_owned()).header("content-type", "text/html").header("link", header.to_owned())
}

fn expected(links: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    links
        .iter()
        .map(|(rel, path, kind)| ((*rel).to_owned(), (*path).to_owned(), (*kind).to_owned()))
        .collect()
}

/// SIG-4 and SIG-5, T4: header, HTML and link set are one group.
#[tokio::test]
async fn header_html_and_link_set_are_joined() {
    let site = Site::start().await;
    let url = site.uri("/w");
    let set = format!(
        r#"{{"linkset": [{{"anchor": "{url}", "item": [{{"href": "f.pdf", "type": "application/pdf"}}, {{"href": "f.csv", "type": "text/csv"}}]}},
            {{"anchor": "{}", "author": [{{"href": "/me"}}]}}, {{"anchor": "https://other.example/", "item": [{{"href": "/x"}}]}}]}}"#,
        site.uri("/f.pdf")
    );
    site.reply("/ls", Reply::ok(set).header("content-type", JSON));
    let html = "<head><link rel=describedby href=m.xml type=application/xml></head><body><link rel=item href=/evil></body>";
    site.reply(
        "/w",
        page("</f.pdf>; rel=\"item\", </ls>; rel=\"linkset\"; type=\"application/linkset+json\"", html),
    );
    let (found, summary) = links(&url, 0);
    let all = [
        ("item", "f.pdf", "application/pdf"),
        ("linkset", "ls", JSON),
        ("describedby", "m.xml", "application/xml"),
        ("item", "f.csv", "text/csv"),
        ("author", "me", ""),
    ];
    assert_eq!(found, expected(&all));
    assert_eq!((&summary["others"], &summary["requests"]), (&1.into(), &3.into()), "{summary}");
    assert_eq!(summary["findings"], Value::from(vec!["header-incomplete"]));
    let accept = site.headers_at("/ls", "accept");
    assert!(accept[0].as_deref().unwrap().starts_with(JSON), "{accept:?}");
    assert_eq!(links(&site.uri("/ls"), 0).0.len(), 4, "a link set may be given, too");
}

/// SIG-7: each fault that servers have costs at most its own link.
#[tokio::test]
async fn each_fault_of_a_link_set_is_tolerated_by_name() {
    let site = Site::start().await;
    let url = site.uri("/w");
    site.reply("/w", page("</ls>; rel=linkset; type=\"application/linkset+json\"", ""));
    let plain = format!(r#"{{"linkset": [{{"anchor": "{url}", "item": [{{"href": "/f"}}]}}]}}"#);
    let wrapped = format!(r#"{{"status": "OK", "data": {plain}}}"#);
    for (fault, body, media_type) in [
        ("odd-media-type", plain.clone(), "application/json"),
        ("odd-media-type", plain.clone(), "application/json+linkset"),
        ("odd-media-type", plain.clone(), "application/json+ld"),
        ("odd-media-type", plain.clone(), "application/octet-stream"),
        ("wrapped", wrapped, JSON),
        ("stray-comma", plain.replace("}]", "},]"), JSON),
        ("no-anchor", r#"{"linkset": [{"item": [{"href": "/f"}]}]}"#.to_owned(), JSON),
        ("relation-case", plain.replace("item", "Item"), JSON),
    ] {
        site.reply("/ls", Reply::ok(body).header("content-type", media_type));
        let (found, summary) = links(&url, 0);
        if fault == "no-anchor" {
            // It is about the set itself, which the page names.
            assert_eq!(found.len(), 2, "{summary}");
        } else {
            assert_eq!(found.last().map(|link| link.1.as_str()), Some("f"), "{fault}: {summary}");
        }
        assert_eq!(summary["faults"][fault], 1, "{media_type}: {summary}");
    }
    // A server that knows no such media type is asked once more for any.
    site.reply("/ls", Reply::ok(plain).header("content-type", JSON));
    site.next("/ls", Reply::status(406));
    assert_eq!(links(&url, 0).0.len(), 2);
    assert_eq!(site.headers_at("/ls", "accept").last().cloned().flatten().as_deref(), Some("*/*"));
}

#[tokio::test]
async fn a_link_set_that_cannot_be_read_is_named_and_the_rest_is_shown() {
    let site = Site::start().await;
    site.reply("/ls", Reply::ok("<html>").header("content-type", JSON));
    site.reply("/gone", Reply::status(404));
    let header = "</f>; rel=item; title=\"a \"b\" c\"; type=\"a/b\", </ls>; rel=linkset, </gone>; rel=linkset, nameless; rel=item";
    let url = site.reply("/w", page(header, ""));
    let (found, summary) = links(&url, 1);
    assert_eq!(found[0], ("item".to_owned(), "f".to_owned(), "a/b".to_owned()));
    let unread: Vec<_> =
        summary["unread"].as_array().unwrap().iter().map(|set| set["url"].as_str().unwrap()).collect();
    assert_eq!(unread, [site.uri("/ls"), site.uri("/gone")]);
    assert_eq!(
        (&summary["faults"]["nested-quotes"], &summary["faults"]["no-angle-brackets"]),
        (&1.into(), &1.into())
    );
    let usage = Run::of(thresher().args(["inspect", "--links", "some.xml"])).exits(2);
    assert!(usage.stderr.contains("URL of a page"), "{usage}");
}
