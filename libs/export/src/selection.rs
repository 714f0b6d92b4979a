//! Selects the resources to export.

use jiff::Timestamp;
use model::{Bitstream, ResourceRecord};
use serde::{Deserialize, Serialize};

/// A selection of resources: those that meet all given conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Selection {
    /// The beginning of their URIs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Their version was stored (if deleted: the deletion was settled) at this moment or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// … and before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// They have one of these media types, `type/subtype` or `type/*`, without parameters. Empty: any type,
    /// or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
}

impl Selection {
    /// Whether it selects a resource. The prefix is not checked: the catalog's scan does that.
    pub(crate) fn takes(&self, record: &ResourceRecord) -> bool {
        let bitstream = record.bitstream.as_ref().or(record.deleted.as_ref());
        let moment = record.bitstream.as_ref().map_or(record.settled_at, |bitstream| bitstream.stored_at);
        self.since.is_none_or(|since| moment >= since)
            && self.until.is_none_or(|until| moment < until)
            && (self.types.is_empty() || media_type(record, bitstream).is_some_and(|found| self.has(found)))
    }

    fn has(&self, found: &str) -> bool {
        let found = found.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        self.types.iter().any(|wanted| {
            let wanted = wanted.trim().to_ascii_lowercase();
            match wanted.strip_suffix("/*") {
                Some(kind) => found.split('/').next() == Some(kind),
                None => found == wanted,
            }
        })
    }
}

/// The media type that the server sent, else the declared one.
pub(crate) fn media_type<'a>(
    record: &'a ResourceRecord,
    bitstream: Option<&'a Bitstream>,
) -> Option<&'a str> {
    let sent = bitstream.and_then(|bitstream| bitstream.media_type.as_deref());
    sent.or(record.declaration.media_type.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_types(types: &[&str]) -> Selection {
        Selection { types: types.iter().map(|&name| name.to_owned()).collect(), ..Selection::default() }
    }

    #[test]
    fn a_type_is_compared_without_parameters_and_a_star_takes_all_subtypes() {
        let selection = of_types(&["application/PDF", "text/*"]);
        for taken in ["application/pdf", "Application/pdf; version=1.4", "text/html;charset=utf-8", "text/x"]
        {
            assert!(selection.has(taken), "{taken}");
        }
        for left in ["application/pdfx", "application/json", "textual/html", "image/png", ""] {
            assert!(!selection.has(left), "{left}");
        }
        assert!(of_types(&["no type"]).has("No Type "));
    }
}
