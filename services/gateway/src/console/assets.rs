//! Static files of the pages. They are built into the binary and served by the gateway alone.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest as _, Sha256};

use crate::api_error::ApiError;

/// A static file.
pub(super) struct Asset {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
    /// The URL of the file. It contains the digest of the content, so that browsers may cache it for ever.
    pub(super) url: String,
    /// The digest of the file, for Subresource Integrity.
    pub(super) integrity: String,
}

impl Asset {
    fn new(name: &'static str, media_type: &'static str, bytes: &'static [u8]) -> Self {
        let digest = Sha256::digest(bytes);
        let url = format!("/console/assets/{name}?v={}", &HEXLOWER.encode(&digest)[..12]);
        Self { name, media_type, bytes, url, integrity: format!("sha256-{}", BASE64.encode(&digest)) }
    }
}

/// The style sheet.
pub(super) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("console.css", "text/css; charset=utf-8", include_bytes!("../../assets/console.css"))
});

/// The script that refreshes the changing parts of a page: `htmx`.
pub(super) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("htmx.min.js", "text/javascript; charset=utf-8", include_bytes!("../../assets/htmx.min.js"))
});

/// The icon.
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon.svg", "image/svg+xml", include_bytes!("../../assets/icon.svg")));

/// All files.
fn all() -> [&'static Asset; 3] {
    [&STYLE, &SCRIPT, &ICON]
}

/// Serves a file.
pub(super) async fn asset(Path(name): Path<String>) -> Result<Response, ApiError> {
    let asset = all().into_iter().find(|asset| asset.name == name);
    let asset =
        asset.ok_or_else(|| ApiError::not_found("no page of the console needs a file of this name"))?;
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Ok((headers, asset.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_file_is_served_at_its_url_and_nothing_else_is() {
        for file in all() {
            let (name, version) =
                file.url.strip_prefix("/console/assets/").unwrap().split_once("?v=").unwrap();
            assert_eq!(version.len(), 12);
            let sent = asset(Path(name.to_owned())).await.unwrap();
            assert_eq!(sent.headers()[header::CONTENT_TYPE], file.media_type);
        }
        assert!(asset(Path("../Cargo.toml".to_owned())).await.is_err());
    }
}
