//! Packages of dumps, built by the test.

use std::io::{Cursor, Write};

use async_compression::tokio::write::XzEncoder;
use fixity::Sha256;
use tokio::io::AsyncWriteExt as _;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::site::{resource, urlset};

/// A package under construction.
pub(crate) struct Package {
    md: String,
    entries: Vec<String>,
    members: Vec<(String, Vec<u8>, CompressionMethod)>,
    method: CompressionMethod,
}

impl Package {
    /// A package of a Resource Dump of a moment.
    pub(crate) fn of_resources(at: &str) -> Self {
        Self::with(&format!("capability=\"resourcedump-manifest\" at=\"{at}\""))
    }

    /// A package of a Change Dump.
    pub(crate) fn of_changes(from: &str, until: &str) -> Self {
        Self::with(&format!("capability=\"changedump-manifest\" from=\"{from}\" until=\"{until}\""))
    }

    /// A package whose manifest has these attributes.
    pub(crate) fn with(md: &str) -> Self {
        let method = CompressionMethod::Stored;
        Self { md: md.to_owned(), entries: Vec::new(), members: Vec::new(), method }
    }

    /// Members from now on are compressed, in a ZIP.
    pub(crate) fn deflated(mut self) -> Self {
        self.method = CompressionMethod::Deflated;
        self
    }

    /// Members from now on are stored as they are, in a ZIP.
    pub(crate) fn stored(mut self) -> Self {
        self.method = CompressionMethod::Stored;
        self
    }

    /// A resource and its member, declared with length and sha-256.
    pub(crate) fn holds(self, uri: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = format!("resources/{}", self.entries.len());
        let md = declared(bytes.as_ref());
        self.entry(uri, &format!("{md} path=\"/{path}\"")).member(&path, bytes)
    }

    /// A change of a resource and its member.
    pub(crate) fn changed(self, uri: &str, change: &str, time: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = format!("resources/{}", self.entries.len());
        let md = declared(bytes.as_ref());
        self.entry(uri, &format!("change=\"{change}\" datetime=\"{time}\" {md} path=\"/{path}\""))
            .member(&path, bytes)
    }

    /// A deletion.
    pub(crate) fn deleted(self, uri: &str, time: &str) -> Self {
        self.entry(uri, &format!("change=\"deleted\" datetime=\"{time}\""))
    }

    /// An entry of the manifest alone.
    pub(crate) fn entry(mut self, uri: &str, md: &str) -> Self {
        self.entries.push(resource(uri, md));
        self
    }

    /// Links of the entry before.
    pub(crate) fn linking(mut self, links: &str) -> Self {
        let entry = self.entries.last_mut().expect("an entry before");
        *entry = entry.replace("</url>", &format!("{links}</url>"));
        self
    }

    /// A member alone.
    pub(crate) fn member(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.members.push((name.to_owned(), bytes.as_ref().to_vec(), self.method));
        self
    }

    /// The manifest.
    pub(crate) fn manifest(&self) -> String {
        urlset(&self.md, &self.entries)
    }

    /// As a ZIP, with its manifest.
    pub(crate) fn zip(self) -> Vec<u8> {
        let manifest = self.manifest();
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes, method) in self.member("manifest.xml", manifest).members {
            let options = SimpleFileOptions::default().compression_method(method);
            zip.start_file(name, options).expect("memory does not fail");
            zip.write_all(&bytes).expect("memory does not fail");
        }
        zip.finish().expect("memory does not fail").into_inner()
    }

    /// As a tar in xz, with its manifest first.
    pub(crate) async fn tar_xz(self) -> Vec<u8> {
        let manifest = ("manifest.xml".to_owned(), self.manifest().into_bytes(), self.method);
        let mut tar = tar::Builder::new(Vec::new());
        for (name, bytes, _) in std::iter::once(manifest).chain(self.members) {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, bytes.as_slice()).expect("memory does not fail");
        }
        let mut xz = XzEncoder::new(Vec::new());
        xz.write_all(&tar.into_inner().expect("memory does not fail")).await.expect("memory does not fail");
        xz.shutdown().await.expect("memory does not fail");
        xz.into_inner()
    }
}

/// The declaration of a package in a dump: its media type, length and sha-256.
pub(crate) fn package(uri: &str, bytes: &[u8], more: &str) -> String {
    resource(uri, &format!("type=\"application/zip\" {} {more}", declared(bytes)))
}

fn declared(bytes: &[u8]) -> String {
    format!("hash=\"sha-256:{}\" length=\"{}\"", Sha256::of(bytes), bytes.len())
}
