//! The path of each resource below the base: reversible, and safe as a URL, a file name and an object key.

use std::fmt::Write as _;

use fixity::Sha256;
use model::ResourceUri;

/// The folder of all resources.
const FOLDER: &str = "resources";
/// The folder of resources whose own path would be too long.
const LONG: &str = "resources/sha256";
/// The longest name of a file or folder; file systems accept 255 bytes.
const LONGEST_NAME: usize = 200;
/// The longest path; object stores accept keys of 1,024 bytes.
const LONGEST_PATH: usize = 900;
/// Begins an escaped byte. Alone it is an empty segment. Servers and object stores give it no meaning of its own,
/// unlike `%`, `+` and `~`.
const ESCAPE: char = '!';

/// The path below the base at which a resource is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPath {
    text: String,
    long: Option<Sha256>,
}

/// What a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// This resource.
    Resource(ResourceUri),
    /// The resource whose URI has this digest.
    Long(Sha256),
}

impl PublishedPath {
    /// The path of a resource.
    ///
    /// `https://example.org/a/b?c` is at `resources/https/3/example.org/a/b!3Fc`. The number counts the segments, so a
    /// file and a folder of the same name never meet. A URI that gives a path too long is named by its digest.
    pub fn of(uri: &ResourceUri) -> Self {
        match readable(uri.as_str()) {
            Some(text) => Self { text, long: None },
            None => {
                let sha256 = Sha256::of(uri.as_str().as_bytes());
                Self { text: format!("{LONG}/{sha256}"), long: Some(sha256) }
            }
        }
    }

    /// A path that needs no escape.
    pub(crate) fn plain(text: String) -> Self {
        Self { text, long: None }
    }

    /// The path, without a slash at its beginning.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The digest that stands for the URI, if the path does not spell it.
    pub fn long(&self) -> Option<Sha256> {
        self.long
    }
}

impl Named {
    /// What a path below the base stands for. None for a path that no resource has.
    pub fn at(path: &str) -> Option<Self> {
        if let Some(hex) = path.strip_prefix(LONG).and_then(|rest| rest.strip_prefix('/')) {
            let sha256: Sha256 = hex.parse().ok()?;
            return (sha256.to_string() == hex).then_some(Self::Long(sha256));
        }
        let mut segments = path.strip_prefix(FOLDER)?.strip_prefix('/')?.split('/');
        let mut uri = format!("{}://", segments.next()?);
        let number = segments.next()?;
        for (at, segment) in segments.enumerate() {
            if at > 0 {
                uri.push('/');
            }
            uri.push_str(&unescaped(segment)?);
        }
        // One spelling only: another one would be another URL of the same resource.
        let found = readable(&uri)?;
        (found == path && !number.is_empty()).then(|| uri.parse().ok().map(Self::Resource)).flatten()
    }
}

fn readable(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once("://")?;
    if !matches!(scheme, "http" | "https") || uri.len() > LONGEST_PATH {
        return None;
    }
    let mut path = format!("{FOLDER}/{scheme}/{}", rest.split('/').count());
    for segment in rest.split('/') {
        path.push('/');
        let begin = path.len();
        escape(segment, &mut path);
        if path.len() - begin > LONGEST_NAME {
            return None;
        }
    }
    (path.len() <= LONGEST_PATH).then_some(path)
}

fn escape(segment: &str, path: &mut String) {
    if segment.is_empty() {
        path.push(ESCAPE);
    }
    for (at, byte) in segment.bytes().enumerate() {
        match byte {
            // Hidden files are often not served, and `.` and `..` are no names.
            b'.' if at > 0 => path.push('.'),
            b'-' | b'_' => path.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => path.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(path, "{ESCAPE}{byte:02X}")),
        }
    }
}

