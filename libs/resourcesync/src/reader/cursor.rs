use super::reference::{Reference, resolve};

const MOST_REFERENCE_BYTES: usize = 32;

/// The bytes that attribute names consist of.
const OF_NAMES: [bool; 256] = {
    let mut of_names = [false; 256];
    let mut byte = 0;
    while byte < of_names.len() {
        of_names[byte] = (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b':' | b'-' | b'_');
        byte += 1;
    }
    of_names
};

const ONES: u64 = u64::MAX / 0xff;
const HIGH_BITS: u64 = ONES << 7;

/// Moves through the bytes of an entry, for its outline.
pub(super) struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// Why there is no outline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes end within the entry; with more of them it may be complete.
    Cut,
    /// It does not have the common shape, or it exceeds a limit.
    Odd,
}

impl<'b> Cursor<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn peek(&self, ahead: usize) -> Result<u8, Stop> {
        self.bytes.get(self.at + ahead).copied().ok_or(Stop::Cut)
    }

    /// Skips blanks; returns whether there were any.
    #[inline]
    pub(super) fn blanks(&mut self) -> bool {
        let before = self.at;
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.at > before
    }

    #[inline]
    pub(super) fn eat<const N: usize>(&mut self, wanted: &[u8; N]) -> Result<(), Stop> {
        let rest = &self.bytes[self.at..];
        if rest.first_chunk() == Some(wanted) {
            self.at += N;
            return Ok(());
        }
        Err(if wanted.starts_with(rest) { Stop::Cut } else { Stop::Odd })
    }

    /// The name of an attribute that declares no namespace.
    #[inline]
    pub(super) fn name(&mut self) -> Result<(usize, usize), Stop> {
        let from = self.at;
        while self.bytes.get(self.at).is_some_and(|&byte| OF_NAMES[usize::from(byte)]) {
            self.at += 1;
        }
        let name = &self.bytes[from..self.at];
        let is_usual = !name.is_empty() && !name.starts_with(b"xmlns");
        if is_usual { Ok((from, self.at)) } else { Err(self.peek(0).err().unwrap_or(Stop::Odd)) }
    }

    /// Moves to the next `wanted`, past references to characters. Returns whether the skipped text is plain:
    /// without references and control characters.
    #[inline]
    pub(super) fn find(&mut self, wanted: u8) -> Result<bool, Stop> {
        let repeated = u64::from(wanted) * ONES;
        let mut is_plain = true;
        loop {
            while let Some(eight) = self.bytes[self.at..].first_chunk() {
                let marks = special(u64::from_le_bytes(*eight), repeated);
                if marks != 0 {
                    self.at += marks.trailing_zeros() as usize / 8;
                    break;
                }
                self.at += eight.len();
            }
            match self.peek(0)? {
                byte if byte == wanted => return Ok(is_plain),
                b'&' => {
                    self.reference()?;
                    is_plain = false;
                }
                byte => {
                    self.at += 1;
                    is_plain &= byte >= b' ';
                }
            }
        }
    }

    fn reference(&mut self) -> Result<(), Stop> {
        let rest = &self.bytes[self.at + 1..];
        let near = &rest[..rest.len().min(MOST_REFERENCE_BYTES)];
        let Some(length) = near.iter().position(|&byte| byte == b';') else {
            return Err(if near.len() < MOST_REFERENCE_BYTES { Stop::Cut } else { Stop::Odd });
        };
        match std::str::from_utf8(&near[..length]).map(resolve) {
            Ok(Reference::Char(_)) => {
                self.at += length + 2;
                Ok(())
            }
            _ => Err(Stop::Odd),
        }
    }
}

/// Of eight bytes, the first in the lowest place, marks the high bit of each that is wanted, an ampersand or
/// a control character. Only the lowest mark is reliable: the subtraction borrows from the bytes above it.
fn special(eight: u64, wanted: u64) -> u64 {
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(u64::from(limit) * ONES) & !bytes;
    let ampersand = u64::from(b'&') * ONES;
    (below(eight ^ wanted, 1) | below(eight ^ ampersand, 1) | below(eight, b' ')) & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_special_byte_is_found_wherever_it_stands_and_whatever_surrounds_it() {
        let fills = [b' ', b'!', b'%', b'\'', b'#', b'a', 0x7f, 0x80, 0xa6, 0xff];
        for special_byte in 0..=u8::MAX {
            let is_special = special_byte < b' ' || matches!(special_byte, b'&' | b'"');
            for (place, fill) in (0..8).flat_map(|place| fills.map(|fill| (place, fill))) {
                let mut eight = [fill; 8];
                eight[place] = special_byte;
                eight[7] = if place < 7 { b'"' } else { special_byte };
                let marks = special(u64::from_le_bytes(eight), u64::from(b'"') * ONES);
                let expected = if is_special { Some(place) } else { (place < 7).then_some(7) };
                let found = (marks != 0).then(|| marks.trailing_zeros() as usize / 8);
                assert_eq!(found, expected, "{special_byte} at {place} among {fill}");
            }
        }
    }

    #[test]
    fn what_is_plain_is_told_from_what_is_not() {
        for (text, is_plain) in [
            ("\"", true),
            ("0123456789abcdef \u{e9}\"", true),
            ("0123456\n\"", false),
            ("\t01234567\"", false),
            ("0&lt;1\"", false),
        ] {
            let mut cursor = Cursor::new(text.as_bytes());
            assert_eq!((cursor.find(b'"'), cursor.at()), (Ok(is_plain), text.len() - 1), "{text:?}");
        }
        assert_eq!(Cursor::new(b"0123456789").find(b'"'), Err(Stop::Cut));
        assert_eq!(Cursor::new(b"0123&456789").find(b'"'), Err(Stop::Cut));
    }
}
