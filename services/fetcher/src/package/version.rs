//! Which version of a package a response belongs to, and whether parts of one can be combined.

use model::Validators;
use web::{ErrorKind, Response, WebError};

/// `If-Range` value for the version: a strong `ETag`, or a `Last-Modified` that no two versions can share (RFC 9110,
/// 13.1.5).
pub(crate) fn condition(validators: &Validators) -> Option<String> {
    match &validators.etag {
        Some(etag) if !etag.starts_with("W/") => Some(etag.clone()),
        // A weak one says that the server itself does not distinguish the bytes.
        Some(_) => None,
        None => validators.last_modified.clone(),
    }
}

/// Whether another request can continue the download. If not, a job that ended in time would start again each time,
/// and never finish. The same would happen if the server answers each request for the rest with another version.
pub(crate) fn can_go_on(validators: &Validators, accepts_ranges: bool, refused_range: bool) -> bool {
    accepts_ranges && !refused_range && condition(validators).is_some()
}

/// Whether the server announces, or shows, that it supports ranges (RFC 9110, 14.3).
pub(crate) fn accepts_ranges(response: &Response) -> bool {
    let says = response.header("accept-ranges");
    response.status() == 206 || says.is_some_and(|units| units.trim().eq_ignore_ascii_case("bytes"))
}

/// Whether the server cannot serve the requested range: it does not exist (any more), or the server sent another.
pub(crate) fn is_no_such_range(error: &WebError) -> bool {
    matches!(error.kind(), ErrorKind::Status(416) | ErrorKind::Unasked(206))
}

/// What tells the version received so far from others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) validators: &'a Validators,
    pub(crate) length: Option<u64>,
    /// Whether a declared digest judges the whole.
    pub(crate) is_judged: bool,
}

/// Whether a 206 is of the version received so far. `If-Range` should ensure that, but not every server obeys it.
pub(crate) fn is_same(response: &Response, known: Known<'_>) -> bool {
    let total = response.content_range().and_then(|range| range.total);
    is_of(&response.validators(), total, known)
}

fn is_of(found: &Validators, total: Option<u64>, known: Known<'_>) -> bool {
    let same_version = match (&found.etag, &known.validators.etag) {
        (Some(found), Some(known)) => found == known,
        // A server that has one sends it with each part (RFC 9110, 15.3.7). Without it, only a digest of the whole
        // would notice bytes of another version.
        (None, Some(_)) if !known.is_judged => false,
        _ => agree(found.last_modified.as_ref(), known.validators.last_modified.as_ref()),
    };
    same_version && agree(total, known.length)
}

/// A missing value contradicts nothing.
fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: &str = "Fri, 02 Jan 2026 03:04:05 GMT";

    fn validators(etag: Option<&str>, last_modified: Option<&str>) -> Validators {
        Validators { etag: etag.map(Into::into), last_modified: last_modified.map(Into::into) }
    }

    #[test]
    fn only_what_tells_bytes_apart_is_a_condition() {
        assert_eq!(condition(&validators(Some("\"a\""), Some(DAY))).as_deref(), Some("\"a\""));
        assert_eq!(condition(&validators(None, Some(DAY))).as_deref(), Some(DAY));
        assert_eq!(condition(&validators(Some("W/\"a\""), Some(DAY))), None);
        assert_eq!(condition(&validators(None, None)), None);
    }

    #[test]
    fn a_job_ends_in_the_middle_only_where_another_can_go_on() {
        let strong = validators(Some("\"a\""), None);
        assert!(can_go_on(&strong, true, false));
        assert!(!can_go_on(&strong, true, true), "it says so, and does not do it");
        assert!(!can_go_on(&strong, false, false));
        assert!(!can_go_on(&validators(Some("W/\"a\""), None), true, false));
    }

    #[test]
    fn a_part_is_of_another_version_where_anything_it_says_contradicts() {
        let tagged = validators(Some("\"a\""), Some(DAY));
        let known = Known { validators: &tagged, length: Some(100), is_judged: true };
        assert!(is_of(&validators(None, None), None, known), "nothing is said");
        assert!(is_of(&validators(Some("\"a\""), Some("another day")), Some(100), known), "the ETag decides");
        assert!(!is_of(&validators(Some("\"b\""), Some(DAY)), Some(100), known));
        assert!(!is_of(&validators(Some("\"a\""), None), Some(101), known));
        assert!(!is_of(&validators(None, Some("another day")), Some(100), known));
        let dated = validators(None, Some(DAY));
        let known = Known { validators: &dated, ..known };
        assert!(is_of(&validators(None, Some(DAY)), Some(100), known));
    }

    #[test]
    fn without_a_digest_a_part_has_the_etag_of_the_version() {
        let tagged = validators(Some("\"a\""), Some(DAY));
        for is_judged in [true, false] {
            let known = Known { validators: &tagged, length: Some(100), is_judged };
            assert!(is_of(&tagged, Some(100), known));
            assert_eq!(is_of(&validators(None, None), Some(100), known), is_judged);
            assert_eq!(is_of(&validators(None, Some(DAY)), Some(100), known), is_judged);
            let dated = validators(None, Some(DAY));
            assert!(is_of(&dated, Some(100), Known { validators: &dated, ..known }), "it never had one");
        }
    }
}
