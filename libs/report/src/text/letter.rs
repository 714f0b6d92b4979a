//! A message that the operator of the harvester may send to the operator of a Source whose bot defence blocks it.

use super::page::Page;
use crate::card::{Protocol, Source, ToLetIn};

pub(super) fn write(page: &mut Page, to_let_in: &ToLetIn, source: &Source) {
    page.heading("A letter to the Source's owner, as a draft");
    let offer = match source.protocol {
        Protocol::ResourceSync => {
            "publishes ResourceSync documents, which invite harvesters to keep a copy in step"
        }
        Protocol::OaiPmh => "offers its records by OAI-PMH, which invites harvesters to keep a copy of them",
    };
    page.words(
        0,
        &format!(
            "Your repository {offer}. Your bot defence answers our harvester with a page for browsers instead of the \
             content, so nothing of it is stored."
        ),
    );
    page.blank();
    page.words(0, "Please let these requests pass:");
    page.pair("Source", &source.url);
    for origin in &to_let_in.origins {
        page.pair("origin", origin);
    }
    let agent = to_let_in.user_agent.as_deref().unwrap_or("thresher/<version> (+<contact>)");
    page.pair("User-Agent", agent);
    page.pair("contact", "<a mail address or URL of yours, if the User-Agent names none>");
    page.pair("addresses", "<the public IP addresses of the harvester's machines>");
    page.pair("method", "GET, without cookies and without JavaScript");
    page.blank();
    let allow = match source.protocol {
        Protocol::ResourceSync => {
            "what the lists name, the lists themselves, /robots.txt and /.well-known/resourcesync"
        }
        Protocol::OaiPmh => "the base URL with all its parameters, what the records name, and /robots.txt",
    };
    page.words(
        0,
        &format!(
            "Allow {allow}, best by these addresses together with the User-Agent. The harvester keeps to the crawl-delay \
             of robots.txt, to Retry-After, and to a few requests at a time; tell us if fewer suit you better."
        ),
    );
}
