use std::fmt;

use serde::{Serialize, Serializer};

/// A specification that Sources should follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Specification {
    /// ResourceSync 1.1 (ANSI/NISO Z39.99-2017).
    ResourceSync,
    /// ResourceSync Change Notification 1.0.1.
    ChangeNotification,
    /// OAI-PMH 2.0, the predecessor of ResourceSync.
    OaiPmh,
    /// The Sitemaps protocol, the base of ResourceSync's format.
    Sitemaps,
    /// XML 1.0.
    Xml,
    /// Namespaces in XML 1.0.
    XmlNamespaces,
    /// Date and Time Formats, the note of the W3C.
    W3cDatetime,
    /// URIs.
    Rfc3986,
    /// The gzip format.
    Rfc1952,
    /// Web links and their relations.
    Rfc8288,
    /// HTTP.
    Rfc9110,
    /// robots.txt.
    Rfc9309,
}

impl Specification {
    /// Its name in quotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ResourceSync => "ResourceSync 1.1",
            Self::ChangeNotification => "ResourceSync Change Notification 1.0.1",
            Self::OaiPmh => "OAI-PMH 2.0",
            Self::Sitemaps => "Sitemaps protocol",
            Self::Xml => "XML 1.0",
            Self::XmlNamespaces => "Namespaces in XML 1.0",
            Self::W3cDatetime => "W3C Date and Time Formats",
            Self::Rfc3986 => "RFC 3986",
            Self::Rfc1952 => "RFC 1952",
            Self::Rfc8288 => "RFC 8288",
            Self::Rfc9110 => "RFC 9110",
            Self::Rfc9309 => "RFC 9309",
        }
    }
}

impl Serialize for Specification {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A section of a specification, for quoting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Section {
    /// The specification.
    pub specification: Specification,
    /// The section's number; absent in a specification without numbers.
    pub number: Option<&'static str>,
    /// The section's title.
    pub name: &'static str,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.specification.as_str())?;
        match self.number {
            Some(number) => write!(f, "{number} {}", self.name),
            None => f.write_str(self.name),
        }
    }
}

macro_rules! sections {
    ($($name:ident $specification:ident $number:expr, $title:literal;)+) => {
        impl Section {
            $(
                #[doc = $title]
                pub const $name: Self =
                    Self { specification: Specification::$specification, number: $number, name: $title };
            )+
        }
    };
}

sections! {
    NAMESPACES ResourceSync Some("4"), "Namespace Prefix Bindings";
    NAVIGATION ResourceSync Some("6.2"), "Navigation";
    WELL_KNOWN ResourceSync Some("6.3.2"), "ResourceSync Well-Known URI";
    LINKED_DISCOVERY ResourceSync Some("6.3.3"), "Links";
    ROBOTS_DISCOVERY ResourceSync Some("6.3.4"), "robots.txt";
    FORMATS ResourceSync Some("7"), "Sitemap Document Formats";
    SOURCE_DESCRIPTION ResourceSync Some("8"), "Describing the Source";
    CAPABILITY_LIST ResourceSync Some("9"), "Advertising Capabilities";
    RESOURCE_LIST ResourceSync Some("10.1"), "Resource List";
    RESOURCE_DUMP_MANIFEST ResourceSync Some("11.2"), "Resource Dump Manifest";
    CHANGE_LIST ResourceSync Some("12.1"), "Change List";
    CHANGE_LIST_INDEX ResourceSync Some("12.2"), "Change List Index";
    CHANGE_DUMP ResourceSync Some("13.1"), "Change Dump";
    LINKING ResourceSync Some("14"), "Linking to Related Resources";
    TIME_ATTRIBUTES ResourceSync Some("Appendix A"), "Time Attribute Requirements";
    CHANGE_NOTIFICATION ChangeNotification Some("3"), "Change Notification";
    SITEMAP_FORMAT Sitemaps None, "Sitemaps XML format";
    SITEMAP_ENTITIES Sitemaps None, "Entity escaping";
    SITEMAP_TAGS Sitemaps None, "XML tag definitions";
    SITEMAP_LIMITS Sitemaps None, "Using Sitemap index files";
    XML_WELL_FORMED Xml Some("2.1"), "Well-Formed XML Documents";
    XML_PROLOG Xml Some("2.8"), "Prolog and Document Type Declaration";
    XML_ENCODING Xml Some("4.3.3"), "Character Encoding in Entities";
    XML_PREFIXES XmlNamespaces Some("5"), "Using Qualified Names";
    DATETIME W3cDatetime None, "Formats";
    URI_CHARACTERS Rfc3986 Some("2"), "Characters";
    URI_SYNTAX Rfc3986 Some("3"), "Syntax Components";
    GZIP_MEMBERS Rfc1952 Some("2.3"), "Member format";
    RELATIONS Rfc8288 Some("2.1.1"), "Registered Relation Types";
    HTTP_LENGTH Rfc9110 Some("8.6"), "Content-Length";
    HTTP_VALIDATORS Rfc9110 Some("8.8"), "Validator Fields";
    HTTP_REDIRECTION Rfc9110 Some("15.4"), "Redirection 3xx";
    HTTP_CLIENT_ERROR Rfc9110 Some("15.5"), "Client Error 4xx";
    HTTP_SERVER_ERROR Rfc9110 Some("15.6"), "Server Error 5xx";
    ROBOTS Rfc9309 Some("2.2.2"), "The \"Allow\" and \"Disallow\" Lines";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_quoted_with_specification_number_and_title() {
        assert_eq!(Section::CHANGE_LIST.to_string(), "ResourceSync 1.1, 12.1 Change List");
        assert_eq!(Section::SITEMAP_ENTITIES.to_string(), "Sitemaps protocol, Entity escaping");
    }

    #[test]
    fn a_section_serialises_as_its_three_parts() {
        let json = serde_json::to_value(Section::DATETIME).unwrap();
        let expected = serde_json::json!({
            "specification": "W3C Date and Time Formats", "number": null, "name": "Formats",
        });
        assert_eq!(json, expected);
    }
}
