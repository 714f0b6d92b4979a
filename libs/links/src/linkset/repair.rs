//! Removes stray commas from JSON, as some servers write them.

/// The same JSON without the commas before an end of an array or object, and of several commas only one. `None` if
/// there are none.
pub(super) fn without_stray_commas(json: &[u8]) -> Option<Vec<u8>> {
    let mut repaired: Vec<u8> = Vec::with_capacity(json.len());
    // Where the last comma was written, if only blanks came after it.
    let mut comma = None;
    let mut removed = false;
    let mut is_text = false;
    let mut is_escaped = false;
    for &byte in json {
        if is_text {
            is_text = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
            repaired.push(byte);
            continue;
        }
        match byte {
            b',' if comma.is_some() => {
                removed = true;
                continue;
            }
            b',' => comma = Some(repaired.len()),
            b']' | b'}' => {
                if let Some(at) = comma.take() {
                    removed = true;
                    // A blank keeps the columns of what follows.
                    repaired[at] = b' ';
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => {
                comma = None;
                is_text = byte == b'"';
            }
        }
        repaired.push(byte);
    }
    removed.then_some(repaired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_within_texts_stay() {
        let repaired =
            |json: &str| without_stray_commas(json.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(repaired(r#"[1, 2]"#), None);
        assert_eq!(repaired(r#"{"a": ",]", "b": "\",}"}"#), None);
        assert_eq!(repaired("[1, 2,\n]"), Some("[1, 2 \n]".to_owned()));
        assert_eq!(repaired(r#"{"a": [1,,2,],}"#), Some(r#"{"a": [1,2 ] }"#.to_owned()));
    }
}
