//! Static files of the pages. They are built into the binary and served by the gateway alone.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest as _, Sha256};

use crate::api_error::ApiError;

/// A static file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asset {
    /// The style sheet.
    Style,
    /// The script that refreshes the changing parts of a page.
    Htmx,
    /// The icon.
    Icon,
}

impl Asset {
    const ALL: [Self; 3] = [Self::Style, Self::Htmx, Self::Icon];

    fn name(self) -> &'static str {
        match self {
            Self::Style => "console.css",
            Self::Htmx => "htmx.min.js",
            Self::Icon => "icon.svg",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Style => "text/css; charset=utf-8",
            Self::Htmx => "text/javascript; charset=utf-8",
            Self::Icon => "image/svg+xml",
        }
    }

    fn bytes(self) -> &'static [u8] {
        match self {
            Self::Style => include_bytes!("../../assets/console.css"),
            Self::Htmx => include_bytes!("../../assets/htmx.min.js"),
            Self::Icon => include_bytes!("../../assets/icon.svg"),
        }
    }
}

/// The URLs of the files. A URL contains the digest of its content, so that browsers may cache it for ever.
static PLACES: LazyLock<[String; 3]> = LazyLock::new(|| {
    Asset::ALL.map(|asset| {
        let digest = HEXLOWER.encode(&Sha256::digest(asset.bytes()));
        format!("/console/assets/{}?v={}", asset.name(), &digest[..12])
    })
});

/// The URL of a file.
pub(super) fn place(asset: Asset) -> &'static str {
    &PLACES[asset as usize]
}

/// The digest of each file, for Subresource Integrity.
static INTEGRITY: LazyLock<[String; 3]> = LazyLock::new(|| {
    Asset::ALL.map(|asset| format!("sha256-{}", BASE64.encode(&Sha256::digest(asset.bytes()))))
});

/// The digest of a file, for Subresource Integrity.
pub(super) fn integrity(asset: Asset) -> &'static str {
    &INTEGRITY[asset as usize]
}

/// Serves a file.
pub(super) async fn asset(Path(name): Path<String>) -> Result<Response, ApiError> {
    let found = Asset::ALL.into_iter().find(|asset| asset.name() == name);
    let asset =
        found.ok_or_else(|| ApiError::not_found("no page of the console needs a file of this name"))?;
    let headers = [
        (header::CONTENT_TYPE, asset.media_type()),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    Ok((headers, asset.bytes()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_lies_where_pages_say_and_nothing_else_does() {
        for asset_of in Asset::ALL {
            let path = place(asset_of).strip_prefix("/console/assets/").unwrap();
            let (name, version) = path.split_once("?v=").unwrap();
            assert_eq!(version.len(), 12);
            let sent = asset(Path(name.to_owned())).await.unwrap();
            assert_eq!(sent.headers()[header::CONTENT_TYPE], asset_of.media_type());
        }
        assert!(asset(Path("../Cargo.toml".to_owned())).await.is_err());
    }
}
