//! Follows redirects.

use url::Url;

use crate::error_kind::ErrorKind;

/// Longest target of a redirect that is followed, in bytes. RFC 9110, section 4.1, recommends that 8,000 are
/// supported. It is kept with the resource, and each redirect of a failure is evidence.
const LONGEST_TARGET: usize = 8_192;

/// The URLs that redirected one request.
#[derive(Debug, Default)]
pub(crate) struct RedirectChain {
    passed: Vec<Url>,
}

/// How a response, or an error, was reached.
pub(crate) struct Way {
    /// The requested URL.
    pub(crate) url: Url,
    /// The target of redirects; none without redirects.
    pub(crate) moved: Option<Url>,
    /// The URLs that redirected, in order.
    pub(crate) redirects: Vec<Url>,
    pub(crate) requests: u32,
}

impl Way {
    /// The URL that answered.
    pub(crate) fn final_url(&self) -> &Url {
        self.moved.as_ref().unwrap_or(&self.url)
    }
}

impl RedirectChain {
    /// The target of a redirect from `at`; none when its status is no redirect.
    ///
    /// # Errors
    /// The kind of the error and a text, when the redirect cannot be followed.
    pub(crate) fn next(
        &mut self,
        status: u16,
        location: Option<&[u8]>,
        at: &Url,
        most: usize,
    ) -> Result<Option<Url>, (ErrorKind, String)> {
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Ok(None);
        }
        let Some(location) = location else {
            return Err((ErrorKind::BadRedirect, format!("status {status} without a Location header")));
        };
        let too_long = |bytes: usize| {
            let detail = format!("to a URL of {bytes} bytes; at most {LONGEST_TARGET} are followed");
            Err((ErrorKind::BadRedirect, detail))
        };
        if location.len() > LONGEST_TARGET {
            return too_long(location.len());
        }
        // Servers send UTF-8 here though they should escape it; other bytes lead nowhere either way.
        let location = String::from_utf8_lossy(location);
        let bad =
            |why: &str| (ErrorKind::BadRedirect, format!("Location: {}: {why}", location.escape_debug()));
        let next = at.join(location.trim()).map_err(|error| bad(&error.to_string()))?;
        // Other letters than those of ASCII take three times as many bytes in a URL.
        if next.as_str().len() > LONGEST_TARGET {
            return too_long(next.as_str().len());
        }
        if !matches!(next.scheme(), "http" | "https") {
            return Err(bad("only http and https are followed"));
        }
        self.passed.push(at.clone());
        // Requests carry no state of earlier responses (no cookies), so the same URL would answer the same
        // again.
        if self.passed.iter().any(|passed| same(passed, &next)) {
            return Err((ErrorKind::RedirectLoop, format!("sent on to {} again", secrets::redacted(&next))));
        }
        if self.passed.len() > most {
            return Err((ErrorKind::TooManyRedirects, format!("at most {most} are followed")));
        }
        Ok(Some(next))
    }

    /// The URLs that redirected, in order.
    pub(crate) fn into_passed(self) -> Vec<Url> {
        self.passed
    }
}

/// Whether both are equal to a server, which does not see the fragment.
fn same(one: &Url, other: &Url) -> bool {
    use url::Position::AfterQuery;
    one[..AfterQuery] == other[..AfterQuery]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn next(location: Option<&str>) -> Result<Option<Url>, ErrorKind> {
        let at = url("http://example.org/a/b");
        RedirectChain::default().next(302, location.map(str::as_bytes), &at, 5).map_err(|(kind, _)| kind)
    }

    #[test]
    fn locations_are_resolved_against_the_answering_url() {
        for (location, expected) in [
            ("c", "http://example.org/a/c"),
            ("/c?d", "http://example.org/c?d"),
            ("//other.org/", "http://other.org/"),
            ("https://other.org/ü", "https://other.org/%C3%BC"),
        ] {
            assert_eq!(next(Some(location)), Ok(Some(url(expected))));
        }
    }

    #[test]
    fn only_redirects_are_followed() {
        for status in [200, 204, 206, 300, 304, 305, 306, 404, 500] {
            let at = url("http://example.org/");
            assert_eq!(RedirectChain::default().next(status, Some(b"/x"), &at, 5).unwrap(), None, "{status}");
        }
    }

    #[test]
    fn ways_that_lead_nowhere_are_refused() {
        for location in [
            None,
            Some("http://"),
            Some("ftp://example.org/"),
            Some("javascript:1"),
            Some("file:///etc/passwd"),
        ] {
            assert_eq!(next(location), Err(ErrorKind::BadRedirect), "{location:?}");
        }
    }

    #[test]
    fn a_target_as_long_as_the_limit_is_followed_and_no_longer_one() {
        let path = |letter: &str, bytes: usize| {
            format!("http://h/{}", letter.repeat((bytes - "http://h/".len()) / letter.len()))
        };
        assert!(next(Some(&path("x", LONGEST_TARGET))).is_ok());
        assert_eq!(next(Some(&path("x", LONGEST_TARGET + 1))), Err(ErrorKind::BadRedirect));
        assert_eq!(next(Some(&path("ü", LONGEST_TARGET / 2))), Err(ErrorKind::BadRedirect));
    }

    #[test]
    fn a_way_that_comes_back_is_a_loop_whatever_the_fragment() {
        assert_eq!(next(Some("b#again")), Err(ErrorKind::RedirectLoop));
        let mut trail = RedirectChain::default();
        let a = url("http://h/a");
        let b = url("http://h/b");
        assert_eq!(trail.next(301, Some(b"/b"), &a, 5).unwrap(), Some(b.clone()));
        assert_eq!(trail.next(301, Some(b"/a"), &b, 5).unwrap_err().0, ErrorKind::RedirectLoop);
        assert_eq!(trail.into_passed(), [a, b]);
    }

    #[test]
    fn exactly_as_many_as_allowed_are_followed() {
        let mut trail = RedirectChain::default();
        let mut at = url("http://h/0");
        for step in 1..=3 {
            let location = format!("/{step}");
            at = trail.next(307, Some(location.as_bytes()), &at, 3).unwrap().unwrap();
        }
        assert_eq!(trail.next(307, Some(b"/4"), &at, 3).unwrap_err().0, ErrorKind::TooManyRedirects);
    }
}
