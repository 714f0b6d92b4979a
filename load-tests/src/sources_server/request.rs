//! Requests: the few parts of their heads that matter here.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest head of a request that is read.
const MOST_HEAD_BYTES: usize = 16 << 10;

/// A request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// The path.
    pub(super) path: String,
    /// Whether only the head of the response is requested.
    pub(super) is_head: bool,
    /// The entity tags of `If-None-Match`.
    pub(super) if_none_match: Option<String>,
    /// The date of `If-Modified-Since`.
    pub(super) if_modified_since: Option<String>,
}

/// Reads the next request. `buffer` keeps what came after its head. None when the client closes the connection.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Request>> {
    loop {
        if let Some(end) = end_of_head(buffer) {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            buffer.drain(..end);
            return Ok(Some(Request::parse(&head)));
        }
        if buffer.len() > MOST_HEAD_BYTES {
            return Err(io::Error::other("the head of a request is too long"));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// The length of the head at the beginning of some bytes, with its last line; none before it is complete.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    Some(bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4)
}

impl Request {
    fn parse(head: &str) -> Self {
        let mut lines = head.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let is_head = first.next() == Some("HEAD");
        let path = first.next().unwrap_or("/").split('?').next().unwrap_or_default().to_owned();
        let mut request = Self { path, is_head, ..Self::default() };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = || Some(value.trim().to_owned());
            if name.eq_ignore_ascii_case("if-none-match") {
                request.if_none_match = value();
            } else if name.eq_ignore_ascii_case("if-modified-since") {
                request.if_modified_since = value();
            }
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_requests_in_a_row_are_read_one_by_one() {
        let mut bytes: &[u8] =
            b"GET /a?b HTTP/1.1\r\nIF-NONE-MATCH: \"x\"\r\n\r\nHEAD /c HTTP/1.1\r\nHost: h\r\n\r\n";
        let mut buffer = Vec::new();
        let first = read(&mut bytes, &mut buffer).await.unwrap().unwrap();
        assert_eq!(
            (first.path.as_str(), first.is_head, first.if_none_match.as_deref()),
            ("/a", false, Some("\"x\""))
        );
        let second = read(&mut bytes, &mut buffer).await.unwrap().unwrap();
        assert_eq!((second.path.as_str(), second.is_head, second.if_none_match), ("/c", true, None));
        assert_eq!(read(&mut bytes, &mut buffer).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_head_without_an_end_is_refused() {
        let long = vec![b'a'; MOST_HEAD_BYTES * 2];
        assert!(read(&mut &long[..], &mut Vec::new()).await.is_err());
    }
}