fn unescaped(segment: &str) -> Option<String> {
    if segment.len() == ESCAPE.len_utf8() && segment.starts_with(ESCAPE) {
        return Some(String::new());
    }
    let mut parts = segment.split(ESCAPE);
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn path(uri: &str) -> String {
        PublishedPath::of(&uri.parse().unwrap()).as_str().to_owned()
    }

    #[test]
    fn paths_are_readable_and_need_no_escape_of_a_server() {
        for (uri, expected) in [
            ("https://example.org/2020/Report.pdf", "resources/https/3/example.org/2020/Report.pdf"),
            ("http://example.org:8080/a?b=/c", "resources/http/3/example.org!3A8080/a!3Fb!3D/c"),
            ("http://example.org", "resources/http/1/example.org"),
            ("http://example.org/", "resources/http/2/example.org/!"),
            ("http://example.org//a/../.git", "resources/http/5/example.org/!/a/!2E./!2Egit"),
            ("http://example.org/so & so%20é~", "resources/http/2/example.org/so!20!26!20so!2520!C3!A9!7E"),
        ] {
            assert_eq!(path(uri), expected);
        }
    }

    #[test]
    fn file_and_folder_of_one_name_are_in_different_trees() {
        let paths: HashSet<String> =
            ["http://e.org/a", "http://e.org/a/", "http://e.org/a/b"].map(path).into();
        assert_eq!(paths.len(), 3);
        for one in &paths {
            assert!(paths.iter().all(|other| !other.starts_with(&format!("{one}/"))), "{one}");
        }
    }

    #[test]
    fn long_uris_are_named_by_their_digest() {
        for uri in [format!("http://e.org/{}", "x".repeat(201)), format!("http://e.org/{}", "x/".repeat(500))]
        {
            let uri: ResourceUri = uri.parse().unwrap();
            let path = PublishedPath::of(&uri);
            let sha256 = Sha256::of(uri.as_str().as_bytes());
            assert_eq!(
                (path.as_str(), path.long()),
                (format!("resources/sha256/{sha256}").as_str(), Some(sha256))
            );
            assert_eq!(Named::at(path.as_str()), Some(Named::Long(sha256)));
        }
    }

    #[test]
    fn other_paths_and_other_spellings_name_nothing() {
        for bad in [
            "",
            "resources",
            "resources/",
            "resources/http",
            "resources/http/1",
            "resources/http/2/e.org",
            "resources/ftp/1/e.org",
            "resources/http/1/e!2Eorg",
            "resources/http/2/e.org/a!",
            "resources/http/2/e.org/!zz",
            "resources/http/2/e.org/!é",
            "resources/http/2/e.org/",
            "resources/http/02/e.org/a",
            "resources/http/2/e.org/..",
            "resources/sha256/AB",
            "/resources/http/1/e.org",
        ] {
            assert_eq!(Named::at(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_path_leads_back_to_its_uri(
            rest in "[a-z]{1,5}(\\.[a-z]{1,3})?(/|/\\PC{0,30}|/[./?#%!&=+-]{0,9}){0,5}",
        ) {
            let uri: Result<ResourceUri, _> = format!("https://{rest}").parse();
            prop_assume!(uri.is_ok());
            let uri = uri.unwrap();
            let path = PublishedPath::of(&uri);
            match path.long() {
                Some(sha256) => prop_assert_eq!(Named::at(path.as_str()), Some(Named::Long(sha256))),
                None => {
                    prop_assert_eq!(Named::at(path.as_str()), Some(Named::Resource(uri)));
                    let plain = |c: char| c.is_ascii_alphanumeric() || "._!-/".contains(c);
                    prop_assert!(path.as_str().chars().all(plain));
                }
            }
        }

        #[test]
        fn any_text_is_a_path_or_none(text in "resources/(http|sha256)(/\\PC{0,12}){0,5}") {
            if let Some(Named::Resource(uri)) = Named::at(&text) {
                let path = PublishedPath::of(&uri);
                prop_assert_eq!(path.as_str(), text);
            }
        }
    }
}
