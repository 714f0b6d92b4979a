//! The documents of the Source, written by hand: an independent reading of the specification.

use std::fmt::Write as _;

use bytes::Bytes;
use fixity::Sha256;
use jiff::Timestamp;

use super::{Fixity, Site, State};

const XML: &str = "application/xml";

impl Site {
    pub(super) fn publish_capabilities(&self, state: &mut State, now: Timestamp) {
        if state.page("/capabilitylist.xml").is_some() {
            return;
        }
        let link =
            |name: &str| url(&format!("{}/{name}.xml", self.base()), None, &format!("capability=\"{name}\""));
        let offers = [
            ("resourcelist", self.spec.list_parts > 0),
            ("resourcedump", self.spec.packages > 0),
            ("changelist", self.spec.change_list),
            ("changedump", self.spec.change_dump),
        ];
        let entries: String = offers.iter().filter(|(_, is)| *is).map(|(name, _)| link(name)).collect();
        let up = format!("<rs:ln rel=\"up\" href=\"{}/.well-known/resourcesync\"/>", self.base());
        state.put(
            "/capabilitylist.xml",
            XML,
            now,
            document("urlset", "capability=\"capabilitylist\"", &up, &entries),
        );
        let entry = link("capabilitylist");
        state.put(
            "/.well-known/resourcesync",
            XML,
            now,
            document("urlset", "capability=\"description\"", "", &entry),
        );
    }

    pub(super) fn publish_list(&self, state: &mut State, now: Timestamp) {
        let parts = self.spec.list_parts;
        if parts == 0 {
            return;
        }
        let md = format!("capability=\"resourcelist\" at=\"{now}\"");
        let entries: Vec<String> = state
            .listed
            .iter()
            .filter_map(|number| {
                let version = state.resource(*number)?;
                let lastmod = self.spec.lastmod.then_some(version.at);
                Some(url(&self.uri(*number), lastmod, &self.declared(version.body.as_ref()?)))
            })
            .collect();
        if parts == 1 {
            state.put("/resourcelist.xml", XML, now, document("urlset", &md, &self.up(), &entries.concat()));
            return;
        }
        let mut index = String::new();
        let each = entries.len().div_ceil(parts).max(1);
        for part in 0..parts {
            let path = format!("/resourcelist-{part}.xml");
            let own: String = entries.iter().skip(part * each).take(each).cloned().collect();
            state.put(&path, XML, now, document("urlset", &md, &self.up(), &own));
            let _ = write!(index, "<sitemap><loc>{}{path}</loc><rs:md at=\"{now}\"/></sitemap>", self.base());
        }
        state.put("/resourcelist.xml", XML, now, document("sitemapindex", &md, &self.up(), &index));
    }

    pub(super) fn publish_changes(&self, state: &mut State, now: Timestamp) {
        if !self.spec.change_list {
            return;
        }
        let (first, from) = state.told_from;
        let entries: String = state.log[first..]
            .iter()
            .map(|change| {
                let declared = change.body.as_ref().map(|body| self.declared(body)).unwrap_or_default();
                let lastmod = (self.spec.lastmod && change.body.is_some()).then_some(change.at);
                let md = format!("change=\"{}\" datetime=\"{}\" {declared}", change.kind, change.at);
                url(&self.uri(change.resource), lastmod, &md)
            })
            .collect();
        let md = format!("capability=\"changelist\" from=\"{from}\"");
        state.put("/changelist.xml", XML, now, document("urlset", &md, &self.up(), &entries));
    }

    /// An index of one more index of this kind. None for documents without an index.
    pub(super) fn nested(&self, path: &str, now: Timestamp) -> Option<Bytes> {
        let name = path.trim_start_matches("/nested-").trim_start_matches('/');
        let kinds = ["resourcelist", "changelist", "resourcedump", "changedump"];
        let kind = kinds.into_iter().find(|kind| name.starts_with(kind))?;
        let deeper =
            name.rsplit_once('.').and_then(|(_, number)| number.parse::<u32>().ok()).unwrap_or(0) + 1;
        let time = if kind.starts_with("change") { "from" } else { "at" };
        let md = format!("capability=\"{kind}\" {time}=\"{now}\"");
        let base = self.base();
        let child = format!("<sitemap><loc>{base}/nested-{kind}.{deeper}</loc></sitemap>");
        Some(document("sitemapindex", &md, &self.up(), &child).into())
    }

    pub(super) fn up(&self) -> String {
        format!("<rs:ln rel=\"up\" href=\"{}/capabilitylist.xml\"/>", self.base())
    }

    /// The declaration of bytes.
    pub(super) fn declared(&self, body: &Bytes) -> String {
        let hash = format!("hash=\"sha-256:{}\"", Sha256::of(body));
        let length = format!("length=\"{}\"", body.len());
        match self.spec.fixity {
            Fixity::Nothing => String::new(),
            Fixity::Length => length,
            Fixity::Sha256 => hash,
            Fixity::Both => format!("{hash} {length}"),
        }
    }
}

pub(super) fn url(loc: &str, lastmod: Option<Timestamp>, md: &str) -> String {
    let lastmod = lastmod.map(|time| format!("<lastmod>{time}</lastmod>")).unwrap_or_default();
    let md = if md.trim().is_empty() { String::new() } else { format!("<rs:md {md}/>") };
    format!("<url><loc>{loc}</loc>{lastmod}{md}</url>\n")
}

pub(super) fn document(root: &str, md: &str, links: &str, entries: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n{links}<rs:md {md}/>\n{entries}</{root}>\n"
    )
}
