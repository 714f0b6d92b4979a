//! How answers are counted.

/// The class of a status of HTTP (RFC 9110, 15), as labels of metrics have it.
pub fn status_class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
