//! Answers of a simulated site of landing pages.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header};

use crate::pages::Inner;
use crate::pages::spec::{PageFault, PageSitemap};
use crate::pages::world::{PageLink, World, numbers};

const JSON: &str = "application/linkset+json";
const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
                          xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

pub(super) async fn answer(
    State(inner): State<Arc<Inner>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response<Body> {
    let path = uri.path().to_owned();
    *inner.world().requests.entry(path.clone()).or_default() += 1;
    inner.gate.pass(&path).await;
    if let Some(latency) = inner.spec.latency.filter(|_| path.starts_with("/w/")) {
        tokio::time::sleep(latency).await;
    }
    let mut response = inner.respond(&path, &headers);
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    response
}

impl Inner {
    fn respond(&self, path: &str, headers: &HeaderMap) -> Response<Body> {
        let spec = &self.spec;
        let world = self.world();
        match path {
            "/" => of("text/html", "<title>A site</title>".to_owned()),
            "/robots.txt" if spec.robots => {
                of("text/plain", format!("Sitemap: {}\n", self.uri("/sitemap.xml")))
            }
            "/.well-known/api-catalog" if spec.catalog => of(JSON, self.catalog()),
            "/sitemap.xml" if spec.sitemap != PageSitemap::None => {
                of("application/xml", self.sitemap(&world))
            }
            _ => match path.split_once('/').and_then(|(_, rest)| rest.split_once('/')) {
                Some(("w", page)) => {
                    page.parse().map_or_else(|_| missing(), |page| self.page(&world, page, headers))
                }
                Some(("ls", page)) => {
                    page.parse().map_or_else(|_| missing(), |page| self.link_set(&world, page, headers))
                }
                Some(("f", _))
                    if numbers(path).is_some_and(|(page, item)| page < spec.pages && item < spec.items) =>
                {
                    self.file(&world, path, headers)
                }
                Some(("m", _)) => with_etag(of("application/xml", world.body(path)), &world, path, headers),
                _ => missing(),
            },
        }
    }

    fn file(&self, world: &World, path: &str, headers: &HeaderMap) -> Response<Body> {
        let is_first = path.ends_with("/0.pdf");
        match self.spec.fault.filter(|_| is_first) {
            Some(PageFault::DeadItem) => missing(),
            Some(PageFault::FalseType) => of("text/html", "<html><title>Log in</title></html>".to_owned()),
            _ => {
                let media_type = if is_first { "application/pdf" } else { "text/csv" };
                with_etag(of(media_type, world.body(path)), world, path, headers)
            }
        }
    }

    fn catalog(&self) -> String {
        let interface = |path: &str, documentation: &str| {
            format!(
                "{{\"anchor\": \"{}\", \"service-doc\": [{{\"href\": \"{documentation}\", \"type\": \"text/html\"}}]}}",
                self.uri(path)
            )
        };
        let interfaces = match self.spec.sitemap {
            PageSitemap::Signmap | PageSitemap::SignmapInLoc => {
                vec![interface("/sitemap.xml", "https://signposting.org/Signmap/")]
            }
            PageSitemap::None => vec![interface("/w/0", "https://signposting.org/FAIR/")],
            PageSitemap::Plain => vec![
                interface("/w/0", "https://signposting.org/FAIR/"),
                interface("/sitemap.xml", "https://www.sitemaps.org/protocol.html"),
            ],
        };
        format!("{{\"linkset\": [{}]}}", interfaces.join(", "))
    }

    fn sitemap(&self, world: &World) -> String {
        let mut text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset {NAMESPACES}>\n");
        for page in (0..self.spec.pages).filter(|page| !world.unlisted.contains(page)) {
            let path = format!("/w/{page}");
            let is_signmap = matches!(self.spec.sitemap, PageSitemap::Signmap | PageSitemap::SignmapInLoc);
            let mut links = String::new();
            if is_signmap && !self.is_told_by_page_only() {
                for link in world.links(&self.spec, page) {
                    let kind = link.media_type.map_or(String::new(), |kind| format!(" type=\"{kind}\""));
                    let _ = write!(
                        links,
                        "<rs:ln rel=\"{}\" href=\"{}\"{kind}/>",
                        link.rel,
                        self.uri(&link.path)
                    );
                }
            } else if is_signmap && self.spec.link_set {
                let set = self.uri(&format!("/ls/{page}"));
                let _ = write!(links, "<rs:ln rel=\"linkset\" href=\"{set}\" type=\"{JSON}\"/>");
            }
            let (within, beside) = if self.spec.sitemap == PageSitemap::SignmapInLoc {
                (links, String::new())
            } else {
                (String::new(), links)
            };
            let version = world.version(&path);
            let lastmod = if self.spec.lastmod {
                format!("<lastmod>2026-01-{:02}T00:00:00Z</lastmod>", 1 + version % 28)
            } else {
                String::new()
            };
            let _ = writeln!(text, "<url><loc>{}{within}</loc>{lastmod}{beside}</url>", self.uri(&path));
        }
        text + "</urlset>\n"
    }

    /// Whether the sitemap names link sets only, as the fault is one of pages or link sets.
    fn is_told_by_page_only(&self) -> bool {
        self.spec.fault.is_some()
    }

    fn page(&self, world: &World, page: u32, headers: &HeaderMap) -> Response<Body> {
        let path = format!("/w/{page}");
        if page >= self.spec.pages {
            return missing();
        }
        if self.spec.fault == Some(PageFault::HeaderTooLong) {
            return status(StatusCode::BAD_GATEWAY);
        }
        let mut links = world.links(&self.spec, page);
        if self.spec.fault == Some(PageFault::HeaderCut) {
            links.retain(|link| link.rel != "item" || link.path.ends_with("/0.pdf"));
        }
        if self.spec.link_set {
            links.push(PageLink { rel: "linkset", path: format!("/ls/{page}"), media_type: Some(JSON) });
        }
        let is_of_set_only = self.spec.link_set && !self.spec.header && !self.spec.head;
        let mut html = format!("<html><head><title>Work {page}</title>");
        if self.spec.head {
            for link in &links {
                let kind = link.media_type.map_or(String::new(), |kind| format!(" type=\"{kind}\""));
                let _ = write!(html, "<link rel=\"{}\" href=\"{}\"{kind}>", self.relation(link), link.path);
            }
        }
        html.push_str("</head><body>A landing page</body></html>");
        let mut response = of("text/html; charset=utf-8", html);
        if self.spec.header || is_of_set_only {
            let said: Vec<String> = links
                .iter()
                .filter(|link| !is_of_set_only || link.rel == "linkset")
                .map(|link| self.header_link(link))
                .collect();
            if let Ok(value) = said.join(", ").parse() {
                response.headers_mut().insert(header::LINK, value);
            }
        }
        if self.spec.etag { with_etag(response, world, &path, headers) } else { response }
    }

    fn header_link(&self, link: &PageLink) -> String {
        let is_first = link.path.ends_with("/0.pdf");
        let mut said = format!("<{}>; rel=\"{}\"", link.path, self.relation(link));
        match self.spec.fault.filter(|_| is_first) {
            Some(PageFault::NoAngleBrackets) => said = format!("{}; rel=\"item\"", link.path),
            Some(PageFault::NestedQuotes) => said.push_str("; title=\"a \"b\" c\""),
            _ => {}
        }
        if let Some(kind) = link.media_type {
            let _ = write!(said, "; type=\"{kind}\"");
        }
        said
    }

    fn relation(&self, link: &PageLink) -> &'static str {
        let is_odd = self.spec.fault == Some(PageFault::RelationCase) && link.rel == "describedby";
        if is_odd { "describedBy" } else { link.rel }
    }

    fn link_set(&self, world: &World, page: u32, headers: &HeaderMap) -> Response<Body> {
        if page >= self.spec.pages || !self.spec.link_set {
            return missing();
        }
        let fault = self.spec.fault;
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
        if fault == Some(PageFault::NotAcceptable) && accept != "*/*" {
            return status(StatusCode::NOT_ACCEPTABLE);
        }
        let mut by_relation: Vec<(&str, Vec<String>)> = Vec::new();
        for link in world.links(&self.spec, page) {
            let kind = link.media_type.map_or(String::new(), |kind| format!(", \"type\": \"{kind}\""));
            let target = format!("{{\"href\": \"{}\"{kind}}}", self.uri(&link.path));
            let rel = self.relation(&link);
            match by_relation.iter_mut().find(|(known, _)| *known == rel) {
                Some((_, targets)) => targets.push(target),
                None => by_relation.push((rel, vec![target])),
            }
        }
        let relations: Vec<String> =
            by_relation.iter().map(|(rel, targets)| format!("\"{rel}\": [{}]", targets.join(", "))).collect();
        let anchor = self.uri(&format!("/w/{page}"));
        let comma = if fault == Some(PageFault::StrayComma) { "," } else { "" };
        let set = format!("\"linkset\": [{{\"anchor\": \"{anchor}\", {}}}{comma}]", relations.join(", "));
        let body = match fault {
            Some(PageFault::Wrapped) => format!("{{\"status\": \"OK\", \"data\": {{{set}}}}}"),
            Some(PageFault::ExtraMembers) => format!("{{{set}, \"_links\": {{}}}}"),
            _ => format!("{{{set}}}"),
        };
        let media_type = match fault {
            Some(PageFault::NotAcceptable) => "application/json+ld",
            Some(PageFault::OddMediaType) => "application/json+linkset",
            Some(PageFault::PlainJson) => "application/json",
            _ => JSON,
        };
        of(media_type, body)
    }
}

fn of(media_type: &str, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    if let Ok(value) = media_type.parse() {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    response
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn missing() -> Response<Body> {
    status(StatusCode::NOT_FOUND)
}

/// Adds the `ETag` of what is at a path, or says that it is unchanged.
fn with_etag(mut response: Response<Body>, world: &World, path: &str, headers: &HeaderMap) -> Response<Body> {
    let etag = format!("\"{}\"", world.version(path));
    if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        response = status(StatusCode::NOT_MODIFIED);
    }
    if let Ok(value) = etag.parse() {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}
