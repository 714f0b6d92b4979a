//! Which part of a body a 206 carries.

/// The first byte of the part that a `Content-Range` header announces (RFC 9110, 14.4), if it can be read.
pub(crate) fn first_byte(content_range: &str) -> Option<u64> {
    let (unit, range) = content_range.trim().split_once(' ')?;
    let (first, _) = range.trim_start().split_once('-')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    first.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_read_with_and_without_a_total() {
        assert_eq!(first_byte("bytes 7-99/100"), Some(7));
        assert_eq!(first_byte("Bytes 0-0/*"), Some(0));
    }

    #[test]
    fn other_units_and_rubbish_announce_nothing() {
        for odd in ["", "bytes", "bytes */100", "items 7-9/10", "bytes=7-9", "bytes -5/10", "7-9/10"] {
            assert_eq!(first_byte(odd), None, "{odd:?}");
        }
    }
}
