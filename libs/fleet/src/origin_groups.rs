//! Groups of origins for metrics. A label per origin would make the number of series grow with the Sources, so the
//! label is the group.

use std::collections::BTreeMap;

use anyhow::bail;
use model::Origin;
use serde::Deserialize;

/// The group of all origins that are in no other group.
pub(crate) const OTHER: &str = "other";
/// The most groups besides that one.
const MOST: usize = 20;
/// The longest name of a group, in bytes.
const LONGEST: usize = 40;

/// Names of groups, each with its hosts: `http.origin_groups` in a configuration. A host includes its subdomains. The
/// metrics of requests have the group as label `origin_group`, so the number of series is that of the groups, whatever Sources
/// list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(transparent)]
pub struct OriginGroups(BTreeMap<String, Vec<String>>);

impl OriginGroups {
    /// Checks the number of groups, and that their names are valid labels.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn check(&self) -> anyhow::Result<()> {
        if self.0.len() > MOST {
            bail!(
                "http.origin_groups has {} groups, and at most {MOST} are counted; put hosts together",
                self.0.len()
            );
        }
        let is_name = |name: &str| {
            let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_plain) && name != OTHER
        };
        for (name, hosts) in &self.0 {
            if !is_name(name) {
                bail!(
                    "http.origin_groups: {name:?} is no name of a group; use up to {LONGEST} lower-case letters, digits and dashes, and not {OTHER:?}, \
                     which is the group of all others"
                );
            }
            if let Some(host) = hosts.iter().find(|host| host.is_empty() || host.contains(['/', ':'])) {
                bail!(
                    "http.origin_groups.{name}: {host:?} is no host; write it without scheme and port, such as example.org"
                );
            }
        }
        Ok(())
    }

    /// The group of an origin: the one with its host, or with the nearest parent domain.
    pub fn of(&self, origin: &Origin) -> &str {
        let authority = origin.as_str().split("://").last().unwrap_or_default();
        let host = match authority.rsplit_once(':') {
            // In an address in brackets, colons belong to the host.
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => authority,
        };
        let mut best: Option<(usize, &str)> = None;
        for (name, hosts) in &self.0 {
            for named in hosts {
                let is_in = host
                    .strip_suffix(named.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                if is_in && best.is_none_or(|(length, _)| named.len() > length) {
                    best = Some((named.len(), name));
                }
            }
        }
        best.map_or(OTHER, |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(json: &str) -> OriginGroups {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_origin_is_in_the_group_that_names_its_host_or_the_nearest_above_it() {
        let groups =
            groups(r#"{"partners": ["example.org"], "archive": ["a.example.org"], "here": ["127.0.0.1"]}"#);
        groups.check().unwrap();
        for (origin, group) in [
            ("https://example.org", "partners"),
            ("https://www.example.org:8443", "partners"),
            ("http://a.example.org", "archive"),
            ("http://b.a.example.org", "archive"),
            ("https://notexample.org", OTHER),
            ("http://127.0.0.1:8080", "here"),
            ("http://[::1]:8080", OTHER),
        ] {
            assert_eq!(groups.of(&origin.parse().unwrap()), group, "{origin}");
        }
        assert_eq!(OriginGroups::default().of(&"https://example.org".parse().unwrap()), OTHER);
    }

    #[test]
    fn there_are_not_too_many_and_their_names_can_stand_in_a_label() {
        let many: Vec<String> = (0..=MOST).map(|n| format!("\"g{n}\": []")).collect();
        let said = |json: &str| groups(json).check().unwrap_err().to_string();
        assert!(said(&format!("{{{}}}", many.join(","))).contains("21 groups"));
        assert!(said(r#"{"Partners": []}"#).contains("Partners"));
        assert!(said(r#"{"other": []}"#).contains("all others"));
        assert!(said(r#"{"a": ["https://example.org"]}"#).contains("without scheme"));
    }
}
