//! The Source: its resources are generated from their numbers.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simulated_source::{Expected, Size, SourceSpec};

use crate::check::sha256;
use crate::cli::SourceKind;
use crate::documents::{Declared, LIST_PATH, ResourceList, resource_path, write_resource};
use crate::folder::WorkFolder;
use crate::nginx::Nginx;
use crate::peers;
use crate::source::Source;

/// Starts the Source, and returns its resources.
pub(crate) fn start(
    kind: SourceKind,
    work: &WorkFolder,
    resources: u64,
    bytes_each: u64,
) -> anyhow::Result<(Source, Vec<Expected>)> {
    match kind {
        SourceKind::Simulated => {
            let spec =
                SourceSpec::default().resources(resources).size(Size::Fixed(bytes_each)).change_list(false);
            let source = Source::simulated(spec)?;
            let Source::Simulated(simulated) = &source else {
                unreachable!("it was made simulated just now")
            };
            let expected = simulated.expected().collect();
            Ok((source, expected))
        }
        SourceKind::Nginx => {
            let peer = peers::nginx()?;
            let docroot = work.make("docroot")?;
            let server = Nginx::start(&peer.program, &docroot, "")?;
            let base = server.base();
            let mut expected = Vec::new();
            let mut body = vec![0; usize::try_from(bytes_each)?];
            for index in 0..resources {
                ChaCha8Rng::seed_from_u64(index).fill_bytes(&mut body);
                write_resource(&docroot, index, &body)?;
                let uri = format!("{base}{}", resource_path(index));
                expected.push(Expected { uri, length: bytes_each, sha256: sha256(&body) });
            }
            ResourceList { base: &base, resources, edition: 0, links: 0 }.write(&docroot, |index| {
                let Expected { length, sha256, .. } = &expected[index as usize];
                Declared { length: *length, sha256: sha256.clone() }
            })?;
            Ok((Source::Nginx { server, version: peer.version, list: LIST_PATH }, expected))
        }
    }
}
