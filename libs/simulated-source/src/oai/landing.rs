//! Landing pages of records, with typed links (Signposting).

use axum::response::Response;
use http::header;

use super::answer::plain;
use super::fault::{LandingFault, RepositoryFault as Fault};
use super::inner::Inner;

const HTML: &str = "text/html; charset=utf-8";

/// The page of a live record.
pub(super) fn answer(inner: &Inner, index: u64) -> Response {
    let fault = inner.changing().faults.find(|fault| match fault {
        Fault::Landing(fault, of) if of.is_none_or(|of| of == index) => Some(fault.clone()),
        _ => None,
    });
    let own = format!("{}/item/{index}", inner.site());
    match fault {
        Some(LandingFault::Status(status)) => plain(status, HTML, format!("<html>{status}</html>\n")),
        Some(LandingFault::ErrorPage) => {
            plain(200, HTML, "<!DOCTYPE html>\n<html>Something went wrong</html>\n")
        }
        Some(LandingFault::File) => plain(200, "application/pdf", "%PDF-1.7 of a record"),
        Some(LandingFault::Loop) => led_to(&own),
        Some(LandingFault::Redirect(site)) => led_to(&format!("{site}/item/{index}")),
        Some(LandingFault::Items(items)) => {
            let files = (0..items).map(|number| inner.file_url(index, number));
            page(inner, index, files.chain([own.clone()]))
        }
        None => {
            let named: Vec<u64> = {
                let changing = inner.changing();
                (0..inner.spec.files).filter(|number| changing.world.file(index, *number).is_named).collect()
            };
            page(inner, index, named.into_iter().map(|number| inner.file_url(index, number)))
        }
    }
}

fn led_to(url: &str) -> Response {
    let mut response = plain(302, "text/plain", "elsewhere\n");
    if let Ok(value) = header::HeaderValue::from_str(url) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    response
}

/// A page that names these files: in its header, or in its HTML where they are too many for that.
fn page(inner: &Inner, index: u64, files: impl Iterator<Item = String>) -> Response {
    let record = format!(
        "{}?verb=GetRecord&identifier={}&metadataPrefix=oai_dc",
        inner.base(),
        inner.identifier(index)
    );
    let mut links = vec![(record, "describedby", "text/xml")];
    links.extend(files.map(|url| (url, "item", "application/octet-stream")));
    let in_header = links.len() <= 50;
    let html: String = links
        .iter()
        .filter(|_| !in_header)
        .map(|(url, rel, kind)| format!("<link href=\"{url}\" rel=\"{rel}\" type=\"{kind}\">\n"))
        .collect();
    let page = format!(
        "<!DOCTYPE html>\n<html><head><title>Record {index}</title>\n{html}</head><body></body></html>\n"
    );
    let mut response = plain(200, HTML, page);
    let links: Vec<String> =
        links.iter().map(|(url, rel, kind)| format!("<{url}>; rel=\"{rel}\"; type=\"{kind}\"")).collect();
    if let Ok(value) = header::HeaderValue::from_str(&links.join(", "))
        && in_header
    {
        response.headers_mut().insert(header::LINK, value);
    }
    response
}
