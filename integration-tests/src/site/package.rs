//! The dumps of the Source, and their packages.

use std::io::{Cursor, Write};

use bytes::Bytes;
use fixity::Sha256;
use jiff::Timestamp;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::documents::{document, url};
use super::{Fixity, Site, State};

const XML: &str = "application/xml";
const ZIP: &str = "application/zip";

/// A package in progress.
#[derive(Default)]
struct Filling {
    entries: String,
    members: Vec<(String, Bytes)>,
}

impl Site {
    pub(super) fn publish_dump(&self, state: &mut State, now: Timestamp) {
        let packages = self.spec.packages;
        if packages == 0 {
            return;
        }
        let listed: Vec<u32> = state.listed.iter().copied().collect();
        let each = listed.len().div_ceil(packages).max(1);
        let mut entries = String::new();
        let generation = if self.spec.package_names_stay { 0 } else { state.made };
        for package in 0..packages {
            let mut filling = Filling::default();
            for number in listed.iter().skip(package * each).take(each) {
                let Some(version) = state.resource(*number) else { continue };
                let lastmod = self.spec.lastmod.then_some(version.at);
                let Some(body) = version.body.clone() else { continue };
                let declared = self.declared(&body);
                filling.hold(&self.uri(*number), lastmod, &declared, body);
            }
            let md = format!("capability=\"resourcedump-manifest\" at=\"{now}\"");
            let bytes = filling.zip(&md, self.spec.deflated);
            let path = format!("/dump/{generation}-{package}.zip");
            entries.push_str(&self.package_entry(&path, &bytes, ""));
            state.put(&path, ZIP, now, bytes);
        }
        let md = format!("capability=\"resourcedump\" at=\"{now}\"");
        state.put("/resourcedump.xml", XML, now, document("urlset", &md, &self.up(), &entries));
    }

    /// Adds a package with the changes since the last one to the Change Dump.
    pub(super) fn publish_change_dump(&self, state: &mut State, now: Timestamp) {
        if !self.spec.change_dump {
            return;
        }
        let (first, from) = state.packed_to;
        if first < state.log.len() {
            let mut filling = Filling::default();
            for change in &state.log[first..] {
                let uri = self.uri(change.resource);
                let md = format!("change=\"{}\" datetime=\"{}\"", change.kind, change.at);
                match &change.body {
                    Some(body) => {
                        let lastmod = self.spec.lastmod.then_some(change.at);
                        filling.hold(&uri, lastmod, &format!("{md} {}", self.declared(body)), body.clone());
                    }
                    None => filling.entries.push_str(&url(&uri, None, &md)),
                }
            }
            let md = format!("capability=\"changedump-manifest\" from=\"{from}\" until=\"{now}\"");
            let bytes = filling.zip(&md, self.spec.deflated);
            let path = format!("/changes/{}.zip", state.change_packages.len());
            let entry = self.package_entry(&path, &bytes, &format!("from=\"{from}\" until=\"{now}\""));
            state.change_packages.push(entry);
            state.put(&path, ZIP, now, bytes);
            state.packed_to = (state.log.len(), now);
        }
        // It covers all changes from the start, and is open.
        let begin = state.told_from.1;
        let md = format!("capability=\"changedump\" from=\"{begin}\"");
        let entries = state.change_packages.concat();
        state.put("/changedump.xml", XML, now, document("urlset", &md, &self.up(), &entries));
    }

    fn package_entry(&self, path: &str, bytes: &[u8], more: &str) -> String {
        let hash = match self.spec.fixity {
            Fixity::Nothing => String::new(),
            Fixity::Length => format!("length=\"{}\"", bytes.len()),
            Fixity::Sha256 | Fixity::Both => {
                format!("hash=\"sha-256:{}\" length=\"{}\"", Sha256::of(bytes), bytes.len())
            }
        };
        url(&format!("{}{path}", self.base()), None, &format!("type=\"{ZIP}\" {hash} {more}"))
    }
}

impl Filling {
    fn hold(&mut self, uri: &str, lastmod: Option<Timestamp>, md: &str, body: Bytes) {
        let path = format!("resources/{}", self.members.len());
        self.entries.push_str(&url(uri, lastmod, &format!("{md} path=\"/{path}\"")));
        self.members.push((path, body));
    }

    fn zip(self, md: &str, deflated: bool) -> Vec<u8> {
        let method = if deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
        let options = SimpleFileOptions::default().compression_method(method);
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let manifest = ("manifest.xml".to_owned(), Bytes::from(document("urlset", md, "", &self.entries)));
        for (name, body) in self.members.into_iter().chain([manifest]) {
            zip.start_file(name, options).expect("memory does not fail");
            zip.write_all(&body).expect("memory does not fail");
        }
        zip.finish().expect("memory does not fail").into_inner()
    }
}
