//! The page for people who open the base in a browser.

use maud::{DOCTYPE, Markup, html};

use crate::Base;
use crate::paths::{CAPABILITIES, CHANGES, DESCRIPTION, RESOURCES};

/// The page. It leads software to the Capability List, too (§6.3.2).
pub(crate) fn page(base: &Base, entry_url: &str, description: Option<&str>, are_copies: bool) -> String {
    let title =
        if are_copies { format!("A copy of {entry_url}") } else { format!("Resources at {entry_url}") };
    let description = description.map_or_else(|| base.url(DESCRIPTION), str::to_owned);
    let documents = [
        ("Source Description", description),
        ("Capability List", base.url(CAPABILITIES)),
        ("Resource List", base.url(RESOURCES)),
        ("Change Lists", base.url(CHANGES)),
    ];
    let head = html! {
        link rel="resourcesync" href=(base.url(CAPABILITIES));
    };
    let body = html! {
        @if are_copies {
            p {
                "This server publishes verified copies of the resources of " (entry_url)
                " by ResourceSync (ANSI/NISO Z39.99). Each entry has a link with the relation "
                code { "via" } " to the original."
            }
        } @else {
            p { "The resources at " (entry_url) " are published by ResourceSync (ANSI/NISO Z39.99)." }
        }
        p { "Give this address to a harvester: " code { (base) } }
        ul {
            @for (name, url) in documents {
                li { a href=(url) { (name) } }
            }
        }
    };
    html_page(&title, &head, &body)
}

/// A page with this title, and more for its head and its body.
pub(crate) fn html_page(title: &str, head: &Markup, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                (head)
            }
            body {
                h1 { (title) }
                (body)
            }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_leads_to_the_documents_and_shows_the_source_as_text() {
        let base = Base::new("https://example.org/m/".parse().unwrap()).unwrap();
        let page = page(&base, "http://e.org/?a=<script>&b", None, true);
        assert!(
            page.contains("rel=\"resourcesync\" href=\"https://example.org/m/capabilitylist.xml\""),
            "{page}"
        );
        assert!(page.contains("http://e.org/?a=&lt;script&gt;&amp;b") && !page.contains("<script"), "{page}");
    }
}
