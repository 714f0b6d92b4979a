//! Fields of a submitted form.

use axum::extract::{FromRequest, Request};
use url::form_urlencoded;

use crate::api_error::ApiError;
use crate::extract;
use crate::state::Gateway;

/// The fields of a form as submitted. An empty field counts as missing.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    fn read(body: &[u8]) -> Self {
        let fields =
            form_urlencoded::parse(body).map(|(name, value)| (name.into_owned(), value.trim().to_owned()));
        Self(fields.filter(|(_, value)| !value.is_empty()).collect())
    }

    /// The value of a field.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a field, as an owned string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(str::to_owned)
    }

    /// Whether a check box is ticked.
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Fields {
    fn from(fields: [(&str, &str); N]) -> Self {
        Self(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }
}

impl FromIterator<(&'static str, String)> for Fields {
    fn from_iter<I: IntoIterator<Item = (&'static str, String)>>(fields: I) -> Self {
        Self(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

impl FromRequest<Gateway> for Fields {
    type Rejection = ApiError;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, ApiError> {
        Ok(Self::read(&extract::read_body(request, gateway).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_empty_ones_are_left_out() {
        let fields =
            Fields::read(b"entry=https%3A%2F%2Fexample.org%2F&note=+gone+since+2019+&contact=&all=on");
        assert_eq!(fields.get("entry"), Some("https://example.org/"));
        assert_eq!(fields.get("note"), Some("gone since 2019"));
        assert_eq!(fields.get("contact"), None);
        assert!(fields.has("all") && !fields.has("none"));
    }
}
