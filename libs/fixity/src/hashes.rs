//! The `hash` attribute of `rs:md`, as Sources write it.

use data_encoding::{BASE32_NOPAD_NOCASE, BASE64_NOPAD, BASE64URL_NOPAD, HEXLOWER_PERMISSIVE};

use crate::{Algorithm, Digest};

/// The declarations in a `hash` attribute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hashes {
    /// Digests with supported algorithms, each once, in the order written.
    pub known: Vec<Digest>,
    /// Values that are kept as written and never compared: an unknown algorithm, or a value that no encoding
    /// decodes to a digest of its algorithm.
    pub unjudged: Vec<String>,
}

/// Parses a `hash` attribute (RS-8): `algorithm:value`, separated by white space.
///
/// The length of a value identifies its encoding, since it differs for each algorithm: hexadecimal in any
/// case, or base64 or base64url, padded or not. `urn:sha1:` values may be base32 too. A value that decodes to
/// another length is kept as unjudged, not as a mismatch: a malformed digest does not declare that the bytes
/// differ.
pub fn parse_hashes(attribute: &str) -> Hashes {
    let mut hashes = Hashes::default();
    for written in attribute.split_whitespace() {
        match parse_one(written) {
            Some(digest) if hashes.known.contains(&digest) => {}
            Some(digest) => hashes.known.push(digest),
            None => hashes.unjudged.push(written.to_owned()),
        }
    }
    hashes
}

fn parse_one(written: &str) -> Option<Digest> {
    let (scheme, rest) = written.split_once(':')?;
    let (is_urn, name, value) = if scheme.eq_ignore_ascii_case("urn") {
        let (name, value) = rest.split_once(':')?;
        (true, name, value)
    } else {
        (false, scheme, rest)
    };
    let algorithm: Algorithm = name.parse().ok()?;
    decode(algorithm, is_urn, value.as_bytes())
}

fn decode(algorithm: Algorithm, is_urn: bool, value: &[u8]) -> Option<Digest> {
    let bytes = algorithm.digest_len();
    // Before base64: the hexadecimal form of no algorithm is as long as its base64 form.
    if value.len() == bytes * 2 {
        return Digest::decode(algorithm, &HEXLOWER_PERMISSIVE, value);
    }
    // Only after `urn:`: elsewhere 32 characters under `sha1` are more likely a mislabelled md5.
    if is_urn && algorithm == Algorithm::Sha1 && value.len() == 32 {
        return Digest::decode(algorithm, &BASE32_NOPAD_NOCASE, value);
    }
    let bare = strip_padding(value);
    if bare.len() != (bytes * 4).div_ceil(3) {
        return None;
    }
    Digest::decode(algorithm, &BASE64URL_NOPAD, bare)
        .or_else(|| Digest::decode(algorithm, &BASE64_NOPAD, bare))
}

