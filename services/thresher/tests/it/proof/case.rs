//! A Source of a Resource List and a Resource Dump, and a copy of it. Its bytes are in an adopted package, in a pack,
//! and in objects of their own.

use std::collections::BTreeMap;

use model::Location;
use testkit::scripted::Reply;

use crate::common::{Destination, Inside, Package, Site, package, resource, urlset};

/// The number of resources of each kind.
pub(crate) const OF_EACH: usize = 6;
const FIRST: &str = "2026-01-01T00:00:00Z";
const SECOND: &str = "2026-01-02T00:00:00Z";

/// A Source and a copy that is in sync with it.
pub(crate) struct Case {
    pub(crate) site: Site,
    pub(crate) copy: Destination,
    /// The entry URL.
    pub(crate) url: String,
    bodies: BTreeMap<String, String>,
}

impl Case {
    /// Members of the dump are harvested first. Further resources of a later list follow.
    pub(crate) async fn harvested(copy: Destination) -> Self {
        let site = Site::start().await;
        let mut bodies = BTreeMap::new();
        for n in 0..OF_EACH {
            bodies.insert(format!("member-{n}"), format!("member {n} ").repeat(900));
            bodies.insert(format!("object-{n}"), format!("object {n} ").repeat(40_000));
            bodies.insert(format!("packed-{n}"), format!("packed {n} ").repeat(70 + n));
        }
        for (name, body) in &bodies {
            site.serve(&format!("/{name}"), body.clone());
        }
        let links = [("/list.xml", "resourcelist"), ("/dump.xml", "resourcedump")];
        let links = links.map(|(path, what)| resource(&site.uri(path), &format!("capability=\"{what}\"")));
        let url = site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &links));
        let case = Self { site, copy, url, bodies };
        case.serve_dump();
        case.serve_list(FIRST, |name| name.starts_with("member"));
        case.copy.sync_with(&case.url, &["--view", "none", "--prefer", "dump"]).exits(0);
        assert_eq!(case.asked(), 0, "members come with their package");
        case.serve_list(SECOND, |_| true);
        case.copy.sync_with(&case.url, &["--view", "none", "--prefer", "list"]).exits(0);
        assert_eq!(case.asked(), 2 * OF_EACH, "members are held already");
        case.lies_as_its_names_say().await;
        case
    }

    pub(crate) fn uri(&self, name: &str) -> String {
        self.site.uri(&format!("/{name}"))
    }

    /// How many requests for resources have come.
    pub(crate) fn asked(&self) -> usize {
        self.bodies.keys().map(|name| self.site.requests_at(&format!("/{name}"))).sum()
    }

    /// Every resource is present, with exactly the Source's bytes.
    #[track_caller]
    pub(crate) fn holds_what_the_source_has(&self) {
        assert_eq!(self.copy.present().len(), self.bodies.len());
        for (name, body) in &self.bodies {
            assert!(
                self.copy.cat(&self.uri(name)) == body.as_bytes(),
                "{name} has other bytes than its Source"
            );
        }
    }

    fn serve_dump(&self) {
        let members = self.bodies.iter().filter(|(name, _)| name.starts_with("member"));
        let held = members.fold(Package::of_resources(FIRST), |held, (name, body)| {
            // Some are stored as they are, some deflated.
            let held = if name.ends_with(['1', '3', '5']) { held.deflated() } else { held.stored() };
            held.holds(&self.uri(name), body)
        });
        let bytes = held.zip();
        let entry = package(&self.site.uri("/1.zip"), &bytes, "");
        self.site.reply("/1.zip", Reply::ok(bytes));
        self.site
            .serve("/dump.xml", urlset(&format!("capability=\"resourcedump\" at=\"{FIRST}\""), &[entry]));
    }

    fn serve_list(&self, at: &str, takes: impl Fn(&str) -> bool) {
        let named = self.bodies.iter().filter(|(name, _)| takes(name));
        let entry = |(name, body): (&String, &String)| {
            let digest = fixity::Sha256::of(body.as_bytes());
            resource(&self.uri(name), &format!("hash=\"sha-256:{digest}\" length=\"{}\"", body.len()))
        };
        let entries: Vec<String> = named.map(entry).collect();
        self.site.serve("/list.xml", urlset(&format!("capability=\"resourcelist\" at=\"{at}\""), &entries));
    }

    async fn lies_as_its_names_say(&self) {
        let inside = Inside::of(&self.copy, &self.url).await;
        for name in self.bodies.keys() {
            let kind = match inside.location(&self.uri(name)).await {
                Location::Package { .. } => "member",
                Location::Object { .. } => "object",
                Location::Pack { .. } => "packed",
            };
            assert!(name.starts_with(kind), "{name} lies as {kind}");
        }
        inside.close().await;
    }
}
