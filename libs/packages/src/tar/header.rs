//! One header of 512 bytes.

use crate::sniff::{SNIFF_BYTES, checksum_is_right};

/// Bytes of a block: a header is one, content is padded to whole ones.
pub(super) const BLOCK: usize = SNIFF_BYTES;

/// The largest size in octal digits; a larger one is written in base 256 or in a PAX record.
pub(super) const OCTAL_MOST: u64 = 0o777_7777_7777;

pub(super) struct Header {
    pub(super) name: Vec<u8>,
    pub(super) size: u64,
    pub(super) typeflag: u8,
    /// Whether blocks with the map of an old GNU sparse file follow.
    pub(super) map_follows: bool,
}

impl Header {
    pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Self, &'static str> {
        if !checksum_is_right(block) {
            return Err("its checksum is wrong");
        }
        let name = text(&block[..100]);
        let typeflag = block[156];
        let prefix = if block[257..263] == *b"ustar\0" { text(&block[345..500]) } else { b"" };
        let name = if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() };
        let size = number(&block[124..136]).ok_or("its size is no number")?;
        Ok(Self { name, size, typeflag, map_follows: typeflag == b'S' && block[482] != 0 })
    }
}

/// A text field ends with its first NUL, if it has one.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Octal digits between blanks; or, when the first bit is set, base 256. `None` for anything else: where
/// readers disagree about a size, they see different archives.
fn number(field: &[u8]) -> Option<u64> {
    if field[0] & 0x80 != 0 {
        let (high, low) = field.split_at(field.len() - 8);
        let fits = high[0] == 0x80 && high[1..].iter().all(|&byte| byte == 0);
        return low.first_chunk().map(|low| u64::from_be_bytes(*low)).filter(|_| fits);
    }
    let blank = |byte: &u8| matches!(byte, b' ' | 0);
    let start = field.iter().position(|byte| !blank(byte)).unwrap_or(field.len());
    let digits = field[start..].split(blank).next().unwrap_or_default();
    if !field[start + digits.len()..].iter().all(blank)
        || !digits.iter().all(|byte| (b'0'..=b'7').contains(byte))
    {
        return None;
    }
    Some(digits.iter().fold(0, |number, digit| number << 3 | u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_base_256_and_nothing_else() {
        assert_eq!(number(b"00000000017\0"), Some(15));
        assert_eq!(number(b"         17 "), Some(15));
        assert_eq!(number(b"777777777777"), Some(0o7777_7777_7777));
        assert_eq!(number(b"\0\0\0\0\0\0\0\0\0\0\0\0"), Some(0));
        assert_eq!(number(b"\x80\0\0\0\0\0\0\x02\0\0\0\x01"), Some(0x2_0000_0001));
        assert_eq!(number(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), None, "negative");
        assert_eq!(number(b"\x80\0\0\x01\0\0\0\0\0\0\0\0"), None, "more than 64 bits");
        assert_eq!(number(b"00000000018\0"), None);
        assert_eq!(number(b"0x0000000ff\0"), None);
        assert_eq!(number(b"-0000000001\0"), None);
        assert_eq!(number(b"0000017\x000017"), None, "two numbers");
    }
}
