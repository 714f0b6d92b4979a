//! When a body was last modified, as far as its server is credible.

use jiff::Timestamp;
use model::Validators;

/// The time in `Last-Modified`. A time in the future by the local clock is invalid (RFC 9110, 8.8.2.1), and so is an
/// unreadable one. A time in the same second as the response is never among the validators: a server that generates
/// its page on request always sends such a time.
pub(crate) fn believed(validators: &Validators, now: Timestamp) -> Option<Timestamp> {
    let text = validators.last_modified.as_deref()?;
    let modified = Timestamp::try_from(httpdate::parse_http_date(text.trim()).ok()?).ok()?;
    Some(modified).filter(|modified| *modified <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last_modified: &str) -> Option<Timestamp> {
        let validators = Validators { etag: None, last_modified: Some(last_modified.to_owned()) };
        believed(&validators, "2026-01-02T03:04:05Z".parse().unwrap())
    }

    #[test]
    fn a_moment_of_the_past_is_believed() {
        assert_eq!(at("Fri, 02 Jan 2026 03:04:04 GMT"), Some("2026-01-02T03:04:04Z".parse().unwrap()));
        assert_eq!(at(" Thu, 01 Jan 1970 00:00:00 GMT"), Some(Timestamp::UNIX_EPOCH));
    }

    #[test]
    fn one_of_the_future_is_not() {
        assert_eq!(at("Fri, 02 Jan 2026 03:04:06 GMT"), None);
        assert_eq!(at("Fri, 01 Jan 2094 00:00:00 GMT"), None);
    }

    #[test]
    fn what_is_no_date_tells_nothing() {
        for odd in ["", "yesterday", "2026-01-02T03:04:04Z", "-1", "0"] {
            assert_eq!(at(odd), None, "{odd:?}");
        }
        assert_eq!(believed(&Validators::default(), Timestamp::UNIX_EPOCH), None);
    }
}
