//! Unfinished multipart uploads of a bucket. The object store's client cannot list them, so this module sends
//! the requests.

use bytes::Bytes;
use jiff::Timestamp;
use object_store::ClientOptions;
use object_store::aws::{AmazonS3, AwsAuthorizer, AwsCredentialProvider};
use object_store::client::{HttpClient, HttpConnector as _, HttpRequest, HttpRequestBody, ReqwestConnector};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use quick_xml::Reader;
use quick_xml::events::Event;

use crate::s3::S3Settings;

/// The longest response: a thousand uploads with keys of a kilobyte.
const LONGEST: usize = 4 * 1024 * 1024;

/// Lists the unfinished uploads of a bucket.
pub(crate) struct UploadLister {
    client: HttpClient,
    credentials: AwsCredentialProvider,
    bucket_url: String,
    region: String,
    signs: bool,
    pub(crate) prefix: String,
}

/// An unfinished upload.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Begun {
    pub(crate) key: String,
    pub(crate) upload: String,
    pub(crate) initiated: Option<Timestamp>,
}

/// One page of the listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) uploads: Vec<Begun>,
    /// The marker of the next page, if there is one: a key, and an upload of it.
    pub(crate) next: Option<(String, String)>,
}

impl UploadLister {
    /// Lists the unfinished uploads of `s3` below `prefix`.
    pub(crate) fn new(
        s3: &AmazonS3,
        settings: &S3Settings,
        options: &ClientOptions,
        prefix: &str,
    ) -> object_store::Result<Self> {
        Ok(Self {
            client: ReqwestConnector::default().connect(options)?,
            credentials: s3.credentials().clone(),
            bucket_url: settings.bucket_url(),
            region: settings.region(),
            signs: !settings.skips_signature(),
            prefix: prefix.to_owned(),
        })
    }

    /// The page after this marker; the first one without.
    pub(crate) async fn page(&self, after: Option<&(String, String)>) -> Result<Page, String> {
        let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let mut url = format!("{}?uploads=&prefix={}", self.bucket_url, encoded(&self.prefix));
        if let Some((key, upload)) = after {
            url += &format!("&key-marker={}&upload-id-marker={}", encoded(key), encoded(upload));
        }
        let request = HttpRequest::new(HttpRequestBody::empty());
        let (mut parts, body) = request.into_parts();
        parts.uri = url.parse().map_err(|error| format!("{url} is no URL: {error}"))?;
        let mut request = HttpRequest::from_parts(parts, body);
        if self.signs {
            let credential = self.credentials.get_credential().await.map_err(|error| error.to_string())?;
            let authorizer = AwsAuthorizer::new(&credential, "s3", &self.region);
            authorizer.try_authorize(&mut request, None).map_err(|error| error.to_string())?;
        }
        let response = self.client.execute(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        let body: Bytes = response.into_body().bytes().await.map_err(|error| error.to_string())?;
        if !status.is_success() {
            return Err(format!("HTTP status {status}"));
        }
        if body.len() > LONGEST {
            return Err("an answer that is too long".to_owned());
        }
        read_page(&body)
    }
}

fn read_page(body: &[u8]) -> Result<Page, String> {
    let mut page = Page::default();
    let mut path = Vec::<String>::new();
    let mut text = String::new();
    let mut begun = Begun::default();
    let mut truncated = false;
    let mut next = (String::new(), String::new());
    let mut reader = Reader::from_reader(body);
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Start(tag) => {
                path.push(tag.local_name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(piece) => text += &piece.xml10_content(),
            Event::GeneralRef(name) => match &*name.xml10_content() {
                "amp" => text.push('&'),
                "lt" => text.push('<'),
                "gt" => text.push('>'),
                "quot" => text.push('"'),
                "apos" => text.push('\''),
                other => return Err(format!("the entity {other}")),
            },
            Event::End(_) => {
                let names: Vec<&str> = path.iter().skip(1).map(String::as_str).collect();
                match names.as_slice() {
                    ["Upload", "Key"] => begun.key = std::mem::take(&mut text),
                    ["Upload", "UploadId"] => begun.upload = std::mem::take(&mut text),
                    ["Upload", "Initiated"] => begun.initiated = text.parse().ok(),
                    ["Upload"] => page.uploads.push(std::mem::take(&mut begun)),
                    ["IsTruncated"] => truncated = text == "true",
                    ["NextKeyMarker"] => next.0 = std::mem::take(&mut text),
                    ["NextUploadIdMarker"] => next.1 = std::mem::take(&mut text),
                    _ => {}
                }
                path.pop();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    page.next = truncated.then_some(next);
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_uploads_is_read_with_where_the_next_one_begins() {
        let body = br#"<?xml version="1.0" encoding="UTF-8"?>
            <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
              <Bucket>b</Bucket><KeyMarker></KeyMarker><UploadIdMarker/>
              <NextKeyMarker>p/a&amp;b</NextKeyMarker><NextUploadIdMarker>u2</NextUploadIdMarker>
              <MaxUploads>1</MaxUploads><IsTruncated>true</IsTruncated>
              <Upload><Key>p/a&amp;b</Key><UploadId>u2</UploadId>
                <Initiator><ID>x</ID></Initiator><Initiated>2026-01-02T03:04:05.000Z</Initiated></Upload>
              <Upload><Key>c</Key><UploadId>u3</UploadId></Upload>
            </ListMultipartUploadsResult>"#;
        let page = read_page(body).unwrap();
        let first = Begun {
            key: "p/a&b".to_owned(),
            upload: "u2".to_owned(),
            initiated: Some("2026-01-02T03:04:05Z".parse().unwrap()),
        };
        assert_eq!(page.uploads[0], first);
        assert_eq!(page.uploads[1].initiated, None);
        assert_eq!(page.next, Some(("p/a&b".to_owned(), "u2".to_owned())));
        assert_eq!(read_page(b"<R><IsTruncated>false</IsTruncated></R>").unwrap(), Page::default());
        assert!(read_page(b"<R><a></R>").is_err());
    }
}
