//! The kind of a package, by its first bytes: its URL and its media type are not reliable.

use std::fmt;

use crate::PackageError;

/// How many of the first bytes [`sniff`] reads: one tar header. Fewer are enough for all but a plain tar.
pub const SNIFF_BYTES: usize = 512;

/// The kind of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packaging {
    /// A ZIP, which is read by ranges.
    Zip,
    /// A tar, which is read in one pass. Whether compressed bytes contain a tar turns out during reading.
    Tar(Compression),
}

/// The compression of a tar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// None.
    Plain,
    /// gzip (RFC 1952).
    Gzip,
    /// xz.
    Xz,
    /// Zstandard (RFC 8878).
    Zstd,
}

impl Compression {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "tar",
            Self::Gzip => "gzip",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Packaging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zip => "zip",
            Self::Tar(Compression::Plain) => "tar",
            Self::Tar(Compression::Gzip) => "tar.gz",
            Self::Tar(Compression::Xz) => "tar.xz",
            Self::Tar(Compression::Zstd) => "tar.zst",
        })
    }
}

/// The kind of a package that begins with `first`.
///
/// A ZIP behind a program (self-extracting) is not recognized;
/// [`zip::Directory::open`](crate::zip::Directory::open) reads it all the same.
///
/// # Errors
/// [`PackageError::NotAnArchive`], with what it looks like; [`PackageError::Truncated`] when it is empty.
pub fn sniff(first: &[u8]) -> Result<Packaging, PackageError> {
    let magics: [(&[u8], Packaging); 7] = [
        (b"PK\x03\x04", Packaging::Zip),
        // Without a member; split, or meant to be split.
        (b"PK\x05\x06", Packaging::Zip),
        (b"PK\x07\x08", Packaging::Zip),
        (b"PK00PK\x03\x04", Packaging::Zip),
        (b"\x1f\x8b\x08", Packaging::Tar(Compression::Gzip)),
        (b"\xfd7zXZ\0", Packaging::Tar(Compression::Xz)),
        (b"\x28\xb5\x2f\xfd", Packaging::Tar(Compression::Zstd)),
    ];
    if first.is_empty() {
        return Err(PackageError::Truncated { length: 0, what: "its first byte" });
    }
    if let Some((_, packaging)) = magics.iter().find(|(magic, _)| first.starts_with(magic)) {
        return Ok(*packaging);
    }
    if first.first_chunk().is_some_and(is_tar_header) {
        return Ok(Packaging::Tar(Compression::Plain));
    }
    Err(PackageError::NotAnArchive { looks_like: guess(first) })
}

/// Whether `block` is a header of a tar: one with a valid checksum, or the zeros of a tar without members.
fn is_tar_header(block: &[u8; SNIFF_BYTES]) -> bool {
    block.iter().all(|&byte| byte == 0) || checksum_is_right(block)
}

/// Whether the checksum of a tar header is valid: the sum of its bytes, with spaces in place of the checksum.
/// Old writers summed signed bytes.
pub(crate) fn checksum_is_right(block: &[u8; SNIFF_BYTES]) -> bool {
    let field = &block[148..156];
    let digits = field.iter().copied().skip_while(|&byte| byte == b' ').take_while(u8::is_ascii_digit);
    let Ok(digits) = String::from_utf8(digits.collect()) else { return false };
    let Ok(declared) = i64::from_str_radix(&digits, 8) else { return false };
    let others = block[..148].iter().chain(&block[156..]);
    let spaces = 8 * i64::from(b' ');
    let unsigned: i64 = others.clone().map(|&byte| i64::from(byte)).sum();
    let signed: i64 = others.map(|&byte| i64::from(byte.cast_signed())).sum();
    declared == unsigned + spaces || declared == signed + spaces
}

fn guess(first: &[u8]) -> &'static str {
    let text = first.trim_ascii_start();
    let begins = |magic: &[u8]| first.starts_with(magic);
    let reads =
        |word: &str| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
    match () {
        () if begins(b"BZh") => "a bzip2 file",
        () if begins(b"7z\xbc\xaf\x27\x1c") => "a 7z archive",
        () if begins(b"Rar!") => "a RAR archive",
        () if begins(b"%PDF") => "a PDF file",
        () if begins(b"MZ") => "a program",
        () if reads("<!doctype html") || reads("<html") => "an HTML page",
        () if reads("<?xml") || reads("<urlset") || reads("<sitemapindex") => "an XML document",
        () if reads("{") || reads("[") => "JSON",
        () if first.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => "text",
        () => "bytes of some other kind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_told_by_their_first_bytes() {
        let cases: [(&[u8], Packaging); 5] = [
            (b"PK\x03\x04\x14\0", Packaging::Zip),
            (b"PK\x05\x06\0\0", Packaging::Zip),
            (b"\x1f\x8b\x08\0", Packaging::Tar(Compression::Gzip)),
            (b"\xfd7zXZ\0\0\x04", Packaging::Tar(Compression::Xz)),
            (b"\x28\xb5\x2f\xfd\x04", Packaging::Tar(Compression::Zstd)),
        ];
        for (first, expected) in cases {
            assert_eq!(sniff(first).unwrap(), expected);
        }
    }

    #[test]
    fn plain_tar_is_told_by_its_checksum_whatever_its_magic() {
        let mut block = [0; SNIFF_BYTES];
        block[..5].copy_from_slice(b"a.txt");
        block[148..156].copy_from_slice(b"        ");
        let sum: u64 = block.iter().map(|&byte| u64::from(byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        assert_eq!(sniff(&block).unwrap(), Packaging::Tar(Compression::Plain));
        block[0] ^= 1;
        assert_eq!(sniff(&block).unwrap_err().name(), "not-an-archive");
    }

    #[test]
    fn what_is_no_archive_is_called_what_it_looks_like() {
        let looks = |first: &[u8]| match sniff(first) {
            Err(PackageError::NotAnArchive { looks_like }) => looks_like,
            other => panic!("{other:?}"),
        };
        assert_eq!(looks(b"\n<!DOCTYPE HTML><title>Sign in"), "an HTML page");
        assert_eq!(looks(b"<?xml version='1.0'?>"), "an XML document");
        assert_eq!(looks(b"BZh91AY"), "a bzip2 file");
        assert_eq!(looks(b"Not found\n"), "text");
        assert_eq!(looks(&[7; 600]), "bytes of some other kind");
        assert_eq!(sniff(b"").unwrap_err().name(), "truncated");
    }
}
