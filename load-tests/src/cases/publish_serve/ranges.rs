//! Ranges of large resources that a harvest holds, and of the files that it was made from.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::{Context as _, ensure};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{ANY_NUMBER_OF_CONNECTIONS, Pair};
use crate::cases::measured;
use crate::cases::small_files::serving;
use crate::cli::SourceKind;
use crate::folder::WorkFolder;
use crate::place::Place;
use crate::publish_server::PublishServer;
use crate::source::Source;
use crate::thresher::{Outcome, Thresher, View};

const LIST: &str = "resourcelist.xml";
const RESOURCES: u64 = 16;
const BYTES_EACH: u64 = 64 << 20;
const RANGE: u64 = 1 << 20;

/// Both servers of them, and so many ranges.
pub(super) fn pair(thresher: &Thresher, work: &WorkFolder, requests: u64) -> anyhow::Result<Pair> {
    let (source, expected) = serving::start(SourceKind::Nginx, work, RESOURCES, BYTES_EACH)?;
    let folder = work.make("ranges")?;
    let (ended, _) = measured(&thresher.sync(&source.list(), View::None, None), &folder, None)?;
    let outcome = Outcome::of(&ended)?;
    ensure!(
        outcome.in_sync && outcome.stored == RESOURCES,
        "the harvest of the large resources is not whole"
    );
    let server =
        PublishServer::start(thresher, &Place::directory(&folder.join("into")), &ANY_NUMBER_OF_CONNECTIONS)?;
    let published = published(&server)?;

    let mut choice = ChaCha8Rng::seed_from_u64(1);
    let (mut own, mut others) = (String::new(), String::new());
    for _ in 0..requests {
        let resource = &expected[choice.random_range(0..expected.len())];
        let start = choice.random_range(0..=BYTES_EACH - RANGE);
        let name = resource.uri.rsplit('/').next().unwrap_or_default();
        let url = published.get(name).with_context(|| format!("{} is not published", resource.uri))?;
        let end = start + RANGE - 1;
        writeln!(own, "{url} {start}-{end}")?;
        writeln!(others, "{} {start}-{end}", resource.uri)?;
    }
    let Source::Nginx { server: nginx, .. } = source else { unreachable!("it was started as nginx") };
    let bytes = requests * RANGE;
    Ok(Pair { own: (server, own), nginx: (nginx, others), requests, bytes, is_equal: true })
}

/// The URL of each resource by the last part of its path, as the Resource List has it.
fn published(server: &PublishServer) -> anyhow::Result<HashMap<String, String>> {
    let list = server.get(LIST)?;
    let locations = list.split("<loc>").skip(1).filter_map(|rest| rest.split_once("</loc>"));
    let named = |(url, _): (&str, &str)| Some((url.rsplit('/').next()?.to_owned(), url.to_owned()));
    Ok(locations.filter_map(named).collect())
}
