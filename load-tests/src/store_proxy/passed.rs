//! A request to the store: its method, and the part of the store that it is about.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant;

/// A request that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passed {
    /// When its head had arrived.
    pub(crate) at: Instant,
    /// `get`, `put`, `list`, `delete`, `head`, or `other`.
    pub(crate) method: &'static str,
    /// The part of the store, such as `catalog_wal` or `packs`.
    pub(crate) part: String,
}

/// The head of a request, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: &'static str,
    pub(super) part: String,
    pub(super) body_bytes: u64,
}

impl Passed {
    /// Whether it is about a catalog.
    pub(crate) fn is_of_catalog(&self) -> bool {
        self.part.starts_with("catalog")
    }
}

impl Head {
    /// Reads the head of a request.
    ///
    /// # Errors
    /// When the length of its body is not told in advance.
    pub(super) fn parse(head: &str) -> io::Result<Self> {
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let method = first.next().unwrap_or_default();
        let target = first.next().unwrap_or_default();
        let path = target.split('?').next().unwrap_or_default();
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let parameter = |name: &str| {
            query
                .split('&')
                .find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
                .map(|value| value.replace("%2F", "/"))
        };
        let is_list = method == "GET" && parameter("list-type").is_some();
        let method = match method {
            "GET" if is_list => "list",
            "GET" => "get",
            "PUT" => "put",
            "DELETE" => "delete",
            "HEAD" => "head",
            _ => "other",
        };
        // The path begins with the bucket.
        let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key).to_owned();
        let key = if is_list { parameter("prefix").unwrap_or_default() } else { key };
        let mut body_bytes = 0;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                body_bytes = value.trim().parse().map_err(io::Error::other)?;
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(io::Error::other("requests in chunks are not passed on"));
            }
        }
        Ok(Self { method, part: part_of(&key), body_bytes })
    }
}

/// The part of the store that a key, or the beginning of keys, belongs to: `harvest/catalogs/<source>/wal/…`.
fn part_of(key: &str) -> String {
    let mut segments = key.split('/').filter(|segment| !segment.is_empty());
    // Harvests of this runner lie below this prefix.
    let first = segments.by_ref().find(|segment| *segment != "harvest");
    match (first, segments.nth(1)) {
        (Some("catalogs"), Some(kind)) => format!("catalog_{}", kind.replace(['-', '.'], "_")),
        (Some("catalogs"), None) => "catalog".to_owned(),
        (Some(other), _) => other.trim_matches('.').replace(['-', '.'], "_"),
        (None, _) => "bucket".to_owned(),
    }
}

/// The requests by method, by method and part, and in all.
pub(crate) fn counted(passed: &[Passed]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for each in passed {
        for name in [
            "requests".to_owned(),
            format!("requests_{}", each.method),
            format!("requests_{}_{}", each.method, each.part),
        ] {
            *counts.entry(name).or_default() += 1;
        }
    }
    counts.entry("requests".to_owned()).or_default();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_method_and_part() {
        let all = [passed("get", "packs"), passed("get", "catalog_wal"), passed("put", "packs")];
        let counts = counted(&all);
        for (name, count) in
            [("requests", 3), ("requests_get", 2), ("requests_get_packs", 1), ("requests_put", 1)]
        {
            assert_eq!(counts.get(name), Some(&count), "{name}");
        }
        assert_eq!(counted(&[]), BTreeMap::from([("requests".to_owned(), 0)]));
    }

    fn passed(method: &'static str, part: &str) -> Passed {
        Passed { at: Instant::now(), method, part: part.to_owned() }
    }

    fn parsed(head: &str) -> (&'static str, String, u64) {
        let head = Head::parse(head).unwrap();
        (head.method, head.part, head.body_bytes)
    }

    #[test]
    fn requests_are_told_apart_by_method_and_part() {
        for (head, method, part) in [
            ("GET /b/harvest/catalogs/a-1/manifest/0001.manifest HTTP/1.1\r\n", "get", "catalog_manifest"),
            ("PUT /b/harvest/catalogs/a-1/wal/0001.sst HTTP/1.1\r\n", "put", "catalog_wal"),
            (
                "GET /b?list-type=2&prefix=harvest%2Fcatalogs%2Fa-1%2Fwal%2F HTTP/1.1\r\n",
                "list",
                "catalog_wal",
            ),
            ("GET /b?list-type=2&prefix=harvest/catalogs/a-1 HTTP/1.1\r\n", "list", "catalog"),
            ("HEAD /b/harvest/packs/a-1/x.zip HTTP/1.1\r\n", "head", "packs"),
            ("DELETE /b/harvest/.thresher/x HTTP/1.1\r\n", "delete", "thresher"),
            ("POST /b?delete HTTP/1.1\r\n", "other", "bucket"),
        ] {
            assert_eq!(parsed(head), (method, part.to_owned(), 0), "{head}");
        }
    }

    #[test]
    fn the_body_is_as_long_as_the_head_says_and_chunks_are_refused() {
        assert_eq!(parsed("PUT /b/harvest/x HTTP/1.1\r\ncontent-length: 12\r\n").2, 12);
        assert!(Head::parse("PUT /b/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n").is_err());
    }
}
