//! A dead letter stays readable long after it was written: `dead-letter.v<version>.json` is the current format;
//! `dead-letter.v<version>-<what>.json` is an earlier one. A developer who changes the format on purpose renames the
//! old file in this way and writes the current one anew: `WRITE_GOLDEN=1 cargo test -p bus --test golden`.
#![allow(missing_docs)]

use std::path::{Path, PathBuf};

use bus::{DeadLetter, DeadPayload, MessageId};
use model::{Message, decode, encode};

fn letter() -> DeadLetter {
    DeadLetter {
        id: MessageId::new("verify-01JD7ZK1V0Q8Z3M5N7P9R2T4W6"),
        subject: "verify.example-org-0123456789ab".to_owned(),
        attempts: 20,
        why: "not a verify-job message".to_owned(),
        length: 7,
        payload: DeadPayload::Text("{\"a\":1}".to_owned()),
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[test]
fn a_dead_letter_is_written_as_it_is_here() {
    let name = format!("{}.v{}.json", DeadLetter::KIND, DeadLetter::VERSION);
    let file = folder().join(&name);
    let written: serde_json::Value = serde_json::from_slice(&encode(&letter())).unwrap();
    let written = serde_json::to_string_pretty(&written).unwrap() + "\n";
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(&file, &written).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(written, kept, "{name}: if that is meant, WRITE_GOLDEN=1 cargo test -p bus --test golden");
    assert_eq!(decode::<DeadLetter>(kept.as_bytes()).unwrap(), letter());
}

#[test]
fn a_payload_that_is_no_text_is_written_as_base64() {
    let letter = DeadLetter { payload: DeadPayload::Base64("/wA=".to_owned()), ..letter() };
    let written: serde_json::Value = serde_json::from_slice(&encode(&letter)).unwrap();
    assert_eq!(written["body"]["payload"], serde_json::json!({ "base64": "/wA=" }));
}

#[test]
fn every_letter_that_was_ever_written_is_still_read() {
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        return; // The others are writing them.
    }
    let mut read = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        decode::<DeadLetter>(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        read += 1;
    }
    assert!(read >= 1, "no file of a letter");
}
