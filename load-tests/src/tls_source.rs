//! nginx over TLS, with a certificate of its own: at one port HTTP/1.1, at another HTTP/2 too.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use simulated_source::Expected;

use crate::check::sha256;
use crate::documents::{Declared, ResourceList, resource_path, write_resource};
use crate::folder::WorkFolder;
use crate::nginx::{Nginx, TlsFiles, free_port};
use crate::peers;
use crate::source::Source;

/// The protocol of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// A running server and its resources.
#[derive(Debug)]
pub(crate) struct TlsSource {
    /// The server, for its counts.
    pub(crate) source: Source,
    tls: TlsFiles,
    docroot: PathBuf,
    bytes_each: u64,
    digests: Vec<String>,
}

/// The same resources at one place: directly, or behind a proxy.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    /// `https://127.0.0.1:<port>`
    pub(crate) base: String,
    /// The URL of the Resource List.
    pub(crate) list: String,
    pub(crate) expected: Vec<Expected>,
}

impl Protocol {
    /// Both, in the order of the rows.
    pub(crate) const ALL: [Self; 2] = [Self::Http1, Self::Http2];

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

impl TlsSource {
    /// Writes the resources, and serves them.
    pub(crate) fn start(work: &WorkFolder, resources: u64, bytes_each: u64) -> anyhow::Result<Self> {
        let peer = peers::nginx()?;
        let docroot = work.make("docroot")?;
        let tls = certificate(&work.make("tls")?)?;
        let mut digests = Vec::new();
        let mut body = vec![0; usize::try_from(bytes_each)?];
        for index in 0..resources {
            ChaCha8Rng::seed_from_u64(index).fill_bytes(&mut body);
            write_resource(&docroot, index, &body)?;
            digests.push(sha256(&body));
        }
        let server = Nginx::start_with_tls(&peer.program, &docroot, &tls)?;
        let source = Source::Nginx { server, version: peer.version, list: "" };
        Ok(Self { source, tls, docroot, bytes_each, digests })
    }

    /// The certificate to trust, as PEM.
    pub(crate) fn certificate(&self) -> &Path {
        &self.tls.certificate
    }

    /// The address of a protocol.
    pub(crate) fn address(&self, protocol: Protocol) -> SocketAddr {
        let port = match protocol {
            Protocol::Http1 => self.tls.http1,
            Protocol::Http2 => self.tls.http2,
        };
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// The resources as they are reached at a port of 127.0.0.1: the server's own, or a proxy's before it.
    pub(crate) fn site(&self, port: u16) -> anyhow::Result<Site> {
        let base = format!("https://127.0.0.1:{port}");
        let path = format!("/set/resourcelist-{port}.xml");
        let resources = self.digests.len() as u64;
        let length = self.bytes_each;
        ResourceList { base: &base, resources, edition: 0, links: 0 }.write_at(
            &self.docroot,
            &path,
            |index| Declared { length, sha256: self.digests[index as usize].clone() },
        )?;
        let expected = (0..).zip(&self.digests).map(|(index, sha256)| {
            let uri = format!("{base}{}", resource_path(index));
            Expected { uri, length, sha256: sha256.clone() }
        });
        let expected = expected.collect();
        Ok(Site { list: format!("{base}{path}"), base, expected })
    }
}

/// A new certificate of 127.0.0.1 in a folder, and two free ports.
fn certificate(folder: &Path) -> anyhow::Result<TlsFiles> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.join(name));
    fs::write(&certificate, cert.pem())?;
    fs::write(&key, signing_key.serialize_pem())?;
    Ok(TlsFiles { certificate, key, http1: free_port()?, http2: free_port()? })
}
