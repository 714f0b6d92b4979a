//! Paths of files, their order, and their URLs.

use std::cmp::Ordering;

use model::ResourceUri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but the unreserved characters of RFC 3986, and the slash between names.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The order of a walk: a folder's files come directly behind it, whatever other names begin alike.
pub(super) fn order(one: &str, other: &str) -> Ordering {
    // No name has a zero in it.
    let plain = |byte: u8| if byte == b'/' { 0 } else { byte };
    one.bytes().map(plain).cmp(other.bytes().map(plain))
}

/// Whether a path is this one, or below it. All are below the directory itself, whose path is empty.
pub(super) fn is_at_or_below(path: &str, folder: &str) -> bool {
    let is_below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    folder.is_empty() || path.strip_prefix(folder).is_some_and(is_below)
}

/// How many names a path has.
pub(super) fn depth(path: &str) -> usize {
    path.split('/').count()
}

/// The URL of a file, below a URL that ends with a slash.
pub(super) fn url(below: &str, path: &str) -> String {
    format!("{below}{}", utf8_percent_encode(path, ESCAPED))
}

/// The path of the file with this URL.
pub(super) fn path(below: &str, uri: &ResourceUri) -> Option<String> {
    let rest = uri.as_str().strip_prefix(below)?;
    let path = percent_decode_str(rest).decode_utf8().ok()?;
    (utf8_percent_encode(&path, ESCAPED).to_string() == rest).then(|| path.into_owned())
}

/// Whether each name of a path may be published: no name is hidden, empty, or leads elsewhere.
pub(super) fn is_plain(path: &str) -> bool {
    path.split('/')
        .all(|name| !name.is_empty() && !name.starts_with('.') && !name.chars().any(char::is_control))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_folder_is_sorted_before_names_that_begin_like_it() {
        let mut paths = ["a.txt", "a/b", "a-", "b", "a/b/c", "a/b.c"];
        paths.sort_by(|one, other| order(one, other));
        assert_eq!(paths, ["a/b", "a/b/c", "a/b.c", "a-", "a.txt", "b"]);
        assert!(is_at_or_below("a/b", "a") && is_at_or_below("a", "a") && !is_at_or_below("a.txt", "a"));
        assert!(is_at_or_below("a", "") && is_at_or_below("", "") && !is_at_or_below("", "a"));
    }

    #[test]
    fn hidden_names_and_ways_up_are_not_plain() {
        for bad in ["", "a//b", "../a", "a/..", ".git/config", "a/.b", "/a", "a/", "a\nb"] {
            assert!(!is_plain(bad), "{bad:?}");
        }
        assert!(is_plain("a/b c/d.e"));
    }

    proptest! {
        #[test]
        fn every_url_leads_back_to_its_path(path in "\\PC{1,20}(/\\PC{1,9}){0,3}") {
            let text = url("https://e.org/files/", &path);
            let uri: ResourceUri = text.parse().unwrap();
            prop_assert!(text.is_ascii());
            prop_assert_eq!(super::path("https://e.org/files/", &uri), Some(path));
        }

        #[test]
        fn the_order_is_that_of_the_names(one in "[a.-]{1,3}(/[a.-]{1,3}){0,2}", other in "[a.-]{1,3}(/[a.-]{1,3}){0,2}") {
            prop_assert_eq!(order(&one, &other), one.split('/').cmp(other.split('/')));
        }
    }
}
