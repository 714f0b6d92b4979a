//! What an idle poll of a Source needs, taken from its last run.

use fixity::Sha256;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Validators;

/// What a poll compares with the Source. While all these documents are unchanged, a run would find nothing to do.
///
/// That holds for the next run only, and only while nothing else happened: the Source's spec is the same, and no
/// run, action, notification or repair came in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollBasis {
    /// The documents that the next run would request.
    #[serde(rename = "docs")]
    pub documents: Vec<PollDocument>,
    /// From then on a run must look what the Source offers, or rescan a set, even if no document changed.
    #[serde(rename = "until")]
    pub valid_until: Timestamp,
}

/// A document, and how to tell that it is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollDocument {
    /// The URI that is requested.
    pub uri: String,
    /// Validators of the version that was read.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// SHA-256 of its body, if it proves that a run would find nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Sha256>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basis_is_stored_in_few_bytes_and_read_again() {
        let validators = Validators { etag: Some("\"v1\"".to_owned()), last_modified: None };
        let basis = PollBasis {
            documents: vec![
                PollDocument { uri: "http://h/changes.xml".to_owned(), validators, digest: None },
                PollDocument {
                    uri: "http://h/list.xml".to_owned(),
                    validators: Validators::default(),
                    digest: Some(Sha256::of(b"abc")),
                },
            ],
            valid_until: Timestamp::UNIX_EPOCH,
        };
        let written = serde_json::to_string(&basis).unwrap();
        assert_eq!(
            written,
            concat!(
                r#"{"docs":[{"uri":"http://h/changes.xml","validators":{"etag":"\"v1\""}},"#,
                r#"{"uri":"http://h/list.xml","digest":"#,
                r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}],"#,
                r#""until":"1970-01-01T00:00:00Z"}"#
            )
        );
        assert_eq!(serde_json::from_str::<PollBasis>(&written).unwrap(), basis);
    }
}
