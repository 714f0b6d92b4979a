//! Labels of responses in metrics.

/// The class of an HTTP status (RFC 9110, 15), as a label of metrics.
pub fn status_class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