fn strip_padding(mut value: &[u8]) -> &[u8] {
    // Base64 is never padded by more than two characters.
    for _ in 0..2 {
        value = value.strip_suffix(b"=").unwrap_or(value);
    }
    value
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE32, BASE64, BASE64URL, HEXLOWER, HEXUPPER};
    use proptest::prelude::*;

    use super::*;

    const SHA256_ABC: &str = "sha-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn known(attribute: &str) -> Vec<String> {
        let hashes = parse_hashes(attribute);
        assert_eq!(hashes.unjudged, Vec::<String>::new(), "{attribute}");
        hashes.known.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_specifications_own_example_is_read() {
        assert_eq!(known("md5:1584abdf8ebdc9802ac0c6a7402c03b6"), ["md5:1584abdf8ebdc9802ac0c6a7402c03b6"],);
        let [sha256] = &known("sha-256:f4OxZX_x_FO5LcGBSKHWXfwtSx-j1ncoSt3SABJtkGk")[..] else { panic!() };
        assert_eq!(sha256, "sha-256:7f83b1657ff1fc53b92dc18148a1d65dfc2d4b1fa3d677284addd200126d9069");
    }

    #[test]
    fn the_specifications_values_of_odd_length_are_kept_and_not_judged() {
        for odd in [
            "sha-256:h986gT_t_87HTkjHYE76G558hY-jdfgy76t55sadJUYT",
            "sha-256:f40xZX_x_DFGFDgghgdfb6rtSx-iosjyf6735432nklj",
        ] {
            assert_eq!(parse_hashes(odd), Hashes { known: vec![], unjudged: vec![odd.to_owned()] });
        }
    }

    #[test]
    fn several_values_are_told_apart_by_any_white_space() {
        let hashes = parse_hashes(&format!(
            "\n md5:900150983CD24FB0D6963F7D28E17F72\t{SHA256_ABC}  crc32:352441c2 {SHA256_ABC}\n"
        ));
        assert_eq!(hashes.known.len(), 2);
        assert_eq!(hashes.known[0].to_string(), "md5:900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hashes.unjudged, ["crc32:352441c2"]);
    }

    #[test]
    fn base64_is_read_padded_or_not() {
        let expected = ["md5:900150983cd24fb0d6963f7d28e17f72"];
        assert_eq!(known("md5:kAFQmDzST7DWlj99KOF/cg=="), expected);
        assert_eq!(known("MD5:kAFQmDzST7DWlj99KOF_cg"), expected);
    }

    #[test]
    fn urn_sha1_is_read_in_base32_and_hex() {
        let expected = ["sha-1:a9993e364706816aba3e25717850c26c9cd0d89d"];
        assert_eq!(known("urn:sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"), expected);
        assert_eq!(known("URN:SHA1:a9993e364706816aba3e25717850c26c9cd0d89d"), expected);
    }

    #[test]
    fn a_value_of_another_algorithms_length_is_not_judged() {
        for odd in [
            "sha1:900150983cd24fb0d6963f7d28e17f72",
            "sha1:aabbccddeeffaabbccddeeffaabbccdd",
            "md5:",
            "md5",
            ":",
            "urn:sha1",
            "900150983cd24fb0d6963f7d28e17f72",
            "md5:kAFQmDzST7DWlj99KOF/cg===",
            "md5:90015098-cd24fb0d6963f7d28e17f72",
        ] {
            assert_eq!(parse_hashes(odd).unjudged, [odd], "{odd}");
        }
    }

    fn algorithms() -> impl Strategy<Value = Algorithm> {
        proptest::sample::select(Algorithm::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_no_value_is_lost(text in "\\PC{0,80}|([a-z0-9-]{0,7}:[A-Za-z0-9+/_=-]{0,130} ?){0,3}") {
            let hashes = parse_hashes(&text);
            prop_assert!(hashes.known.len() + hashes.unjudged.len() <= text.split_whitespace().count());
            for digest in &hashes.known {
                prop_assert_eq!(digest.bytes().len(), digest.algorithm().digest_len());
            }
            prop_assert_eq!(hashes == Hashes::default(), text.trim().is_empty());
        }

        #[test]
        fn every_digest_is_read_back_from_every_encoding(
            algorithm in algorithms(), seed in proptest::collection::vec(any::<u8>(), 64)
        ) {
            let bytes = &seed[..algorithm.digest_len()];
            let expected = [Digest::new(algorithm, bytes).unwrap()];
            let mut written = vec![
                format!("{algorithm}:{}", HEXLOWER.encode(bytes)),
                format!("{}:{}", algorithm.as_str().replace('-', "").to_uppercase(), HEXUPPER.encode(bytes)),
                format!("{algorithm}:{}", BASE64.encode(bytes)),
                format!("{algorithm}:{}", BASE64_NOPAD.encode(bytes)),
                format!("{algorithm}:{}", BASE64URL.encode(bytes)),
                format!("urn:{algorithm}:{}", BASE64URL_NOPAD.encode(bytes)),
            ];
            if algorithm == Algorithm::Sha1 {
                written.push(format!("urn:sha1:{}", BASE32.encode(bytes)));
            }
            for text in written {
                prop_assert_eq!(parse_hashes(&text).known, &expected, "{}", text);
            }
        }
    }
}
