//! Dublin Core: `identifier` may be anything, so hosts, paths and the formats beside it decide.

use super::tree::Node;
use super::{ContentLink, Found, LinkRole, is_media_type, is_resolver};

pub(super) fn links(root: &Node<'_>, found: &mut Found) {
    let formats: Vec<&str> =
        root.named("format").filter_map(Node::value).filter(|text| is_media_type(text)).collect();
    let urls = || root.named("identifier").filter(|node| is_web(node.value()));
    // EPrints lists each file as identifier, in step with its format. Fewer formats than URLs say nothing.
    let files = urls().filter(|node| !node.value().is_some_and(is_page)).count();
    let in_step = files > 0 && files <= formats.len();
    let mut types = formats.iter();
    for identifier in root.named("identifier") {
        let link = ContentLink::url_or_doi(identifier.value(), LinkRole::Unknown, "dc: identifier");
        let Some(mut link) = link else { continue };
        if is_resolver(&link.href) {
            link.role = LinkRole::PersistentId;
            link.rule = "dc: identifier at a resolver";
        } else if is_page(&link.href) {
            link.role = LinkRole::LandingPage;
            link.rule = "dc: identifier with the path of a page";
        } else if in_step && let Some(media_type) = types.next() {
            link = link.media_type(Some(media_type)).by_media_type();
            link.rule = "dc: identifier in step with format";
        }
        found.add(Some(link));
    }
    for relation in root.named("relation") {
        let link = ContentLink::url(relation.value(), LinkRole::Related, "dc: relation");
        let Some(link) = link else { continue };
        match ojs_file(&link.href) {
            Some(href) => {
                let rule = "dc: relation to a viewer page of OJS, whose file is at download";
                found.add(ContentLink::url(Some(&href), LinkRole::File, rule));
            }
            None => found.add(Some(link)),
        }
    }
}

fn is_web(text: Option<&str>) -> bool {
    ContentLink::url(text, LinkRole::Unknown, "").is_some()
}

/// Paths that software uses for landing pages: handles of DSpace, articles of OJS.
fn is_page(href: &str) -> bool {
    let path = href.split(['?', '#']).next().unwrap_or_default();
    is_resolver(href) || path.contains("/handle/") || path.contains("/items/") || ojs_article(path).is_some()
}

/// What follows `/article/view/` in a path of OJS, and what is before it.
fn ojs_article(path: &str) -> Option<(&str, &str)> {
    path.split_once("/article/view/")
}

/// The file of a galley of OJS: `…/article/view/ID/GALLEY` is a viewer page, `…/article/download/ID/GALLEY` the file.
fn ojs_file(href: &str) -> Option<String> {
    let (site, rest) = ojs_article(href)?;
    let (article, galley) = rest.split_once('/')?;
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['/', '?', '#']);
    (is_plain(article) && is_plain(galley)).then(|| format!("{site}/article/download/{article}/{galley}"))
}
