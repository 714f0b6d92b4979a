//! The media type of a file, by the end of its name.

/// Ends of names and their media types, in the order of the ends.
const TYPES: &[(&str, &str)] = &[
    ("bz2", "application/x-bzip2"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("epub", "application/epub+zip"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jp2", "image/jp2"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonld", "application/ld+json"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("nt", "application/n-triples"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("rdf", "application/rdf+xml"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tif", "image/tiff"),
    ("tiff", "image/tiff"),
    ("ttl", "text/turtle"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webp", "image/webp"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// The media type of a file. None for an end that is not known.
pub(super) fn media_type(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next()?;
    let end = name.rsplit_once('.')?.1.to_ascii_lowercase();
    let at = TYPES.binary_search_by(|(known, _)| known.cmp(&end.as_str())).ok()?;
    Some(TYPES[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_sorted_and_found_in_any_case() {
        assert!(TYPES.is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(media_type("a.b/Report.PDF"), Some("application/pdf"));
        for unknown in ["pdf", "a.pdf/b", "a.", "a.unknown"] {
            assert_eq!(media_type(unknown), None, "{unknown}");
        }
    }
}
